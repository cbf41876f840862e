/* Standard streams, failures and arguments of the builtin tools. */
#ifndef AIDO_TOOL_IO_H
#define AIDO_TOOL_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define TOOL_BUFFER 65536

/* Called before a failing tool ends, for what must not stay behind. */
extern void (*tool_cleanup)(void);

/* Writes `ERRNO-NAME message[: detail]` to standard error and ends the process with 1. */
_Noreturn void tool_fail(int error, const char *detail);
_Noreturn void tool_usage(const char *usage);

void *tool_alloc(void *old, size_t size);
uint64_t tool_number(const char *text, int base, uint64_t max);
/* Both valid until the next call. printf would double the size of the binary. */
char *tool_decimal(uint64_t value);
const char *tool_fd_path(int fd);
/* Opens the root or a directory beneath it for reading, or fails. */
int tool_root(const char *root);
int tool_directory(const char *root, const char *path);

void out_bytes(const void *bytes, size_t size);
void out_zeros(uint64_t size);
void out_u8(uint8_t value);
void out_u32(uint32_t value);
void out_u64(uint64_t value);
void out_str(const char *text, size_t size);
void out_flush(void);

/* A record as the protocol page lays it out; dir and name are where the entry is, for a link's target. */
void out_record(int dir, const char *name, const struct stat *st, const char *path, size_t path_size);

/* Reads once from fd; 0 at the end, never -1: a failure ends the tool. */
size_t in_some(int fd, void *buffer, size_t size);
/* Calls take for each path on standard input, ended by NUL; what it writes is sent before more is waited for. */
void in_paths(int base, void (*take)(int base, const char *path));
/* Writes all; false with errno set when that fails. */
bool write_all(int fd, const void *bytes, size_t size);
uint64_t time_ns(struct timespec time);

int tool_read(int argc, char **argv);
int tool_cat(int argc, char **argv);
int tool_write(int argc, char **argv);
int tool_stat(int argc, char **argv);
int tool_list(int argc, char **argv);
int tool_scan(int argc, char **argv);
int tool_du(int argc, char **argv);
int tool_mkdir(int argc, char **argv);
int tool_move(int argc, char **argv);
int tool_remove(int argc, char **argv);
int tool_prune(int argc, char **argv);
int tool_dial(int argc, char **argv);
int tool_offer(int argc, char **argv);
int tool_tar(int argc, char **argv);
int tool_untar(int argc, char **argv);
int tool_watch(int argc, char **argv);

#endif
