// Functions of a kernel's environment (struct tfc_kernel_env) that several drivers use.
#include "runtime/device/driver.h"

void tfc_env_serial_for(struct tfc_kernel_env *env, int64_t total, int64_t grain,
                        void (*fn)(void *arg, int64_t begin, int64_t end), void *arg) {
  (void)env;
  if (grain < 1) grain = 1;
  for (int64_t i = 0; i < total; i += grain) fn(arg, i, i + grain < total ? i + grain : total);
}

bool tfc_env_step_stopped(struct tfc_kernel_env *env) {
  const struct tfc_step *step = env->owner;
  return step && tfc_step_stopped(step);
}
