// Philox 4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011),
// and the way in which TensorFlow makes numbers from its output: the same seeds give the same numbers.
//
// A generator is a value: copy it, skip it, draw from it. One draw is 128 bits.
#ifndef TFC_RUNTIME_OPS_RANDOM_PHILOX_H
#define TFC_RUNTIME_OPS_RANDOM_PHILOX_H

#include <math.h>
#include <stdint.h>
#include <string.h>

struct tfc_philox {
  uint32_t counter[4], key[2];
};

static inline struct tfc_philox tfc_philox_seed(uint64_t low, uint64_t high) {
  return (struct tfc_philox){{0, 0, (uint32_t)high, (uint32_t)(high >> 32)}, {(uint32_t)low, (uint32_t)(low >> 32)}};
}

// Skips `count` draws. (As in TensorFlow, a carry out of the low 64 bits goes into the third word.)
static inline void tfc_philox_skip(struct tfc_philox *p, uint64_t count) {
  uint64_t low = (uint64_t)p->counter[1] << 32 | p->counter[0], sum = low + count;
  p->counter[0] = (uint32_t)sum;
  p->counter[1] = (uint32_t)(sum >> 32);
  if (sum < low && ++p->counter[2] == 0) p->counter[3]++;
}

static inline void tfc_philox_draw(struct tfc_philox *p, uint32_t out[4]) {
  uint32_t c0 = p->counter[0], c1 = p->counter[1], c2 = p->counter[2], c3 = p->counter[3];
  uint32_t k0 = p->key[0], k1 = p->key[1];
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)b;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
  tfc_philox_skip(p, 1);
}

// Turns random bits into a number in [0, 1): the bits become the mantissa of a number in [1, 2), and 1 is subtracted.
static inline float tfc_bits_to_float(uint32_t x) {
  union {
    uint32_t u;
    float f;
  } v = {(x & 0x7fffffu) | 0x3f800000u};
  return v.f - 1.0f;
}
static inline double tfc_bits_to_double(uint32_t x0, uint32_t x1) {
  union {
    uint64_t u;
    double f;
  } v = {((uint64_t)(x0 & 0xfffffu) << 32 | x1) | (uint64_t)1023 << 52};
  return v.f - 1.0;
}

// Turns two words into two independent standard normal numbers (Box and Muller 1958).
static inline void tfc_box_muller_float(uint32_t x0, uint32_t x1, float out[2]) {
  float u1 = tfc_bits_to_float(x0);
  if (u1 < 1.0e-7f) u1 = 1.0e-7f;
  float v1 = (float)(2.0 * M_PI * (double)tfc_bits_to_float(x1));
  float u2 = sqrtf(-2.0f * logf(u1));
  sincosf(v1, &out[0], &out[1]);
  out[0] *= u2, out[1] *= u2;
}
static inline void tfc_box_muller_double(const uint32_t x[4], double out[2]) {
  double u1 = tfc_bits_to_double(x[0], x[1]);
  if (u1 < 1.0e-7) u1 = 1.0e-7;
  double v1 = 2 * M_PI * tfc_bits_to_double(x[2], x[3]);
  double u2 = sqrt(-2.0 * log(u1));
  sincos(v1, &out[0], &out[1]);
  out[0] *= u2, out[1] *= u2;
}

// Makes doubles from a generator's draws, two from each, the second one first; uniform ones are in [0, 1).
struct tfc_philox_pairs {
  struct tfc_philox *p;
  double values[2];
  int left;
};
static inline double tfc_philox_uniform(struct tfc_philox_pairs *u) {
  if (u->left == 0) {
    uint32_t w[4];
    tfc_philox_draw(u->p, w);
    u->values[0] = tfc_bits_to_double(w[0], w[1]);
    u->values[1] = tfc_bits_to_double(w[2], w[3]);
    u->left = 2;
  }
  return u->values[--u->left];
}

// Takes the words of the draws one at a time.
struct tfc_philox_words {
  struct tfc_philox *generator;
  uint32_t words[4];
  int used;
};
static inline struct tfc_philox_words tfc_philox_words(struct tfc_philox *p) {
  return (struct tfc_philox_words){.generator = p, .used = 4};
}
static inline uint32_t tfc_philox_word(struct tfc_philox_words *w) {
  if (w->used == 4) tfc_philox_draw(w->generator, w->words), w->used = 0;
  return w->words[w->used++];
}
// Returns a uniform number below n > 0: words in the last, incomplete multiple of n are rejected.
static inline uint32_t tfc_philox_below(struct tfc_philox_words *w, uint32_t n) {
  if ((n & (n - 1)) == 0) return tfc_philox_word(w) & (n - 1);
  uint32_t rest = UINT32_MAX % n + 1, v;
  do v = tfc_philox_word(w);
  while (v < rest);
  return v % n;
}

#endif
