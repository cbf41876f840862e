/* Reading and writing the fields of a frame. Nothing here trusts a length it was given. */
#ifndef AIDO_FRAME_H
#define AIDO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A cursor over one frame's body. `bad` sticks: after a failed read every later one returns zero. */
struct reader {
  const uint8_t *at, *end;
  bool bad;
};

struct text {
  const char *bytes;
  uint32_t length;
};

/* A growing buffer of bytes that wait to be sent: `offset` of the first, `length` of the rest. */
struct buffer {
  uint8_t *bytes;
  size_t offset, length, capacity;
};

struct reader reader_of(const uint8_t *bytes, size_t length);
uint8_t read_u8(struct reader *r);
uint16_t read_u16(struct reader *r);
uint32_t read_u32(struct reader *r);
uint64_t read_u64(struct reader *r);
const uint8_t *read_raw(struct reader *r, size_t length);
struct text read_text(struct reader *r);
/* An id is copied to `id` with its NUL. */
void read_id(struct reader *r, char id[65]);
/* A list becomes one allocation: the NULL-terminated array, then its strings. NULL when bad or out of memory. */
char **read_list(struct reader *r, uint32_t *count);
/* True when every field was there and nothing is left. */
bool read_done(const struct reader *r);

/* Length of the frame that starts at `bytes`, header included; 0 when more bytes are needed, -1 when it is refused. */
long frame_length(const uint8_t *bytes, size_t length, size_t limit);

static inline uint8_t *buffer_start(const struct buffer *b) { return b->length > 0 ? b->bytes + b->offset : b->bytes; }
bool buffer_append(struct buffer *b, const void *bytes, size_t length);
/* Room for so much more behind what it has. */
bool buffer_reserve(struct buffer *b, size_t length);
void buffer_consume(struct buffer *b, size_t length);
/* Gives back what an empty buffer has grown to, unless that is small. */
enum { BUFFER_SMALL = 4096 };
void buffer_shrink(struct buffer *b);
void buffer_free(struct buffer *b);

/* A frame under construction in a buffer; memory running out is remembered in `failed`. */
struct writer {
  struct buffer *to;
  size_t start;
  bool failed;
};

struct writer frame_begin(struct buffer *to, uint8_t type);
void put_u8(struct writer *w, uint8_t v);
void put_u16(struct writer *w, uint16_t v);
void put_u32(struct writer *w, uint32_t v);
void put_u64(struct writer *w, uint64_t v);
void put_text(struct writer *w, const char *text);
/* False when memory ran out; the buffer is then as it was before. */
bool frame_end(struct writer *w);
void store_u32(uint8_t *to, uint32_t v);
void store_u64(uint8_t *to, uint64_t v);

#endif
