// Summary writers: operations that open an events file (runtime/io/events.h) and write to it through a handle. Several
// steps may write at once, so each writer has a lock.
#include <pthread.h>
#include <stdlib.h>

#include "runtime/io/events.h"
#include "runtime/ops/data_named.h"
#include "runtime/ops/io_summary.h"

struct writer {
  struct tfc_object object;
  pthread_mutex_t lock;
  struct tfc_events *events; // NULL: not created yet, or closed
};

static void writer_destroy(struct tfc_object *self) {
  struct writer *w = (struct writer *)self;
  tfc_status_free(tfc_events_close(w->events));
  pthread_mutex_destroy(&w->lock);
  free(w);
}
static const struct tfc_object_type writer_type = {.name = "summary writer", .destroy = writer_destroy};

static tfc_status writer_make(void *arg, struct tfc_object **out) {
  struct writer *w = calloc(1, sizeof *w);
  (void)arg;
  if (!w) return tfc_status_no_memory(NULL);
  w->object = (struct tfc_object){.type = &writer_type, .references = 1};
  pthread_mutex_init(&w->lock, NULL);
  *out = &w->object;
  return NULL;
}

static tfc_status summary_writer(struct tfc_kernel_ctx *ctx) {
  return tfc_named_make(ctx, &writer_type, writer_make);
}

static tfc_status writer_of(struct tfc_kernel_ctx *ctx, struct writer **out) {
  struct tfc_object *o = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 0, &writer_type, &o));
  *out = (struct writer *)o;
  return NULL;
}

static tfc_status create_file(struct tfc_kernel_ctx *ctx) {
  tfc_status s = NULL;
  struct writer *w = NULL;
  TFC_RETURN_IF_ERROR(writer_of(ctx, &w));
  for (uint32_t i = 1; i < 5; i++)
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[i]) == 1, "input %u must be a scalar", i);
  char *directory = tfc_str_dup(tfc_tensor_get_string(ctx->inputs[1], 0));
  char *suffix = tfc_str_dup(tfc_tensor_get_string(ctx->inputs[4], 0));
  pthread_mutex_lock(&w->lock);
  if (!directory || !suffix)
    s = tfc_status_no_memory(NULL);
  else if (!w->events) // the events file is created only once
    s = tfc_events_create_named(directory, suffix, &w->events);
  pthread_mutex_unlock(&w->lock);
  free(directory);
  free(suffix);
  return s;
}

// Writes `content` to an event: as its summary, as its graph, or (EVENT) as the event itself.
enum what { SUMMARY, GRAPH, EVENT };
static tfc_status write_it(struct tfc_kernel_ctx *ctx, enum what what, tfc_str content) {
  struct writer *w = NULL;
  TFC_RETURN_IF_ERROR(writer_of(ctx, &w));
  int64_t step = what == EVENT ? 0 : ops_scalar_int(ctx->inputs[1]);
  pthread_mutex_lock(&w->lock);
  tfc_status s = !w->events ? tfc_status_make(TFC_FAILED_PRECONDITION, "the summary writer has no file: it was not "
                                                                       "created (CreateSummaryFileWriter), or closed")
                 : what == SUMMARY ? tfc_events_summary(w->events, step, content)
                 : what == GRAPH   ? tfc_events_graph(w->events, step, content)
                                   : tfc_events_event(w->events, content);
  pthread_mutex_unlock(&w->lock);
  return s;
}
static tfc_status write_summary_text(struct tfc_kernel_ctx *ctx, struct tfc_text *summary, tfc_status s) {
  if (!s && summary->failed) s = tfc_status_no_memory("a summary");
  if (!s) s = write_it(ctx, SUMMARY, tfc_text_view(summary));
  tfc_text_deinit(summary);
  return s;
}

// Inputs: (writer, step, tag, value).
static tfc_status write_scalar(struct tfc_kernel_ctx *ctx) {
  struct tfc_text summary = {0};
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[3]) == 1, "the value must be a scalar");
  return write_summary_text(
      ctx, &summary,
      tfc_summary_scalar(&summary, tfc_tensor_get_string(ctx->inputs[2], 0), ops_scalar(ctx->inputs[3])));
}
// Inputs: (writer, step, tag, values).
static tfc_status write_histogram(struct tfc_kernel_ctx *ctx) {
  struct tfc_text summary = {0};
  return write_summary_text(
      ctx, &summary,
      tfc_summary_histogram(&summary, tfc_tensor_get_string(ctx->inputs[2], 0), ctx->inputs[3], ctx->node->name));
}
// Inputs: (writer, step, tensor, tag, metadata).
static tfc_status write_tensor(struct tfc_kernel_ctx *ctx) {
  struct tfc_text summary = {0};
  tfc_str metadata = tfc_tensor_get_string(ctx->inputs[4], 0);
  return write_summary_text(ctx, &summary,
                            tfc_summary_tensor(&summary, tfc_tensor_get_string(ctx->inputs[3], 0), (tfc_str){0},
                                               ctx->inputs[2], metadata.size ? metadata : (tfc_str){0}));
}
// Inputs: (writer, step, summaries).
static tfc_status write_raw(struct tfc_kernel_ctx *ctx) {
  tfc_status s = NULL;
  for (int64_t i = 0; !s && i < tfc_tensor_elements(ctx->inputs[2]); i++)
    s = write_it(ctx, SUMMARY, tfc_tensor_get_string(ctx->inputs[2], i));
  return s;
}
// Inputs: (writer, step, graph).
static tfc_status write_graph(struct tfc_kernel_ctx *ctx) {
  return write_it(ctx, GRAPH, tfc_tensor_get_string(ctx->inputs[2], 0));
}
// Inputs: (writer, event).
static tfc_status import_event(struct tfc_kernel_ctx *ctx) {
  return write_it(ctx, EVENT, tfc_tensor_get_string(ctx->inputs[1], 0));
}

static tfc_status flush(struct tfc_kernel_ctx *ctx) { // there is nothing to flush: every record is written at once
  struct writer *w = NULL;
  return writer_of(ctx, &w);
}
static tfc_status close_(struct tfc_kernel_ctx *ctx) {
  struct writer *w = NULL;
  TFC_RETURN_IF_ERROR(writer_of(ctx, &w));
  pthread_mutex_lock(&w->lock);
  tfc_status s = tfc_events_close(w->events);
  w->events = NULL;
  pthread_mutex_unlock(&w->lock);
  return s;
}

#define TYPES "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
#define SAVES(kernel_)                                                                                                 \
  .flags = TFC_OP_STATEFUL | TFC_OP_FILES | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,                    \
  .host_inputs = UINT32_MAX, .shape = ops_shape_none, .kernel = kernel_
static const struct tfc_op_def io_writer_rows[] = {
    {.name = "SummaryWriter",
     .outputs = "writer: resource",
     .attrs = "shared_name: string = '', container: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .host_outputs = 1,
     .shape = ops_shape_scalar,
     .kernel = summary_writer},
    {.name = "CreateSummaryFileWriter",
     .inputs = "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, filename_suffix: string",
     SAVES(create_file)},
    {.name = "WriteSummary",
     .inputs = "writer: resource, step: int64, tensor: T, tag: string, summary_metadata: string",
     .attrs = "T: type",
     SAVES(write_tensor)},
    {.name = "WriteScalarSummary",
     .inputs = "writer: resource, step: int64, tag: string, value: T",
     .attrs = "T: " TYPES,
     SAVES(write_scalar)},
    {.name = "WriteHistogramSummary",
     .inputs = "writer: resource, step: int64, tag: string, values: T",
     .attrs = "T: " TYPES " = float",
     SAVES(write_histogram)},
    {.name = "WriteRawProtoSummary", .inputs = "writer: resource, step: int64, tensor: string", SAVES(write_raw)},
    {.name = "WriteGraphSummary", .inputs = "writer: resource, step: int64, tensor: string", SAVES(write_graph)},
    {.name = "ImportEvent", .inputs = "writer: resource, event: string", SAVES(import_event)},
    {.name = "FlushSummaryWriter", .inputs = "writer: resource", SAVES(flush)},
    {.name = "CloseSummaryWriter", .inputs = "writer: resource", SAVES(close_)},
};
TFC_REGISTER_OPS(io_writer_rows);
