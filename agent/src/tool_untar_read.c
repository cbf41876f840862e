#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tool_io.h"
#include "tool_tar.h"
#include "tool_untar.h"

/* Longest extended header or long name that is believed. */
#define EXTRA_MAX (1u << 20)
/* More than any pipe holds. */
#define MOVE_MAX (1u << 20)

/* A text that an extended header gave for the next member. */
struct extra {
    char *text;
    bool set;
};

static struct extra extra_path, extra_link;
static uint64_t extra_size;
static bool has_extra_size;
static struct timespec extra_modified;
static bool has_extra_modified;
static uint64_t content_left, padding_left;

static _Noreturn void broken(const char *what)
{
    tool_fail(EBADMSG, what);
}

static void read_exactly(void *buffer, size_t size)
{
    char *at = buffer;
    while (size > 0) {
        size_t n = in_some(0, at, size);
        if (n == 0)
            broken("the archive is cut off");
        at += n;
        size -= n;
    }
}

size_t member_read(void *buffer, size_t size)
{
    if (content_left < size)
        size = (size_t)content_left;
    if (size == 0)
        return 0;
    size_t n = in_some(0, buffer, size);
    if (n == 0)
        broken("the archive is cut off");
    content_left -= n;
    return n;
}

void member_move(int fd)
{
    /* An error says nothing yet: whoever reads on and writes meets it again, and can tell it from what is not possible here. */
    while (content_left > 0) {
        size_t size = content_left < MOVE_MAX ? (size_t)content_left : MOVE_MAX;
        ssize_t n = splice(0, NULL, fd, NULL, size, 0);
        if (n > 0)
            content_left -= (uint64_t)n;
        else if (n == 0 || errno != EINTR)
            return;
    }
}

static void skip_content(void)
{
    char buffer[TAR_BLOCK * 8];
    while (content_left > 0)
        member_read(buffer, sizeof buffer);
    read_exactly(buffer, (size_t)padding_left);
    padding_left = 0;
}

static uint64_t field_number(const char *field, size_t size)
{
    uint64_t value = 0;
    /* GNU tar writes what does not fit in octal as a big-endian number after a set bit. */
    if ((unsigned char)field[0] == 0x80) {
        for (size_t i = 1; i < size; i++) {
            if (value >> 55)
                broken("a number is too large");
            value = value << 8 | (unsigned char)field[i];
        }
        return value;
    }
    if ((unsigned char)field[0] == 0xff)
        return 0;
    size_t i = 0;
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0');
    if (i < size && field[i] != ' ' && field[i] != '\0')
        broken("a number is not one");
    return value;
}

static void set_extra(struct extra *extra, const char *text, size_t size)
{
    if (memchr(text, '\0', size))
        broken("a name holds a NUL");
    extra->text = tool_alloc(extra->text, size + 1);
    memcpy(extra->text, text, size);
    extra->text[size] = '\0';
    extra->set = true;
}

static uint64_t decimal(const char *text, size_t size, size_t *used)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < size && text[i] >= '0' && text[i] <= '9'; i++) {
        if (value > (uint64_t)INT64_MAX / 10 - 9)
            broken("a number is too large");
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *used = i;
    return value;
}

static void pax_time(const char *text, size_t size)
{
    size_t used;
    extra_modified.tv_sec = (time_t)decimal(text, size, &used);
    extra_modified.tv_nsec = 0;
    has_extra_modified = used > 0;
    long unit = 100000000;
    if (used < size && text[used] == '.')
        for (size_t i = used + 1; i < size && text[i] >= '0' && text[i] <= '9'; i++, unit /= 10)
            extra_modified.tv_nsec += (text[i] - '0') * unit;
}

static void pax_record(const char *key, size_t key_size, const char *value, size_t value_size)
{
#define IS(text) (key_size == sizeof text - 1 && memcmp(key, text, key_size) == 0)
    size_t used;
    if (IS("path")) {
        set_extra(&extra_path, value, value_size);
    } else if (IS("linkpath")) {
        set_extra(&extra_link, value, value_size);
    } else if (IS("mtime")) {
        pax_time(value, value_size);
    } else if (IS("size")) {
        extra_size = decimal(value, value_size, &used);
        if (used == 0 || used != value_size)
            broken("a number is not one");
        has_extra_size = true;
    } else if (key_size >= 10 && memcmp(key, "GNU.sparse", 10) == 0) {
        tool_fail(ENOTSUP, "a sparse member");
    }
#undef IS
}

static void pax_parse(const char *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t digits;
        uint64_t length = decimal(data + at, size - at, &digits);
        if (digits == 0 || length > size - at || length < digits + 3 || data[at + digits] != ' ' ||
            data[at + length - 1] != '\n')
            broken("an extended header");
        const char *key = data + at + digits + 1;
        size_t left = (size_t)length - digits - 2;
        const char *equals = memchr(key, '=', left);
        if (!equals)
            broken("an extended header");
        size_t key_size = (size_t)(equals - key);
        pax_record(key, key_size, equals + 1, left - key_size - 1);
        at += (size_t)length;
    }
}

/* Takes in a header that only says something about the next member; false for a member. */
static bool take_extra(char type)
{
    if (type != 'x' && type != 'g' && type != 'L' && type != 'K')
        return false;
    if (content_left > EXTRA_MAX)
        broken("an extended header is too long");
    size_t size = (size_t)content_left;
    char *data = tool_alloc(NULL, size + 1);
    read_exactly(data, size);
    content_left = 0;
    data[size] = '\0';
    if (type == 'x')
        pax_parse(data, size);
    else if (type != 'g')
        set_extra(type == 'L' ? &extra_path : &extra_link, data, strlen(data));
    free(data);
    return true;
}

static bool is_zero(const struct tar_header *header)
{
    for (size_t i = 0; i < TAR_BLOCK; i++)
        if (((const char *)header)[i])
            return false;
    return true;
}

static void put_names(const struct tar_header *header, struct member *member)
{
    static char name[sizeof header->prefix + sizeof header->name + 2], link[sizeof header->link + 1];
    size_t used = 0;
    /* GNU's own format keeps times where ustar has the prefix. */
    if (memcmp(header->magic, "ustar\0", 6) == 0 && header->prefix[0]) {
        used = strnlen(header->prefix, sizeof header->prefix);
        memcpy(name, header->prefix, used);
        name[used++] = '/';
    }
    size_t size = strnlen(header->name, sizeof header->name);
    memcpy(name + used, header->name, size);
    name[used + size] = '\0';
    size = strnlen(header->link, sizeof header->link);
    memcpy(link, header->link, size);
    link[size] = '\0';
    member->path = extra_path.set ? extra_path.text : name;
    member->link = extra_link.set ? extra_link.text : link;
}

bool member_next(struct member *member)
{
    static struct tar_header header;
    extra_path.set = extra_link.set = has_extra_size = has_extra_modified = false;
    do {
        skip_content();
        read_exactly(&header, sizeof header);
        if (is_zero(&header))
            return false;
        long sum = (long)field_number(header.checksum, sizeof header.checksum);
        if (sum != tar_checksum(&header, 0) && sum != tar_checksum(&header, 1))
            broken("a checksum is wrong");
        bool plain = header.type != 'x' && header.type != 'g' && header.type != 'L' && header.type != 'K';
        content_left = plain && has_extra_size ? extra_size : field_number(header.size, sizeof header.size);
        padding_left = (TAR_BLOCK - content_left % TAR_BLOCK) % TAR_BLOCK;
    } while (take_extra(header.type));
    member->type = header.type;
    member->mode = (mode_t)field_number(header.mode, sizeof header.mode) & 0777;
    member->size = content_left;
    member->modified = (struct timespec){.tv_sec = (time_t)field_number(header.mtime, sizeof header.mtime)};
    if (has_extra_modified)
        member->modified = extra_modified;
    put_names(&header, member);
    /* Before there was a type for directories, a slash at the end said so. */
    size_t size = strlen(member->path);
    if ((member->type == '0' || member->type == '\0') && size > 0 && member->path[size - 1] == '/')
        member->type = '5';
    /* Members of these types have no content, whatever their size says of it. */
    if (member->type == '2' || member->type == '5')
        content_left = padding_left = 0;
    return true;
}
