// Splits GPUs into groups of multiprocessors for virtual devices. A GPU has one split at a time: one call makes all its
// groups, with a green context for each. The number of groups is the one that was planned last; it can change only
// while no virtual device of the GPU is open.
#include <stdlib.h>

#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/split.h"

enum { GPUS = 64 };
struct split {
  uint32_t planned, made, taken;
  struct tfc_cuda_partition *partitions;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct split splits[GPUS];

static tfc_status split_now(const struct tfc_cuda_api *api, int ordinal, uint32_t count) { // under the lock
  struct split *s = &splits[ordinal];
  if (s->made == count) return NULL;
  if (s->taken)
    return tfc_status_make(TFC_FAILED_PRECONDITION,
                           "GPU %d is split into %u virtual devices that are in use: it cannot be split into %u",
                           ordinal, s->made, count);
  for (uint32_t i = 0; i < s->made; i++) (void)api->unsplit(&s->partitions[i]);
  free(s->partitions);
  s->made = 0;
  if (!(s->partitions = calloc(count, sizeof *s->partitions))) return tfc_status_no_memory("splitting a GPU");
  int granularity = 0, total = 0;
  int error = tfc_cuda_enter(api, ordinal);
  if (!error) error = api->split(ordinal, count, s->partitions, &granularity, &total);
  if (error == 1)
    return tfc_status_make(TFC_UNAVAILABLE,
                           "GPU %d cannot be split into %u virtual devices: it has %d multiprocessors, in groups of %d",
                           ordinal, count, total, granularity);
  if (error)
    return tfc_status_make(TFC_UNAVAILABLE, "GPU %d cannot be split into %u virtual devices: %s (%s)", ordinal, count,
                           api->error_text(error), api->error_name(error));
  s->made = count;
  return NULL;
}

tfc_status tfc_cuda_split_plan(const struct tfc_cuda_api *api, int ordinal, uint32_t count, int *out_size) {
  if (ordinal >= GPUS || count == 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "no such GPU: %d", ordinal);
  pthread_mutex_lock(&lock);
  tfc_status s = split_now(api, ordinal, count);
  if (!s) {
    splits[ordinal].planned = count;
    *out_size = splits[ordinal].partitions[0].sm_count;
  }
  pthread_mutex_unlock(&lock);
  return s;
}

tfc_status tfc_cuda_split_take(const struct tfc_cuda_api *api, int ordinal, uint32_t index,
                               struct tfc_cuda_partition **out) {
  (void)api;
  pthread_mutex_lock(&lock);
  struct split *split = &splits[ordinal];
  tfc_status s = NULL;
  if (index >= split->made)
    s = tfc_status_make(TFC_UNAVAILABLE, "vgpu:%u is not there: GPU %d is split into %u", index, ordinal, split->made);
  else {
    split->taken++;
    *out = &split->partitions[index];
  }
  pthread_mutex_unlock(&lock);
  return s;
}

void tfc_cuda_split_give(struct tfc_cuda_partition *partition) {
  if (!partition) return;
  pthread_mutex_lock(&lock);
  for (int g = 0; g < GPUS; g++) {
    struct split *s = &splits[g];
    if (!s->made || partition < s->partitions || partition >= s->partitions + s->made || --s->taken) continue;
    if (tfc_cuda_api)
      for (uint32_t i = 0; i < s->made; i++) (void)tfc_cuda_api->unsplit(&s->partitions[i]);
    free(s->partitions);
    *s = (struct split){0};
  }
  pthread_mutex_unlock(&lock);
}
