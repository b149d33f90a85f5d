// Rollout: a policy places the units of a scene one by one, each where its score says, and what it has placed is
// scheduled at once, so that the next unit sees when devices are free, what data is where, and how much room is left.
//
//   tfc_rollout_create(scene, &r);
//   tfc_rollout_run(r, weights, &(struct tfc_rollout_options){.temperature = 0.1, .random = &random}, device);
//
// One per thread; a run allocates nothing (but for repairing what breaks a memory limit). Times in it are estimates:
// transfers do not wait for each other. The simulator has the last word.
#ifndef TFC_RL_ROLLOUT_H
#define TFC_RL_ROLLOUT_H

#include "rl/scene.h"
#include "runtime/base/random.h"

// What the score of a (unit, device) pair is made of. All numbers lie between -1 and 1 or a little beyond. "Later":
// than on the device where it would be soonest.
#define TFC_FEATURES(X)                                                                                                \
  X(START, "how much later it starts there, over that and its size")                                                   \
  X(FINISH, "how much later it ends there, over that and its size")                                                    \
  X(DELAY, "how much later it ends there, in 64ths of the span, over that and 1")                                      \
  X(FETCH, "time of transfers that it would need there, over that and its time")                                       \
  X(MISSING, "these transfers over those of the device that needs most")                                               \
  X(INPUTS, "share of its inputs that is there")                                                                       \
  X(LATEST, "the input that comes last is made there")                                                                 \
  X(CHAIN, "the producer with the longest remaining path is there")                                                    \
  X(SIBLINGS, "share of its inputs' other readers that is there")                                                      \
  X(READERS, "share of its own readers that is there")                                                                 \
  X(LOAD, "work committed there, over an equal share of all work")                                                     \
  X(BALANCE, "work committed there over the mean of the devices, less 1, over that and 2")                             \
  X(IDLE, "how long the device would stand idle before it, over that and its size")                                    \
  X(WAIT, "how long it would wait for the device, over that and its size")                                             \
  X(MEMORY, "bytes held there with it, over the limit")                                                                \
  X(SPEED, "logarithm of its time there over the least anywhere")                                                      \
  X(UNUSED, "nothing is there yet")                                                                                    \
  X(KIND, "share of the placed units of its kind that is there")                                                       \
  X(KIN, "the last one of its kind is there")                                                                          \
  X(LAST, "the unit placed last is there")                                                                             \
  X(OCCUPY, "time for which transfers would stop the device, over that and its time")
enum {
#define TFC_FEATURE_ENUM(name, text) TFC_FEATURE_##name,
  TFC_FEATURES(TFC_FEATURE_ENUM)
#undef TFC_FEATURE_ENUM
      TFC_FEATURE_COUNT
};
enum { TFC_WEIGHTS = TFC_FEATURE_COUNT * TFC_GATE_COUNT }; // score = sum over gate, feature of weight * gate * feature

struct tfc_choice { // one unit and the devices it could go to
  uint32_t unit, device_count;
  const bool *may;      // [device]
  const float *feature; // [feature * device_count + device], set where it may go
  const float *score;   // [device] likewise
  uint32_t device;      // where it went
};
struct tfc_rollout_options {
  double temperature;        // of the softmax that devices are drawn from; 0: the best one
  struct tfc_random *random; // needed with a temperature, and for repairing
  const bool *kept;          // [unit] units that go where `device` has them; NULL: none
  // Told of every choice between several devices that weights made; NULL: nobody asks.
  void (*watch)(void *user, const struct tfc_choice *choice);
  void *user;
};

struct tfc_rollout;
TFC_MUST_USE tfc_status tfc_rollout_create(const struct tfc_scene *scene, struct tfc_rollout **out);
void tfc_rollout_free(struct tfc_rollout *rollout); // NULL is fine
// weights [gate * TFC_FEATURE_COUNT + feature]; NULL: every allowed device is as good. Fills device [unit]. False:
// memory limits or missing links are still broken after repair.
bool tfc_rollout_run(struct tfc_rollout *rollout, const float *weights, const struct tfc_rollout_options *options,
                     tfc_device_id *device);

#endif
