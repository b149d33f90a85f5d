// Operations that carry a state from element to element with a function: reduce returns the last state, scan is a
// dataset with one result for each element. Also the operation that returns the only element of a dataset.
#include "runtime/ops/data_dataset.h"
#include "runtime/ops/data_variant.h"

// --- Reduce ------------------------------------------------------------------------------------------------------
// This dataset only holds the function, the captured tensors and the input dataset. It has no elements: the kernel
// walks over its input.
static tfc_status never(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                        bool *ended) {
  (void)ctx, (void)it, (void)parts;
  *ended = true;
  return NULL;
}
static const struct tfc_dataset_kind reduce_kind = {.name = "Reduce", .next = never};

static tfc_status reduce(struct tfc_kernel_ctx *ctx) {
  tfc_status s = NULL;
  const uint32_t states = ctx->output_count;
  struct tfc_dataset *d = NULL;
  struct tfc_dataset_iterator *it = NULL;
  struct tfc_tensor *args = NULL, *results = NULL;
  uint32_t count = 0;
  bool ended = false;
  TFC_KERNEL_CHECK(ctx->input_count > states, "there are more results than parts of the state");
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &reduce_kind, 1, 1 + states, ctx->input_count - 1 - states, &d));
  TFC_TRY(s, tfc_dataset_set_function(ctx, "f", d));
  TFC_TRY(s, tfc_dataset_open(ctx, d->inputs[0], &it));
  count = states + d->inputs[0]->parts;
  args = tfc_dataset_parts(count);
  results = tfc_dataset_parts(states);
  if (!args || !results) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < states; i++) TFC_TRY(s, tfc_data_keep(ctx, ctx->inputs[1 + i], &args[i]));
  for (;;) {
    TFC_TRY(s, tfc_dataset_next(ctx, it, args + states, &ended));
    if (ended) break;
    TFC_TRY(s, tfc_dataset_call(ctx, d, args, count, results, states));
    tfc_dataset_parts_clear(args, count);
    memcpy(args, results, states * sizeof *args);
    memset(results, 0, states * sizeof *results);
  }
  s = tfc_dataset_deliver(ctx, args, states);
out:
  tfc_dataset_parts_free(args, count);
  tfc_dataset_parts_free(results, results ? states : 0);
  tfc_dataset_close(it);
  tfc_object_release(&d->object);
  return s ? s : tfc_dataset_done(ctx);
}

static tfc_status single(struct tfc_kernel_ctx *ctx) {
  tfc_status s = NULL;
  struct tfc_dataset *d = NULL;
  struct tfc_dataset_iterator *it = NULL;
  bool ended = false;
  TFC_RETURN_IF_ERROR(tfc_dataset_of(ctx->inputs[0], &d));
  struct tfc_tensor *parts = tfc_dataset_parts(d->parts), *more = tfc_dataset_parts(d->parts);
  if (!parts || !more) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_dataset_open(ctx, d, &it));
  TFC_TRY(s, tfc_dataset_next(ctx, it, parts, &ended));
  if (ended) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Dataset was empty.");
  TFC_TRY(s, tfc_dataset_next(ctx, it, more, &ended));
  if (!ended) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Dataset had more than one element.");
  s = tfc_dataset_deliver(ctx, parts, d->parts);
out:
  tfc_dataset_close(it);
  tfc_dataset_parts_free(parts, parts ? d->parts : 0);
  tfc_dataset_parts_free(more, more ? d->parts : 0);
  return s ? s : tfc_dataset_done(ctx);
}

// --- Scan --------------------------------------------------------------------------------------------------------
enum { STATES }; // index into n: how many of the first tensors are the state that an iterator begins with
struct scan {
  struct tfc_tensor *state;
};
static tfc_status scan_begin(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it) {
  struct scan *s = tfc_dataset_state(it);
  (void)ctx;
  s->state = tfc_dataset_parts((uint32_t)it->dataset->n[STATES]);
  if (!s->state) return tfc_status_no_memory(NULL);
  for (int64_t i = 0; i < it->dataset->n[STATES]; i++) tfc_tensor_share(&it->dataset->tensors[i], &s->state[i]);
  return NULL;
}
static void scan_end(struct tfc_dataset_iterator *it) {
  struct scan *s = tfc_dataset_state(it);
  tfc_dataset_parts_free(s->state, (size_t)it->dataset->n[STATES]);
}
static tfc_status scan_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                            bool *ended) {
  tfc_status s = NULL;
  struct scan *scan = tfc_dataset_state(it);
  const struct tfc_dataset *d = it->dataset;
  const uint32_t states = (uint32_t)d->n[STATES], read = d->inputs[0]->parts, captured = d->tensor_count - states;
  struct tfc_tensor *args = tfc_dataset_parts(states + read + captured),
                    *results = tfc_dataset_parts(states + d->parts);
  if (!args || !results) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_dataset_next(ctx, it->inputs[0], args + states, ended));
  if (*ended) goto out;
  if (!ctx->env->call) TFC_FAIL(s, TFC_UNIMPLEMENTED, "no function can be called here");
  for (uint32_t i = 0; i < states; i++) tfc_tensor_share(&scan->state[i], &args[i]);
  for (uint32_t i = 0; i < captured; i++) tfc_tensor_share(&d->tensors[states + i], &args[states + read + i]);
  s = ctx->env->call(ctx->env, &d->function, args, states + read + captured, results, states + d->parts);
  s = tfc_status_annotate(s, "dataset '%s' (Scan)", d->node);
  if (s) goto out;
  for (uint32_t i = 0; i < states; i++) {
    tfc_tensor_release(&scan->state[i]);
    scan->state[i] = results[i];
    results[i] = (struct tfc_tensor){0};
  }
  for (uint32_t i = 0; i < d->parts; i++) {
    parts[i] = results[states + i];
    results[states + i] = (struct tfc_tensor){0};
  }
out:
  tfc_dataset_parts_free(args, args ? states + read + captured : 0);
  tfc_dataset_parts_free(results, results ? states + d->parts : 0);
  return s;
}
static const struct tfc_dataset_kind scan_kind = {
    .name = "Scan", .state = sizeof(struct scan), .begin = scan_begin, .next = scan_next, .end = scan_end};

static tfc_status scan(struct tfc_kernel_ctx *ctx) {
  const struct tfc_attr *states = tfc_node_attr(ctx->graph, ctx->node, "Tstate");
  struct tfc_dataset *d = NULL;
  TFC_KERNEL_CHECK(states && states->kind == TFC_ATTR_LIST_TYPE && states->count < ctx->input_count,
                   "attribute 'Tstate' is missing");
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &scan_kind, 1, 1, ctx->input_count - 1, &d));
  d->n[STATES] = states->count;
  tfc_status s = tfc_dataset_set_function(ctx, "f", d);
  if (!s) return tfc_dataset_output(ctx, d);
  tfc_object_release(&d->object);
  return s;
}

#define ENDS(op, in, attributes, kernel_)                                                                              \
  {                                                                                                                    \
    .name = op, .inputs = in, .outputs = "components: output_types", .attrs = attributes,                              \
    .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,                                 \
    .shape = tfc_dataset_shape_next, .kernel = kernel_, .node_state = TFC_DATASET_TURNS                                \
  }
static const struct tfc_op_def data_dataset_reduce_rows[] = {
    ENDS("ReduceDataset", "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments",
         "f: func, Tstate: list(type) >= 1, Targuments: list(type) >= 0, " TFC_DATASET_KINDS
         ", use_inter_op_parallelism: bool = true" TFC_DATASET_MORE,
         reduce),
    ENDS("DatasetToSingleElement", "dataset: variant", TFC_DATASET_KINDS TFC_DATASET_MORE, single),
    TFC_DATASET_ROW("ScanDataset", "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments",
                    "f: func, Tstate: list(type) >= 1, Targuments: list(type) >= 0, " TFC_DATASET_KINDS
                    ", preserve_cardinality: bool = false, use_default_device: bool = true" TFC_DATASET_MORE,
                    scan),
};
TFC_REGISTER_OPS(data_dataset_reduce_rows);
