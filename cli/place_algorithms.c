// Lists the algorithms that tfc-place offers by name, built-in and learned ones.
#include <stdlib.h>
#include <string.h>

#include "cli/place.h"
#include "cli/program.h"
#include "placer/placer.h"
#include "rl/rival.h"
#include "rl/rl.h"

const struct tfc_algo *const *place_extra(void) {
  static const struct tfc_algo *const extra[] = {
      &tfc_algo_rl,  &tfc_algo_policy_random, &tfc_algo_policy_anneal, &tfc_algo_policy_untrained, &tfc_algo_doppler,
      &tfc_algo_hdp, &tfc_algo_hdp_random,    &tfc_algo_placeto,       &tfc_algo_placeto_random,   NULL};
  return extra;
}

struct tfc_search_settings place_search_settings(const struct place_options *o, const struct tfc_policy *policy) {
  struct tfc_search_settings settings = o->search;
  settings.extra = place_extra();
  settings.guide = policy ? &policy->guide : NULL;
  return settings;
}

const struct tfc_algo *const *place_learned(const struct tfc_policy *policy) {
  static const struct tfc_algo *const learned[] = {
      &tfc_algo_rl,      &tfc_algo_doppler,        &tfc_algo_hdp, &tfc_algo_hdp_random,
      &tfc_algo_placeto, &tfc_algo_placeto_random, NULL};
  return policy ? learned : learned + 1;
}

// Returns the i-th algorithm, built in or learned; NULL: there are no more.
static const struct tfc_algo *algorithm_at(size_t i) {
  const struct tfc_algo *const *lists[] = {tfc_algos(), place_extra()};
  for (size_t k = 0; k < 2; k++)
    for (const struct tfc_algo *const *a = lists[k]; *a; a++)
      if (i-- == 0) return *a;
  return NULL;
}

int place_list_algorithms(void) {
  const struct tfc_algo *a;
  printf("%-14s %s\n", "auto", "races all that fit the problem, and polishes the winners");
  for (size_t i = 0; (a = algorithm_at(i)) != NULL; i++) printf("%-14s %s (%s)\n", a->name, a->help, a->paper);
  return tfc_program_finish(0);
}

static const char *algorithm_name(const void *list, size_t i) {
  (void)list;
  const struct tfc_algo *a = i ? algorithm_at(i - 1) : NULL;
  return i == 0 ? "auto" : a ? a->name : NULL;
}

static bool is_algorithm(tfc_str name) {
  const char *known;
  for (size_t i = 0; (known = algorithm_name(NULL, i)) != NULL; i++)
    if (tfc_str_is(name, known)) return true;
  return false;
}

int place_check_algorithms(const struct tfc_program *program, const struct place_options *o) {
  const char *names = o->search.algorithms;
  const bool none = o->policy && strcmp(o->policy, "none") == 0;
  if (none && o->save_policy) return tfc_flags_error(program, "--save-policy has nothing to save with --policy none");
  if (names && !*names) return tfc_flags_error(program, "--algorithm names nothing; --algorithm help lists them");
  while (names && *names) {
    size_t n = strcspn(names, ",");
    tfc_str name = {names, n};
    if (!is_algorithm(name)) {
      char *text = tfc_str_dup(name);
      const char *nearest = text ? tfc_nearest(text, algorithm_name, NULL) : NULL;
      int code = nearest ? tfc_flags_error(program,
                                           "unknown algorithm '%s'; did you mean %s? (--algorithm help "
                                           "lists them)",
                                           text, nearest)
                         : tfc_flags_error(program, "unknown algorithm '%.*s'; --algorithm help lists them",
                                           TFC_STR_ARG(name));
      free(text);
      return code;
    }
    if (none && tfc_str_is(name, "rl"))
      return tfc_flags_error(program, "--algorithm rl is the learned policy, and --policy none takes it away; its "
                                      "controls are policy-random, policy-anneal and policy-untrained");
    names += n + (names[n] == ',');
  }
  return 0;
}
