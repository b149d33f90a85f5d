// Rollout: a policy places the units of a scene one by one, each on the device with the best score. What is placed is
// scheduled immediately, so that the next unit's features include when devices become free, where tensors are, and how
// much memory is left.
//
//   tfc_rollout_create(scene, &r);
//   tfc_rollout_run(r, weights, &(struct tfc_rollout_options){.temperature = 0.1, .random = &random}, device);
//
// Each thread needs a rollout of its own. A run allocates memory in two cases only: to repair a placement that breaks a
// memory limit, and in the first run that keeps some units where they are. That run saves the schedule of the units
// before the first free unit, and later runs begin with the saved schedule instead of computing it again. A rollout
// estimates when operations and transfers end as if no transfer had to wait for another one; how long a step with the
// placement really takes, the simulator computes.
#ifndef TFC_RL_ROLLOUT_H
#define TFC_RL_ROLLOUT_H

#include "rl/scene.h"
#include "runtime/base/random.h"

// The features of a (unit, device) pair, from which its score is computed. All are between -1 and 1, or slightly
// outside. "Later" means later than on the device where it would be earliest.
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

struct tfc_choice { // a unit, and the devices where it may go
  uint32_t unit, device_count;
  const bool *may;      // [device] the unit may go to the device
  const float *feature; // [feature * device_count + device], only for allowed devices
  const float *score;   // [device], only for allowed devices
  uint32_t device;      // the device that was chosen
};
struct tfc_rollout_options {
  double temperature;        // temperature of the softmax from which devices are drawn; 0: always the best device
  struct tfc_random *random; // needed with a temperature, and to repair
  const bool *kept;          // [unit] units that stay on the device in `device`; NULL: none
  // Called with every choice between several devices that the weights made; NULL: not called.
  void (*watch)(void *user, const struct tfc_choice *choice);
  void *user;
};

struct tfc_rollout;
TFC_MUST_USE tfc_status tfc_rollout_create(const struct tfc_scene *scene, struct tfc_rollout **out);
void tfc_rollout_free(struct tfc_rollout *rollout); // NULL is fine
// weights [gate * TFC_FEATURE_COUNT + feature]; NULL: all scores are equal. Fills device [unit]. False: even after
// repair, a memory limit is exceeded or a link is missing.
bool tfc_rollout_run(struct tfc_rollout *rollout, const float *weights, const struct tfc_rollout_options *options,
                     tfc_device_id *device);

#endif
