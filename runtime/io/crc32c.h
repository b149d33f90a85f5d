// CRC-32C (Castagnoli), and the masked form in which TensorFlow stores it: rotated right by 15 bits, plus 0xa282ead8.
// (A checksum of data that contains unmasked checksums would be weak.)
#ifndef TFC_RUNTIME_IO_CRC32C_H
#define TFC_RUNTIME_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t tfc_crc32c(uint32_t crc, const void *data, size_t size); // continues from `crc`; a new checksum begins with 0
static inline uint32_t tfc_crc32c_mask(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

#endif
