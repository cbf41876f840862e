/* The block that heads every member of a tar archive. */
#ifndef AIDO_TOOL_TAR_H
#define AIDO_TOOL_TAR_H

#include <stddef.h>

#define TAR_BLOCK 512

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is one block");

/* The sum of all bytes with the checksum field as blanks; old writers summed signed ones. */
static inline long tar_checksum(const struct tar_header *header, int is_signed)
{
    long sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        char byte = i >= offsetof(struct tar_header, checksum) && i < offsetof(struct tar_header, type)
                        ? ' '
                        : ((const char *)header)[i];
        sum += is_signed ? (signed char)byte : (unsigned char)byte;
    }
    return sum;
}

#endif
