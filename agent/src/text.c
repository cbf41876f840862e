#include "agent.h"

size_t decimal(char *to, unsigned long value) {
  char digits[20];
  size_t count = 0;
  do digits[count++] = (char)('0' + value % 10);
  while ((value /= 10) > 0);
  for (size_t i = 0; i < count; i++) to[i] = digits[count - 1 - i];
  to[count] = 0;
  return count;
}

bool number(const char **text, uint64_t *value) {
  const char *at = *text;
  *value = 0;
  for (; *at >= '0' && *at <= '9'; at++) {
    uint64_t digit = (uint64_t)(*at - '0');
    if (*value > (UINT64_MAX - digit) / 10) return false;
    *value = *value * 10 + digit;
  }
  bool any = at != *text;
  *text = at;
  return any;
}
