#include "ring.h"

#include <stddef.h>
#include <sys/mman.h>

#include "protocol.h"

static int pieces(const struct ring *r, uint32_t start, uint32_t length, struct iovec piece[2]) {
  if (length == 0) return 0;
  start %= RING_BYTES;
  uint32_t first = length < RING_BYTES - start ? length : RING_BYTES - start;
  piece[0] = (struct iovec){r->bytes + start, first};
  if (first == length) return 1;
  piece[1] = (struct iovec){r->bytes, length - first};
  return 2;
}

int ring_space(struct ring *r, uint64_t limit, struct iovec piece[2]) {
  uint32_t space = RING_BYTES - r->length;
  if (limit < space) space = (uint32_t)limit;
  if (space == 0) return 0;
  if (r->bytes == NULL) {
    void *bytes = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) return 0;
    r->bytes = bytes;
  }
  return pieces(r, r->head + r->length, space, piece);
}

void ring_wrote(struct ring *r, uint32_t length) { r->length += length; }

int ring_peek(const struct ring *r, uint64_t offset, uint32_t limit, struct iovec piece[2]) {
  uint32_t skip = (uint32_t)(offset - r->base);
  uint32_t length = r->length - skip;
  return pieces(r, r->head + skip, length < limit ? length : limit, piece);
}

void ring_acknowledge(struct ring *r, uint64_t offset) {
  uint32_t length = (uint32_t)(offset - r->base);
  r->base = offset;
  r->length -= length;
  /* An empty ring starts over, so that small outputs keep touching the same few pages. */
  r->head = r->length == 0 ? 0 : (r->head + length) % RING_BYTES;
}

void ring_free(struct ring *r) {
  if (r->bytes != NULL) munmap(r->bytes, RING_BYTES);
  r->bytes = NULL;
}
