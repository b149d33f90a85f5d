// What all kinds of datasets share: creating, opening and walking over them, and calling their functions.
#include "runtime/ops/data_dataset.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/ops/data_variant.h"

enum { DEEPEST = 500 }; // the depth of datasets that read each other; opening, reading and releasing recurse

// --- Datasets ----------------------------------------------------------------------------------------------------
static void destroy(struct tfc_object *self) {
  struct tfc_dataset *d = (struct tfc_dataset *)(void *)self;
  if (d->kind->forget) d->kind->forget(d->shared);
  for (uint32_t i = 0; d->inputs && i < d->input_count; i++)
    if (d->inputs[i]) tfc_object_release(&d->inputs[i]->object);
  tfc_dataset_parts_free(d->tensors, d->tensor_count);
  pthread_mutex_destroy(&d->lock);
  free(d->inputs), free(d->types), free(d->node);
  free((char *)(uintptr_t)d->function.name.data);
  free(d);
}
static const struct tfc_object_type dataset_type = {.name = "dataset", .destroy = destroy};

tfc_status tfc_dataset_of(const struct tfc_tensor *t, struct tfc_dataset **out) {
  struct tfc_object *o = NULL;
  if (t->dtype == TFC_VARIANT && tfc_tensor_elements(t) == 1) o = *(struct tfc_object **)t->data;
  if (!o || o->type != &dataset_type)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a dataset is wanted, not %s", o ? o->type->name : "what holds none");
  *out = (struct tfc_dataset *)(void *)o;
  return NULL;
}

// Datasets within elements and captured inputs count like those that are read.
static uint32_t depth_of(const struct tfc_tensor *t) {
  uint32_t deepest = 0;
  if (t->dtype != TFC_VARIANT) return 0;
  for (int64_t i = 0; i < tfc_tensor_elements(t); i++) {
    const struct tfc_object *o = ((struct tfc_object *const *)t->data)[i];
    if (!o || o->type != &dataset_type) continue;
    uint32_t depth = ((const struct tfc_dataset *)(const void *)o)->depth;
    if (depth > deepest) deepest = depth;
  }
  return deepest;
}

tfc_status tfc_dataset_create(struct tfc_kernel_ctx *ctx, const struct tfc_dataset_kind *kind, uint32_t input_count,
                              uint32_t first_tensor, uint32_t tensor_count, struct tfc_dataset **out) {
  tfc_status s = NULL;
  const struct tfc_attr *types = tfc_node_attr(ctx->graph, ctx->node, "output_types");
  if (!types) types = tfc_node_attr(ctx->graph, ctx->node, "Toutput_types");
  const bool told = types && types->kind == TFC_ATTR_LIST_TYPE;
  struct tfc_dataset *d = calloc(1, sizeof *d + kind->shared);
  if (!d) return tfc_status_no_memory("an input pipeline");
  pthread_mutex_init(&d->lock, NULL);
  d->object = (struct tfc_object){.type = &dataset_type, .references = 1};
  d->kind = kind;
  d->parts = told ? types->count : 1;
  d->input_count = input_count;
  d->node = tfc_str_dup(ctx->node->name);
  d->types = calloc(d->parts + 1u, sizeof *d->types);
  d->inputs = calloc(input_count + 1u, sizeof *d->inputs);
  d->tensors = tfc_dataset_parts(tensor_count);
  if (!d->node || !d->types || !d->inputs || !d->tensors) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < d->parts; i++) d->types[i] = told ? types->types[i] : TFC_STRING;
  for (uint32_t i = 0; i < input_count; i++) {
    struct tfc_dataset *input = NULL;
    TFC_TRY(s, tfc_status_annotate(tfc_dataset_of(ctx->inputs[i], &input), "input %u", i));
    tfc_object_retain(&input->object);
    d->inputs[i] = input;
    if (input->depth > d->depth) d->depth = input->depth;
  }
  for (uint32_t i = 0; i < tensor_count; i++, d->tensor_count++) {
    const struct tfc_tensor *t = ctx->inputs[first_tensor + i];
    TFC_TRY(s, tfc_data_keep(ctx, t, &d->tensors[i]));
    uint32_t depth = depth_of(t);
    if (depth > d->depth) d->depth = depth;
  }
  if (++d->depth > DEEPEST)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "datasets read each other more than %d deep: make the pipeline shorter", DEEPEST);
  *out = d, d = NULL;
out:
  if (d) destroy(&d->object);
  return s;
}

tfc_status tfc_dataset_set_function(struct tfc_kernel_ctx *ctx, const char *name, struct tfc_dataset *d) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, name);
  if (!a || a->kind != TFC_ATTR_FUNC) return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%s' is missing", name);
  char *copy = tfc_str_dup(a->func->name); // the dataset may outlive the plan whose graph this is
  if (!copy) return tfc_status_no_memory("an input pipeline");
  d->function = (struct tfc_func_attr){.name = tfc_str_from(copy)};
  return NULL;
}

tfc_status tfc_dataset_output(struct tfc_kernel_ctx *ctx, struct tfc_dataset *d) {
  return tfc_kernel_set_object(ctx, 0, TFC_VARIANT, &d->object);
}

tfc_status tfc_dataset_number(struct tfc_kernel_ctx *ctx, uint32_t input, const char *name, int64_t *out) {
  const struct tfc_tensor *t = ctx->inputs[input];
  const bool scalar = tfc_tensor_elements(t) == 1 && t->shape.rank <= 1;
  TFC_KERNEL_CHECK(scalar && (t->dtype == TFC_BOOL || tfc_dtype_is_integer(t->dtype)), "%s must be a scalar", name);
  *out = t->dtype == TFC_BOOL ? *(const uint8_t *)t->data != 0 : tfc_tensor_int(t, 0);
  return NULL;
}

// --- Iterators ---------------------------------------------------------------------------------------------------
tfc_status tfc_dataset_open(struct tfc_kernel_ctx *ctx, struct tfc_dataset *d, struct tfc_dataset_iterator **out) {
  tfc_status s = NULL;
  struct tfc_dataset_iterator *it = calloc(1, sizeof *it + d->kind->state);
  if (!it) return tfc_status_no_memory("an input pipeline");
  it->dataset = d;
  tfc_object_retain(&d->object);
  it->inputs = calloc(d->input_count + 1u, sizeof(void *));
  if (!it->inputs) TFC_TRY(s, tfc_status_no_memory("an input pipeline"));
  for (uint32_t i = 0; i < d->input_count && !d->kind->opens; i++)
    TFC_TRY(s, tfc_dataset_open(ctx, d->inputs[i], &it->inputs[i]));
  if (d->kind->begin) TFC_TRY(s, d->kind->begin(ctx, it));
  *out = it, it = NULL;
out:
  tfc_dataset_close(it);
  return s;
}

void tfc_dataset_close(struct tfc_dataset_iterator *it) {
  if (!it) return;
  if (it->dataset->kind->end) it->dataset->kind->end(it);
  for (uint32_t i = 0; it->inputs && i < it->dataset->input_count; i++) tfc_dataset_close(it->inputs[i]);
  free(it->inputs);
  tfc_object_release(&it->dataset->object);
  free(it);
}

tfc_status tfc_dataset_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                            bool *ended) {
  *ended = false;
  if (ctx->env->cancelled && ctx->env->cancelled(ctx->env))
    return tfc_status_make(TFC_CANCELLED, "the step was cancelled");
  tfc_status s = it->dataset->kind->next(ctx, it, parts, ended);
  for (uint32_t i = 0; !s && !*ended && i < it->dataset->parts; i++)
    if (parts[i].dtype != it->dataset->types[i])
      s = tfc_status_make(TFC_INVALID_ARGUMENT, "dataset '%s' (%s): component %u of an element is %s, not %s",
                          it->dataset->node, it->dataset->kind->name, i, tfc_dtype_name(parts[i].dtype),
                          tfc_dtype_name(it->dataset->types[i]));
  if (s || *ended) tfc_dataset_parts_clear(parts, it->dataset->parts);
  return s;
}

// --- Functions ---------------------------------------------------------------------------------------------------
tfc_status tfc_dataset_call(struct tfc_kernel_ctx *ctx, const struct tfc_dataset *d, const struct tfc_tensor *args,
                            uint32_t count, struct tfc_tensor *results, uint32_t result_count) {
  tfc_status s = NULL;
  struct tfc_tensor *all = tfc_dataset_parts(count + d->tensor_count);
  if (!all) return tfc_status_no_memory("an input pipeline");
  if (!ctx->env->call) TFC_FAIL(s, TFC_UNIMPLEMENTED, "no function can be called here");
  for (uint32_t i = 0; i < count; i++) tfc_tensor_share(&args[i], &all[i]);
  for (uint32_t i = 0; i < d->tensor_count; i++) tfc_tensor_share(&d->tensors[i], &all[count + i]);
  s = ctx->env->call(ctx->env, &d->function, all, count + d->tensor_count, results, result_count);
out:
  tfc_dataset_parts_free(all, count + d->tensor_count);
  return tfc_status_annotate(s, "dataset '%s' (%s)", d->node, d->kind->name);
}

tfc_status tfc_dataset_ask(struct tfc_kernel_ctx *ctx, const struct tfc_dataset *d, const struct tfc_tensor *args,
                           uint32_t count, bool *yes) {
  struct tfc_tensor result = {0};
  tfc_status s = tfc_dataset_call(ctx, d, args, count, &result, 1);
  if (!s && (result.dtype != TFC_BOOL || tfc_tensor_elements(&result) != 1))
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "dataset '%s' (%s): the predicate must give a scalar bool", d->node,
                        d->kind->name);
  if (!s) *yes = *(const uint8_t *)result.data != 0;
  tfc_tensor_release(&result);
  return s;
}

// --- Arrays of tensors: the parts of elements --------------------------------------------------------------------
struct tfc_tensor *tfc_dataset_parts(uint32_t count) {
  return calloc(count + (size_t)1, sizeof(struct tfc_tensor));
}
void tfc_dataset_parts_clear(struct tfc_tensor *parts, size_t count) {
  for (size_t i = 0; parts && i < count; i++) tfc_tensor_release(&parts[i]);
}
void tfc_dataset_parts_free(struct tfc_tensor *parts, size_t count) {
  tfc_dataset_parts_clear(parts, count);
  free(parts);
}
void tfc_dataset_elements_free(struct tfc_dataset_elements *e) {
  tfc_dataset_parts_clear(e->items.data, e->items.count);
  tfc_array_free(&e->items);
}
tfc_status tfc_dataset_gather(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it,
                              struct tfc_dataset_elements *e, bool *ended) {
  const size_t before = e->items.count;
  if (!tfc_array_resize(&e->items, before + it->dataset->parts)) return tfc_status_no_memory("an input pipeline");
  tfc_status s = tfc_dataset_next(ctx, it, e->items.data + before, ended);
  if (s || *ended) e->items.count = before;
  return s;
}

tfc_status tfc_dataset_shape_next(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "output_shapes");
  for (uint32_t i = 0; i < ctx->node->output_count; i++)
    ctx->outputs[i] = a && a->kind == TFC_ATTR_LIST_SHAPE && i < a->count ? a->shapes[i] : TFC_SHAPE_UNKNOWN;
  return NULL;
}

tfc_status tfc_dataset_deliver(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *parts, uint32_t count) {
  const struct tfc_attr *shapes = tfc_node_attr(ctx->graph, ctx->node, "output_shapes");
  TFC_KERNEL_CHECK(count == ctx->output_count, "Number of components does not match: expected %u types but got %u.",
                   ctx->output_count, count);
  for (uint32_t i = 0; i < count; i++) {
    tfc_dtype want = ctx->graph->output_dtypes[ctx->node->output_begin + i];
    TFC_KERNEL_CHECK(parts[i].dtype == want, "Data type mismatch at component %u: expected %s but got %s.", i,
                     tfc_dtype_name(want), tfc_dtype_name(parts[i].dtype));
    TFC_KERNEL_CHECK(!shapes || shapes->kind != TFC_ATTR_LIST_SHAPE || i >= shapes->count ||
                         tfc_shape_compatible(&shapes->shapes[i], &parts[i].shape),
                     "Incompatible shapes at component %u: expected %s but got %s.", i,
                     tfc_shape_show(&shapes->shapes[i], (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&parts[i].shape, (char[TFC_SHAPE_TEXT]){0}));
    TFC_RETURN_IF_ERROR(tfc_kernel_set_output(ctx, i, &parts[i]));
  }
  return NULL;
}
