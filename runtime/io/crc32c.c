// Computes the checksum of eight bytes at a time, by the processor's instruction if it has one, else by eight tables.
#include "runtime/io/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static uint32_t tables[8][256];
static bool has_instruction;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = (c >> 1) ^ (c & 1 ? 0x82f63b78u : 0);
    tables[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; i++)
    for (int k = 1; k < 8; k++) tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 255];
#if defined(__x86_64__)
  has_instruction = __builtin_cpu_supports("sse4.2");
#endif
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t size) {
  uint64_t c = crc;
  for (; size >= 8; p += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    c = __builtin_ia32_crc32di(c, word);
  }
  uint32_t r = (uint32_t)c;
  for (; size; p++, size--) r = __builtin_ia32_crc32qi(r, *p);
  return r;
}
#endif

static uint32_t by_tables(uint32_t crc, const uint8_t *p, size_t size) {
  for (; size >= 8; p += 8, size -= 8) {
    uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^ tables[4][low >> 24] ^
          tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
  }
  for (; size; p++, size--) crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 255];
  return crc;
}

uint32_t tfc_crc32c(uint32_t crc, const void *data, size_t size) {
  pthread_once(&once, prepare);
  crc = ~crc;
#if defined(__x86_64__)
  if (has_instruction) return ~by_instruction(crc, data, size);
#endif
  return ~by_tables(crc, data, size);
}
