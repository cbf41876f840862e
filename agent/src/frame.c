#include "frame.h"

#include <stdlib.h>
#include <string.h>

#include "protocol.h"

struct reader reader_of(const uint8_t *bytes, size_t length) {
  return (struct reader){.at = bytes, .end = bytes + length};
}

const uint8_t *read_raw(struct reader *r, size_t length) {
  if (r->bad || (size_t)(r->end - r->at) < length) {
    r->bad = true;
    return NULL;
  }
  const uint8_t *bytes = r->at;
  r->at += length;
  return bytes;
}

static uint64_t read_int(struct reader *r, unsigned size) {
  const uint8_t *bytes = read_raw(r, size);
  uint64_t value = 0;
  if (bytes != NULL)
    for (unsigned i = size; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

uint8_t read_u8(struct reader *r) { return (uint8_t)read_int(r, 1); }
uint16_t read_u16(struct reader *r) { return (uint16_t)read_int(r, 2); }
uint32_t read_u32(struct reader *r) { return (uint32_t)read_int(r, 4); }
uint64_t read_u64(struct reader *r) { return read_int(r, 8); }

struct text read_text(struct reader *r) {
  uint32_t length = read_u32(r);
  const uint8_t *bytes = read_raw(r, length);
  if (bytes == NULL || memchr(bytes, 0, length) != NULL) {
    r->bad = true;
    return (struct text){"", 0};
  }
  return (struct text){(const char *)bytes, length};
}

static bool id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

void read_id(struct reader *r, char id[65]) {
  struct text text = read_text(r);
  id[0] = 0;
  if (text.length < 1 || text.length > MAX_ID) r->bad = true;
  for (uint32_t i = 0; !r->bad && i < text.length; i++)
    if (!id_character(text.bytes[i])) r->bad = true;
  if (r->bad) return;
  memcpy(id, text.bytes, text.length);
  id[text.length] = 0;
}

char **read_list(struct reader *r, uint32_t *count) {
  *count = read_u32(r);
  /* Each string has at least its length, so a count that cannot fit is refused before anything is allocated. */
  if (r->bad || *count > (size_t)(r->end - r->at) / 4) {
    r->bad = true;
    return NULL;
  }
  struct reader measure = *r;
  size_t bytes = 0;
  for (uint32_t i = 0; i < *count; i++) bytes += read_text(&measure).length + 1;
  if (measure.bad) {
    r->bad = true;
    return NULL;
  }
  char **list = malloc((*count + 1) * sizeof *list + bytes);
  if (list == NULL) return NULL;
  char *to = (char *)(list + *count + 1);
  for (uint32_t i = 0; i < *count; i++) {
    struct text text = read_text(r);
    list[i] = to;
    memcpy(to, text.bytes, text.length);
    to[text.length] = 0;
    to += text.length + 1;
  }
  list[*count] = NULL;
  return list;
}

bool read_done(const struct reader *r) { return !r->bad && r->at == r->end; }

long frame_length(const uint8_t *bytes, size_t length, size_t limit) {
  if (length < 4) return 0;
  struct reader r = reader_of(bytes, 4);
  uint32_t body = read_u32(&r);
  if (body < 1 || body > limit) return -1;
  return length < (size_t)body + 4 ? 0 : (long)body + 4;
}

bool buffer_reserve(struct buffer *b, size_t length) {
  if (b->capacity - b->offset - b->length >= length) return true;
  if (b->offset > 0 && b->length > 0) memmove(b->bytes, b->bytes + b->offset, b->length);
  b->offset = 0;
  size_t capacity = b->capacity > 0 ? b->capacity : 512;
  while (capacity - b->length < length) capacity *= 2;
  if (capacity == b->capacity) return true;
  uint8_t *grown = realloc(b->bytes, capacity);
  if (grown == NULL) return false;
  b->bytes = grown;
  b->capacity = capacity;
  return true;
}

bool buffer_append(struct buffer *b, const void *bytes, size_t length) {
  if (!buffer_reserve(b, length)) return false;
  if (length > 0) memcpy(b->bytes + b->offset + b->length, bytes, length);
  b->length += length;
  return true;
}

void buffer_consume(struct buffer *b, size_t length) {
  b->offset += length;
  b->length -= length;
  if (b->length > 0) return;
  b->offset = 0;
}

void buffer_shrink(struct buffer *b) {
  if (b->length == 0 && b->capacity > BUFFER_SMALL) buffer_free(b);
}

void buffer_free(struct buffer *b) {
  free(b->bytes);
  *b = (struct buffer){0};
}

void store_u32(uint8_t *to, uint32_t v) {
  for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> 8 * i);
}

void store_u64(uint8_t *to, uint64_t v) {
  for (int i = 0; i < 8; i++) to[i] = (uint8_t)(v >> 8 * i);
}

static void put(struct writer *w, const void *bytes, size_t length) {
  if (!w->failed && !buffer_append(w->to, bytes, length)) w->failed = true;
}

struct writer frame_begin(struct buffer *to, uint8_t type) {
  struct writer w = {.to = to, .start = to->length};
  put_u32(&w, 0);
  put_u8(&w, type);
  return w;
}

void put_u8(struct writer *w, uint8_t v) { put(w, &v, 1); }

void put_u16(struct writer *w, uint16_t v) {
  put_u8(w, (uint8_t)v);
  put_u8(w, (uint8_t)(v >> 8));
}

void put_u32(struct writer *w, uint32_t v) {
  uint8_t bytes[4];
  store_u32(bytes, v);
  put(w, bytes, 4);
}

void put_u64(struct writer *w, uint64_t v) {
  uint8_t bytes[8];
  store_u64(bytes, v);
  put(w, bytes, 8);
}

void put_text(struct writer *w, const char *text) {
  put_u32(w, (uint32_t)strlen(text));
  put(w, text, strlen(text));
}

bool frame_end(struct writer *w) {
  if (w->failed) {
    w->to->length = w->start;
    return false;
  }
  store_u32(w->to->bytes + w->to->offset + w->start, (uint32_t)(w->to->length - w->start - 4));
  return true;
}
