#include "runtime/base/sha256.h"

// The constants are the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n) {
  return (x >> n) | (x << (32 - n));
}

static void block(uint32_t h[8], const uint8_t *p) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++, p += 4) w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ (a >> 3)) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ (b >> 10));
  }
  memcpy(v, h, sizeof v);
#pragma GCC unroll 8
  for (int i = 0; i < 64; i++) { // the variables a to h of the standard move by one place in each round
    const uint32_t a = v[-i & 7], b = v[(1 - i) & 7], c = v[(2 - i) & 7], e = v[(4 - i) & 7], f = v[(5 - i) & 7];
    uint32_t s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25), ch = (e & f) ^ (~e & v[(6 - i) & 7]);
    uint32_t t1 = v[(7 - i) & 7] + s1 + ch + k[i] + w[i];
    uint32_t s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22), t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    v[(3 - i) & 7] += t1;
    v[(7 - i) & 7] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) h[i] += v[i];
}

void tfc_sha256(tfc_str data, char out_hex[65]) {
  uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const uint8_t *p = (const uint8_t *)data.data;
  size_t left = data.size;
  for (; left >= 64; left -= 64, p += 64) block(h, p);
  uint8_t tail[128] = {0};
  if (left) memcpy(tail, p, left);
  tail[left] = 0x80;
  size_t size = left < 56 ? 64 : 128;
  for (int i = 0; i < 8; i++) tail[size - 1 - (size_t)i] = (uint8_t)((uint64_t)data.size * 8 >> (8 * i));
  for (size_t at = 0; at < size; at += 64) block(h, tail + at);
  for (int i = 0; i < 64; i++) out_hex[i] = "0123456789abcdef"[(h[i / 8] >> (28 - 4 * (i % 8))) & 15];
  out_hex[64] = 0;
}
