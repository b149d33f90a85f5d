// Joins a GPU profiler's records. They arrive in any order, on CUPTI's own thread, and are first only stored. When all
// records of a step have arrived, they are joined, checked and summed: correlation ids are looked up in a sorted list,
// and each stream's records are checked in order. Broken records are counted and left out, never repaired; the counts
// make the measurement fail.
#include "profiler/activity.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/map.h"

// A GPU's clock is converted to the host's with an error below this.
enum { CLOCKS_NS = 100000 };
// Stamps of two clocks (multiprocessors, copy engines) are converted to one, so neighbours in a stream may seem to
// overlap, by how much depends on the machine: at first by the error of the clocks, and once some pairs are known by
// four times what nine tenths of them do, at least by OVERLAP_NS. Branches of a captured graph really overlap.
enum { OVERLAP_NS = 2000, FIRST_OVERLAPS = 16, TIMES_USUAL = 4 };
const int64_t tfc_activity_bounds_ns[TFC_ACTIVITY_BOUNDS] = {500, 1000, 2000, 5000, 20000, CLOCKS_NS};

struct link { // correlation → external
  uint32_t correlation;
  uint32_t order; // of nested marks the innermost one, which comes last, counts
  uint64_t external;
};
struct tfc_activity {
  pthread_mutex_t lock;
  TFC_ARRAY(struct tfc_activity_work) works;
  TFC_ARRAY(struct link) links;
  TFC_ARRAY(struct tfc_activity_call) calls;
  struct tfc_intmap nodes;  // of captured graphs: node → uid; a long run has millions of them
  struct tfc_intmap clones; // clone → original
  uint64_t dropped, waits_broken;
  int64_t begin_ns; // beginning of the step
  struct tfc_activity_overlaps overlaps;
};

tfc_status tfc_activity_create(struct tfc_activity **out) {
  struct tfc_activity *a = calloc(1, sizeof *a);
  if (!a) return tfc_status_no_memory(NULL);
  pthread_mutex_init(&a->lock, NULL);
  *out = a;
  return NULL;
}

void tfc_activity_free(struct tfc_activity *a) {
  if (!a) return;
  tfc_array_free(&a->works);
  tfc_array_free(&a->links);
  tfc_intmap_deinit(&a->nodes);
  tfc_intmap_deinit(&a->clones);
  tfc_array_free(&a->calls);
  pthread_mutex_destroy(&a->lock);
  free(a);
}

void tfc_activity_add(struct tfc_activity *a, const struct tfc_activity_work *work) {
  pthread_mutex_lock(&a->lock);
  if (!tfc_array_push(&a->works, *work)) a->dropped++;
  pthread_mutex_unlock(&a->lock);
}

void tfc_activity_correlate(struct tfc_activity *a, uint32_t correlation, uint64_t external) {
  pthread_mutex_lock(&a->lock);
  struct link l = {correlation, (uint32_t)a->links.count, external};
  if (!tfc_array_push(&a->links, l)) a->dropped++;
  pthread_mutex_unlock(&a->lock);
}

void tfc_activity_drop(struct tfc_activity *a, uint64_t count) {
  pthread_mutex_lock(&a->lock);
  a->dropped += count;
  pthread_mutex_unlock(&a->lock);
}

void tfc_activity_call(struct tfc_activity *a, const struct tfc_activity_call *call) {
  pthread_mutex_lock(&a->lock);
  if (!tfc_array_push(&a->calls, *call))
    *(call->kind == TFC_ACTIVITY_SYNCHRONIZE ? &a->waits_broken : &a->dropped) += 1;
  pthread_mutex_unlock(&a->lock);
}

static void put(struct tfc_activity *a, struct tfc_intmap *map, uint64_t key, uint64_t value) {
  pthread_mutex_lock(&a->lock);
  uint64_t *at = tfc_intmap_put(map, key, value, NULL);
  if (at)
    *at = value;
  else
    a->dropped++;
  pthread_mutex_unlock(&a->lock);
}

void tfc_activity_map(struct tfc_activity *a, uint64_t graph_node, uint32_t uid) {
  put(a, &a->nodes, graph_node, uid);
}

void tfc_activity_clone(struct tfc_activity *a, uint64_t original, uint64_t clone) {
  put(a, &a->clones, clone, original);
}

static void forget(struct tfc_activity *a) { // under the lock
  a->works.count = a->links.count = a->calls.count = 0;
  a->dropped = a->waits_broken = 0;
}

size_t tfc_activity_held(struct tfc_activity *a, size_t *out_works) {
  pthread_mutex_lock(&a->lock);
  *out_works = a->works.count;
  size_t n = a->works.count + a->links.count;
  pthread_mutex_unlock(&a->lock);
  return n;
}

void tfc_activity_begin(struct tfc_activity *a, int64_t begin_ns) {
  pthread_mutex_lock(&a->lock);
  forget(a);
  a->begin_ns = begin_ns;
  pthread_mutex_unlock(&a->lock);
}

// --- Joining a step's records ------------------------------------------------------------------------------------
static int by_correlation(const void *a, const void *b) {
  const struct link *x = a, *y = b;
  if (x->correlation != y->correlation) return x->correlation < y->correlation ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}
#define ORDER(field)                                                                                                   \
  if (x->field != y->field) return x->field < y->field ? -1 : 1
static int by_stream(const void *a, const void *b) { // 0: the same record twice
  const struct tfc_activity_work *x = a, *y = b;
  ORDER(context);
  ORDER(stream);
  ORDER(start_ns);
  ORDER(end_ns);
  ORDER(correlation);
  ORDER(graph_node);
  ORDER(kind);
  return 0;
}
static int by_time(const void *a, const void *b) { // 0: the same record twice
  const struct tfc_activity_call *x = a, *y = b;
  ORDER(start_ns);
  ORDER(end_ns);
  ORDER(kind);
  ORDER(context);
  ORDER(stream);
  ORDER(identity);
  ORDER(bytes);
  return strcmp(x->name, y->name);
}
#undef ORDER
static int by_start(const void *a, const void *b) {
  const struct tfc_activity_work *x = a, *y = b;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  return by_stream(a, b);
}

static const struct link *find_link(const struct tfc_activity *a, uint32_t correlation) {
  size_t low = 0, high = a->links.count;
  while (low < high) { // binary search: the last with this correlation
    size_t middle = (low + high) / 2;
    if (a->links.data[middle].correlation <= correlation)
      low = middle + 1;
    else
      high = middle;
  }
  return low && a->links.data[low - 1].correlation == correlation ? &a->links.data[low - 1] : NULL;
}

static const uint64_t *find_node(const struct tfc_activity *a, uint64_t graph_node) { // returns its uid, or NULL
  for (int depth = 0; depth < 4; depth++) {                                           // a clone may be a clone's clone
    const uint64_t *uid = tfc_intmap_get(&a->nodes, graph_node), *original = NULL;
    if (uid || !(original = tfc_intmap_get(&a->clones, graph_node))) return uid;
    graph_node = *original;
  }
  return NULL;
}

// Finds the node or transfer that the work belongs to; false: it belongs to another step.
static bool attribute(const struct tfc_activity *a, uint32_t step, struct tfc_activity_work *w) {
  w->device = TFC_NO_DEVICE;
  w->uid = TFC_NONE;
  if (w->start_ns > 0 && w->start_ns < a->begin_ns - CLOCKS_NS) return false;
  const struct link *l = find_link(a, w->correlation);
  if (!l) return true;
  if ((l->external >> 40) != (step & 0xffffff)) return false;
  const uint64_t *uid = w->graph_node ? find_node(a, w->graph_node) : NULL;
  if (w->graph_node && !uid) return true; // the launch of a graph is not a node
  w->device = (uint16_t)(l->external >> 32 & 0xff);
  w->uid = uid ? (uint32_t)*uid : (uint32_t)l->external;
  return true;
}

static tfc_status take_calls(const struct tfc_activity *a, struct tfc_activity_result *out) {
  for (size_t i = 0; i < a->calls.count; i++)
    if (!tfc_array_push(&out->calls, a->calls.data[i])) return tfc_status_no_memory(NULL);
  if (out->calls.count) qsort(out->calls.data, out->calls.count, sizeof *out->calls.data, by_time);
  out->waits_broken = a->waits_broken;
  size_t kept = 0;
  for (size_t i = 0; i < out->calls.count; i++) {
    const struct tfc_activity_call c = out->calls.data[i];
    const bool twice = kept && by_time(&out->calls.data[kept - 1], &c) == 0, undated = c.start_ns <= 0 || c.end_ns <= 0;
    const bool wait = c.kind == TFC_ACTIVITY_SYNCHRONIZE, backwards = !undated && c.end_ns < c.start_ns;
    if (wait && (twice || undated || backwards)) {
      out->waits_broken++;
      continue;
    }
    out->twice += twice;
    if (twice) continue;
    out->zero_stamped += undated;
    out->out_of_order += backwards;
    out->calls.data[kept++] = c;
    if (wait) out->synchronized_ns += c.end_ns - c.start_ns;
    out->synchronizations += wait;
    out->allocations += c.kind == TFC_ACTIVITY_ALLOCATE;
    if (c.kind == TFC_ACTIVITY_ALLOCATE) out->allocated_bytes += c.bytes;
  }
  out->calls.count = kept;
  return NULL;
}

// Whether y may begin before x, which is ahead of it in the stream, has ended. Libraries launch such kernels
// (programmatic dependent launches): y was launched later, and ends later.
static bool begins_early(const struct tfc_activity_work *x, const struct tfc_activity_work *y) {
  return x->kind == TFC_ACTIVITY_KERNEL && y->kind == TFC_ACTIVITY_KERNEL && y->correlation > x->correlation &&
         y->end_ns >= x->end_ns;
}

// Sums busy and attributed times of sorted works; each record counts once.
static void sum_works(struct tfc_activity_result *out) {
  size_t kept = 0;
  for (size_t i = 0; i < out->works.count; i++) {
    const struct tfc_activity_work w = out->works.data[i];
    if (kept && by_stream(&out->works.data[kept - 1], &w) == 0) {
      out->twice++;
      continue;
    }
    out->works.data[kept++] = w;
    out->busy_ns += w.end_ns - w.start_ns;
    if (w.uid != TFC_NONE) out->attributed_ns += w.end_ns - w.start_ns;
  }
  out->works.count = kept;
}

// --- Overlaps ------------------------------------------------------------------------------------------------------
static int64_t overlap_limit(const struct tfc_activity_overlaps *o) {
  uint64_t all = 0, seen = 0;
  for (int i = 0; i <= TFC_ACTIVITY_BOUNDS; i++) all += o->pairs[i];
  if (all < FIRST_OVERLAPS) return CLOCKS_NS;
  int usual = 0;
  while (usual < TFC_ACTIVITY_BOUNDS && 10 * (seen += o->pairs[usual]) < 9 * all) usual++;
  const int64_t limit = usual < TFC_ACTIVITY_BOUNDS ? TIMES_USUAL * tfc_activity_bounds_ns[usual] : CLOCKS_NS;
  return limit < OVERLAP_NS ? OVERLAP_NS : limit > CLOCKS_NS ? CLOCKS_NS : limit;
}
static void note_overlap(struct tfc_activity_overlaps *o, int64_t ns) {
  int i = 0;
  while (i < TFC_ACTIVITY_BOUNDS && ns > tfc_activity_bounds_ns[i]) i++;
  o->pairs[i]++;
  if (ns > o->longest_ns) o->longest_ns = ns;
}
void tfc_activity_overlaps_get(struct tfc_activity *a, struct tfc_activity_overlaps *out) {
  pthread_mutex_lock(&a->lock);
  *out = a->overlaps;
  out->limit_ns = overlap_limit(out);
  pthread_mutex_unlock(&a->lock);
}

static tfc_status take(struct tfc_activity *a, uint32_t step, struct tfc_activity_result *out) {
  TFC_RETURN_IF_ERROR(take_calls(a, out));
  if (a->links.count) qsort(a->links.data, a->links.count, sizeof *a->links.data, by_correlation);
  for (size_t i = 0; i < a->works.count; i++) {
    struct tfc_activity_work w = a->works.data[i];
    if (!attribute(a, step, &w)) {
      out->late++;
      continue;
    }
    if (w.start_ns <= 0 || w.end_ns <= 0) {
      out->zero_stamped++;
      continue;
    }
    if (w.end_ns < w.start_ns) {
      out->out_of_order++;
      continue;
    }
    if (!tfc_array_push(&out->works, w)) return tfc_status_no_memory(NULL);
  }
  out->dropped = a->dropped;
  if (out->works.count == 0) return NULL;
  qsort(out->works.data, out->works.count, sizeof *out->works.data, by_stream);
  sum_works(out);
  out->overlap_limit_ns = overlap_limit(&a->overlaps); // what this step adds is for the next one
  for (size_t i = 1; i < out->works.count; i++) {      // a stream does one thing at a time
    const struct tfc_activity_work *x = &out->works.data[i - 1];
    struct tfc_activity_work *y = &out->works.data[i];
    if (x->context != y->context || x->stream != y->stream || y->start_ns >= x->end_ns) continue;
    bool together = (x->graph_node && y->graph_node) || begins_early(x, y);
    if (!together) {
      out->overlaps++;
      note_overlap(&a->overlaps, x->end_ns - y->start_ns);
      if (x->end_ns - y->start_ns > out->longest_overlap_ns) out->longest_overlap_ns = x->end_ns - y->start_ns;
    }
    if (!together && x->end_ns - y->start_ns > out->overlap_limit_ns) {
      out->out_of_order++;
      continue;
    }
    out->busy_ns -= x->end_ns - y->start_ns; // the overlap counts once, for the first
    if (y->uid != TFC_NONE) out->attributed_ns -= x->end_ns - y->start_ns;
    y->start_ns = x->end_ns;
    if (y->end_ns < y->start_ns) {
      out->busy_ns += y->start_ns - y->end_ns;
      if (y->uid != TFC_NONE) out->attributed_ns += y->start_ns - y->end_ns;
      y->end_ns = y->start_ns;
    }
  }
  qsort(out->works.data, out->works.count, sizeof *out->works.data, by_start);
  return NULL;
}

void tfc_activity_result_deinit(struct tfc_activity_result *r) {
  tfc_array_free(&r->works);
  tfc_array_free(&r->calls);
  *r = (struct tfc_activity_result){0};
}

tfc_status tfc_activity_take(struct tfc_activity *a, uint32_t step, struct tfc_activity_result *out) {
  struct tfc_activity_result r = {0};
  pthread_mutex_lock(&a->lock);
  tfc_status s = take(a, step, &r);
  forget(a);
  pthread_mutex_unlock(&a->lock);
  if (s) {
    tfc_activity_result_deinit(&r);
    return s;
  }
  tfc_activity_result_deinit(out);
  *out = r;
  return NULL;
}

tfc_status tfc_activity_trust(const struct tfc_activity_result *r) {
  if (!r->dropped && !r->zero_stamped && !r->out_of_order && !r->twice && !r->late) return NULL;
  char overlap[96] =
      ""; // tells the user how far the overlaps exceed the limit, which may be too small for this machine
  if (r->overlaps)
    snprintf(overlap, sizeof overlap, " (%llu overlap in their streams, by up to %.1f us of %.1f us that pass)",
             (unsigned long long)r->overlaps, 1e-3 * (double)r->longest_overlap_ns, 1e-3 * (double)r->overlap_limit_ns);
  return tfc_status_make(
      TFC_ABORTED,
      "GPU trace: %llu records dropped, %llu without time stamps, %llu out of order%s, %llu delivered "
      "twice, %llu of other steps, which lacked them: no measurement",
      (unsigned long long)r->dropped, (unsigned long long)r->zero_stamped, (unsigned long long)r->out_of_order, overlap,
      (unsigned long long)r->twice, (unsigned long long)r->late);
}
