// Captures segments as CUDA graphs. A piece is a sequence of operations whose launches depend on nothing in host memory
// except addresses. It is captured after a few runs, when modules are loaded and libraries have chosen algorithms. From
// then on it is replayed with one launch, as long as all addresses are those of the capture. If an address has changed,
// the piece is captured again; if that happens too often, it is no longer captured. Operations between pieces (random
// numbers whose seeds the host draws, operations that the host runs) are launched one by one.
//
// A capture uses a stream of its own: if it used the compute stream, a copy that waits for that stream would become
// part of the graph. If the segment has an order, independent operations are captured on several streams (branches.c),
// which become branches of the graph. Memory that kernels allocate during a capture belongs to the graph. The driver
// remembers which nodes belong to which operation, for the profiler.
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/device/cuda/branches.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/graph.h"
#include "runtime/device/cuda/libraries.h"
#include "runtime/device/runner.h"
#include "runtime/device/settle.h"

// A piece is no longer captured after MOST_CAPTURES captures in a row that were each replayed fewer than WORTH times.
enum { MOST_CAPTURES = 8, WORTH = 2 };

struct tfc_cuda_piece { // a part of a segment that is captured as one graph
  uint32_t begin, end;  // its calls
  enum { WARMING, REFUSED, READY } state;
  uint32_t runs, captures, replays; // `captures`: how many in a row were replayed too few times; `replays`: since the
                                    // last capture
  tfc_cuda_graph graph;
  struct tfc_cuda_graph_node *nodes;
  size_t node_count;
  bool named;    // the nodes have CUPTI's ids
  bool traced;   // captured in a traced step; a profiler may not see kernels that were captured before it was started
  bool branched; // the last capture was one with branches
  bool straight; // such a capture has failed: the next one has none
  const void *told;     // the trace sink that already has the nodes' ids
  uintptr_t *signature; // all addresses that the launches used, and the host values that the launches depend on
  uint64_t scratch_generation;
  TFC_ARRAY(struct tfc_buffer *) kept;
};
struct tfc_cuda_capture {
  struct tfc_cuda_piece *pieces; // sorted by begin
  uint32_t count, at;            // at: the next piece in the current run of the segment
};

static void drop_graph(struct tfc_cuda_device *d, struct tfc_cuda_piece *c) {
  if (c->graph) (void)d->api->graph_destroy(c->graph);
  c->graph = NULL;
  free(c->nodes);
  c->nodes = NULL;
  c->node_count = 0;
  for (size_t i = 0; i < c->kept.count; i++) tfc_buffer_release(c->kept.data[i]);
  c->kept.count = 0;
  c->told = NULL;
}

void tfc_cuda_graph_release(struct tfc_cuda_device *d, struct tfc_cuda_capture *c) {
  if (!c) return;
  for (uint32_t i = 0; i < c->count; i++) {
    drop_graph(d, &c->pieces[i]);
    tfc_array_free(&c->pieces[i].kept);
    free(c->pieces[i].signature);
  }
  free(c->pieces);
  free(c);
}

// --- What can be captured -------------------------------------------------------------------------------------------
// An output for which the plan has no place (the reference that an update passes on, an output whose size a library
// chooses) is allowed if it is made and released within the piece: then its memory belongs to the capture.
static bool is_released(const struct tfc_prepared *p, uint32_t from, uint32_t end, const struct tfc_tensor *slot) {
  for (uint32_t i = from; i < end; i++)
    for (uint32_t r = 0; r < p->calls[i].op->release_count; r++)
      if (p->calls[i].op->releases[r] == slot) return true;
  return false;
}

static bool is_made(const struct tfc_prepared *p, uint32_t begin, uint32_t to, const struct tfc_tensor *slot) {
  for (uint32_t i = to + 1; i-- > begin;)
    for (uint32_t k = 0; k < p->calls[i].op->output_count; k++)
      if (p->calls[i].op->outputs[k] == slot) return true;
  return false;
}

static bool can_capture_alone(const struct tfc_cuda_call *c) {
  const struct tfc_segment_op *op = c->op;
  if (!c->row || c->row->flags & TFC_CUDA_NO_CAPTURE || !op->outputs) return false;
  if (op->host_outputs) return false; // the launch function writes them on the host, which a replay would not do
  for (uint32_t i = 0; i < op->input_count; i++) {
    bool host = tfc_host_bit(op->host_inputs, i);
    bool constant = op->input_values && op->input_values[i];
    bool handle = op->variables && op->variables[i]; // the handle of a variable, which the launch does not read
    if (host && !constant && !handle) return false;
  }
  return true;
}

static bool can_capture_within(const struct tfc_prepared *p, uint32_t index, uint32_t begin, uint32_t end) {
  const struct tfc_segment_op *op = p->calls[index].op;
  for (uint32_t r = 0; r < op->release_count; r++)
    if (!is_made(p, begin, index, op->releases[r])) return false;
  for (uint32_t i = 0; i < op->output_count; i++) {
    const struct tfc_tensor *t = op->outputs[i];
    if (op->output_variables && op->output_variables[i]) continue;
    if (t && (!t->data || t->buffer) && !is_released(p, index, end, t)) return false; // the plan has no place for it
  }
  return true;
}

// Finds the longest sequences of calls that can be captured. A call that cannot be part of its sequence divides it in
// two, which are examined again.
static bool find_pieces(const struct tfc_prepared *p, struct tfc_cuda_capture *c) {
  bool *can = calloc(p->call_count + 1u, sizeof *can); // the last entry is false
  bool cut = true;
  if (!can) return false;
  for (uint32_t i = 0; i < p->call_count; i++) can[i] = can_capture_alone(&p->calls[i]);
  while (cut) {
    cut = false;
    for (uint32_t begin = 0, end; begin < p->call_count; begin = end + 1) {
      for (end = begin; can[end]; end++) {
      }
      for (uint32_t i = begin; i < end; i++)
        if (!can_capture_within(p, i, begin, end)) can[i] = false, cut = true;
    }
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->call_count; i++) count += can[i] && !can[i + 1];
  c->pieces = calloc(count + 1u, sizeof *c->pieces);
  for (uint32_t begin = 0, end; c->pieces && begin < p->call_count; begin = end + 1) {
    for (end = begin; can[end]; end++) {
    }
    if (end - begin > 1)
      // A single call does not become faster as a graph.
      c->pieces[c->count++] = (struct tfc_cuda_piece){.begin = begin, .end = end};
  }
  free(can);
  return c->pieces != NULL;
}

// --- The addresses that launches use -------------------------------------------------------------------------------
// Before an update of a resource variable whose value has other readers, gives the variable new memory of its own.
static bool is_written(const struct tfc_prepared *p, const struct tfc_segment_op *op, uint32_t k) {
  const struct tfc_graph *g = p->segment->graph;
  return op->def->flags & TFC_OP_UPDATE && op->variables && op->variables[k] &&
         tfc_output_dtype(g, tfc_node_inputs(g, &g->nodes[op->node])[k]) == TFC_RESOURCE;
}
static bool is_shared(const struct tfc_variable *v) {
  const struct tfc_buffer *b = v->value.buffer;
  return v->value.size && (!b || atomic_load_explicit(&b->references, memory_order_acquire) > 1);
}

// False: an update would give its variable new memory, or a read would fail. Then the calls are launched one by one.
static bool is_steady(const struct tfc_prepared *p, const struct tfc_cuda_piece *c) {
  for (uint32_t i = c->begin; i < c->end; i++) {
    const struct tfc_segment_op *op = p->calls[i].op;
    for (uint32_t k = 0; k < op->read_count; k++)
      if (!op->reads[k].variable->initialized) return false;
    for (uint32_t k = 0; k < op->input_count; k++)
      if (is_written(p, op, k) && (!op->variables[k]->initialized || is_shared(op->variables[k]))) return false;
  }
  return true;
}

struct signature {
  uintptr_t *words; // NULL: words are only counted
  size_t count;
  bool compare, differs; // compare: words are compared with the signature instead of written to it
  bool variables;        // the signature contains only the addresses of variables
};
static void sign(struct signature *s, uintptr_t word) {
  if (s->compare)
    s->differs |= s->words[s->count] != word;
  else if (s->words)
    s->words[s->count] = word;
  s->count++;
}
static void sign_slot(struct signature *s, const struct tfc_tensor *slot) {
  if (s->variables)
    s->count++;
  else
    sign(s, slot ? (uintptr_t)slot->data : 0);
}
static void sign_variable(struct signature *s, const struct tfc_variable *v) {
  uintptr_t shape = (uintptr_t)v->value.shape.rank;
  for (int32_t i = 0; i < v->value.shape.rank; i++) shape = shape * 1000003 + (uintptr_t)v->value.shape.dims[i];
  sign(s, v->initialized ? (uintptr_t)v->value.data : 0);
  sign(s, v->value.size);
  sign(s, shape);
}
static void sign_piece(const struct tfc_prepared *p, const struct tfc_cuda_piece *c, struct signature *s) {
  for (uint32_t i = c->begin; i < c->end; i++) {
    const struct tfc_segment_op *op = p->calls[i].op;
    for (uint32_t k = 0; k < op->read_count; k++) sign_variable(s, op->reads[k].variable);
    for (uint32_t k = 0; k < op->input_count; k++) {
      const struct tfc_variable *v = op->variables ? op->variables[k] : NULL;
      sign_slot(s, op->inputs[k]);
      if (v) sign_variable(s, v);
      if (is_written(p, op, k)) sign(s, is_shared(v));
    }
    for (uint32_t k = 0; k < op->output_count; k++) sign_slot(s, op->outputs[k]);
  }
}

// Whether an address has changed since the signature was stored.
static bool has_moved(const struct tfc_prepared *p, const struct tfc_cuda_piece *c, bool variables) {
  struct signature s = {.words = c->signature, .compare = true, .variables = variables};
  sign_piece(p, c, &s);
  return s.differs;
}
static bool sign_now(const struct tfc_prepared *p, struct tfc_cuda_piece *c) {
  struct signature s = {0};
  if (!c->signature) {
    sign_piece(p, c, &s);
    if (!(c->signature = malloc((s.count + 1) * sizeof *c->signature))) return false;
  }
  s = (struct signature){.words = c->signature};
  sign_piece(p, c, &s);
  return true;
}

// Updates the slots of reshaped reads to the current addresses of their variables.
static void follow_reads(const struct tfc_prepared *p, const struct tfc_cuda_piece *c) {
  for (uint32_t i = c->begin; i < c->end; i++)
    for (uint32_t k = 0; k < p->calls[i].op->read_count; k++) {
      const struct tfc_variable_read *read = &p->calls[i].op->reads[k];
      if (read->view && read->variable->initialized) read->view->data = read->variable->value.data;
    }
}

// --- Capturing ---------------------------------------------------------------------------------------------------
static tfc_status keep_memory(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(env->device);
  struct tfc_cuda_piece *c = d->capturing;
  TFC_RETURN_IF_ERROR(tfc_cuda_memory_allocate(&d->memory, bytes, out));
  if (tfc_array_push(&c->kept, *out)) {
    tfc_buffer_retain(*out);
    return NULL;
  }
  tfc_buffer_release(*out);
  return tfc_status_no_memory("capturing a segment");
}

// Captures the calls that share launches, from call `i` on, on a stream with its own scratch memory.
static tfc_status capture_next(struct tfc_cuda_device *d, struct tfc_prepared *p, const struct tfc_cuda_piece *piece,
                               uint32_t i, tfc_cuda_stream stream, struct tfc_buffer *scratch, uint32_t *out_next) {
  const struct tfc_graph *g = p->segment->graph;
  struct tfc_buffer *shared = d->scratch;
  d->scratch = scratch;
  d->env.stream = stream;
  tfc_status s = tfc_cuda_calls_next(d, p, i, piece->end, stream, out_next);
  d->env.stream = d->capture;
  d->scratch = shared;
  const struct tfc_cuda_call *failed = &p->calls[*out_next];
  return s ? tfc_op_error(s, g, &g->nodes[failed->node], &d->base, failed->op->inputs, failed->op->input_count) : NULL;
}

// Nodes from `before` on belong to the calls from i to `next`. Launches of several operations together are counted for
// the first of them.
static void assign_nodes(struct tfc_prepared *p, uint32_t i, uint32_t next, size_t before, size_t after) {
  for (uint32_t k = i; k < next; k++)
    p->calls[k].first_node = (uint32_t)(k > i ? after : before), p->calls[k].node_count = 0;
  p->calls[i].node_count = (uint32_t)(after - before);
}

static tfc_status capture_calls(struct tfc_cuda_device *d, struct tfc_prepared *p, const struct tfc_cuda_piece *piece) {
  size_t before = 0, after = 0;
  for (uint32_t i = piece->begin, next = i; i < piece->end; i = next) {
    TFC_RETURN_IF_ERROR(capture_next(d, p, piece, i, d->capture, d->scratch, &next));
    TFC_CUDA_TRY(d, d->api->capture_count(d->capture, &after), "capturing");
    assign_nodes(p, i, next, before, after);
    before = after;
  }
  return NULL;
}

struct nodes {
  TFC_ARRAY(struct tfc_cuda_graph_node) list;
};

// The same with branches. Nodes are described call by call, because those of several streams have no order.
static tfc_status capture_branches(struct tfc_cuda_device *d, struct tfc_prepared *p,
                                   const struct tfc_cuda_piece *piece, const struct tfc_cuda_branches *b,
                                   struct tfc_buffer *const *scratch, struct nodes *nodes) {
  size_t before = 0, after = 0;
  TFC_RETURN_IF_ERROR(tfc_cuda_branch_begin(d));
  for (uint32_t i = piece->begin, next = i; i < piece->end; i = next) {
    const uint32_t at = i - piece->begin, stream = b->stream[at];
    TFC_RETURN_IF_ERROR(tfc_cuda_branch_wait(d, b, at, stream));
    TFC_RETURN_IF_ERROR(
        capture_next(d, p, piece, i, tfc_cuda_branch_stream(d, stream), stream ? scratch[stream] : d->scratch, &next));
    TFC_CUDA_TRY(d, d->api->capture_count(d->capture, &after), "capturing");
    if (!tfc_array_resize(&nodes->list, after)) return tfc_status_no_memory("capturing a segment");
    if (after > before)
      TFC_CUDA_TRY(d,
                   d->api->capture_nodes(tfc_cuda_branch_stream(d, stream), nodes->list.data + before, after - before),
                   "capturing");
    TFC_RETURN_IF_ERROR(tfc_cuda_branch_ended(d, b, at));
    assign_nodes(p, i, next, before, after);
    before = after;
  }
  return tfc_cuda_branch_wait(d, b, piece->end - piece->begin, 0);
}

// Makes cuDNN launch on the stream that is captured: work on another stream would be missing in every replay.
static tfc_status move_cudnn(struct tfc_cuda_device *d, tfc_cuda_stream stream) {
  struct cudnnContext *handle = NULL;
  if (!d->cudnn || !d->api->cudnn_stream) return NULL;
  tfc_status s = tfc_cuda_cudnn_enter(d, &handle);
  int error = s ? 0 : d->api->cudnn_stream(handle, stream);
  tfc_cuda_cudnn_leave(d);
  if (s) return s;
  return error ? tfc_status_make(TFC_UNAVAILABLE, "%s: cuDNN's stream cannot be set (%d)", d->base.info.name, error)
               : NULL;
}

// Gets scratch memory for each stream but the first, which the graph keeps.
static tfc_status keep_scratch(struct tfc_cuda_device *d, struct tfc_cuda_piece *c, const struct tfc_cuda_branches *b,
                               struct tfc_buffer **out) {
  for (uint32_t s = 1; s < b->count; s++) {
    if (!b->scratch[s]) continue;
    TFC_RETURN_IF_ERROR(tfc_cuda_memory_allocate(&d->memory, b->scratch[s], &out[s]));
    if (!tfc_array_push(&c->kept, out[s])) {
      tfc_buffer_release(out[s]);
      return tfc_status_no_memory("capturing a segment");
    }
  }
  return NULL;
}

// Captures the calls on one stream, or (`b` is not NULL) on several; then `nodes` gets what the graph consists of.
static tfc_status capture_into(struct tfc_cuda_device *d, struct tfc_prepared *p, struct tfc_cuda_piece *c,
                               const struct tfc_cuda_branches *b, struct tfc_buffer *const *scratch,
                               struct nodes *nodes) {
  TFC_CUDA_TRY(d, d->api->capture_begin(d->capture), "capturing");
  tfc_status (*allocate)(struct tfc_kernel_env *, size_t, struct tfc_buffer **) = d->env.allocate;
  d->capturing = c;
  d->library.captures = true;
  d->env.allocate = keep_memory;
  d->env.stream = d->capture;
  tfc_status s = move_cudnn(d, d->capture);
  if (!s) s = b ? capture_branches(d, p, c, b, scratch, nodes) : capture_calls(d, p, c);
  tfc_status back = move_cudnn(d, d->compute);
  if (s)
    tfc_status_free(back);
  else
    s = back;
  d->env.allocate = allocate;
  d->env.stream = d->compute;
  d->capturing = NULL;
  d->library.captures = false;
  if (s) d->api->capture_abort(d->capture);
  return s;
}

static tfc_status capture(struct tfc_cuda_device *d, struct tfc_prepared *p, struct tfc_cuda_piece *c) {
  struct tfc_cuda_branches branches = {0};
  struct tfc_buffer *scratch[TFC_CUDA_BRANCHES] = {0};
  struct nodes nodes = {0};
  tfc_status s = NULL;
  const bool several = p->segment->order && !c->straight && tfc_cuda_branches_plan(p, c->begin, c->end, &branches);
  c->branched = several;
  if (several) {
    TFC_TRY(s, tfc_cuda_branches_open(d, &branches));
    TFC_TRY(s, keep_scratch(d, c, &branches, scratch));
  }
  TFC_TRY(s, capture_into(d, p, c, several ? &branches : NULL, scratch, &nodes));
  const uint32_t last = p->calls[c->end - 1].first_node + p->calls[c->end - 1].node_count;
  if (!several && !tfc_array_resize(&nodes.list, last + 1u)) {
    d->api->capture_abort(d->capture);
    TFC_TRY(s, tfc_status_no_memory("capturing a segment"));
  }
  const int error =
      d->api->capture_end(d->capture, several ? NULL : nodes.list.data, several ? 0 : last, &c->node_count, &c->graph);
  if (error) {
    s = tfc_cuda_error(d, error, "capturing");
    goto out;
  }
  c->nodes = nodes.list.data, nodes.list.data = NULL;
  c->named = c->node_count == last;
  for (size_t i = 0; i < c->node_count && c->named; i++) c->named &= c->nodes[i].id != 0;
  c->scratch_generation = d->scratch_generation;
  c->state = READY;
out:
  free(nodes.list.data);
  tfc_cuda_branches_deinit(&branches);
  return s;
}

// --- Replaying ---------------------------------------------------------------------------------------------------
static void tell(struct tfc_prepared *p, struct tfc_cuda_piece *c, struct tfc_trace_sink *sink, uint16_t device) {
  if (c->told == sink || !sink->graph_node) return;
  c->told = sink;
  for (uint32_t i = c->begin; i < c->end; i++)
    for (uint32_t k = 0; k < p->calls[i].node_count; k++)
      sink->graph_node(sink, device, c->nodes[p->calls[i].first_node + k].id, p->calls[i].node);
}

// Returns how many nodes do work: kernels, copies, fills.
static uint64_t work_of(const struct tfc_cuda_piece *c, const struct tfc_cuda_call *call) {
  uint64_t n = 0;
  for (uint32_t k = call->first_node; k < call->first_node + call->node_count && k < c->node_count; k++)
    n += c->nodes[k].kind <= TFC_CUDA_GRAPH_FILL;
  return n;
}

// Captures a piece. On success its state is READY, and the device's memory is frozen until the graph was launched.
// Otherwise the calls are launched one by one. It returns an error only if that is impossible: the device is lost, or
// the host's part of an update has been done already and must not be repeated.
static tfc_status capture_anew(struct tfc_cuda_device *d, struct tfc_prepared *p, struct tfc_cuda_piece *c,
                               bool *out_moved) {
  c->captures = c->replays < WORTH ? c->captures + 1 : 1;
  c->replays = 0;
  if (c->captures > MOST_CAPTURES) {
    c->state = REFUSED;
    drop_graph(d, c);
    return NULL;
  }
  drop_graph(d, c);
  c->state = WARMING;
  if (!sign_now(p, c)) return NULL;
  tfc_cuda_memory_freeze(&d->memory);
  tfc_cuda_memory_capture_begin();
  tfc_status s = capture(d, p, c);
  tfc_cuda_memory_capture_end();
  *out_moved = has_moved(p, c, true);
  (void)sign_now(p, c); // replays compare this signature with the current addresses
  if (!s) return NULL;
  tfc_cuda_memory_thaw(&d->memory);
  drop_graph(d, c);
  // Another time there may be enough memory for the graph, a library has chosen its algorithms, or it can be captured
  // without branches.
  const tfc_code code = tfc_status_code(s);
  const bool again = code == TFC_RESOURCE_EXHAUSTED || code == TFC_ABORTED || c->branched;
  c->state = again ? WARMING : REFUSED;
  c->straight |= c->branched;
  if (atomic_load(&d->dead) || *out_moved) return s;
  tfc_status_free(s);
  return NULL;
}

static tfc_status launch_failed(struct tfc_cuda_device *d, const struct tfc_prepared *p, const struct tfc_cuda_piece *c,
                                int error) {
  const struct tfc_node *nodes = p->segment->graph->nodes, *first = &nodes[p->calls[c->begin].node],
                        *last = &nodes[p->calls[c->end - 1].node];
  return tfc_status_annotate(tfc_cuda_error(d, error, "launching a captured segment"), "nodes '%.*s' to '%.*s'",
                             TFC_STR_ARG(first->name), TFC_STR_ARG(last->name));
}

tfc_status tfc_cuda_graph_run(struct tfc_cuda_device *d, struct tfc_prepared *p, struct tfc_step *step, uint32_t from,
                              uint32_t *out_next) {
  struct tfc_trace_sink *sink = step->trace;
  uint16_t index = d->base.index;
  *out_next = from;
  if (!p->capture) {
    if (!(p->capture = calloc(1, sizeof *p->capture)) || !find_pieces(p, p->capture)) return NULL;
  }
  struct tfc_cuda_capture *all = p->capture;
  if (from == 0) all->at = 0;
  while (all->at < all->count && all->pieces[all->at].begin < from) all->at++;
  if (all->at == all->count || all->pieces[all->at].begin != from) return NULL;
  struct tfc_cuda_piece *c = &all->pieces[all->at];
  if (c->state == REFUSED) return NULL;
  if (c->state == WARMING && c->runs++ < TFC_RUNS_BEFORE_CAPTURE) return NULL;
  follow_reads(p, c);
  if (c->state == READY && (c->scratch_generation != d->scratch_generation || has_moved(p, c, false)))
    c->state = WARMING;
  bool profiled = sink && sink->op_begin;
  if (c->state == READY && profiled && c->named && !c->traced) c->state = WARMING;
  bool fresh = c->state == WARMING, moved = false;
  if (fresh && !is_steady(p, c)) return NULL;
  if (fresh) {
    c->traced = profiled;
    TFC_RETURN_IF_ERROR(capture_anew(d, p, c, &moved));
    if (c->state != READY) return NULL;
  }
  // Without CUPTI's ids a profiler could not attribute the graph's nodes, so a profiled step does not launch the graph.
  bool launches = !profiled || c->named || moved;
  if (launches && sink) tell(p, c, sink, index);
  uint64_t begin = tfc_ticks();
  if (launches && sink && sink->op_begin) sink->op_begin(sink, index, p->calls[c->begin].node);
  int error = launches ? d->api->graph_launch(c->graph, d->compute) : 0;
  if (launches && sink && sink->op_end) sink->op_end(sink, index, p->calls[c->begin].node);
  if (fresh) tfc_cuda_memory_thaw(&d->memory);
  // a variable got new memory during the capture, so the graph can be launched only this once
  if (moved) c->state = WARMING;
  if (error) return launch_failed(d, p, c, error);
  if (!launches) return NULL;
  uint64_t end = tfc_ticks();
  // all operations have one dispatch, which is recorded for the first of them
  for (uint32_t i = c->begin; sink && i < c->end; i++)
    tfc_trace_add(&sink->buffers[index], TFC_TRACE_OP, p->calls[i].node, index, i > c->begin ? end : begin, end,
                  work_of(c, &p->calls[i]));
  atomic_fetch_add(&d->replays, 1);
  c->replays++;
  *out_next = c->end;
  return NULL;
}
