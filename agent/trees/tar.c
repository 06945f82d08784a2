#include "tar.h"

#include <string.h>

unsigned tar_checksum(const TarBlock *block) {
  const uint8_t *bytes = (const uint8_t *)block;
  unsigned sum = 0;
  for (size_t i = 0; i < TAR_BLOCK; i++) {
    bool own = i >= offsetof(TarBlock, checksum) && i < offsetof(TarBlock, checksum) + sizeof block->checksum;
    sum += own ? ' ' : bytes[i];
  }
  return sum;
}

bool tar_number(const char *field, size_t size, uint64_t *value) {
  uint64_t v = 0;
  if ((field[0] & 0x80) != 0) { /* GNU: the number itself */
    v = (uint8_t)field[0] & 0x7f;
    for (size_t i = 1; i < size; i++) {
      if (v > INT64_MAX >> 8) return false;
      v = v << 8 | (uint8_t)field[i];
    }
    *value = v;
    return v <= INT64_MAX;
  }
  size_t i = 0;
  while (i < size && field[i] == ' ') i++;
  for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
    if (v > INT64_MAX >> 3) return false;
    v = v << 3 | (uint64_t)(field[i] - '0');
  }
  for (; i < size; i++) {
    if (field[i] != ' ' && field[i] != 0) return false;
  }
  *value = v;
  return true;
}

void tar_octal(char *field, size_t size, uint64_t value) {
  field[size - 1] = 0;
  for (size_t i = size - 1; i > 0; i--, value >>= 3) field[i - 1] = (char)('0' + (value & 7));
}
