#include "runtime/ops/string_hash.h"

// --- FarmHash --------------------------------------------------------------------------------------------------------
#define K0 0xc3a5c85c97cb3127ull
#define K1 0xb492b66fbe98f273ull
#define K2 0x9ae16a3b2f90404full

static uint64_t fetch64(const char *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static uint64_t fetch32(const char *p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}
static uint64_t rotate(uint64_t v, int by) {
  return v >> by | v << (64 - by);
}
static uint64_t shift_mix(uint64_t v) {
  return v ^ v >> 47;
}
static uint64_t mix16(uint64_t u, uint64_t v, uint64_t mul) {
  uint64_t a = shift_mix((u ^ v) * mul), b = shift_mix((v ^ a) * mul);
  return b * mul;
}

static uint64_t hash_to_16(const char *s, size_t n) {
  uint64_t mul = K2 + n * 2;
  if (n >= 8) {
    uint64_t a = fetch64(s) + K2, b = fetch64(s + n - 8);
    return mix16(rotate(b, 37) * mul + a, (rotate(a, 25) + b) * mul, mul);
  }
  if (n >= 4) return mix16(n + (fetch32(s) << 3), fetch32(s + n - 4), mul);
  if (n == 0) return K2;
  uint32_t a = (uint8_t)s[0], b = (uint8_t)s[n >> 1], c = (uint8_t)s[n - 1];
  uint32_t y = a + (b << 8), z = (uint32_t)n + (c << 2);
  return shift_mix(y * K2 ^ z * K0) * K2;
}

static uint64_t hash_to_32(const char *s, size_t n) {
  uint64_t mul = K2 + n * 2, a = fetch64(s) * K1, b = fetch64(s + 8), c = fetch64(s + n - 8) * mul;
  uint64_t d = fetch64(s + n - 16) * K2;
  return mix16(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + K2, 18) + c, mul);
}

static uint64_t hash_to_64(const char *s, size_t n) {
  uint64_t mul = K2 + n * 2, a = fetch64(s) * K2, b = fetch64(s + 8), c = fetch64(s + n - 8) * mul;
  uint64_t d = fetch64(s + n - 16) * K2, y = rotate(a + b, 43) + rotate(c, 30) + d;
  uint64_t z = mix16(y, a + rotate(b + K2, 18) + c, mul), e = fetch64(s + 16) * mul, f = fetch64(s + 24);
  uint64_t g = (y + fetch64(s + n - 32)) * mul, h = (z + fetch64(s + n - 24)) * mul;
  return mix16(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, mul);
}

struct pair {
  uint64_t a, b;
};
static struct pair weak32(const char *s, uint64_t a, uint64_t b) { // of 32 bytes, with two seeds
  a += fetch64(s);
  b = rotate(b + a + fetch64(s + 24), 21);
  uint64_t c = a;
  a += fetch64(s + 8);
  a += fetch64(s + 16);
  b += rotate(a, 44);
  return (struct pair){a + fetch64(s + 24), b + c};
}

uint64_t tfc_fingerprint64(tfc_str text) {
  const char *s = text.data;
  size_t n = text.size;
  if (n <= 16) return hash_to_16(s, n);
  if (n <= 32) return hash_to_32(s, n);
  if (n <= 64) return hash_to_64(s, n);
  const char *end = s + (n - 1) / 64 * 64, *last = end + ((n - 1) & 63) - 63;
  uint64_t x = 81, y = 81 * K1 + 113, z = shift_mix(y * K2 + 113) * K2, mul = K1;
  struct pair v = {0, 0}, w = {0, 0};
  x = x * K2 + fetch64(s);
  for (;;) { // 64 bytes at a time; the last 64 bytes, which may overlap the ones before, use other constants
    bool final = s == end;
    if (final) {
      mul = K1 + ((z & 0xff) << 1);
      s = last;
      w.a += (n - 1) & 63;
      v.a += w.a;
      w.a += v.a;
    }
    x = rotate(x + y + v.a + fetch64(s + 8), 37) * mul;
    y = rotate(y + v.b + fetch64(s + 48), 42) * mul;
    x ^= final ? w.b * 9 : w.b;
    y += (final ? v.a * 9 : v.a) + fetch64(s + 40);
    z = rotate(z + w.a, 33) * mul;
    v = weak32(s, v.b * mul, x + w.a);
    w = weak32(s + 32, z + w.b, y + fetch64(s + 16));
    uint64_t t = z;
    z = x, x = t;
    if (final) break;
    s += 64;
  }
  return mix16(mix16(v.a, w.a, mul) + shift_mix(y) * K0 + z, mix16(v.b, w.b, mul) + x, mul);
}

// --- MurmurHash and SipHash ------------------------------------------------------------------------------------------
static uint64_t word_at(const char *p, size_t n) { // up to 8 bytes, the first one lowest
  uint64_t v = 0;
  for (size_t i = 0; i < n; i++) v |= (uint64_t)(uint8_t)p[i] << (8 * i);
  return v;
}

uint64_t tfc_murmur_hash64(tfc_str s, const uint64_t *unused) {
  const uint64_t m = 0xc6a4a7935bd1e995u;
  uint64_t h = 0xDECAFCAFFEu ^ s.size * m;
  size_t i = 0;
  (void)unused;
  for (; i + 8 <= s.size; i += 8) {
    uint64_t k = word_at(s.data + i, 8) * m;
    k = (k ^ k >> 47) * m;
    h = (h ^ k) * m;
  }
  if (i < s.size) h = (h ^ word_at(s.data + i, s.size - i)) * m;
  h = (h ^ h >> 47) * m;
  return h ^ h >> 47;
}

static uint64_t rotate_left(uint64_t v, int by) {
  return v << by | v >> (64 - by);
}
static void sip_round(uint64_t v[4]) {
  v[0] += v[1], v[1] = rotate_left(v[1], 13) ^ v[0], v[0] = rotate_left(v[0], 32);
  v[2] += v[3], v[3] = rotate_left(v[3], 16) ^ v[2];
  v[0] += v[3], v[3] = rotate_left(v[3], 21) ^ v[0];
  v[2] += v[1], v[1] = rotate_left(v[1], 17) ^ v[2], v[2] = rotate_left(v[2], 32);
}
uint64_t tfc_keyed_hash64(tfc_str s, const uint64_t *key) {
  uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                   key[1] ^ 0x7465646279746573u};
  for (size_t i = 0;; i += 8) {
    bool last = i + 8 > s.size;
    uint64_t m = word_at(s.size ? s.data + i : "", last ? s.size - i : 8) | (last ? (uint64_t)s.size << 56 : 0);
    v[3] ^= m;
    sip_round(v);
    sip_round(v);
    v[0] ^= m;
    if (last) break;
  }
  v[2] ^= 0xff;
  for (int i = 0; i < 4; i++) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
