// Finds which nodes a search moves together: nodes that are fused into one operation, and sequences of nodes that read
// the same weights.
#include "placer/job/together.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/union_find.h"

// Returns how long a node takes as an operation of its own, in us; NaN: not known.
static double own_us(const struct tfc_job_together *t, uint32_t node) {
  double own = (double)NAN;
  for (uint32_t k = 0; k < t->kind_count; k++) {
    struct tfc_cost cost = tfc_cost_table_get(t->plain, node, k);
    if (cost.samples && !(own <= cost.median_us)) own = cost.median_us;
  }
  return own;
}

// Whether a node should stay with the operation that it is fused into. On another device its outputs would have to be
// written and read again; it stays if that takes more than a twentieth of the node's own time. (Products of a softmax
// in shards are sums of small tensors: they may go to several devices, fused or not.)
static bool costs_to_tear(const struct tfc_job_together *t, uint32_t node) {
  const double bandwidth = 1e10; // bytes a second, of one core
  const struct tfc_node *n = &t->graph->nodes[node];
  double bytes = 0;
  for (uint32_t k = 0; k < n->output_count; k++) bytes += (double)t->info->output_bytes[n->output_begin + k];
  // written so that a node stays where it is if its own time is not known (NaN)
  return !(2e6 * bytes / bandwidth <= 0.05 * own_us(t, node));
}

// Sets of nodes (union-find), which begin with what the graph itself keeps together.
struct sets {
  const struct tfc_job_together *t;
  uint32_t *parent; // [node]
  TFC_ARRAY(struct tfc_node_pair) pairs;
};

static uint32_t root_of(struct sets *s, uint32_t node) {
  uint32_t anchor = s->t->subject->anchor[node];
  if (anchor != TFC_NONE) node = s->t->subject->node_of[anchor];
  return tfc_union_find_root(s->parent, node);
}

static tfc_status join(struct sets *s, uint32_t a, uint32_t b) {
  s->parent[root_of(s, a)] = root_of(s, b);
  if (tfc_array_push(&s->pairs, (struct tfc_node_pair){a, b})) return NULL;
  return tfc_status_no_memory(NULL);
}

struct reader { // a node that reads weights which its device packs
  uint32_t with, node;
  uint64_t bytes;
};
static int by_weights(const void *a, const void *b) {
  const struct reader *x = a, *y = b;
  if (x->with != y->with) return x->with < y->with ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

// Each device that reads weights fetches and packs them once more. Returns into how many sequences (in the graph's
// order) the readers may be divided so that this takes at most a fifth of their own time.
static uint32_t runs_of(const struct tfc_job_together *t, const struct reader *readers, uint32_t count) {
  const double bandwidth = 5e9; // bytes a second: fetched, read, written
  double all = 0;
  for (uint32_t i = 0; i < count; i++) all += own_us(t, readers[i].node);
  double runs = 0.2 * all / (1e6 * (double)readers[0].bytes / bandwidth);
  return runs > 1 ? (uint32_t)fmin(runs, count) : 1; // if their time is not known, they stay together
}

// Joins neighbours in the list of readers until at most `runs` sets are left.
static tfc_status cut_in_runs(struct sets *s, const struct reader *readers, uint32_t count, uint32_t runs) {
  uint32_t sets = 0;
  for (uint32_t i = 0; i < count; i++) {
    bool seen = false;
    for (uint32_t k = 0; k < i && !seen; k++) seen = root_of(s, readers[k].node) == root_of(s, readers[i].node);
    sets += !seen;
  }
  for (uint32_t i = 1; i < count && sets > runs; i++) {
    bool ends_run = (uint64_t)i * runs / count != (uint64_t)(i - 1) * runs / count;
    if (ends_run || root_of(s, readers[i].node) == root_of(s, readers[i - 1].node)) continue;
    TFC_RETURN_IF_ERROR(join(s, readers[i].node, readers[i - 1].node));
  }
  return NULL;
}

static tfc_status share(struct sets *s) {
  tfc_status status = NULL;
  const struct tfc_measure_info *info = s->t->info;
  TFC_ARRAY(struct reader) readers = {0};
  for (uint32_t i = 0; i < info->shared_count; i++) {
    const struct tfc_plan_shared *k = &info->shared[i];
    if (!tfc_array_push(&readers, (struct reader){k->with, k->node, k->bytes}) ||
        !tfc_array_push(&readers, (struct reader){k->with, k->with, k->bytes}))
      TFC_TRY(status, tfc_status_no_memory(NULL));
  }
  if (readers.count) qsort(readers.data, readers.count, sizeof *readers.data, by_weights);
  uint32_t count = 0;
  for (size_t i = 0; i < readers.count; i++) // lists each reader only once
    if (!count || by_weights(&readers.data[count - 1], &readers.data[i]) != 0) readers.data[count++] = readers.data[i];
  for (uint32_t begin = 0, end; begin < count; begin = end) {
    for (end = begin + 1; end < count && readers.data[end].with == readers.data[begin].with;) end++;
    uint32_t runs = runs_of(s->t, readers.data + begin, end - begin);
    TFC_TRY(status, cut_in_runs(s, readers.data + begin, end - begin, runs));
  }
out:
  tfc_array_free(&readers);
  return status;
}

tfc_status tfc_job_find_together(const struct tfc_job_together *t, bool **out_kept, struct tfc_node_pair **out,
                                 uint32_t *out_count) {
  tfc_status s = NULL;
  const uint32_t nodes = t->graph->node_count;
  const struct tfc_measure_info *info = t->info;
  struct sets sets = {.t = t, .parent = malloc((nodes + 1u) * sizeof *sets.parent)};
  bool *kept = calloc(nodes + 1u, sizeof *kept);
  if (!sets.parent || !kept) TFC_TRY(s, tfc_status_no_memory(NULL));
  tfc_union_find_init(sets.parent, nodes);
  for (uint32_t i = 0; i < nodes && info->done_by; i++) {
    kept[i] = info->done_by[i] < nodes && costs_to_tear(t, i);
    if (kept[i]) TFC_TRY(s, join(&sets, i, info->done_by[i]));
  }
  for (uint32_t i = 0; i < info->continued_count; i++)
    if (info->continued[i].same) TFC_TRY(s, join(&sets, info->continued[i].node, info->continued[i].before));
  TFC_TRY(s, share(&sets));
  *out_kept = kept, kept = NULL;
  *out = sets.pairs.data, *out_count = (uint32_t)sets.pairs.count;
  sets.pairs.data = NULL;
out:
  free(kept);
  free(sets.parent);
  tfc_array_free(&sets.pairs);
  return s;
}
