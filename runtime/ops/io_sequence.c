// Operations that parse tf.SequenceExample messages into tensors: ParseSequenceExampleV2, and the older
// ParseSequenceExample, whose keys are attributes, and ParseSingleSequenceExample, whose keys are inputs one by one. A
// message has a context, which is read like an Example, and lists of features with one row for each step. For a list, a
// column also keeps where each row ends, over all messages.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/ops/io_feature.h"
#include "runtime/ops/row.h"
#include "runtime/ops/splits.h"

struct rows { // the rows of one key
  struct tfc_column c;
  TFC_ARRAY(int64_t) ends; // where the values of each row end
  int64_t *last;           // [messages]: how many rows there are up to the message's end
  int64_t most;            // rows in the message that has the most
};
struct part { // the context, or the lists
  uint32_t sparse, dense, ragged;
  const tfc_dtype *sparse_types, *dense_types, *ragged_types, *split_types;
  const struct tfc_shape *shapes; // [dense]
};
enum form { BY_VECTORS, BY_ATTRIBUTES, ONE_BY_ONE }; // how keys are given
struct plan {
  struct part context, lists;
  enum form form;
  uint32_t defaults; // the first input that is a default
};

// --- The features that a node parses ---------------------------------------------------------------------------------
static const struct tfc_attr *list_of(const struct tfc_graph *g, const struct tfc_node *n, const char *part,
                                      const char *name, uint32_t *count) {
  char whole[64];
  snprintf(whole, sizeof whole, "%s_%s", part, name);
  const struct tfc_attr *a = tfc_node_attr(g, n, whole);
  *count = a ? a->count : 0;
  return a;
}
static tfc_status part_of(const struct tfc_graph *g, const struct tfc_node *n, const char *name, const char *dense,
                          struct part *out) {
  struct part p = {0};
  uint32_t shapes, splits;
  const struct tfc_attr *a = list_of(g, n, name, "sparse_types", &p.sparse);
  p.sparse_types = p.sparse ? a->types : NULL;
  a = tfc_node_attr(g, n, dense);
  p.dense = a ? a->count : 0;
  p.dense_types = p.dense ? a->types : NULL;
  a = list_of(g, n, name, "dense_shapes", &shapes);
  p.shapes = shapes ? a->shapes : NULL;
  a = list_of(g, n, name, "ragged_value_types", &p.ragged);
  p.ragged_types = p.ragged ? a->types : NULL;
  a = list_of(g, n, name, "ragged_split_types", &splits);
  p.split_types = splits ? a->types : NULL;
  if (shapes != p.dense || splits != p.ragged)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "%s: there are %u shapes for %u dense features, %u types of splits "
                           "for %u ragged ones",
                           name, shapes, p.dense, splits, p.ragged);
  for (uint32_t i = 0; i < shapes; i++)
    if (!tfc_shape_is_static(&p.shapes[i]) || p.shapes[i].rank + 2 > TFC_MAX_RANK)
      return tfc_status_make(TFC_UNIMPLEMENTED, "%s_dense_shapes[%u] is not whole, or too long", name, i);
  *out = p;
  return NULL;
}
static tfc_status plan_of(const struct tfc_graph *g, const struct tfc_node *n, struct plan *out) {
  TFC_RETURN_IF_ERROR(part_of(g, n, "context", "Tcontext_dense", &out->context));
  TFC_RETURN_IF_ERROR(part_of(g, n, "feature_list", "feature_list_dense_types", &out->lists));
  out->form = tfc_str_ends(n->op, "V2")                   ? BY_VECTORS
              : tfc_str_is(n->op, "ParseSequenceExample") ? BY_ATTRIBUTES
                                                          : ONE_BY_ONE;
  out->defaults = out->form == BY_VECTORS ? 9
                  : out->form == BY_ATTRIBUTES
                      ? 2
                      : 2 + out->context.sparse + out->context.dense + out->lists.sparse + out->lists.dense;
  const struct {
    const char *attr;
    uint32_t count;
  } numbers[] = {{"Ncontext_sparse", out->context.sparse},
                 {"Nfeature_list_sparse", out->lists.sparse},
                 {"Nfeature_list_dense", out->lists.dense},
                 {"Ncontext_dense", out->context.dense}};
  // Both these attributes and the lists of types give the number of features. With keys in vectors there is no
  // attribute for dense contexts.
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers - (out->form == BY_VECTORS); i++)
    if (tfc_node_attr_int(g, n, numbers[i].attr, 0) != numbers[i].count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "%s must match the number of its types, %u", numbers[i].attr,
                             numbers[i].count);
  return NULL;
}

// --- Reading keys and feature lists ----------------------------------------------------------------------------------
// The key of feature `index`, of `count` features of its kind (0 sparse, 1 dense, 2 ragged).
static tfc_status key_of(const struct tfc_kernel_ctx *ctx, const struct plan *plan, const struct part *p, uint32_t kind,
                         uint32_t index, uint32_t count, tfc_str *out) {
  const bool lists = p == &plan->lists;
  const struct part *c = &plan->context;
  if (plan->form == ONE_BY_ONE) {
    const uint32_t first = 2 + (lists ? c->sparse + c->dense : 0) + (kind ? p->sparse : 0);
    TFC_KERNEL_CHECK(ctx->inputs[first + index]->shape.rank == 0, "Expected the key of input %u to be a scalar",
                     first + index);
    *out = tfc_tensor_get_string(ctx->inputs[first + index], 0);
  } else if (plan->form == BY_ATTRIBUTES) {
    uint32_t listed;
    const struct tfc_attr *keys = list_of(ctx->graph, ctx->node, lists ? "feature_list" : "context",
                                          kind ? "dense_keys" : "sparse_keys", &listed);
    TFC_KERNEL_CHECK(listed == count, "there are %u keys for %u features", listed, count);
    *out = keys->strings[index];
  } else {
    *out = tfc_tensor_get_string(ctx->inputs[(lists ? 5 : 2) + kind], index);
  }
  return NULL;
}
// Checks the lengths of the vectors of keys: sparse, dense, ragged of the context, then of the lists.
static tfc_status check_vectors(const struct tfc_kernel_ctx *ctx, const struct plan *plan) {
  const struct part *c = &plan->context, *l = &plan->lists;
  const uint32_t counts[] = {c->sparse, c->dense, c->ragged, l->sparse, l->dense, l->ragged};
  for (uint32_t i = 0; plan->form == BY_VECTORS && i < 6; i++)
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[2 + i]) == counts[i], "input %u has %lld keys, not %u", 2 + i,
                     (long long)tfc_tensor_elements(ctx->inputs[2 + i]), counts[i]);
  return NULL;
}
// Whether messages may lack the list of dense feature `index`.
static bool may_lack(const struct tfc_kernel_ctx *ctx, const struct plan *plan, uint32_t index, tfc_str key) {
  if (plan->form == BY_VECTORS) return ((const bool *)ctx->inputs[8]->data)[index];
  const struct tfc_attr *named = tfc_node_attr(ctx->graph, ctx->node, "feature_list_dense_missing_assumed_empty");
  const bool one = plan->form == ONE_BY_ONE;
  const int64_t n = one ? tfc_tensor_elements(ctx->inputs[1]) : named ? named->count : 0;
  for (int64_t i = 0; i < n; i++)
    if (tfc_str_equal(one ? tfc_tensor_get_string(ctx->inputs[1], i) : named->strings[i], key)) return true;
  return false;
}

static tfc_status set_column(struct tfc_kernel_ctx *ctx, const struct plan *plan, const struct part *p, uint32_t i,
                             int64_t batch, struct tfc_column *c) {
  uint32_t d = i - p->sparse, r = d - p->dense, input = i < p->sparse ? 0 : d < p->dense ? 1 : 2;
  uint32_t index = input == 0 ? i : input == 1 ? d : r;
  c->kind = input == 0 ? TFC_COLUMN_SPARSE : input == 1 ? TFC_COLUMN_DENSE : TFC_COLUMN_RAGGED;
  c->dtype = input == 0 ? p->sparse_types[i] : input == 1 ? p->dense_types[d] : p->ragged_types[r];
  TFC_RETURN_IF_ERROR(key_of(ctx, plan, p, input, index,
                             input == 0   ? p->sparse
                             : input == 1 ? p->dense
                                          : p->ragged,
                             &c->key));
  c->ends = calloc((size_t)batch + 1, sizeof *c->ends);
  c->there = calloc((size_t)batch + 1, sizeof *c->there);
  return c->ends && c->there ? NULL : tfc_status_no_memory(NULL);
}

// Reads a FeatureList: field 1, repeated, is the Feature of one step.
static tfc_status read_rows(struct rows *l, tfc_str list, int64_t message) {
  struct tfc_wire w = tfc_wire_of(list);
  struct tfc_field f;
  int64_t begin = (int64_t)l->ends.count;
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 1 || f.type != TFC_WIRE_BYTES) continue;
    TFC_RETURN_IF_ERROR(tfc_column_read_feature(&l->c, f.bytes, message));
    if (!tfc_array_push(&l->ends, (int64_t)l->c.count)) return tfc_status_no_memory(NULL);
  }
  if (w.error)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid protocol message input, example %lld: %s", (long long)message,
                           w.error);
  l->c.there[message] = true;
  if ((int64_t)l->ends.count - begin > l->most) l->most = (int64_t)l->ends.count - begin;
  return NULL;
}
// FeatureLists are field 2 of a SequenceExample; their field 1 contains pairs of a key (1) and a FeatureList (2).
static tfc_status read_lists(struct rows *lists, uint32_t count, tfc_str *found, tfc_str example, int64_t message) {
  struct tfc_wire w = tfc_wire_of(example);
  struct tfc_field f, entry, part;
  for (uint32_t i = 0; i < count; i++) found[i] = (tfc_str){NULL, 0};
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 2 || f.type != TFC_WIRE_BYTES) continue;
    struct tfc_wire all = tfc_wire_of(f.bytes);
    while (tfc_wire_next(&all, &entry)) {
      if (entry.number != 1 || entry.type != TFC_WIRE_BYTES) continue;
      struct tfc_wire pair = tfc_wire_of(entry.bytes);
      tfc_str key = {"", 0}, value = {"", 0};
      while (tfc_wire_next(&pair, &part)) {
        if (part.type != TFC_WIRE_BYTES) continue;
        if (part.number == 1) key = part.bytes;
        if (part.number == 2) value = part.bytes;
      }
      for (uint32_t i = 0; i < count; i++)
        if (tfc_str_equal(lists[i].c.key, key)) found[i] = value;
      if (pair.error) all.error = pair.error;
    }
    if (all.error) w.error = all.error;
  }
  if (w.error)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid protocol message input, example %lld: %s", (long long)message,
                           w.error);
  for (uint32_t i = 0; i < count; i++) {
    if (found[i].data) TFC_RETURN_IF_ERROR(read_rows(&lists[i], found[i], message));
    lists[i].last[message] = (int64_t)lists[i].ends.count;
  }
  return NULL;
}

// --- Outputs ---------------------------------------------------------------------------------------------------------
static int64_t first_row(const struct rows *l, int64_t message) {
  return message ? l->last[message - 1] : 0;
}
static int64_t row_begin(const struct rows *l, int64_t row) {
  return row ? l->ends.data[row - 1] : 0;
}

// messages < 0: a single message without a batch dimension.
static tfc_status sparse_rows(struct tfc_kernel_ctx *ctx, const struct rows *l, int64_t messages, uint32_t first,
                              uint32_t step) {
  struct tfc_tensor *at = NULL, *values = NULL, *dims = NULL;
  int64_t count = (int64_t)l->c.count, batch = messages < 0 ? 1 : messages, longest = 0, rank = messages < 0 ? 2 : 3;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first, TFC_INT64, &TFC_SHAPE(count, rank), &at));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first + step, l->c.dtype, &TFC_SHAPE(count), &values));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first + 2 * step, TFC_INT64, &TFC_SHAPE(rank), &dims));
  int64_t *to = at->data, *out = dims->data;
  for (int64_t m = 0; m < batch; m++)
    for (int64_t row = first_row(l, m); row < l->last[m]; row++)
      for (int64_t i = 0, n = l->ends.data[row] - row_begin(l, row); i < n; i++) {
        if (rank == 3) *to++ = m;
        *to++ = row - first_row(l, m);
        *to++ = i;
        if (i + 1 > longest) longest = i + 1;
      }
  if (rank == 3) *out++ = batch;
  *out++ = l->most;
  *out = longest;
  return tfc_column_copy(&l->c, 0, count, values, 0);
}
// lengths_at TFC_NONE: there is no output for the lengths.
static tfc_status dense_rows(struct tfc_kernel_ctx *ctx, const struct rows *l, const struct tfc_shape *shape,
                             bool lacking, int64_t messages, uint32_t output, uint32_t lengths_at) {
  struct tfc_tensor *y = NULL, *lengths = NULL;
  int64_t batch = messages < 0 ? 1 : messages, each = tfc_shape_elements(shape);
  struct tfc_shape full = {0};
  if (messages >= 0) full.dims[full.rank++] = batch;
  full.dims[full.rank++] = l->most;
  for (int d = 0; d < shape->rank; d++) full.dims[full.rank++] = shape->dims[d];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, output, l->c.dtype, &full, &y));
  if (lengths_at != TFC_NONE)
    TFC_RETURN_IF_ERROR(
        tfc_kernel_output(ctx, lengths_at, TFC_INT64, messages < 0 ? &TFC_SHAPE_SCALAR : &TFC_SHAPE(batch), &lengths));
  if (y->dtype != TFC_STRING && y->size) memset(y->data, 0, y->size);
  for (int64_t m = 0; m < batch; m++) {
    TFC_KERNEL_CHECK(l->c.there[m] || lacking,
                     "Name: <unknown>, Feature list '%.*s' is required but could not be found.  Did you mean to "
                     "include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?",
                     TFC_STR_ARG(l->c.key));
    if (lengths) ((int64_t *)lengths->data)[m] = l->last[m] - first_row(l, m);
    for (int64_t row = first_row(l, m); row < l->last[m]; row++) {
      int64_t n = l->ends.data[row] - row_begin(l, row);
      TFC_KERNEL_CHECK(n == each,
                       "Key: %.*s, Index: %lld.  Number of values != expected. Values size: %lld but output "
                       "shape: %s",
                       TFC_STR_ARG(l->c.key), (long long)(row - first_row(l, m)), (long long)n,
                       tfc_shape_show(shape, (char[TFC_SHAPE_TEXT]){0}));
      TFC_RETURN_IF_ERROR(
          tfc_column_copy(&l->c, row_begin(l, row), n, y, (m * l->most + row - first_row(l, m)) * each));
    }
  }
  return NULL;
}
static tfc_status ragged_rows(struct tfc_kernel_ctx *ctx, const struct rows *l, int64_t messages, tfc_dtype split,
                              uint32_t first, uint32_t step) {
  struct tfc_tensor *values = NULL, *outer = NULL, *inner = NULL;
  int64_t count = (int64_t)l->c.count, rows = (int64_t)l->ends.count;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first, l->c.dtype, &TFC_SHAPE(count), &values));
  TFC_RETURN_IF_ERROR(
      tfc_kernel_output(ctx, first + step, split, messages < 0 ? &TFC_SHAPE_SCALAR : &TFC_SHAPE(messages + 1), &outer));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first + 2 * step, split, &TFC_SHAPE(rows + 1), &inner));
  ops_set_split(outer, 0, 0); // for a single message, the outer split is a scalar without meaning
  for (int64_t m = 0; m < messages; m++) ops_set_split(outer, m + 1, l->last[m]);
  for (int64_t row = 0; row <= rows; row++) ops_set_split(inner, row, row_begin(l, row));
  return tfc_column_copy(&l->c, 0, count, values, 0);
}

static tfc_status context_outputs(struct tfc_kernel_ctx *ctx, const struct plan *plan, const struct tfc_column *columns,
                                  int64_t messages) {
  const struct part *p = &plan->context;
  for (uint32_t i = 0; i < p->sparse + p->dense + p->ragged; i++) {
    uint32_t d = i - p->sparse, r = d - p->dense, at = 3 * p->sparse + p->dense + r;
    struct tfc_tensor *split = NULL;
    if (columns[i].kind == TFC_COLUMN_SPARSE) {
      TFC_RETURN_IF_ERROR(tfc_column_sparse(ctx, &columns[i], messages, i, p->sparse));
    } else if (columns[i].kind == TFC_COLUMN_DENSE) {
      TFC_RETURN_IF_ERROR(tfc_column_dense(ctx, &columns[i], &p->shapes[d], ctx->inputs[plan->defaults + d], messages,
                                           3 * p->sparse + d));
    } else {
      TFC_RETURN_IF_ERROR(tfc_column_ragged(ctx, &columns[i], messages, p->split_types[r], at, at + p->ragged));
      if (messages >= 0) continue;
      TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, at + p->ragged, p->split_types[r], &TFC_SHAPE_SCALAR, &split));
      ops_set_split(split, 0, 0);
    }
  }
  return NULL;
}
static tfc_status list_outputs(struct tfc_kernel_ctx *ctx, const struct plan *plan, const struct rows *lists,
                               int64_t messages) {
  const struct part *c = &plan->context, *p = &plan->lists;
  const uint32_t first = 3 * c->sparse + c->dense + 2 * c->ragged;
  for (uint32_t i = 0; i < p->sparse + p->dense + p->ragged; i++) {
    uint32_t d = i - p->sparse, r = d - p->dense, dense = first + 3 * p->sparse, ragged = dense + 2 * p->dense;
    if (lists[i].c.kind == TFC_COLUMN_SPARSE)
      TFC_RETURN_IF_ERROR(sparse_rows(ctx, &lists[i], messages, first + i, p->sparse));
    else if (lists[i].c.kind == TFC_COLUMN_DENSE)
      TFC_RETURN_IF_ERROR(dense_rows(ctx, &lists[i], &p->shapes[d], may_lack(ctx, plan, d, lists[i].c.key), messages,
                                     dense + d, plan->form == ONE_BY_ONE ? TFC_NONE : dense + p->dense + d));
    else
      TFC_RETURN_IF_ERROR(ragged_rows(ctx, &lists[i], messages, p->split_types[r], ragged + r, p->ragged));
  }
  return NULL;
}

static tfc_status parse(struct tfc_kernel_ctx *ctx) {
  const struct plan *plan = ctx->state;
  const struct part *c = &plan->context, *l = &plan->lists;
  const struct tfc_tensor *serialized = ctx->inputs[0];
  const uint32_t contexts = c->sparse + c->dense + c->ragged, lists = l->sparse + l->dense + l->ragged;
  const int64_t batch = tfc_tensor_elements(serialized), messages = serialized->shape.rank == 0 ? -1 : batch;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(serialized->shape.rank <= 1, "Expected serialized to be a scalar or vector");
  TFC_KERNEL_CHECK(plan->form != BY_VECTORS || tfc_tensor_elements(ctx->inputs[8]) == l->dense,
                   "feature_list_dense_missing_assumed_empty must have %u elements", l->dense);
  TFC_RETURN_IF_ERROR(check_vectors(ctx, plan));
  struct tfc_column *columns = calloc(contexts + 1, sizeof *columns);
  struct rows *rows = calloc(lists + 1, sizeof *rows);
  tfc_str *found = calloc(contexts + lists + 1, sizeof *found);
  if (!columns || !rows || !found) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < contexts; i++) TFC_TRY(s, set_column(ctx, plan, c, i, batch, &columns[i]));
  for (uint32_t i = 0; i < lists; i++) {
    TFC_TRY(s, set_column(ctx, plan, l, i, batch, &rows[i].c));
    rows[i].last = calloc((size_t)batch + 1, sizeof *rows[i].last);
    if (!rows[i].last) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  for (int64_t m = 0; m < batch; m++) {
    tfc_str example = tfc_tensor_get_string(serialized, m);
    TFC_TRY(s, tfc_columns_read_example(columns, contexts, found, example, m));
    TFC_TRY(s, read_lists(rows, lists, found, example, m));
  }
  TFC_TRY(s, context_outputs(ctx, plan, columns, messages));
  TFC_TRY(s, list_outputs(ctx, plan, rows, messages));
out:
  for (uint32_t i = 0; columns && i < contexts; i++)
    free(columns[i].data), free(columns[i].ends), free(columns[i].there);
  for (uint32_t i = 0; rows && i < lists; i++) {
    free(rows[i].c.data), free(rows[i].c.ends), free(rows[i].c.there), free(rows[i].last);
    tfc_array_free(&rows[i].ends);
  }
  free(columns), free(rows), free(found);
  return s;
}
static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct plan, state);
  return plan_of(ctx->graph, ctx->node, state);
}

// --- Shapes ----------------------------------------------------------------------------------------------------------
// The batch (`batched`) and the steps (`steps`) are dimensions before a feature's own.
static void part_shapes(struct tfc_shape_ctx *ctx, const struct part *p, int64_t batch, bool batched, bool steps,
                        bool lengths, uint32_t *at) {
  int64_t rank = 1 + batched + steps;
  for (uint32_t i = 0; i < p->sparse; i++) {
    ctx->outputs[*at + i] = TFC_SHAPE(TFC_DIM_UNKNOWN, rank);
    ctx->outputs[*at + p->sparse + i] = TFC_SHAPE(TFC_DIM_UNKNOWN);
    ctx->outputs[*at + 2 * p->sparse + i] = TFC_SHAPE(rank);
  }
  *at += 3 * p->sparse;
  for (uint32_t i = 0; i < p->dense; i++) {
    struct tfc_shape full = {0};
    if (batched) full.dims[full.rank++] = batch;
    if (steps) full.dims[full.rank++] = TFC_DIM_UNKNOWN;
    for (int d = 0; d < p->shapes[i].rank; d++) full.dims[full.rank++] = p->shapes[i].dims[d];
    ctx->outputs[*at + i] = full;
    if (steps && lengths) ctx->outputs[*at + p->dense + i] = batched ? TFC_SHAPE(batch) : TFC_SHAPE_SCALAR;
  }
  *at += steps && lengths ? 2 * p->dense : p->dense;
  for (uint32_t i = 0; i < p->ragged; i++) {
    ctx->outputs[*at + i] = TFC_SHAPE(TFC_DIM_UNKNOWN);
    ctx->outputs[*at + p->ragged + i] = batched ? TFC_SHAPE(batch < 0 ? TFC_DIM_UNKNOWN : batch + 1) : TFC_SHAPE_SCALAR;
    if (steps) ctx->outputs[*at + 2 * p->ragged + i] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  }
  *at += (steps ? 3 : 2) * p->ragged;
}
static tfc_status shape_parse(struct tfc_shape_ctx *ctx) {
  struct plan p;
  uint32_t at = 0;
  const struct tfc_shape *in = ctx->inputs[0];
  TFC_RETURN_IF_ERROR(plan_of(ctx->graph, ctx->node, &p));
  if (in->rank < 0 && p.form != ONE_BY_ONE) return NULL;
  if (in->rank > 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "serialized must be a scalar or a vector");
  int64_t batch = in->rank == 1 ? in->dims[0] : TFC_DIM_UNKNOWN;
  part_shapes(ctx, &p.context, batch, in->rank == 1, false, false, &at);
  part_shapes(ctx, &p.lists, batch, in->rank == 1, true, p.form != ONE_BY_ONE, &at);
  return NULL;
}

#define TYPES "list({float, int64, string}) >= 0 = []"
#define SPLITS "list({int32, int64}) >= 0 = []"
// The outputs of the two older operations.
#define OUTPUTS                                                                                                        \
  "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, "                     \
  "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, "                             \
  "feature_list_sparse_indices: "                                                                                      \
  "Nfeature_list_sparse * int64, feature_list_sparse_values: feature_list_sparse_types, feature_list_sparse_shapes: "  \
  "Nfeature_list_sparse * int64, feature_list_dense_values: feature_list_dense_types"
#define COUNTS                                                                                                         \
  "Ncontext_sparse: int >= 0 = 0, Ncontext_dense: int >= 0 = 0, Nfeature_list_sparse: int >= 0 = 0, "                  \
  "Nfeature_list_dense: int >= 0 = 0, context_sparse_types: " TYPES ", Tcontext_dense: " TYPES                         \
  ", feature_list_dense_types: " TYPES                                                                                 \
  ", context_dense_shapes: list(shape) >= 0 = [], feature_list_sparse_types: " TYPES                                   \
  ", feature_list_dense_shapes: list(shape) >= 0 = []"
static const struct tfc_op_def io_sequence_rows[] = {
    {.name = "ParseSequenceExampleV2",
     .inputs = "serialized: string, debug_name: string, context_sparse_keys: string, context_dense_keys: string, "
               "context_ragged_keys: string, feature_list_sparse_keys: string, feature_list_dense_keys: string, "
               "feature_list_ragged_keys: string, feature_list_dense_missing_assumed_empty: bool, "
               "context_dense_defaults: Tcontext_dense",
     .outputs = "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, "
                "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, "
                "context_ragged_values: context_ragged_value_types, context_ragged_row_splits: "
                "context_ragged_split_types, feature_list_sparse_indices: Nfeature_list_sparse * int64, "
                "feature_list_sparse_values: feature_list_sparse_types, feature_list_sparse_shapes: "
                "Nfeature_list_sparse * int64, feature_list_dense_values: feature_list_dense_types, "
                "feature_list_dense_lengths: Nfeature_list_dense * int64, feature_list_ragged_values: "
                "feature_list_ragged_value_types, feature_list_ragged_outer_splits: feature_list_ragged_split_types, "
                "feature_list_ragged_inner_splits: feature_list_ragged_split_types",
     .attrs = "Ncontext_sparse: int >= 0 = 0, Tcontext_dense: " TYPES ", context_sparse_types: " TYPES
              ", context_ragged_value_types: " TYPES ", context_ragged_split_types: " SPLITS
              ", context_dense_shapes: list(shape) >= 0 = [], Nfeature_list_sparse: int >= 0 = 0, "
              "Nfeature_list_dense: int >= 0 = 0, feature_list_dense_types: " TYPES
              ", feature_list_sparse_types: " TYPES ", feature_list_ragged_value_types: " TYPES
              ", feature_list_ragged_split_types: " SPLITS ", feature_list_dense_shapes: list(shape) >= 0 = []",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_parse,
     .prepare = prepare,
     .kernel = parse},
    {.name = "ParseSequenceExample",
     .inputs = "serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense",
     .outputs = OUTPUTS ", feature_list_dense_lengths: Nfeature_list_dense * int64",
     .attrs = "feature_list_dense_missing_assumed_empty: list(string) >= 0, context_sparse_keys: list(string) >= 0, "
              "context_dense_keys: list(string) >= 0, feature_list_sparse_keys: list(string) >= 0, "
              "feature_list_dense_keys: list(string) >= 0, " COUNTS,
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_parse,
     .prepare = prepare,
     .kernel = parse},
    {.name = "ParseSingleSequenceExample",
     .inputs = "serialized: string, feature_list_dense_missing_assumed_empty: string, context_sparse_keys: "
               "Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, feature_list_sparse_keys: "
               "Nfeature_list_sparse * string, feature_list_dense_keys: Nfeature_list_dense * string, "
               "context_dense_defaults: Tcontext_dense, debug_name: string",
     .outputs = OUTPUTS,
     .attrs = COUNTS,
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_parse,
     .prepare = prepare,
     .kernel = parse},
};
TFC_REGISTER_OPS(io_sequence_rows);
