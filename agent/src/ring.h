/* The last bytes of one output stream, with their offsets. Memory is taken at the first byte and given back when empty. */
#ifndef AIDO_RING_H
#define AIDO_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring {
  uint8_t *bytes;
  uint32_t head, length; /* where the first byte lies, and how many there are */
  uint64_t base;         /* offset of the first byte */
};

static inline uint64_t ring_total(const struct ring *r) { return r->base + r->length; }
/* Free space as up to two pieces, at most `limit` bytes; returns their number. 0 when full or out of memory. */
int ring_space(struct ring *r, uint64_t limit, struct iovec piece[2]);
void ring_wrote(struct ring *r, uint32_t length);
/* The bytes from `offset` on, at most `limit`, as up to two pieces; returns their number. */
int ring_peek(const struct ring *r, uint64_t offset, uint32_t limit, struct iovec piece[2]);
/* Forgets everything before `offset`, which lies within base and total. */
void ring_acknowledge(struct ring *r, uint64_t offset);
void ring_free(struct ring *r);

#endif
