// Saves, after each batch, what a run has measured and learned, and reads it again if the run was interrupted and is
// resumed. Placements are in the tables of the database. The run's states hold the levels of the readings, the orders
// of operations, and the samples of the learned model.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/elsewhere/record.h"
#include "placer/elsewhere/resume.h"
#include "placer/elsewhere/tried.h"
#include "profiler/store_read.h"
#include "profiler/store_rows.h"
#include "profiler/store_runs.h"

enum { VERSION = 1 }; // of the state that tfc_elsewhere_keep writes

static uint64_t rank_hash(const struct tfc_problem *p, const uint32_t *rank) {
  return rank ? tfc_hash_bytes(rank, p->node_count * sizeof *rank) | 1 : 0;
}

// --- Saving the state of a run ---------------------------------------------------------------------------------------
// Saves an order of operations, unless another placement has the same.
static tfc_status keep_rank(struct tfc_elsewhere *r, const uint32_t *rank, uint64_t hash) {
  tfc_status s = NULL;
  struct tfc_text text = {0};
  char name[32];
  for (size_t i = 0; i < r->kept_ranks.count; i++)
    if (r->kept_ranks.data[i] == hash) return NULL;
  for (uint32_t n = 0; n < r->problem->node_count; n++) tfc_text_printf(&text, "%u ", rank[n]);
  if (text.failed || !tfc_array_push(&r->kept_ranks, hash)) TFC_TRY(s, tfc_status_no_memory(NULL));
  snprintf(name, sizeof name, "rank %016" PRIx64, hash);
  TFC_TRY(s, tfc_store_set_state(r->store, r->run, name, (tfc_str){text.data, text.size}));
out:
  tfc_text_deinit(&text);
  return s;
}

tfc_status tfc_elsewhere_keep(struct tfc_elsewhere *r) {
  tfc_status s = NULL;
  struct tfc_text text = {0}, learned = {0};
  const struct tfc_problem *p = r->problem;
  TFC_TRY(s, tfc_store_begin(r->store));
  tfc_text_printf(&text, "elsewhere %d %u %u %u %.6f %llu %u %u %.9g\n", VERSION, p->node_count, p->unit_count,
                  p->device_count, tfc_elsewhere_seconds(r), (unsigned long long)r->evaluations, r->episodes,
                  r->reference, r->reading_s);
  for (size_t i = 0; i < r->known.count; i++) {
    const struct tfc_elsewhere_known *k = &r->known.data[i];
    const uint64_t hash = rank_hash(p, k->solution.rank);
    if (!k->key) continue;
    if (hash) TFC_TRY(s, keep_rank(r, k->solution.rank, hash));
    tfc_text_printf(&text, "%lld %.12g %u %d %.9g %016" PRIx64 " %d\n", (long long)k->placement_id, k->log_us,
                    k->readings, k->single, k->predicted_us, hash, k->won);
  }
  if (text.failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_elsewhere_tried_none(r));
  TFC_TRY(s, tfc_elsewhere_store_proposers(r));
  TFC_TRY(s, tfc_store_set_state(r->store, r->run, "elsewhere", (tfc_str){text.data, text.size}));
  if (r->learned) {
    TFC_TRY(s, tfc_learned_save(r->learned, &learned));
    TFC_TRY(s, tfc_store_set_state(r->store, r->run, "learned", (tfc_str){learned.data, learned.size}));
  }
  TFC_TRY(s, tfc_store_commit(r->store));
out:
  if (s) tfc_store_rollback(r->store);
  tfc_text_deinit(&text);
  tfc_text_deinit(&learned);
  return s;
}

// --- Checking that it is the same problem ----------------------------------------------------------------------------
static tfc_status check_run(void *user, const struct tfc_store_run *row, const char *state) {
  const struct tfc_elsewhere *r = user;
  const long long run = (long long)r->run;
  const char *asked = tfc_objective_name(r->problem->objective), *sha256 = r->o->sha256;
  if (strcmp(state, "done") == 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "run %lld is done: there is nothing to go on with", run);
  if (sha256 && row->graph_sha256 ? strcmp(sha256, row->graph_sha256) != 0 : strcmp(r->o->graph, row->graph) != 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "run %lld is about another graph, %s as it was then", run, row->graph);
  if (strcmp(row->objective, asked) != 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "run %lld has the objective %s, not %s", run, row->objective, asked);
  return NULL;
}

static tfc_status check_command(struct tfc_elsewhere *r) {
  struct tfc_text text = {0};
  tfc_status s = tfc_store_get_state(r->store, r->run, "measured_with", &text);
  const char *now = r->o->settings->measure_with;
  if (s) {
    tfc_status_free(s);
    s = tfc_status_make(TFC_INVALID_ARGUMENT,
                        "run %lld measured steps on this machine: go on with it without "
                        "--measure-with",
                        (long long)r->run);
  } else if (text.size != strlen(now) || memcmp(text.data, now, text.size) != 0) {
    tfc_elsewhere_say(r, true, "run %lld measured with '%.*s': what it measured may take another time with '%s'",
                      (long long)r->run, (int)text.size, text.data, now);
  }
  tfc_text_deinit(&text);
  return s;
}

// --- Reading the saved state -----------------------------------------------------------------------------------------
struct level { // the levels of a placement's readings
  long long placement_id;
  double log_us, predicted_us;
  uint32_t readings;
  int single, won;
  uint64_t rank;
};
struct taking {
  struct tfc_elsewhere *r;
  struct tfc_elsewhere_known *k; // the placement whose rows are being read
  uint32_t seen;                 // how many of its units were read
  TFC_ARRAY(struct level) levels;
};

static tfc_status take_unit(void *user, uint32_t unit, uint32_t device) {
  struct taking *t = user;
  const struct tfc_problem *p = t->r->problem;
  if (unit < p->unit_count && device < p->device_count) t->k->solution.device[unit] = (tfc_device_id)device, t->seen++;
  return NULL;
}

static tfc_status take_rank(struct tfc_elsewhere *r, uint64_t hash, struct tfc_solution *to) {
  tfc_status s = NULL;
  struct tfc_text text = {0};
  char name[32];
  bool *seen = calloc(r->problem->node_count + 1u, sizeof *seen); // an order has every rank once
  snprintf(name, sizeof name, "rank %016" PRIx64, hash);
  TFC_TRY(s, tfc_store_get_state(r->store, r->run, name, &text));
  if (!seen || !(to->rank = malloc((r->problem->node_count + 1u) * sizeof *to->rank)))
    TFC_TRY(s, tfc_status_no_memory(NULL));
  char *at = text.data;
  for (uint32_t n = 0; n < r->problem->node_count; n++) {
    char *end;
    to->rank[n] = (uint32_t)strtoul(at, &end, 10);
    if (end == at || to->rank[n] >= r->problem->node_count || seen[to->rank[n]])
      TFC_FAIL(s, TFC_DATA_LOSS, "run %lld: an order of operations is broken", (long long)r->run);
    seen[to->rank[n]] = true;
    at = end;
  }
out:
  free(seen);
  tfc_text_deinit(&text);
  return s;
}

static const struct level *level_of(const struct taking *t, int64_t placement_id) {
  for (size_t i = 0; i < t->levels.count; i++)
    if (t->levels.data[i].placement_id == placement_id) return &t->levels.data[i];
  return NULL;
}

static tfc_status take_placement(void *user, const struct tfc_store_placement_read *p) {
  tfc_status s = NULL;
  struct taking *t = user;
  struct tfc_elsewhere *r = t->r;
  const struct tfc_store_placement *row = &p->row;
  const struct level *level = level_of(t, row->placement_id);
  struct tfc_elsewhere_known k = {.role = strcmp(row->role, "baseline") == 0 ? "baseline" : "candidate",
                                  .baseline = strcmp(row->role, "baseline") == 0,
                                  .median_us = row->median_us,
                                  .q1_us = row->q1_us,
                                  .q3_us = row->q3_us,
                                  .steps = row->steps,
                                  .ratio = row->ratio,
                                  .simulated_us = row->simulated_us,
                                  .predicted_us = (double)NAN,
                                  .log_us = (double)NAN,
                                  .placement_id = row->placement_id,
                                  .key = p->key,
                                  .next_step = p->next_step};
  if (row->placement_id >= r->next_id) r->next_id = row->placement_id + 1;
  if (!level) return NULL; // its batch did not end: it is measured again if the search proposes it again
  t->k = &k, t->seen = 0;
  k.state = strcmp(row->state, "ok") == 0       ? TFC_RESULT_OK
            : strcmp(row->state, "no fit") == 0 ? TFC_RESULT_NO_FIT
                                                : TFC_RESULT_FAILED;
  k.log_us = level->log_us, k.readings = level->readings, k.single = level->single != 0;
  k.won = level->won != 0;
  k.predicted_us = level->predicted_us;
  k.name = tfc_str_dup(tfc_str_from(row->name));
  if (row->algorithm) k.algorithm = k.owned = tfc_str_dup(tfc_str_from(row->algorithm));
  if (!k.name || (row->algorithm && !k.owned)) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_solution_init(&k.solution, r->problem));
  TFC_TRY(s, tfc_store_read_assignment(r->store, p->key, take_unit, t));
  if (t->seen != r->problem->unit_count)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "run %lld is about another graph or other groups: %u of %u units are placed",
             (long long)r->run, t->seen, r->problem->unit_count);
  if (level->rank) TFC_TRY(s, take_rank(r, level->rank, &k.solution));
  k.digest = tfc_elsewhere_digest(r->problem, &k.solution);
  if (r->learned && k.state == TFC_RESULT_OK && k.median_us > 0)
    TFC_TRY(s, tfc_learned_add(r->learned, &k.solution, k.median_us, exp(k.log_us) / k.median_us, NULL));
  if (!tfc_array_push(&r->known, k)) TFC_TRY(s, tfc_status_no_memory(NULL));
  k = (struct tfc_elsewhere_known){0};
out:
  tfc_elsewhere_known_deinit(&k);
  return s;
}

static tfc_status take_levels(struct taking *t) {
  tfc_status s = NULL;
  struct tfc_elsewhere *r = t->r;
  struct tfc_text text = {0};
  uint32_t nodes, units, devices;
  unsigned long long evaluations;
  double before;
  int version;
  TFC_TRY(s, tfc_store_get_state(r->store, r->run, "elsewhere", &text));
  if (sscanf(text.data, "elsewhere %d", &version) == 1 && version != VERSION)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "what it had measured is from another version of tfc, in format %d instead of %d",
             version, VERSION);
  if (sscanf(text.data, "elsewhere %d %u %u %u %lf %llu %u %u %lf", &version, &nodes, &units, &devices, &before,
             &evaluations, &r->episodes, &r->reference, &r->reading_s) != 9)
    TFC_FAIL(s, TFC_DATA_LOSS, "run %lld: what it had measured cannot be read", (long long)r->run);
  if (nodes != r->problem->node_count || units != r->problem->unit_count || devices != r->problem->device_count)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "run %lld is about %u nodes in %u units on %u devices, not %u in %u on %u",
             (long long)r->run, nodes, units, devices, r->problem->node_count, r->problem->unit_count,
             r->problem->device_count);
  r->evaluations = evaluations, r->begin_s -= before;
  for (const char *at = strchr(text.data, '\n'); at && at[1]; at = strchr(at + 1, '\n')) {
    struct level l = {.won = 0}; // runs of older versions did not store which placements won
    if (sscanf(at + 1, "%lld %lf %u %d %lf %" SCNx64 " %d", &l.placement_id, &l.log_us, &l.readings, &l.single,
               &l.predicted_us, &l.rank, &l.won) < 6)
      TFC_FAIL(s, TFC_DATA_LOSS, "run %lld: what it had measured cannot be read", (long long)r->run);
    if (!tfc_array_push(&t->levels, l)) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
out:
  tfc_text_deinit(&text);
  return s;
}

static tfc_status take_learned(struct tfc_elsewhere *r) {
  struct tfc_text text = {0};
  tfc_status s = r->learned ? tfc_store_get_state(r->store, r->run, "learned", &text) : NULL;
  if (r->learned && !s) s = tfc_learned_load(r->learned, (tfc_str){text.data, text.size});
  tfc_text_deinit(&text);
  if (tfc_status_code(s) != TFC_NOT_FOUND) return s;
  tfc_status_free(s); // nothing was learned before the interruption
  return NULL;
}

tfc_status tfc_elsewhere_resume(struct tfc_elsewhere *r) {
  tfc_status s = NULL;
  struct taking t = {.r = r};
  bool failed_one = false;
  TFC_TRY(s, tfc_store_find_interrupted(r->store, r->o->settings->resume, "measured_with", &r->run));
  TFC_TRY(s, tfc_store_read_run(r->store, r->run, check_run, r));
  TFC_TRY(s, check_command(r));
  s = take_levels(&t);
  // the run was interrupted before its first batch ended, so only its rows in the tables are lost
  if (tfc_status_code(s) == TFC_NOT_FOUND) {
    tfc_status_free(s), s = NULL;
    r->reference = TFC_NONE;
  }
  if (!s) s = take_learned(r);
  if (tfc_status_code(s) == TFC_INVALID_ARGUMENT)
    s = tfc_status_annotate(s, "run %lld cannot go on; leave --resume out to begin anew", (long long)r->run);
  if (s) goto out;
  TFC_TRY(s, tfc_store_read_placements(r->store, r->run, take_placement, &t));
  TFC_TRY(s, tfc_elsewhere_take_tried(r, &failed_one));
  if (r->reference != TFC_NONE && r->reference >= r->known.count) r->reference = TFC_NONE;
  tfc_elsewhere_choose(r);
  tfc_elsewhere_say(r, false, "going on with run %lld after %.0f s and %zu measured placements", (long long)r->run,
                    tfc_elsewhere_seconds(r), r->known.count - failed_one);
  if (failed_one) TFC_TRY(s, tfc_elsewhere_keep(r)); // it may end the job again before the next batch has ended
out:
  if (s) r->run = 0; // an error: the saved run is not changed
  tfc_array_free(&t.levels);
  return s;
}
