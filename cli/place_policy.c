// Finds and reads the learned policy for a run, and writes it with what the run learned.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/place.h"
#include "rl/rl.h"

// Returns the path of ../share/tfc/policy.json relative to the program's folder, which is right whether the program is
// installed or in its build folder.
static char *shipped_path(void) {
  char program[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
  if (size <= 0) return NULL;
  program[size] = 0;
  for (int k = 0; k < 2; k++) {
    char *slash = strrchr(program, '/');
    if (slash) *slash = 0;
  }
  return tfc_format("%s/share/tfc/policy.json", program);
}

tfc_status place_read_policy(const struct place_options *o, struct tfc_policy **out) {
  *out = NULL;
  if (o->evaluate || (o->policy && strcmp(o->policy, "none") == 0)) return NULL;
  char *shipped = o->policy ? NULL : shipped_path();
  const char *path = o->policy ? o->policy : shipped;
  tfc_status s = path ? tfc_policy_read(path, out) : tfc_status_make(TFC_NOT_FOUND, "where this program lies");
  if (s && !o->policy)
    s = tfc_status_annotate(s,
                            "the shipped policy cannot be read (--policy FILE names one, --policy none does without)");
  else if (s)
    s = tfc_status_annotate(s, "--policy");
  free(shipped);
  return s;
}

tfc_status place_save_policy(const struct place_options *o, const struct tfc_policy *policy) {
  struct tfc_policy *learned = NULL;
  if (!o->save_policy || !policy) return NULL;
  tfc_status s = tfc_policy_learned(policy, &learned);
  if (!s) s = tfc_policy_write(learned, o->save_policy);
  tfc_policy_free(learned);
  return s;
}
