/* Blocks of a tar archive: ustar, with pax and GNU headers for what does not fit. */
#ifndef TAR_H
#define TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK 512

typedef struct {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
  char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], padding[12];
} TarBlock;

_Static_assert(sizeof(TarBlock) == TAR_BLOCK, "a tar block has 512 bytes");

unsigned tar_checksum(const TarBlock *block);
bool tar_number(const char *field, size_t size, uint64_t *value);
void tar_octal(char *field, size_t size, uint64_t value);

#endif
