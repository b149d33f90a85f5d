#include "placer/elsewhere/bandit.h"

#include <math.h>
#include <string.h>

static const double unearned = 0.25; // share of the measurements for learned policies that have not won

static uint32_t arm_of(const struct tfc_elsewhere_arm *arms, uint32_t count, const char *algorithm) {
  uint32_t rest = TFC_NONE;
  for (uint32_t i = 0; i < count; i++) {
    if (!arms[i].proposer) rest = i;
    if (arms[i].proposer && strcmp(arms[i].proposer, algorithm) == 0) return i;
  }
  return rest;
}

void tfc_elsewhere_divide(const struct tfc_elsewhere *r, struct tfc_random *random, struct tfc_elsewhere_arm *arms,
                          uint32_t count, uint32_t places) {
  enum { MOST = 8 };
  double measured[MOST] = {0}, won[MOST] = {0};
  if (count > MOST) count = MOST;
  for (size_t i = 0; i < r->known.count; i++) {
    const struct tfc_elsewhere_known *k = &r->known.data[i];
    const uint32_t arm = k->baseline || !k->algorithm || !k->readings ? TFC_NONE : arm_of(arms, count, k->algorithm);
    if (arm != TFC_NONE) measured[arm]++, won[arm] += k->won;
  }
  for (uint32_t i = 0; i < count; i++) arms[i].places = 0;
  for (; count && places; places--) {
    uint32_t best = 0;
    double most = -INFINITY;
    for (uint32_t i = 0; i < count; i++) { // a normal distribution in place of Beta(1 + won, 1 + lost)
      const double n = measured[i], mean = (won[i] + 1) / (n + 2), sd = sqrt(mean * (1 - mean) / (n + 3));
      const double draw = mean + sd * tfc_random_normal(random);
      if (draw > most) most = draw, best = i;
    }
    arms[best].places++;
  }
}

bool tfc_elsewhere_is_learned(const char *algorithm) {
  const size_t size = strlen(algorithm);
  return strcmp(algorithm, "rl") == 0 || (size >= 6 && strcmp(algorithm + size - 6, "policy") == 0);
}

bool tfc_elsewhere_may_propose(const struct tfc_elsewhere *r, const char *algorithm, uint32_t pending) {
  uint32_t spent = pending;
  if (!algorithm || !tfc_elsewhere_is_learned(algorithm)) return true;
  for (size_t i = 0; i < r->known.count; i++) {
    const struct tfc_elsewhere_known *k = &r->known.data[i];
    if (!k->algorithm || !k->readings || !tfc_elsewhere_is_learned(k->algorithm)) continue;
    if (k->won) return true;
    spent++;
  }
  return spent < unearned * ((double)r->known.count + tfc_elsewhere_left(r));
}
