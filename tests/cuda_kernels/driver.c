// The driver of a CPU device that runs the CUDA kernels' source: it gives each segment to the CPU driver, with the
// launch functions of the CUDA rows in place of the CPU's kernels.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda_kernels/host.h"

// --- Rows --------------------------------------------------------------------------------------------------------
extern const struct tfc_cuda_kernels __start_tfc_cuda_kernels[] __attribute__((weak));
extern const struct tfc_cuda_kernels __stop_tfc_cuda_kernels[] __attribute__((weak));

void cuda_host_each_row(cuda_host_row_fn *fn, void *arg) {
  for (const struct tfc_cuda_kernels *f = __start_tfc_cuda_kernels; f < __stop_tfc_cuda_kernels; f++)
    for (size_t i = 0; i < f->count; i++) fn(arg, &f->rows[i]);
}

void tfc_cuda_count_launch(void) {} // this driver does not report launches

tfc_status tfc_cuda_status(const struct tfc_cuda_launch *l, int cuda_error) {
  (void)l;
  return cuda_error ? tfc_status_make(TFC_INTERNAL, "launch failed: cudaError_t %d", cuda_error) : NULL;
}

tfc_status tfc_cuda_read(struct tfc_cuda_launch *l, const struct tfc_tensor *source, void *target) {
  (void)l;
  tfc_host_begin();
  memcpy(target, source->data, source->size);
  tfc_host_end();
  return NULL;
}

bool cuda_host_no_conv, cuda_host_no_room;

// Allocates the memory in which library/cudnn.c measures.
static tfc_status allocate(struct tfc_device *device, size_t bytes, struct tfc_buffer **out) {
  (void)device;
  if (cuda_host_no_room) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "gpu:0: out of memory");
  return tfc_buffer_create_host(bytes, out);
}
static tfc_status no_handle(struct tfc_cuda_library *library, struct cublasLtContext **out) {
  (void)library;
  *out = NULL;
  return NULL;
}
static tfc_status no_dnn_handle(struct tfc_cuda_library *library, struct cudnnContext **out) {
  (void)library;
  *out = NULL;
  return NULL;
}
static const struct tfc_device_driver memory_driver = {.kind = "gpu", .allocate = allocate};
static struct tfc_device host_device = {.driver = &memory_driver, .info = {.name = "gpu:0", .kind = "gpu"}};
struct tfc_cuda_library *cuda_host_library(void) {
  static struct tfc_cuda_library library = {.device = &host_device,
                                            .blaslt = no_handle,
                                            .cudnn = no_dnn_handle,
                                            .event = cuda_fake_event,
                                            .math = TFC_MATH_FLOAT32,
                                            .sm_count = 132,
                                            .capability = 90,
                                            .shared_per_block = 227 << 10,
                                            .l2_bytes = 50 << 20};
  return &library;
}

struct search {
  struct tfc_cuda_prepare *prepare;
  tfc_dtype type;
  const struct tfc_cuda_kernel *found;
  tfc_status status;
};
static void try_row(void *arg, const struct tfc_cuda_kernel *row) {
  struct search *s = arg;
  struct tfc_prepare_ctx *base = s->prepare->base;
  if (s->found || !tfc_str_is(base->node->op, row->op)) return;
  if (row->types && !(s->type < 32 && row->types >> s->type & 1)) return;
  tfc_status_free(s->status);
  s->status = NULL;
  base->state = NULL;
  base->release = NULL;
  s->prepare->scratch = 0;
  s->prepare->variant = tfc_cuda_variant(row->flags);
  if (row->prepare) s->status = row->prepare(s->prepare);
  if (!s->status || tfc_status_code(s->status) != TFC_UNIMPLEMENTED) s->found = row;
}

tfc_status cuda_host_choose(struct tfc_cuda_prepare *prepare, const struct tfc_cuda_kernel **out) {
  struct search search = {.prepare = prepare, .type = tfc_node_main_type(prepare->base->graph, prepare->base->node)};
  prepare->library = cuda_host_library();
  prepare->host_inputs = prepare->base->def->host_inputs;
  prepare->host_outputs = prepare->base->def->host_outputs;
  cuda_host_each_row(try_row, &search);
  if (search.status) return search.status;
  if (!search.found)
    return tfc_status_make(TFC_UNIMPLEMENTED, "no row for %s of %s", prepare->base->def->name,
                           tfc_dtype_name(search.type));
  *out = search.found;
  return NULL;
}

tfc_status cuda_host_launch(const struct tfc_cuda_kernel *row, struct tfc_kernel_ctx *ctx, size_t scratch) {
  static char *memory;
  static size_t size;
  if (scratch > size) {
    free(memory);
    memory = malloc(size = scratch);
    if (!memory) abort();
  }
  if (scratch) memset(memory, 0xa5, scratch);
  struct tfc_cuda_launch launch = {.ctx = ctx, .library = cuda_host_library(), .scratch = memory};
  return row->launch(&launch);
}

// --- The driver --------------------------------------------------------------------------------------------------
struct call {
  const struct tfc_cuda_kernel *row;
  void *state;
  void (*release)(void *state);
  size_t scratch;
};
struct handle {
  struct tfc_prepared *prepared;
  struct tfc_segment segment;
  struct call *calls;
  struct tfc_arena arena;
  struct handle *next;
};
static struct handle *handles;
struct cuda_host_census cuda_host_census;

static tfc_status run_call(struct tfc_kernel_ctx *ctx) {
  const struct call *c = ctx->state;
  struct tfc_kernel_ctx inner = *ctx;
  inner.state = c->state;
  return cuda_host_launch(c->row, &inner, c->scratch);
}
static const struct tfc_op_def call_def = {.name = "_CudaKernel", .kernel = run_call};

static void miss(const struct tfc_segment_op *op, tfc_dtype type, tfc_status why) {
  struct cuda_host_census *c = &cuda_host_census;
  for (uint32_t i = 0; i < c->miss_count; i++)
    if (!strcmp(c->misses[i].op, op->def->name) && !strcmp(c->misses[i].type, tfc_dtype_name(type))) {
      c->misses[i].count++;
      return;
    }
  if (c->miss_count == sizeof c->misses / sizeof *c->misses) return;
  struct cuda_host_miss *m = &c->misses[c->miss_count++];
  snprintf(m->op, sizeof m->op, "%s", op->def->name);
  snprintf(m->type, sizeof m->type, "%s", tfc_dtype_name(type));
  snprintf(m->reason, sizeof m->reason, "%s", tfc_status_message(why));
  m->count = 1;
}

// Counts the operations that cannot be captured, by the rules of runtime/device/cuda/graph.c.
static void note_capture(const struct tfc_segment_op *op, const struct tfc_cuda_kernel *row) {
  const char *why = !row ? "it runs on the host" : row->flags & TFC_CUDA_NO_CAPTURE ? "it differs between steps" : NULL;
  if (!why && op->host_outputs) why = "an output is in host memory";
  for (uint32_t i = 0; i < op->input_count && !why; i++) {
    bool given = (op->input_values && op->input_values[i]) || (op->variables && op->variables[i]);
    if (tfc_host_bit(op->host_inputs, i) && !given) why = "an input is in host memory";
  }
  if (!why) return;
  cuda_host_census.uncaptured++;
  if (getenv("VERBOSE")) printf("not captured: %s: %s\n", op->def->name, why);
}

static void release(struct tfc_device *device, struct tfc_prepared *prepared) {
  struct handle **at = &handles;
  while (*at && (*at)->prepared != prepared) at = &(*at)->next;
  struct handle *h = *at;
  tfc_driver_cpu.release(device, prepared);
  if (!h) return;
  *at = h->next;
  for (uint32_t i = 0; i < h->segment.op_count; i++)
    if (h->calls[i].release) h->calls[i].release(h->calls[i].state);
  tfc_arena_deinit(&h->arena);
  free(h->calls);
  free(h->segment.ops);
  free(h);
}

static tfc_status prepare(struct tfc_device *device, const struct tfc_segment *segment, struct tfc_prepared **out) {
  struct handle *h = calloc(1, sizeof *h);
  if (!h) abort();
  h->segment = *segment;
  h->segment.ops = calloc(segment->op_count + 1u, sizeof *h->segment.ops);
  h->calls = calloc(segment->op_count + 1u, sizeof *h->calls);
  if (!h->segment.ops || !h->calls) abort();
  for (uint32_t i = 0; i < segment->op_count; i++) {
    struct tfc_segment_op *op = &h->segment.ops[i];
    *op = segment->ops[i];
    if (op->prepared) continue;
    const struct tfc_node *n = &segment->graph->nodes[op->node];
    struct tfc_prepare_ctx base = tfc_segment_prepare_ctx(segment->graph, op, &h->arena);
    struct tfc_cuda_prepare p = {.base = &base, .op = op->outputs ? op : NULL};
    const struct tfc_cuda_kernel *row = NULL;
    if (op->on_host) {
      note_capture(op, NULL);
      continue;
    }
    tfc_status s = cuda_host_choose(&p, &row);
    if (s && tfc_status_code(s) != TFC_UNIMPLEMENTED) return tfc_status_annotate(s, "preparing %s", op->def->name);
    if (s) {
      if (!(op->def->flags & TFC_OP_VIEW)) note_capture(op, NULL);
      if (!(op->def->flags & (TFC_OP_HOST | TFC_OP_NOP | TFC_OP_VIEW)))
        miss(op, tfc_node_main_type(segment->graph, n), s);
      tfc_status_free(s);
      continue;
    }
    cuda_host_census.rows++;
    note_capture(op, row);
    h->calls[i] = (struct call){row, base.state, base.release, p.scratch};
    op->def = &call_def;
    op->prepared = true;
    op->state = &h->calls[i];
  }
  tfc_status s = tfc_driver_cpu.prepare(device, &h->segment, out);
  if (s) return s;
  h->prepared = *out;
  h->next = handles;
  handles = h;
  return NULL;
}

const struct tfc_device_driver *cuda_host_driver(void) {
  static struct tfc_device_driver driver;
  driver = tfc_driver_cpu;
  driver.prepare = prepare;
  driver.release = release;
  return &driver;
}
