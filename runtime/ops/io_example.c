// Operations that parse tf.Example messages into tensors: ParseExample, ParseExampleV2, ParseSingleExample.
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/io_feature.h"
#include "runtime/ops/row.h"

// --- The features that a node parses ---------------------------------------------------------------------------------
struct plan {
  uint32_t sparse, dense, ragged;                  // how many features of each kind
  const struct tfc_attr *sparse_keys, *dense_keys; // attributes of ParseSingleExample
  const tfc_dtype *sparse_types, *dense_types, *ragged_types, *split_types;
  const struct tfc_shape *shapes; // [dense]
  int version;                    // 0: ParseSingleExample
};
static const struct tfc_attr *list_of(const struct tfc_graph *g, const struct tfc_node *n, const char *name,
                                      uint32_t *count) {
  const struct tfc_attr *a = tfc_node_attr(g, n, name);
  *count = a ? a->count : 0;
  return a;
}
static tfc_status plan_of(const struct tfc_graph *g, const struct tfc_node *n, struct plan *out) {
  uint32_t shapes = 0, values = 0, splits = 0, more = 0;
  struct plan p = {.version = tfc_str_ends(n->op, "V2") ? 2 : tfc_str_is(n->op, "ParseSingleExample") ? 0 : 1};
  const struct tfc_attr *a = list_of(g, n, "sparse_types", &p.sparse);
  p.sparse_types = p.sparse ? a->types : NULL;
  // Both attributes give the number of sparse outputs, so they must agree.
  if (tfc_node_attr_int(g, n, p.version == 1 ? "Nsparse" : "num_sparse", 0) != p.sparse)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "len(sparse_keys) != len(sparse_types)");
  a = list_of(g, n, "Tdense", &p.dense);
  p.dense_types = p.dense ? a->types : NULL;
  a = list_of(g, n, "dense_shapes", &shapes);
  p.shapes = shapes ? a->shapes : NULL;
  if (shapes != p.dense) return tfc_status_make(TFC_INVALID_ARGUMENT, "dense_shapes and Tdense differ in length");
  for (uint32_t i = 0; i < shapes; i++)
    for (int d = p.shapes[i].rank < 0 ? -1 : 0; d < p.shapes[i].rank; d++)
      if (d < 0 || (d > 0 && p.shapes[i].dims[d] < 0))
        return tfc_status_make(TFC_INVALID_ARGUMENT, "dense_shapes[%u] may lack its first dimension alone", i);
  a = list_of(g, n, "ragged_value_types", &values);
  p.ragged_types = values ? a->types : NULL;
  a = list_of(g, n, "ragged_split_types", &splits);
  p.split_types = splits ? a->types : NULL;
  if (p.version == 1 && tfc_node_attr_int(g, n, "Ndense", 0) != p.dense)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "len(dense_keys) != len(dense_types)");
  if (values != splits) return tfc_status_make(TFC_INVALID_ARGUMENT, "ragged types differ in number");
  p.ragged = values;
  if (p.version == 0) {
    p.sparse_keys = list_of(g, n, "sparse_keys", &more);
    if (more != p.sparse) return tfc_status_make(TFC_INVALID_ARGUMENT, "sparse_keys and sparse_types differ in length");
    p.dense_keys = list_of(g, n, "dense_keys", &more);
    if (more != p.dense) return tfc_status_make(TFC_INVALID_ARGUMENT, "dense_keys and Tdense differ in length");
  }
  *out = p;
  return NULL;
}
// Gets the key of feature i. It is in version 2 element i of a vector input, in version 1 a scalar input (the first is
// `input`), in ParseSingleExample element i of an attribute.
static tfc_status key_of(struct tfc_kernel_ctx *ctx, const struct plan *p, const struct tfc_attr *attr, uint32_t input,
                         uint32_t i, uint32_t count, tfc_str *out) {
  if (p->version == 0) {
    *out = attr->strings[i];
    return NULL;
  }
  const struct tfc_tensor *keys = ctx->inputs[p->version == 1 ? input + i : input];
  TFC_KERNEL_CHECK(tfc_tensor_elements(keys) == (p->version == 1 ? 1 : (int64_t)count),
                   "there are %lld keys for %u features", (long long)tfc_tensor_elements(keys), count);
  *out = tfc_tensor_get_string(keys, p->version == 1 ? 0 : i);
  return NULL;
}

static tfc_status parse(struct tfc_kernel_ctx *ctx) {
  const struct plan *p = ctx->state;
  const struct tfc_tensor *serialized = ctx->inputs[0];
  uint32_t count = p->sparse + p->dense + p->ragged;
  int64_t batch = tfc_tensor_elements(serialized);
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(p->version == 0 ? serialized->shape.rank == 0 : serialized->shape.rank <= 1,
                   "Input serialized must be a %s", p->version == 0 ? "scalar" : "vector");
  TFC_KERNEL_CHECK(p->version != 1 || serialized->shape.rank == 1, "Expected serialized to be a vector, got a scalar");
  struct tfc_column *columns = calloc(count + 1, sizeof *columns);
  tfc_str *found = calloc(count + 1, sizeof *found);
  if (!columns || !found) TFC_TRY(s, tfc_status_no_memory(NULL));
  uint32_t first_dense = p->version == 0 ? 1 : p->version == 1 ? 2 + p->sparse + p->dense : 5;
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_column *c = &columns[i];
    uint32_t d = i - p->sparse, r = d - p->dense;
    if (i < p->sparse) {
      c->kind = TFC_COLUMN_SPARSE;
      c->dtype = p->sparse_types[i];
      TFC_TRY(s, key_of(ctx, p, p->sparse_keys, 2, i, p->sparse, &c->key));
    } else if (d < p->dense) {
      c->kind = TFC_COLUMN_DENSE;
      c->dtype = p->dense_types[d];
      TFC_TRY(s, key_of(ctx, p, p->dense_keys, p->version == 1 ? 2 + p->sparse : 3, d, p->dense, &c->key));
      if (ctx->inputs[first_dense + d]->dtype != c->dtype)
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the default of feature %.*s has another type", TFC_STR_ARG(c->key));
    } else {
      c->kind = TFC_COLUMN_RAGGED;
      c->dtype = p->ragged_types[r];
      TFC_TRY(s, key_of(ctx, p, NULL, 4, r, p->ragged, &c->key));
    }
    c->ends = calloc((size_t)batch + 1, sizeof *c->ends);
    c->there = calloc((size_t)batch + 1, sizeof *c->there);
    if (!c->ends || !c->there) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  for (int64_t m = 0; m < batch; m++)
    TFC_TRY(s, tfc_columns_read_example(columns, count, found, tfc_tensor_get_string(serialized, m), m));
  int64_t messages = serialized->shape.rank == 0 ? -1 : batch;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t d = i - p->sparse, r = d - p->dense;
    if (columns[i].kind == TFC_COLUMN_SPARSE)
      TFC_TRY(s, tfc_column_sparse(ctx, &columns[i], messages, i, p->sparse));
    else if (columns[i].kind == TFC_COLUMN_DENSE)
      TFC_TRY(s, tfc_column_dense(ctx, &columns[i], &p->shapes[d], ctx->inputs[first_dense + d], messages,
                                  3 * p->sparse + d));
    else
      TFC_TRY(s, tfc_column_ragged(ctx, &columns[i], messages, p->split_types[r], 3 * p->sparse + p->dense + r,
                                   3 * p->sparse + p->dense + p->ragged + r));
  }
out:
  for (uint32_t i = 0; columns && i < count; i++) {
    free(columns[i].data);
    free(columns[i].ends);
    free(columns[i].there);
  }
  free(columns);
  free(found);
  return s;
}
static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct plan, state);
  return plan_of(ctx->graph, ctx->node, state);
}

static tfc_status shape_parse(struct tfc_shape_ctx *ctx) {
  struct plan p;
  TFC_RETURN_IF_ERROR(plan_of(ctx->graph, ctx->node, &p));
  const struct tfc_shape *in = ctx->inputs[0];
  bool known = p.version == 0 || in->rank >= 0, batched = p.version == 1 || in->rank == 1;
  if (p.version == 1) known = true;
  int64_t batch = in->rank == 1 ? in->dims[0] : TFC_DIM_UNKNOWN;
  if (p.version == 0) batched = false;
  if (!known) return NULL;
  int64_t rank = batched ? 2 : 1;
  for (uint32_t i = 0; i < p.sparse; i++) {
    ctx->outputs[i] = TFC_SHAPE(TFC_DIM_UNKNOWN, rank);
    ctx->outputs[p.sparse + i] = TFC_SHAPE(TFC_DIM_UNKNOWN);
    ctx->outputs[2 * p.sparse + i] = TFC_SHAPE(rank);
  }
  for (uint32_t i = 0; i < p.dense; i++) {
    struct tfc_shape full = p.shapes[i];
    if (batched) {
      if (full.rank >= TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "dense_shapes[%u] is too long", i);
      memmove(full.dims + 1, full.dims, (size_t)full.rank * sizeof *full.dims);
      full.dims[0] = batch;
      full.rank++;
    }
    ctx->outputs[3 * p.sparse + i] = full;
  }
  for (uint32_t i = 0; i < p.ragged; i++) {
    ctx->outputs[3 * p.sparse + p.dense + i] = TFC_SHAPE(TFC_DIM_UNKNOWN);
    ctx->outputs[3 * p.sparse + p.dense + p.ragged + i] = TFC_SHAPE(!batched ? 0 : batch < 0 ? batch : batch + 1);
  }
  return NULL;
}

#define ROW .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE, .shape = shape_parse, .prepare = prepare, .kernel = parse
#define TYPES "list({float, int64, string}) >= 0"
static const struct tfc_op_def io_example_rows[] = {
    {.name = "ParseExample",
     .inputs = "serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string, "
               "dense_defaults: Tdense",
     .outputs = "sparse_indices: Nsparse * int64, sparse_values: sparse_types, sparse_shapes: Nsparse * int64, "
                "dense_values: Tdense",
     .attrs = "Nsparse: int >= 0, Ndense: int >= 0, sparse_types: " TYPES ", Tdense: " TYPES
              ", dense_shapes: list(shape) >= 0",
     ROW},
    {.name = "ParseExampleV2",
     .inputs = "serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, "
               "dense_defaults: Tdense",
     .outputs = "sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: num_sparse * int64, "
                "dense_values: Tdense, ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types",
     .attrs = "Tdense: " TYPES ", num_sparse: int >= 0, sparse_types: " TYPES ", ragged_value_types: " TYPES
              ", ragged_split_types: list({int32, int64}) >= 0, dense_shapes: list(shape) >= 0",
     ROW},
    {.name = "ParseSingleExample",
     .inputs = "serialized: string, dense_defaults: Tdense",
     .outputs = "sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: num_sparse * int64, "
                "dense_values: Tdense",
     .attrs =
         "num_sparse: int >= 0, sparse_keys: list(string) >= 0, dense_keys: list(string) >= 0, sparse_types: " TYPES
         ", Tdense: " TYPES ", dense_shapes: list(shape) >= 0",
     ROW},
};
TFC_REGISTER_OPS(io_example_rows);
