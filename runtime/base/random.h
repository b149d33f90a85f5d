// xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018), seeded by splitmix64.
// Searches and learners use this generator. (Random ops of graphs use TensorFlow's Philox, in runtime/ops.) Each state
// belongs to one thread.
#ifndef TFC_RUNTIME_BASE_RANDOM_H
#define TFC_RUNTIME_BASE_RANDOM_H

#include <stdint.h>

struct tfc_random {
  uint64_t state[4];
};

static inline uint64_t tfc_splitmix64(uint64_t *state) {
  uint64_t x = (*state += 0x9e3779b97f4a7c15u);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
static inline void tfc_random_init(struct tfc_random *r, uint64_t seed) {
  for (int i = 0; i < 4; i++) r->state[i] = tfc_splitmix64(&seed);
}
static inline uint64_t tfc_random_u64(struct tfc_random *r) {
  uint64_t *s = r->state, result = s[1] * 5;
  result = ((result << 7) | (result >> 57)) * 9;
  uint64_t t = s[1] << 17;
  s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t;
  s[3] = (s[3] << 45) | (s[3] >> 19);
  return result;
}
// Returns a uniform number in [0, n), n > 0 (Lemire 2019, with a bias of at most n / 2^64).
static inline uint64_t tfc_random_below(struct tfc_random *r, uint64_t n) {
  return (uint64_t)(((unsigned __int128)tfc_random_u64(r) * n) >> 64);
}
static inline double tfc_random_unit(struct tfc_random *r) { // [0, 1)
  return (double)(tfc_random_u64(r) >> 11) * 0x1p-53;
}
double tfc_random_normal(struct tfc_random *r); // Box–Muller

#endif
