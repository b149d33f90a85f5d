// The fake's captures and graphs. A capture has a lane for each of its streams; each piece of work says how many pieces
// of every lane come before it. A graph with several lanes runs each on a thread of its own.
#include "tests/common/cuda_fake_private.h"

#include <stdlib.h>
#include <string.h>

static uint64_t graph_count;
static struct tfc_cuda_fake_graph last_graph;
static void (*graph_watcher)(const struct tfc_cuda_fake_graph *graph);

struct tfc_cuda_fake_graph tfc_cuda_fake_graph(void) {
  pthread_mutex_lock(&tfc_fake.lock);
  const struct tfc_cuda_fake_graph g = last_graph;
  pthread_mutex_unlock(&tfc_fake.lock);
  return g;
}
void tfc_cuda_fake_watch_graphs(void (*launched)(const struct tfc_cuda_fake_graph *graph)) {
  graph_watcher = launched;
}

int tfc_fake_refuse_capture(struct CUstream_st *s, int error) {
  s->capture->invalid = true;
  return tfc_fake_violation(error);
}
// The stream that runs lane `lane` of graphs that are launched into `s`; a profiler sees it as `s`.
static struct CUstream_st *side_of(struct CUstream_st *s, uint32_t lane) { // under the lock
  if (!lane) return s;
  struct CUstream_st **side = &s->sides[lane - 1];
  if (*side) return *side;
  *side = tfc_fake_make_stream(s->green, s->device);
  (*side)->id = s->id;
  (*side)->next = tfc_fake.streams;
  return tfc_fake.streams = *side;
}
void tfc_fake_leave_capture(const struct CUgraphExec_st *g) { // the streams of a capture leave it; under the lock
  for (struct CUstream_st *s = tfc_fake.streams; s; s = s->next)
    if (s->capture == g) s->capture = NULL;
}

// Makes what comes before the event come before the stream's next work, which becomes a part of the capture.
int tfc_fake_wait_in_capture(struct CUstream_st *s, const struct CUevent_st *e) { // under the lock
  struct CUstream_st *other = tfc_fake.streams;
  while (other && !(other->capture && other->capture->first_node == e->captured)) other = other->next;
  struct CUgraphExec_st *g = other ? other->capture : NULL;
  if (!g && s->capture) return tfc_fake_refuse_capture(s, CAPTURE_ISOLATION);
  if (!g) return tfc_fake_violation(CAPTURED_EVENT); // its capture has ended
  if (s->capture && s->capture != g) {
    g->invalid = true;
    return tfc_fake_refuse_capture(s, CAPTURE_MERGE);
  }
  if (!s->capture) {
    if (g->lanes == LANES) abort();
    s->capture = g;
    s->capturer = other->capturer;
    s->lane = g->lanes++;
    memset(s->before, 0, sizeof s->before);
  }
  for (int i = 0; i < LANES; i++)
    if (e->before[i] > s->before[i]) s->before[i] = e->before[i];
  return 0;
}

void tfc_fake_expect_no_capture(void) {
  for (const struct CUstream_st *s = tfc_fake.streams; s; s = s->next)
    if (s->capture && !pthread_equal(s->capturer, pthread_self())) (void)tfc_fake_violation(0);
}
void tfc_fake_wait_for_device(int device) {
  for (struct CUstream_st *s = tfc_fake.streams; s; s = s->next)
    if (s->capture && s->device == device) (void)tfc_fake_refuse_capture(s, CAPTURE_UNSUPPORTED);
}
int tfc_fake_capture_begin(tfc_cuda_stream s) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_CAPTURE);
  if (!error) error = tfc_fake_use_stream(s);
  if (!error && s->capture) error = tfc_fake_refuse_capture(s, CAPTURE_UNSUPPORTED);
  if (!error) {
    s->capture = calloc(1, sizeof *s->capture);
    s->capture->end = &s->capture->first;
    s->capture->lanes = 1;
    s->capture->origin = s;
    s->lane = 0;
    memset(s->before, 0, sizeof s->before);
    s->capturer = pthread_self();
    s->capture->first_node = 100 + (graph_count++ << 20);
  }
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
int tfc_fake_capture_count(tfc_cuda_stream s, size_t *out) {
  *out = s->capture->count;
  return s->capture->invalid ? CAPTURE_INVALIDATED : 0;
}
int tfc_fake_capture_nodes(tfc_cuda_stream s, struct tfc_cuda_graph_node *nodes, size_t wanted) {
  pthread_mutex_lock(&tfc_fake.lock);
  const struct CUgraphExec_st *g = s->capture;
  int error = tfc_fake_use_stream(s);
  if (!error && (!g || g->invalid)) error = CAPTURE_INVALIDATED;
  memset(nodes, 0, wanted * sizeof *nodes);
  size_t skip = error || g->in_lane[s->lane] < wanted ? 0 : g->in_lane[s->lane] - wanted, at = 0;
  for (const struct work *w = error ? NULL : g->first; w && at < wanted; w = w->next)
    if (w->lane == s->lane && (!skip || !skip--))
      nodes[at++] = (struct tfc_cuda_graph_node){.id = w->node, .kind = w->kind};
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
// Finds the works that another lane waits for, and the longest path through the graph.
static void follow_paths(struct CUgraphExec_st *g) {
  struct work **lanes[LANES] = {0};
  size_t *path[LANES] = {0};
  uint32_t at[LANES] = {0};
  for (uint32_t l = 0; l < g->lanes; l++) {
    lanes[l] = calloc(g->in_lane[l] + 1u, sizeof *lanes[l]);
    path[l] = calloc(g->in_lane[l] + 1u, sizeof *path[l]);
    if (!lanes[l] || !path[l]) abort();
  }
  for (struct work *w = g->first; w; w = w->next) {
    size_t before = 0;
    for (uint32_t l = 0; l < g->lanes; l++) {
      if (!w->before[l]) continue;
      if (l != w->lane) lanes[l][w->before[l] - 1]->awaited = true;
      if (path[l][w->before[l] - 1] > before) before = path[l][w->before[l] - 1];
    }
    path[w->lane][at[w->lane]] = before + 1;
    lanes[w->lane][at[w->lane]++] = w;
    if (before + 1 > g->longest) g->longest = before + 1;
  }
  for (uint32_t l = 0; l < g->lanes; l++) free(lanes[l]), free(path[l]);
}
int tfc_fake_capture_end(tfc_cuda_stream s, struct tfc_cuda_graph_node *nodes, size_t capacity, size_t *out_count,
                         tfc_cuda_graph *out) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_CAPTURE);
  struct CUgraphExec_st *g = s->capture;
  if (!error && g->origin != s) {
    error = tfc_fake_refuse_capture(s, CAPTURE_UNMATCHED); // it has to be ended where it began
    pthread_mutex_unlock(&tfc_fake.lock);
    return error;
  }
  if (!error && g->invalid) error = CAPTURE_INVALIDATED;
  for (uint32_t l = 0; l < g->lanes && !error; l++)
    if (s->before[l] < g->in_lane[l]) error = tfc_fake_violation(CAPTURE_UNJOINED);
  tfc_fake_leave_capture(g);
  pthread_mutex_unlock(&tfc_fake.lock);
  if (error) {
    (void)tfc_fake_graph_destroy(g);
    return error;
  }
  follow_paths(g);
  *out_count = g->count;
  const struct work *w = g->first; // kinds of work are numbered as cudaGraphNodeType is
  for (size_t i = 0; i < g->count && i < capacity; i++, w = w->next)
    nodes[i] = (struct tfc_cuda_graph_node){.id = g->lanes == 1 ? g->first_node + i : 0, .kind = w->kind};
  *out = g;
  return 0;
}
void tfc_fake_capture_abort(tfc_cuda_stream s) {
  pthread_mutex_lock(&tfc_fake.lock);
  struct CUgraphExec_st *g = s->capture;
  if (g) tfc_fake_leave_capture(g);
  pthread_mutex_unlock(&tfc_fake.lock);
  if (g) (void)tfc_fake_graph_destroy(g);
}

// Makes a record that `s` reaches, and which can be waited for until it is released.
static int push_record(struct CUstream_st *s, struct record **out) {
  struct record *r = calloc(1, sizeof *r);
  int error = r ? tfc_fake_push(s, &(struct work){.kind = RECORD, .record = r}) : 2;
  if (error) {
    free(r);
    return error;
  }
  r->references = 2;
  *out = r;
  return 0;
}
static int push_wait(struct CUstream_st *s, struct record *r) {
  int error = tfc_fake_push(s, &(struct work){.kind = WAIT, .record = r});
  if (!error) r->references++;
  return error;
}
// Each lane of the graph runs on a thread of its own, and waits for what comes before its work on others.
static int launch_lanes(const struct CUgraphExec_st *g, struct CUstream_st *s) { // under the lock
  struct record *begin = NULL, **made[LANES] = {0}, *ends[LANES] = {0};
  uint32_t seen[LANES][LANES] = {{0}}, at[LANES] = {0};
  int error = push_record(s, &begin);
  for (uint32_t l = 0; l < g->lanes; l++) {
    if (!(made[l] = calloc(g->in_lane[l] + 1u, sizeof *made[l]))) abort();
    if (l && !error) error = push_wait(side_of(s, l), begin);
  }
  for (struct work *w = g->first; w && !error; w = w->next) {
    struct CUstream_st *on = side_of(s, w->lane);
    for (uint32_t l = 0; l < g->lanes && !error; l++) {
      if (l == w->lane || w->before[l] <= seen[w->lane][l]) continue;
      seen[w->lane][l] = w->before[l];
      error = push_wait(on, made[l][w->before[l] - 1]);
    }
    if (!error) error = tfc_fake_push(on, w);
    if (!error && w->awaited) error = push_record(on, &made[w->lane][at[w->lane]]);
    at[w->lane]++;
  }
  for (uint32_t l = 1; l < g->lanes && !error; l++) {
    error = push_record(side_of(s, l), &ends[l]);
    if (!error) error = push_wait(s, ends[l]);
  }
  tfc_fake_release_record(begin);
  for (uint32_t l = 0; l < g->lanes; l++) {
    for (uint32_t i = 0; i < g->in_lane[l]; i++) tfc_fake_release_record(made[l][i]);
    free(made[l]);
    tfc_fake_release_record(ends[l]);
  }
  return error;
}
int tfc_fake_graph_launch(tfc_cuda_graph g, tfc_cuda_stream s) {
  pthread_mutex_lock(&tfc_fake.lock);
  int error = tfc_fake_count(TFC_CUDA_FAKE_GRAPH_LAUNCH);
  if (!error) error = tfc_fake_use_for_launch(s);
  if (!error && s->capture) error = tfc_fake_refuse_capture(s, CAPTURE_UNSUPPORTED);
  const uint32_t correlation = tfc_fake.watcher && !error ? tfc_fake.watcher->launched(g->count) : 0;
  for (struct work *w = g->first; w && !error; w = w->next) w->correlation = correlation;
  for (struct work *w = g->first; w && !error && g->lanes == 1; w = w->next) error = tfc_fake_push(s, w);
  if (!error && g->lanes > 1) error = launch_lanes(g, s);
  last_graph = (struct tfc_cuda_fake_graph){g->count, g->longest, g->lanes};
  if (graph_watcher) graph_watcher(&last_graph);
  pthread_mutex_unlock(&tfc_fake.lock);
  return error;
}
int tfc_fake_graph_destroy(tfc_cuda_graph g) {
  for (struct work *w = g->first, *next; w; w = next) {
    next = w->next;
    tfc_fake_free_work(w);
  }
  free(g);
  return 0;
}
