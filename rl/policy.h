// Policy: the result of training on many graphs, for use on other graphs. It has about twenty heads; each head is a set
// of weights with which units are placed (rl/rollout.h). No single head is best for all problems; together they cover
// the problems of training. Read from and written to JSON (the format "tfc-policy"), with the sha256 of the graphs that
// the policy was trained on.
#ifndef TFC_RL_POLICY_H
#define TFC_RL_POLICY_H

#include <pthread.h>

#include "placer/search/guide.h"
#include "rl/rollout.h"

#define TFC_MAX_HEADS 64u

struct tfc_policy_seen { // a graph of the training set, or a family of generated graphs
  char *name, *sha256;   // sha256 of the cost graph's file; for a family, of the cost graphs of all its graphs together
};
// Weights that searches found while they improved a policy. Any thread may add weights; `lock` guards the record.
struct tfc_policy_notes {
  pthread_mutex_t lock;
  float (*head)[TFC_WEIGHTS]; // the newest last
  uint32_t head_count;
};
struct tfc_policy {
  struct tfc_guide guide; // the interface through which searches use the policy
  uint32_t head_count, seen_count;
  float (*head)[TFC_WEIGHTS]; // [head_count], the most useful one first
  float spread[TFC_WEIGHTS];  // standard deviation over good heads; the first step size of tuning
  struct tfc_policy_seen *seen;
  char *without; // the family of graphs that was left out of training; NULL: none
  struct tfc_policy_notes *notes;
};
TFC_MUST_USE tfc_status tfc_policy_create(uint32_t head_count, struct tfc_policy **out); // weights 0, spread 1
// Makes an untrained policy: random weights from the seed.
TFC_MUST_USE tfc_status tfc_policy_untrained(uint64_t seed, struct tfc_policy **out);
void tfc_policy_free(struct tfc_policy *policy); // NULL is fine
TFC_MUST_USE tfc_status tfc_policy_add_seen(struct tfc_policy *policy, const char *name, const char *sha256);

// Adds the tuner's best weights to the notes; the policy's heads stay as they are.
struct tfc_tuner;
TFC_MUST_USE tfc_status tfc_policy_learn(const struct tfc_policy *policy, const struct tfc_tuner *tuner);
// Writes or reads the notes.
void tfc_policy_archive_notes(const struct tfc_policy *policy, struct tfc_archive *archive);
// Makes a new policy: the noted weights, then the policy's heads, up to the largest number of heads.
TFC_MUST_USE tfc_status tfc_policy_learned(const struct tfc_policy *policy, struct tfc_policy **out);

// `path` only names the document in messages. INVALID_ARGUMENT: the document is no policy, or a policy for other
// features.
TFC_MUST_USE tfc_status tfc_policy_parse(tfc_str json, const char *path, struct tfc_policy **out);
TFC_MUST_USE tfc_status tfc_policy_read(const char *path, struct tfc_policy **out);
TFC_MUST_USE tfc_status tfc_policy_format(const struct tfc_policy *policy, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_policy_write(const struct tfc_policy *policy, const char *path);

// Returns the policy that the guide belongs to; NULL for NULL.
static inline const struct tfc_policy *tfc_policy_of(const struct tfc_guide *guide) {
  return (const struct tfc_policy *)guide;
}

#endif
