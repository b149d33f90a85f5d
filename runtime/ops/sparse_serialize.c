// Operations that store a sparse tensor as three strings (tensor messages) or three variants: SerializeSparse,
// SerializeManySparse, DeserializeSparse, DeserializeManySparse.
#include <stdlib.h>

#include "runtime/graph/export_attr.h"
#include "runtime/graph/import.h"
#include "runtime/ops/data_variant.h"
#include "runtime/ops/sparse_parts.h"

// A tensor inside a variant.
struct boxed {
  struct tfc_object object;
  struct tfc_tensor value;
};
static void boxed_destroy(struct tfc_object *self) {
  tfc_tensor_release(&((struct boxed *)self)->value);
  free(self);
}
static const struct tfc_object_type boxed_type = {.name = "tensor", .destroy = boxed_destroy};

static tfc_status box(struct tfc_tensor *out, int64_t at, const struct tfc_tensor *value) {
  struct boxed *b = calloc(1, sizeof *b);
  if (!b) return tfc_status_no_memory(NULL);
  b->object = (struct tfc_object){.type = &boxed_type, .references = 1};
  tfc_tensor_share(value, &b->value);
  ((struct tfc_object **)out->data)[at] = &b->object;
  return NULL;
}

// TensorFlow writes the strings of these messages as one run of bytes after their lengths, while other messages list
// them.
static void put_strings(struct tfc_text *out, const struct tfc_tensor *t) {
  struct tfc_text content = {0};
  int64_t n = tfc_tensor_elements(t);
  for (int64_t i = 0; i < n; i++) tfc_wire_put_varint(&content, tfc_tensor_get_string(t, i).size);
  for (int64_t i = 0; i < n; i++) {
    tfc_str s = tfc_tensor_get_string(t, i);
    if (s.size) tfc_text_add(&content, s);
  }
  tfc_wire_put_int(out, 1, TFC_STRING);
  tfc_wire_put_shape(out, 2, &t->shape);
  if (n) tfc_wire_put_bytes(out, 4, tfc_text_view(&content));
  out->failed |= content.failed;
  tfc_text_deinit(&content);
}
static tfc_status put_message(struct tfc_tensor *out, int64_t at, const struct tfc_tensor *value) {
  struct tfc_text text = {0};
  tfc_status s = NULL;
  if (value->dtype == TFC_STRING)
    put_strings(&text, value);
  else
    tfc_wire_put_tensor_fields(&text, value);
  s = tfc_tensor_set_text(out, at, &text);
  tfc_text_deinit(&text);
  return s;
}

static tfc_status put_part(struct tfc_tensor *out, int64_t at, const struct ops_sparse_part *p) {
  tfc_status (*put)(struct tfc_tensor *, int64_t, const struct tfc_tensor *) =
      out->dtype == TFC_STRING ? put_message : box;
  TFC_RETURN_IF_ERROR(put(out, at, &p->at));
  TFC_RETURN_IF_ERROR(put(out, at + 1, &p->values));
  return put(out, at + 2, &p->dims);
}

static tfc_status check_values(const struct tfc_kernel_ctx *ctx, tfc_dtype out) {
  tfc_dtype t = ctx->inputs[1]->dtype;
  if (out == TFC_VARIANT || tfc_dtype_is_plain(t) || t == TFC_STRING) return NULL;
  return tfc_status_make(TFC_UNIMPLEMENTED, "values of %s cannot be serialized to strings", tfc_dtype_name(t));
}
static tfc_status serialize(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse_part p = {0};
  struct tfc_tensor *y = NULL;
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_RETURN_IF_ERROR(check_values(ctx, type));
  TFC_RETURN_IF_ERROR(ops_sparse_part_inputs(ctx, &p));
  tfc_status s = tfc_kernel_output(ctx, 0, type, &TFC_SHAPE(3), &y);
  if (!s) s = put_part(y, 0, &p);
  ops_sparse_part_release(&p);
  return s;
}
static tfc_status serialize_many(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  struct tfc_tensor *y = NULL;
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  int64_t at = 0;
  TFC_RETURN_IF_ERROR(check_values(ctx, type));
  TFC_RETURN_IF_ERROR(ops_sparse_rows(ctx, &x));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &TFC_SHAPE(x.dims[0], 3), &y));
  for (int64_t row = 0; row < x.dims[0]; row++) {
    struct ops_sparse_part p = {0};
    TFC_RETURN_IF_ERROR(ops_sparse_row(&x, row, &at, &p));
    tfc_status s = put_part(y, 3 * row, &p);
    ops_sparse_part_release(&p);
    if (s) return s;
  }
  return NULL;
}

// --- Deserialising -------------------------------------------------------------------------------------------------
static tfc_status get_tensor(const struct tfc_tensor *x, int64_t at, tfc_dtype type, struct tfc_tensor *out) {
  if (x->dtype == TFC_VARIANT) {
    struct tfc_object *o = ((struct tfc_object *const *)x->data)[at];
    TFC_KERNEL_CHECK(o && o->type == &boxed_type, "Could not get a tensor from serialized_sparse[%lld, %lld]",
                     (long long)(at / 3), (long long)(at % 3));
    tfc_tensor_share(&((struct boxed *)o)->value, out);
    return NULL;
  }
  struct tfc_graph *g = NULL;
  const struct tfc_tensor *tensor = NULL;
  tfc_status s = tfc_graph_parse_tensor(tfc_tensor_get_string(x, at), type, "serialized_sparse", &g, &tensor);
  if (s)
    s = tfc_status_annotate(s, "Could not parse serialized_sparse[%lld, %lld]", (long long)(at / 3),
                            (long long)(at % 3));
  else
    s = tfc_tensor_clone(tensor, out);
  tfc_graph_release(g);
  return s;
}
static tfc_status get_part(const struct tfc_tensor *x, int64_t i, tfc_dtype type, struct ops_sparse_part *out) {
  TFC_RETURN_IF_ERROR(get_tensor(x, 3 * i, TFC_INT64, &out->at));
  TFC_RETURN_IF_ERROR(get_tensor(x, 3 * i + 1, type, &out->values));
  TFC_RETURN_IF_ERROR(get_tensor(x, 3 * i + 2, TFC_INT64, &out->dims));
  return ops_sparse_part_check(out, i, type);
}

static tfc_status deserialize(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin + 1];
  struct tfc_shape outer = x->shape;
  char text[TFC_SHAPE_TEXT];
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(outer.rank > 0, "Serialized sparse should have non-zero rank %s", tfc_shape_show(&x->shape, text));
  TFC_KERNEL_CHECK(outer.dims[--outer.rank] == 3, "Serialized sparse should have 3 as the last dimension %s",
                   tfc_shape_show(&x->shape, text));
  int64_t count = tfc_shape_elements(&outer);
  TFC_KERNEL_CHECK(count > 0, "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension %s",
                   tfc_shape_show(&x->shape, text));
  struct ops_sparse_part *parts = calloc((size_t)count, sizeof *parts);
  if (!parts) return tfc_status_no_memory(NULL);
  for (int64_t i = 0; i < count; i++) TFC_TRY(s, get_part(x, i, type, &parts[i]));
  if (outer.rank > 0) {
    s = ops_sparse_stack(ctx, parts, count, &outer);
  } else {
    TFC_TRY(s, tfc_kernel_set_output(ctx, 0, &parts[0].at));
    TFC_TRY(s, tfc_kernel_set_output(ctx, 1, &parts[0].values));
    TFC_TRY(s, tfc_kernel_set_output(ctx, 2, &parts[0].dims));
  }
out:
  for (int64_t i = 0; i < count; i++) ops_sparse_part_release(&parts[i]);
  free(parts);
  return s;
}

// --- Shapes --------------------------------------------------------------------------------------------------------
static tfc_status shape_serialize(struct tfc_shape_ctx *ctx) {
  struct tfc_shape s;
  for (uint32_t i = 0; i < 3; i++) TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, i == 0 ? 2 : 1, &s));
  ctx->outputs[0] = tfc_str_is(ctx->node->op, "SerializeSparse") ? TFC_SHAPE(3) : TFC_SHAPE(TFC_DIM_UNKNOWN, 3);
  return NULL;
}
static tfc_status shape_deserialize(struct tfc_shape_ctx *ctx) {
  struct tfc_shape s;
  if (tfc_str_is(ctx->node->op, "DeserializeManySparse"))
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &s));
  else
    TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, &s));
  if (s.rank > 0 && s.dims[s.rank - 1] >= 0 && s.dims[s.rank - 1] != 3)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the last dimension must be 3, it is %lld",
                           (long long)s.dims[s.rank - 1]);
  ctx->outputs[0] = tfc_shape_unknown_of_rank(2);
  ctx->outputs[1] = ctx->outputs[2] = tfc_shape_unknown_of_rank(1);
  return NULL;
}

#define FLAGS (TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE)
#define SPARSE "sparse_indices: int64, sparse_values: T, sparse_shape: int64"
static const struct tfc_op_def sparse_serialize_rows[] = {
    {.name = "SerializeSparse",
     .inputs = SPARSE,
     .outputs = "serialized_sparse: out_type",
     .attrs = "T: type, out_type: {string, variant} = string",
     .flags = FLAGS,
     .shape = shape_serialize,
     .kernel = serialize,
     .samples = "int64[2,2]=[0,1,1,0], float[2], int64[2]=[2,3]; int64[1,1]=[4], string[1], int64[1]=[5]"},
    {.name = "SerializeManySparse",
     .inputs = SPARSE,
     .outputs = "serialized_sparse: out_type",
     .attrs = "T: type, out_type: {string, variant} = string",
     .flags = FLAGS,
     .shape = shape_serialize,
     .kernel = serialize_many,
     .samples = "int64[2,2]=[0,1,1,0], float[2], int64[2]=[2,3]"},
    {.name = "DeserializeSparse",
     .inputs = "serialized_sparse: Tserialized",
     .outputs = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     .attrs = "dtype: type, Tserialized: {string, variant} = string",
     .flags = FLAGS,
     .shape = shape_deserialize,
     .kernel = deserialize},
    {.name = "DeserializeManySparse",
     .inputs = "serialized_sparse: string",
     .outputs = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     .attrs = "dtype: type",
     .flags = FLAGS,
     .shape = shape_deserialize,
     .kernel = deserialize},
};
TFC_REGISTER_OPS(sparse_serialize_rows);
