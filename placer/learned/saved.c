// Writes the samples of operations and transfers as lines of text, and reads them, so that a resumed run continues with
// what was learned.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/learned/private.h"

enum { VERSION = 1, MOST_ROWS_SAVED = 20000, MOST_TRIALS_SAVED = 64 }; // VERSION: of these lines and of what they mean

tfc_status tfc_learned_save(const struct tfc_learned *l, struct tfc_text *out) {
  const struct tfc_problem *p = l->problem;
  const size_t cells = (size_t)p->node_count * p->device_count;
  const uint32_t pairs = tfc_learned_pair_count(p);
  tfc_text_printf(out, "learned %d %u %u %d %d\n", VERSION, p->node_count, p->device_count, l->alike, l->traced);
  for (size_t i = 0; i < cells; i++)
    if (l->operation[i].weight > 0)
      tfc_text_printf(out, "o %zu %.9g %.9g\n", i, l->operation[i].weight, l->operation[i].sum);
  for (size_t i = 0; i < 2 * (size_t)pairs; i++)
    if (l->link[i].weight > 0)
      tfc_text_printf(out, "l %zu %.9g %.9g %.9g\n", i, l->link[i].weight, l->link[i].sum, l->latency_share[i]);
  for (size_t i = 0; i < (size_t)pairs * pairs; i++)
    if (l->shared[i] || l->overlapped[i]) tfc_text_printf(out, "w %zu %u %u\n", i, l->shared[i], l->overlapped[i]);
  for (size_t i = l->rows.count > MOST_ROWS_SAVED ? l->rows.count - MOST_ROWS_SAVED : 0; i < l->rows.count; i++)
    tfc_text_printf(out, "r %u %u %u %.9g\n", l->rows.data[i].node, l->rows.data[i].arrivals, l->rows.data[i].device,
                    l->rows.data[i].time_us);
  const struct tfc_learned_trust *t = &l->trust;
  for (size_t i = t->trials.count > MOST_TRIALS_SAVED ? t->trials.count - MOST_TRIALS_SAVED : 0; i < t->trials.count;
       i++)
    tfc_text_printf(out, "t %.9g %.9g %.9g\n", t->trials.data[i].given, t->trials.data[i].learned,
                    t->trials.data[i].measured);
  return out->failed ? tfc_status_no_memory(NULL) : NULL;
}

// Reads one line; false: it is malformed.
static bool take_line(struct tfc_learned *l, const char *line) {
  const struct tfc_problem *p = l->problem;
  const size_t cells = (size_t)p->node_count * p->device_count, pairs = tfc_learned_pair_count(p);
  size_t at;
  double weight, sum, share;
  struct tfc_learned_row row;
  uint32_t a, b;
  if (sscanf(line, "o %zu %lf %lf", &at, &weight, &sum) == 3) {
    if (at >= cells || !(weight > 0) || !isfinite(weight) || !isfinite(sum)) return false;
    l->operation[at] = (struct tfc_learned_sums){weight, sum};
    return true;
  }
  if (sscanf(line, "l %zu %lf %lf %lf", &at, &weight, &sum, &share) == 4) {
    if (at >= 2 * pairs || !(weight > 0) || !isfinite(weight) || !isfinite(sum) || !isfinite(share)) return false;
    l->link[at] = (struct tfc_learned_sums){weight, sum}, l->latency_share[at] = share;
    return true;
  }
  if (sscanf(line, "w %zu %u %u", &at, &a, &b) == 3) {
    if (at >= pairs * pairs) return false;
    l->shared[at] = a, l->overlapped[at] = b;
    return true;
  }
  if (sscanf(line, "r %u %u %u %lf", &row.node, &row.arrivals, &a, &row.time_us) == 4) {
    row.device = (uint16_t)a;
    return row.node < p->node_count && row.arrivals && a < p->device_count && isfinite(row.time_us) &&
           tfc_array_push(&l->rows, row);
  }
  struct tfc_learned_trial trial;
  if (sscanf(line, "t %lf %lf %lf", &trial.given, &trial.learned, &trial.measured) == 3)
    return isfinite(trial.given) && isfinite(trial.learned) && isfinite(trial.measured) &&
           tfc_array_push(&l->trust.trials, trial);
  return false;
}

tfc_status tfc_learned_load(struct tfc_learned *l, tfc_str text) {
  tfc_status s = NULL;
  uint32_t nodes, devices, number = 1;
  int version, alike, traced;
  char *copy = tfc_str_dup(text);
  if (!copy) return tfc_status_no_memory(NULL);
  char *line = copy;
  if (sscanf(copy, "learned %d", &version) == 1 && version != VERSION)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "what was learned is from another version of tfc, in format %d instead of %d",
             version, VERSION);
  if (sscanf(copy, "learned %d %u %u %d %d\n", &version, &nodes, &devices, &alike, &traced) != 5 ||
      nodes != l->problem->node_count || devices != l->problem->device_count || alike != l->alike)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "what was learned is of another problem");
  while ((line = strchr(line, '\n')) && line[1]) {
    number++;
    if (!take_line(l, ++line)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "what was learned: line %u is broken", number);
  }
  l->traced = traced != 0;
out:
  free(copy);
  return s;
}
