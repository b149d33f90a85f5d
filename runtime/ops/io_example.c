// tf.Example messages into tensors: ParseExample, ParseExampleV2, ParseSingleExample.
//
// Every key becomes a column: the values of all messages one after the other, and where each message's end. Columns
// then become sparse (index, value, shape), dense (of a fixed shape, or padded to the longest) or ragged (values,
// splits) outputs. Of a key that a message has twice the last one counts; a feature without a list is absent.
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/wire.h"
#include "runtime/ops/array_copy.h"
#include "runtime/ops/math_row.h"

enum kind { SPARSE, DENSE, RAGGED };
struct column {
  enum kind kind;
  tfc_str key;
  tfc_dtype dtype;
  void *data; // float, int64_t or tfc_str (within the messages)
  size_t count, capacity;
  int64_t *ends; // [messages]
  bool *there;   // [messages]
};

static size_t element_size(tfc_dtype t) {
  return t == TFC_FLOAT ? sizeof(float) : t == TFC_INT64 ? sizeof(int64_t) : sizeof(tfc_str);
}
static void *column_next(struct column *c) {
  size_t size = element_size(c->dtype);
  if (c->count == c->capacity) {
    size_t more = c->capacity ? 2 * c->capacity : 16;
    void *grown = realloc(c->data, more * size);
    if (!grown) return NULL;
    c->data = grown;
    c->capacity = more;
  }
  return (char *)c->data + size * c->count++;
}
static tfc_status put(struct column *c, uint64_t bits, tfc_str bytes) {
  void *place = column_next(c);
  if (!place) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  if (c->dtype == TFC_FLOAT) {
    uint32_t word = (uint32_t)bits;
    memcpy(place, &word, sizeof word);
  } else if (c->dtype == TFC_INT64) {
    memcpy(place, &bits, sizeof bits);
  } else {
    memcpy(place, &bytes, sizeof bytes);
  }
  return NULL;
}

// --- Messages --------------------------------------------------------------------------------------------------------
static tfc_status broken(const struct tfc_wire *w, int64_t message) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "Could not parse example input, value %lld: %s", (long long)message,
                         w->error);
}
// The values of a list message (field 1, packed or not) go to the column.
static tfc_status read_list(struct column *c, tfc_str list, int64_t message) {
  struct tfc_wire w = tfc_wire_of(list);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 1) continue;
    if (c->dtype == TFC_STRING || f.type != TFC_WIRE_BYTES) {
      bool fits = c->dtype == TFC_STRING  ? f.type == TFC_WIRE_BYTES
                  : c->dtype == TFC_FLOAT ? f.type == TFC_WIRE_32
                                          : f.type == TFC_WIRE_VARINT;
      if (!fits) {
        w.error = "a value has another type than its list";
        break;
      }
      TFC_RETURN_IF_ERROR(put(c, f.value, f.bytes));
      continue;
    }
    struct tfc_wire packed = tfc_wire_of(f.bytes);
    while (packed.at != packed.end && !packed.error) {
      uint64_t value = 0;
      if (c->dtype == TFC_FLOAT) {
        tfc_str four;
        uint32_t word;
        if (!tfc_wire_take(&packed, sizeof word, &four)) break;
        memcpy(&word, four.data, sizeof word);
        value = word;
      } else if (!tfc_wire_varint(&packed, &value)) {
        break;
      }
      TFC_RETURN_IF_ERROR(put(c, value, (tfc_str){NULL, 0}));
    }
    if (packed.error) w.error = packed.error;
  }
  return w.error ? broken(&w, message) : NULL;
}
// A Feature: its list is field 1 (bytes), 2 (floats) or 3 (whole numbers).
static tfc_status read_feature(struct column *c, tfc_str feature, int64_t message) {
  static const tfc_dtype types[4] = {TFC_DTYPE_NONE, TFC_STRING, TFC_FLOAT, TFC_INT64};
  struct tfc_wire w = tfc_wire_of(feature);
  struct tfc_field f;
  tfc_str list = {NULL, 0};
  tfc_dtype type = TFC_DTYPE_NONE;
  while (tfc_wire_next(&w, &f))
    if (f.number >= 1 && f.number <= 3 && f.type == TFC_WIRE_BYTES) type = types[f.number], list = f.bytes;
  if (w.error) return broken(&w, message);
  if (type == TFC_DTYPE_NONE) return NULL;
  if (type != c->dtype)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "Key: %.*s.  Data types don't match. Data type: %s but expected type: %s",
                           TFC_STR_ARG(c->key), tfc_dtype_name(type), tfc_dtype_name(c->dtype));
  c->there[message] = true;
  return read_list(c, list, message);
}
static bool same(tfc_str a, tfc_str b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
// One Example: field 1 holds Features, whose field 1 are pairs of a key (1) and a Feature (2). found: [count]
static tfc_status read_example(struct column *columns, uint32_t count, tfc_str *found, tfc_str example,
                               int64_t message) {
  struct tfc_wire w = tfc_wire_of(example);
  struct tfc_field f, entry, part;
  for (uint32_t i = 0; i < count; i++) found[i] = (tfc_str){NULL, 0};
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 1 || f.type != TFC_WIRE_BYTES) continue;
    struct tfc_wire features = tfc_wire_of(f.bytes);
    while (tfc_wire_next(&features, &entry)) {
      if (entry.number != 1 || entry.type != TFC_WIRE_BYTES) continue;
      struct tfc_wire pair = tfc_wire_of(entry.bytes);
      tfc_str key = {NULL, 0}, value = {"", 0};
      while (tfc_wire_next(&pair, &part)) {
        if (part.type != TFC_WIRE_BYTES) continue;
        if (part.number == 1) key = part.bytes;
        if (part.number == 2) value = part.bytes;
      }
      if (pair.error) return broken(&pair, message);
      for (uint32_t i = 0; i < count; i++)
        if (same(columns[i].key, key)) found[i] = value;
    }
    if (features.error) return broken(&features, message);
  }
  if (w.error) return broken(&w, message);
  for (uint32_t i = 0; i < count; i++) {
    if (found[i].data) TFC_RETURN_IF_ERROR(read_feature(&columns[i], found[i], message));
    columns[i].ends[message] = (int64_t)columns[i].count;
  }
  return NULL;
}

// --- Outputs ---------------------------------------------------------------------------------------------------------
static tfc_status copy_values(const struct column *c, int64_t from, int64_t n, struct tfc_tensor *y, int64_t at) {
  if (c->dtype != TFC_STRING) {
    size_t size = element_size(c->dtype);
    if (n) memcpy((char *)y->data + (size_t)at * size, (const char *)c->data + (size_t)from * size, (size_t)n * size);
    return NULL;
  }
  for (int64_t i = 0; i < n; i++)
    if (!tfc_tensor_set_string(y, at + i, ((const tfc_str *)c->data)[from + i]))
      return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  return NULL;
}
static int64_t length_of(const struct column *c, int64_t message) {
  return c->ends[message] - (message ? c->ends[message - 1] : 0);
}
// messages < 0: one message that is no batch
static tfc_status sparse_outputs(struct tfc_kernel_ctx *ctx, const struct column *c, int64_t messages, uint32_t first,
                                 uint32_t step) {
  struct tfc_tensor *at = NULL, *values = NULL, *dims = NULL;
  int64_t count = (int64_t)c->count, batch = messages < 0 ? 1 : messages, longest = 0;
  int rank = messages < 0 ? 1 : 2;
  struct tfc_shape places = TFC_SHAPE(count, rank), list = TFC_SHAPE(count), two = TFC_SHAPE(rank);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first, TFC_INT64, &places, &at));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first + step, c->dtype, &list, &values));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first + 2 * step, TFC_INT64, &two, &dims));
  int64_t *to = at->data, *out = dims->data;
  for (int64_t m = 0; m < batch; m++)
    for (int64_t i = 0, n = length_of(c, m); i < n; i++) {
      if (rank == 2) *to++ = m;
      *to++ = i;
      if (i + 1 > longest) longest = i + 1;
    }
  if (rank == 2) *out++ = batch;
  *out = longest;
  return copy_values(c, 0, count, values, 0);
}
static tfc_status dense_output(struct tfc_kernel_ctx *ctx, const struct column *c, const struct tfc_shape *shape,
                               const struct tfc_tensor *otherwise, int64_t messages, uint32_t output) {
  int64_t batch = messages < 0 ? 1 : messages, each = 1, longest = 0;
  bool padded = shape->rank > 0 && shape->dims[0] < 0;
  struct tfc_shape full = *shape;
  struct tfc_tensor *y = NULL;
  for (int d = padded; d < shape->rank; d++) each *= shape->dims[d];
  for (int64_t m = 0; m < batch; m++) {
    int64_t n = length_of(c, m);
    if (padded) {
      TFC_KERNEL_CHECK(each > 0 && n % each == 0,
                       "Key: %.*s, Index: %lld.  Number of values (%lld) is not a multiple of stride length (%lld)",
                       TFC_STR_ARG(c->key), (long long)m, (long long)n, (long long)each);
      if (n / each > longest) longest = n / each;
    } else if (c->there[m]) {
      TFC_KERNEL_CHECK(n == each,
                       "Key: %.*s, Index: %lld.  Number of %s values != expected.  Values size: %lld, not %lld",
                       TFC_STR_ARG(c->key), (long long)m, tfc_dtype_name(c->dtype), (long long)n, (long long)each);
    } else {
      TFC_KERNEL_CHECK(tfc_tensor_elements(otherwise) == each,
                       "Index: %lld.  Feature: %.*s (data type: %s) is required but could not be found.", (long long)m,
                       TFC_STR_ARG(c->key), tfc_dtype_name(c->dtype));
    }
  }
  if (padded) {
    full.dims[0] = longest;
    each *= longest;
    TFC_KERNEL_CHECK(messages < 0 || tfc_tensor_elements(otherwise) == 1,
                     "Key: %.*s: the default of a feature of variable length must be one value", TFC_STR_ARG(c->key));
  }
  if (messages >= 0) {
    memmove(full.dims + 1, full.dims, (size_t)full.rank * sizeof *full.dims);
    full.dims[0] = batch;
    full.rank++;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, output, c->dtype, &full, &y));
  for (int64_t m = 0; m < batch; m++) {
    int64_t n = length_of(c, m), from = m ? c->ends[m - 1] : 0;
    if (!padded && !c->there[m]) {
      TFC_RETURN_IF_ERROR(ops_copy_elements(y, m * each, otherwise, 0, each));
      continue;
    }
    TFC_RETURN_IF_ERROR(copy_values(c, from, n, y, m * each));
    if (n < each) TFC_RETURN_IF_ERROR(ops_fill_with(y, m * each + n, each - n, otherwise, 0));
  }
  return NULL;
}
static tfc_status ragged_outputs(struct tfc_kernel_ctx *ctx, const struct column *c, int64_t messages, tfc_dtype split,
                                 uint32_t values_at, uint32_t splits_at) {
  struct tfc_tensor *values = NULL, *splits = NULL;
  struct tfc_shape list = TFC_SHAPE((int64_t)c->count), ends = TFC_SHAPE(messages < 0 ? 0 : messages + 1);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, values_at, c->dtype, &list, &values));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, splits_at, split, &ends, &splits));
  for (int64_t m = 0; m <= messages; m++) {
    int64_t end = m ? c->ends[m - 1] : 0;
    if (split == TFC_INT32)
      ((int32_t *)splits->data)[m] = (int32_t)end;
    else
      ((int64_t *)splits->data)[m] = end;
  }
  return copy_values(c, 0, (int64_t)c->count, values, 0);
}

// --- What is asked for -----------------------------------------------------------------------------------------------
struct plan {
  uint32_t sparse, dense, ragged;                  // how many
  const struct tfc_attr *sparse_keys, *dense_keys; // of ParseSingleExample
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
// Key i of a vector input; or of V1's scalar inputs from `input` on; or of an attribute.
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
  struct column *columns = calloc(count + 1, sizeof *columns);
  tfc_str *found = calloc(count + 1, sizeof *found);
  if (!columns || !found) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  uint32_t first_dense = p->version == 0 ? 1 : p->version == 1 ? 2 + p->sparse + p->dense : 5;
  for (uint32_t i = 0; i < count; i++) {
    struct column *c = &columns[i];
    uint32_t d = i - p->sparse, r = d - p->dense;
    if (i < p->sparse) {
      c->kind = SPARSE;
      c->dtype = p->sparse_types[i];
      TFC_TRY(s, key_of(ctx, p, p->sparse_keys, 2, i, p->sparse, &c->key));
    } else if (d < p->dense) {
      c->kind = DENSE;
      c->dtype = p->dense_types[d];
      TFC_TRY(s, key_of(ctx, p, p->dense_keys, p->version == 1 ? 2 + p->sparse : 3, d, p->dense, &c->key));
      if (ctx->inputs[first_dense + d]->dtype != c->dtype)
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the default of feature %.*s has another type", TFC_STR_ARG(c->key));
    } else {
      c->kind = RAGGED;
      c->dtype = p->ragged_types[r];
      TFC_TRY(s, key_of(ctx, p, NULL, 4, r, p->ragged, &c->key));
    }
    c->ends = calloc((size_t)batch + 1, sizeof *c->ends);
    c->there = calloc((size_t)batch + 1, sizeof *c->there);
    if (!c->ends || !c->there) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  }
  for (int64_t m = 0; m < batch; m++)
    TFC_TRY(s, read_example(columns, count, found, tfc_tensor_get_string(serialized, m), m));
  int64_t messages = serialized->shape.rank == 0 ? -1 : batch;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t d = i - p->sparse, r = d - p->dense;
    if (columns[i].kind == SPARSE)
      TFC_TRY(s, sparse_outputs(ctx, &columns[i], messages, i, p->sparse));
    else if (columns[i].kind == DENSE)
      TFC_TRY(s,
              dense_output(ctx, &columns[i], &p->shapes[d], ctx->inputs[first_dense + d], messages, 3 * p->sparse + d));
    else
      TFC_TRY(s, ragged_outputs(ctx, &columns[i], messages, p->split_types[r], 3 * p->sparse + p->dense + r,
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
