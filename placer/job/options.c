#include "placer/job/options.h"

#include <string.h>

#include "placer/algo/algo.h"

bool tfc_job_is_learned(const struct tfc_job_options *o, const char *algorithm) {
  // "auto: policy" is the name under which a search reports the policy's rollouts
  const size_t size = strlen(algorithm);
  bool learned = size >= 6 && strcmp(algorithm + size - 6, "policy") == 0;
  for (const struct tfc_algo *const *a = o->learned; a && *a; a++) learned |= strcmp((*a)->name, algorithm) == 0;
  return learned;
}
