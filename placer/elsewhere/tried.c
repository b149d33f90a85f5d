#include "placer/elsewhere/tried.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/elsewhere/record.h"
#include "profiler/store.h"
#include "profiler/store_rows.h"
#include "profiler/store_runs.h"

// The state's lines: name, algorithm, role, whether it is a single device, the device of each unit, and the order of
// operations, which is empty where the placement has none.
static const char state_name[] = "tried";

tfc_status tfc_elsewhere_tried_none(struct tfc_elsewhere *r) {
  if (!r->tried) return NULL;
  r->tried = 0;
  return tfc_store_set_state(r->store, r->run, state_name, (tfc_str){0});
}

static const struct tfc_elsewhere_known *unread(const struct tfc_elsewhere *r, uint64_t digest) {
  for (size_t i = 0; i < r->known.count; i++)
    if (r->known.data[i].digest == digest) return r->known.data[i].key ? NULL : &r->known.data[i];
  return NULL;
}

tfc_status tfc_elsewhere_try(struct tfc_elsewhere *r, const struct tfc_solution *solution) {
  tfc_status s = NULL;
  struct tfc_text text = {0};
  const uint64_t digest = tfc_elsewhere_digest(r->problem, solution);
  const struct tfc_elsewhere_known *k = unread(r, digest);
  if (!k) return tfc_elsewhere_tried_none(r);
  if (r->tried == digest) return NULL;
  tfc_text_printf(&text, "%s\n%s\n%s\n%d\n", k->name, k->algorithm ? k->algorithm : "", k->role, k->single);
  for (uint32_t u = 0; u < r->problem->unit_count; u++) tfc_text_printf(&text, "%u ", k->solution.device[u]);
  tfc_text_printf(&text, "\n");
  for (uint32_t n = 0; k->solution.rank && n < r->problem->node_count; n++)
    tfc_text_printf(&text, "%u ", k->solution.rank[n]);
  tfc_text_printf(&text, "\n");
  if (text.failed) TFC_TRY(s, tfc_status_no_memory("placing over tasks"));
  TFC_TRY(s, tfc_store_set_state(r->store, r->run, state_name, (tfc_str){text.data, text.size}));
  r->tried = digest;
out:
  tfc_text_deinit(&text);
  return s;
}

// Takes the next line; the text after it is left in *rest.
static char *take_line(char **rest) {
  char *line = *rest, *end = strchr(line, '\n');
  if (!end) return NULL;
  *end = 0, *rest = end + 1;
  return line;
}

// Reads exactly `count` numbers below `limit`.
static bool take_numbers(char *at, uint32_t count, uint32_t limit, void (*put)(void *to, uint32_t i, uint32_t value),
                         void *to) {
  for (uint32_t i = 0; i < count; i++) {
    char *end;
    const unsigned long value = strtoul(at, &end, 10);
    if (end == at || value >= limit) return false;
    put(to, i, (uint32_t)value);
    at = end;
  }
  return true;
}
static void put_device(void *to, uint32_t i, uint32_t value) {
  ((tfc_device_id *)to)[i] = (tfc_device_id)value;
}
static void put_rank(void *to, uint32_t i, uint32_t value) {
  ((uint32_t *)to)[i] = value;
}

tfc_status tfc_elsewhere_take_tried(struct tfc_elsewhere *r, bool *out_added) {
  const struct tfc_problem *p = r->problem;
  struct tfc_text text = {0};
  struct tfc_solution solution = {0};
  uint32_t index;
  bool fine = false;
  *out_added = false;
  tfc_status s = tfc_store_get_state(r->store, r->run, state_name, &text);
  if (tfc_status_code(s) == TFC_NOT_FOUND || (!s && !text.size)) { // it was broken off between two placements
    tfc_status_free(s), s = NULL;
    goto out;
  }
  if (s) goto out;
  char *rest = text.data;
  const char *name = take_line(&rest), *algorithm = take_line(&rest), *role = take_line(&rest);
  const char *single = take_line(&rest);
  char *devices = take_line(&rest), *ranks = take_line(&rest);
  TFC_TRY(s, tfc_solution_init(&solution, p));
  fine = ranks && take_numbers(devices, p->unit_count, p->device_count, put_device, solution.device);
  if (fine && *ranks) {
    if (!(solution.rank = calloc(p->node_count + 1u, sizeof *solution.rank)))
      TFC_TRY(s, tfc_status_no_memory("placing over tasks"));
    fine = take_numbers(ranks, p->node_count, p->node_count, put_rank, solution.rank);
  }
  if (!fine)
    TFC_FAIL(s, TFC_DATA_LOSS, "run %lld: the placement that was being tried cannot be read", (long long)r->run);
  const bool baseline = strcmp(role, "baseline") == 0;
  TFC_TRY(s, tfc_elsewhere_add(r, name, NULL, baseline ? "baseline" : "candidate", &solution, &index, out_added));
  if (!*out_added) goto out;
  struct tfc_elsewhere_known *k = &r->known.data[index];
  k->single = strcmp(single, "1") == 0;
  if (*algorithm) k->algorithm = k->owned = tfc_str_dup(tfc_str_from(algorithm));
  k->state = TFC_RESULT_FAILED;
  k->note = tfc_str_dup(TFC_STR("the job ended while it was tried"));
  if ((*algorithm && !k->owned) || !k->note) TFC_TRY(s, tfc_status_no_memory("placing over tasks"));
  if (!k->baseline) r->episodes++;
  TFC_TRY(s, tfc_elsewhere_store(r, k, &(struct tfc_command_answer){.state = TFC_RESULT_FAILED}, "screen"));
  r->tried = k->digest; // so that the state is emptied
  TFC_TRY(s, tfc_elsewhere_tried_none(r));
  tfc_elsewhere_say(r, true, "%s is not tried again: %s", k->name, k->note);
out:
  tfc_solution_deinit(&solution);
  tfc_text_deinit(&text);
  return s;
}
