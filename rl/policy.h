// Policy: what was learned on many graphs and is used on another one. A handful of heads, each the weights of one way
// to place (rl/rollout.h); no way is best everywhere, and together they cover what training met. Read from and written
// to JSON (the format "tfc-policy"), with the sha256 of the graphs that it saw.
#ifndef TFC_RL_POLICY_H
#define TFC_RL_POLICY_H

#include <pthread.h>

#include "placer/algo/guide.h"
#include "rl/rollout.h"

#define TFC_MAX_HEADS 64u

struct tfc_policy_seen { // a graph, or a family of generated ones
  char *name, *sha256;   // sha256 of the cost graph's file; of a family: of its generated graphs' cost graphs together
};
// What searches learned with a policy, whoever they are: written by any thread, under a lock.
struct tfc_policy_notes {
  pthread_mutex_t lock;
  float (*head)[TFC_WEIGHTS]; // the newest last
  uint32_t head_count;
};
struct tfc_policy {
  struct tfc_guide guide; // how searches use it
  uint32_t head_count, seen_count;
  float (*head)[TFC_WEIGHTS]; // [head_count], the most useful one first
  float spread[TFC_WEIGHTS];  // how far weights of good heads lie apart: the first step of tuning
  struct tfc_policy_seen *seen;
  char *without; // the family that training left out; NULL: none
  struct tfc_policy_notes *notes;
};
TFC_MUST_USE tfc_status tfc_policy_create(uint32_t head_count, struct tfc_policy **out); // weights 0, spread 1
// As it was before training: random weights, from the seed.
TFC_MUST_USE tfc_status tfc_policy_untrained(uint64_t seed, struct tfc_policy **out);
void tfc_policy_free(struct tfc_policy *policy); // NULL is fine
TFC_MUST_USE tfc_status tfc_policy_add_seen(struct tfc_policy *policy, const char *name, const char *sha256);

// Notes the weights that did best with a tuner; the policy itself stays as it is.
struct tfc_tuner;
TFC_MUST_USE tfc_status tfc_policy_learn(const struct tfc_policy *policy, const struct tfc_tuner *tuner);
// A policy with what was noted in front of its heads, as far as there is room.
TFC_MUST_USE tfc_status tfc_policy_learned(const struct tfc_policy *policy, struct tfc_policy **out);

// `path` only names the document in messages. INVALID_ARGUMENT: not a policy, or one of other features.
TFC_MUST_USE tfc_status tfc_policy_parse(tfc_str json, const char *path, struct tfc_policy **out);
TFC_MUST_USE tfc_status tfc_policy_read(const char *path, struct tfc_policy **out);
TFC_MUST_USE tfc_status tfc_policy_format(const struct tfc_policy *policy, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_policy_write(const struct tfc_policy *policy, const char *path);

// The policy whose guide this is; NULL for NULL.
static inline const struct tfc_policy *tfc_policy_of(const struct tfc_guide *guide) {
  return (const struct tfc_policy *)guide;
}

#endif
