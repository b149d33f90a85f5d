#include "runtime/base/instructions.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tfc_instructions limit = TFC_INSTRUCTIONS_NATIVE;
static bool final;

static bool has(tfc_instructions wanted) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (wanted == TFC_INSTRUCTIONS_AVX2) return avx2;
  if (wanted == TFC_INSTRUCTIONS_AVX512)
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  return wanted == TFC_INSTRUCTIONS_NATIVE;
}

tfc_status tfc_instructions_limit(tfc_instructions most) {
  const char *name = most == TFC_INSTRUCTIONS_AVX2 ? "AVX2" : "AVX-512";
  tfc_status s = NULL;
  if (most == TFC_INSTRUCTIONS_NATIVE) return NULL;
  if (!has(most))
    return tfc_status_make(TFC_UNAVAILABLE, "this processor has no %s: leave --cpu out to use what it has", name);
  pthread_mutex_lock(&lock);
  if (final && limit != most)
    s = tfc_status_make(TFC_FAILED_PRECONDITION, "kernels of this process were chosen before they were limited to %s",
                        name);
  else
    limit = most;
  pthread_mutex_unlock(&lock);
  return s;
}

bool tfc_instructions_allowed(tfc_instructions wanted) {
  pthread_mutex_lock(&lock);
  final = true;
  // The enumeration is in ascending order; without a limit, everything may be used.
  const bool within = limit == TFC_INSTRUCTIONS_NATIVE || (wanted != TFC_INSTRUCTIONS_NATIVE && wanted <= limit);
  pthread_mutex_unlock(&lock);
  return within && has(wanted);
}
