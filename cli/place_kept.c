// Runs that measure nothing, in the database: their records, and the state of a search, so that --resume can continue
// it. The flags that decide what the search finds are saved, too: a resumed run must have the same.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graph_digest.h"
#include "cli/place.h"
#include "cli/program.h"
#include "placer/model/placement_json.h"
#include "placer/placer.h"
#include "profiler/store.h"
#include "profiler/store_rows.h"
#include "profiler/store_runs.h"
#include "profiler/warnings.h"
#include "rl/rl.h"
#include "runtime/base/clock.h"
#include "runtime/base/sha256.h"

#define WAIT_S 1.0 // seconds between two states that are written

struct place_kept {
  const struct place_options *o;
  struct tfc_store *store; // NULL: not opened yet
  int64_t run;
  struct tfc_text flags, state; // flags: those of this run; state: the last state of the search
  struct tfc_text before;       // the state from which the search continues
  char digest[65];              // of the graph's file
  double written_s;
  tfc_status failed; // the first state that could not be written
};

// --- The flags -----------------------------------------------------------------------------------------------------
// Each flag becomes a line: its name, a tab, and its value.
static void add(struct place_kept *k, const char *name, const char *value) {
  tfc_text_printf(&k->flags, "%s\t%s\n", name, value);
}

static tfc_status add_file(struct place_kept *k, const char *name, const char *label, const char *path) {
  char digest[65];
  TFC_RETURN_IF_ERROR(cli_graph_digest(path, digest));
  tfc_text_printf(&k->flags, "%s\t%s%s\n", name, label, digest);
  return NULL;
}

static tfc_status add_policy(struct place_kept *k, const struct tfc_policy *policy) {
  struct tfc_text text = {0};
  char digest[65] = "none";
  tfc_status s = NULL;
  if (policy) s = tfc_policy_format(policy, &text);
  if (!s && policy) tfc_sha256((tfc_str){text.data, text.size}, digest);
  add(k, "--policy", digest);
  tfc_text_deinit(&text);
  return s;
}

static tfc_status collect_flags(struct place_kept *k, const struct tfc_policy *policy) {
  const struct place_options *o = k->o;
  tfc_status s = NULL;
  char number[32];
  TFC_TRY(s, cli_graph_digest(o->graph, k->digest));
  add(k, "--graph", k->digest);
  TFC_TRY(s, add_file(k, "--machine", "", o->machine));
  add(k, "--devices", o->devices ? o->devices : "all");
  add(k, "--objective", tfc_objective_name(o->request.objective));
  add(k, "--algorithm", o->search.algorithms ? o->search.algorithms : "auto");
  snprintf(number, sizeof number, "%lld", (long long)o->evaluations);
  add(k, "--evaluations", o->evaluations ? number : "(not given)");
  // Only whether a time was given must be the same; the time itself may differ.
  add(k, "--time", o->time > 0 || !o->evaluations ? "(given, or no --evaluations)" : "(not given)");
  snprintf(number, sizeof number, "%lld", (long long)o->execution.seed);
  add(k, "--seed", number);
  TFC_TRY(s, add_policy(k, policy));
  add(k, "--device-strings",
      o->request.device_strings == TFC_STRINGS_BASELINE    ? "baseline"
      : o->request.device_strings == TFC_STRINGS_CONSTRAIN ? "constrain"
                                                           : "ignore");
  for (uint32_t i = 0; i < o->request.pins.count; i++) add(k, "--pin", o->request.pins.items[i]);
  for (uint32_t i = 0; i < o->limits.count; i++) add(k, "--memory", o->limits.items[i]);
  for (uint32_t i = 0; i < o->request.baselines.count; i++)
    TFC_TRY(s, add_file(k, "--baseline", "a file with sha256 ", strchr(o->request.baselines.items[i], '=') + 1));
  if (k->flags.failed) s = tfc_status_no_memory("the state of a search");
out:
  return s;
}

// Takes the next line of flags: a name and a value. Both are empty if there are no more lines.
static void take_line(tfc_str *rest, tfc_str *name, tfc_str *value) {
  *value = tfc_str_take(rest, '\n');
  *name = tfc_str_take(value, '\t');
}

static tfc_status compare_flags(const struct place_kept *k, tfc_str then) {
  tfc_str now = {k->flags.data, k->flags.size}, name, value, other, was;
  for (bool more = true; more;) {
    take_line(&now, &name, &value);
    take_line(&then, &other, &was);
    more = name.size || other.size;
    if (!more || (tfc_str_equal(name, other) && tfc_str_equal(value, was))) continue;
    const bool graph = tfc_str_is(name, "--graph"), machine = tfc_str_is(name, "--machine");
    if (graph || machine)
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "run %lld is about another %s: %s is not the file that it had, or has changed; leave "
                             "--resume out to begin anew",
                             (long long)k->run, graph ? "graph" : "machine", graph ? k->o->graph : k->o->machine);
    if (tfc_str_is(name, "--policy"))
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "run %lld began with another policy: give its --policy, or leave --resume out to begin "
                             "anew",
                             (long long)k->run);
    const bool same = tfc_str_equal(name, other);
    const tfc_str which = same || name.size == 0 ? other : name;
    const tfc_str before = same || name.size == 0 ? was : TFC_STR("(not given)"),
                  after = same || name.size ? value : TFC_STR("(not given)");
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "run %lld began with %.*s %.*s, not %.*s: give it the same flags, or leave --resume out to "
                           "begin anew",
                           (long long)k->run, TFC_STR_ARG(which), TFC_STR_ARG(before), TFC_STR_ARG(after));
  }
  return NULL;
}

// --- The database ----------------------------------------------------------------------------------------------------
static tfc_status write_state(struct place_kept *k) {
  k->written_s = tfc_now_s();
  return tfc_store_set_state(k->store, k->run, "search", (tfc_str){k->state.data, k->state.size});
}

static tfc_status add_run(struct place_kept *k) {
  char *command = tfc_program_command_line();
  tfc_status s = tfc_store_add_run(
      k->store,
      &(struct tfc_store_run){.program = "tfc-place",
                              .command = command,
                              .graph = k->o->graph,
                              .graph_sha256 = k->digest,
                              .graph_nodes = -1,
                              .objective = tfc_objective_name(k->o->request.objective),
                              .algorithms = k->o->search.algorithms ? k->o->search.algorithms : "auto",
                              .label = tfc_label_name(TFC_LABEL_MODELLED),
                              .seed = (uint64_t)k->o->execution.seed},
      &k->run);
  free(command);
  if (!s && !k->o->evaluate)
    s = tfc_store_set_state(k->store, k->run, "search flags", (tfc_str){k->flags.data, k->flags.size});
  return s;
}

static tfc_status open_store(struct place_kept *k) {
  return tfc_store_open(k->o->db, &(struct tfc_store_options){.write = true, .purpose = "placing"}, &k->store);
}

static tfc_status find_run(struct place_kept *k) {
  tfc_status s = NULL;
  struct tfc_text flags = {0};
  struct tfc_store *there = NULL;
  int64_t asked;
  TFC_TRY(s,
          // a database that does not exist is not created
          tfc_store_open(k->o->db, &(struct tfc_store_options){0}, &there));
  tfc_store_close(there);
  TFC_TRY(s, open_store(k));
  place_resume(k->o, &asked);
  TFC_TRY(s, tfc_store_find_interrupted(k->store, asked, "search", &k->run));
  TFC_TRY(s, tfc_store_get_state(k->store, k->run, "search flags", &flags));
  TFC_TRY(s, compare_flags(k, (tfc_str){flags.data, flags.size}));
  TFC_TRY(s, tfc_store_get_state(k->store, k->run, "search", &k->before));
  if (!k->before.size)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "run %lld is done: there is nothing to go on with", (long long)k->run);
  tfc_say("going on with run %lld", (long long)k->run);
out:
  tfc_text_deinit(&flags);
  return s;
}

static tfc_status keep(void *user, tfc_str state) {
  struct place_kept *k = user;
  struct tfc_text text = {0};
  tfc_text_add(&text, state);
  if (text.failed) return tfc_status_no_memory("the state of a search");
  tfc_text_deinit(&k->state);
  k->state = text;
  if (k->store && !k->failed && tfc_now_s() - k->written_s >= WAIT_S)
    k->failed = write_state(k); // the search continues even if its state cannot be written
  return NULL;
}

tfc_status place_kept_begin(const struct place_options *o, const struct tfc_policy *policy,
                            struct tfc_search_options *search, struct place_kept **out) {
  tfc_status s = NULL;
  struct place_kept *k = calloc(1, sizeof *k);
  if (!k) return tfc_status_no_memory("the state of a search");
  k->o = o;
  TFC_TRY(s, collect_flags(k, policy));
  if (o->resume) {
    TFC_TRY(s, find_run(k));
  } else if (o->db_given) {
    TFC_TRY(s, open_store(k));
    TFC_TRY(s, add_run(k));
  }
  if (!o->evaluate) search->kept = keep, search->kept_user = k;
  search->state = (tfc_str){k->before.data, k->before.size};
  *out = k, k = NULL;
out:
  place_kept_free(k);
  return s;
}

struct tfc_record_target place_kept_target(const struct place_kept *k) {
  return (struct tfc_record_target){.wanted = k->store != NULL, .store = k->store, .run = k->run};
}

// Ends a run whose answer was not recorded.
static tfc_status end_run(struct place_kept *k, const struct tfc_placement *document, const char *why, int exit_code) {
  tfc_status s = NULL;
  struct tfc_text text = {0};
  char *algorithm = document && document->algorithm.data ? tfc_str_dup(document->algorithm) : NULL;
  if (document) TFC_TRY(s, tfc_placement_format(document, &text));
  struct tfc_store_answer answer = {.state = exit_code == 130 ? "interrupted"
                                             : document       ? "done"
                                                              : "failed",
                                    .exit_code = exit_code,
                                    .algorithm = algorithm,
                                    .placement_id = -1,
                                    .speedup = (double)NAN,
                                    .speedup_low = (double)NAN,
                                    .speedup_high = (double)NAN,
                                    .bound_us = document ? document->bound_us : (double)NAN,
                                    .trace_overhead = (double)NAN,
                                    .tau = (double)NAN,
                                    .document = text.data,
                                    .message = why ? why : "nothing was run"};
  TFC_TRY(s, tfc_store_finish_run(k->store, k->run, &answer));
out:
  free(algorithm);
  tfc_text_deinit(&text);
  return s;
}

tfc_status place_kept_end(struct place_kept *k, const struct tfc_placement *document, const char *why, bool recorded,
                          int exit_code) {
  tfc_status s = NULL;
  const bool interrupted = exit_code == 130;
  if (k->failed) {
    s = k->failed, k->failed = NULL;
    return s;
  }
  if (!k->store) {
    if (!interrupted || !k->state.size) return NULL;
    TFC_TRY(s, open_store(k));
    TFC_TRY(s, add_run(k));
  }
  if (interrupted && !k->state.size) tfc_text_add(&k->state, (tfc_str){k->before.data, k->before.size});
  if (!interrupted) tfc_text_deinit(&k->state); // a run that has ended needs no state
  TFC_TRY(s, tfc_store_begin(k->store));
  if (!k->o->evaluate) TFC_TRY(s, write_state(k));
  TFC_TRY(s, tfc_warnings_store(tfc_program_warnings(), k->store, k->run));
  if (!recorded) TFC_TRY(s, end_run(k, document, why, exit_code));
  TFC_TRY(s, tfc_store_commit(k->store));
  TFC_TRY(s, tfc_store_index(k->store));
  if (interrupted)
    tfc_say("Run %lld is kept in %s; go on with: tfc-place ... --resume %lld", (long long)k->run, k->o->db,
            (long long)k->run);
out:
  if (s && k->store) tfc_store_rollback(k->store);
  return s;
}

void place_kept_free(struct place_kept *k) {
  if (!k) return;
  tfc_store_close(k->store);
  tfc_text_deinit(&k->flags);
  tfc_text_deinit(&k->state);
  tfc_text_deinit(&k->before);
  tfc_status_free(k->failed);
  free(k);
}
