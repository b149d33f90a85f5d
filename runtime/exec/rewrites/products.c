// Rewrites of matrix products in float32 on CPU devices. Both are exact, because every element of a product is one
// chain of fused multiply-adds whatever is done around it (runtime/device/cpu/gemm/gemm.h):
//
// - pack: a matrix that several products of one device read on their right side (the weights of an unrolled cell) is
//   packed once per step, and they read the packed form.
// - sum: an AddN whose terms are products that nobody else reads (the weight gradients of an unrolled cell) becomes one
//   operation that adds them up tile by tile, left to right as AddN does, without writing any of them.
#include "runtime/device/cpu/gemm/products.h"
#include "runtime/exec/rewrite.h"

// --- What both need to know of a product ---------------------------------------------------------------------------
struct product {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
};

static const struct tfc_shape *input_shape(const struct tfc_ir *ir, const struct tfc_ir_input *input) {
  return input->view ? input->view : &ir->values.data[input->value].shape;
}

// Can the host's kernels run on this device?
static bool runs_here(const struct tfc_ir *ir, uint16_t device) {
  const struct tfc_device_driver *driver = ir->devices[device]->driver;
  return driver == &tfc_driver_cpu || driver == &tfc_driver_emulated;
}

static bool is_product(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct product *out) {
  if (op->dead || op->joint || op->prepared || !op->def || strcmp(op->def->name, "MatMul") != 0) return false;
  if (!runs_here(ir, op->device) || op->input_count != 2 || op->output_count != 1) return false;
  const struct tfc_ir_value *b = &ir->values.data[op->inputs[1].value];
  const struct tfc_shape *sa = input_shape(ir, &op->inputs[0]), *sb = input_shape(ir, &op->inputs[1]);
  if (tfc_dtype_base(b->dtype) != TFC_FLOAT || sa->rank != 2 || sb->rank != 2) return false;
  if (!tfc_shape_is_static(sa) || !tfc_shape_is_static(sb)) return false;
  const struct tfc_node *node = &ir->graph->nodes[op->node];
  out->transpose_a = tfc_node_attr_bool(ir->graph, node, "transpose_a", false);
  out->transpose_b = tfc_node_attr_bool(ir->graph, node, "transpose_b", false);
  out->m = sa->dims[out->transpose_a], out->k = sa->dims[!out->transpose_a];
  out->n = sb->dims[!out->transpose_b];
  return out->m > 0 && out->n > 0 && out->k > 0 && sb->dims[out->transpose_b] == out->k;
}

static struct tfc_matrix matrix(const struct tfc_tensor *t, bool transpose) {
  int64_t columns = t->shape.dims[1];
  return (struct tfc_matrix){t->data, transpose ? 1 : columns, transpose ? columns : 1};
}

static tfc_status out_of_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
}

// --- pack ----------------------------------------------------------------------------------------------------------
static tfc_status pack_kernel(struct tfc_kernel_ctx *ctx) {
  const struct product *p = ctx->state;
  struct tfc_tensor *out = NULL;
  int64_t floats = (int64_t)(tfc_gemm_packed_bytes(p->k, p->n) / sizeof(float));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(floats), &out));
  tfc_products_pack(ctx, matrix(ctx->inputs[0], p->transpose_b), p->k, p->n, out->data);
  return NULL;
}

static tfc_status packed_product_kernel(struct tfc_kernel_ctx *ctx) {
  const struct product *p = ctx->state;
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(p->m, p->n), &out));
  struct tfc_product product = {
      .a = matrix(ctx->inputs[0], p->transpose_a), .packed_b = ctx->inputs[1]->data, .k = p->k};
  return tfc_products_run(ctx, &product, 1, p->m, p->n, out->data);
}

static const struct tfc_op_def pack_def = {
    .name = "_PackMatrix", .inputs = "b: float", .outputs = "packed: float", .attrs = "", .kernel = pack_kernel};
static const struct tfc_op_def packed_product_def = {.name = "_PackedMatMul",
                                                     .inputs = "a: float, packed: float",
                                                     .outputs = "product: float",
                                                     .attrs = "",
                                                     .kernel = packed_product_kernel};

static struct product *keep(struct tfc_ir *ir, const struct product *p) {
  struct product *copy = TFC_ARENA_NEW(&ir->arena, struct product);
  if (copy) *copy = *p;
  return copy;
}

// The operation that packs what `first` reads on its right side; *out_value is the packed matrix.
static tfc_status add_pack(struct tfc_ir *ir, uint32_t first, const struct product *p, uint32_t *out_value) {
  struct tfc_ir_op like = ir->ops.data[first];
  struct tfc_ir_value value = {
      .kind = TFC_IR_OP,
      .op = TFC_NONE32,
      .origin = ir->values.data[like.inputs[1].value].origin,
      .dtype = TFC_FLOAT,
      .shape = TFC_SHAPE((int64_t)(tfc_gemm_packed_bytes(p->k, p->n) / sizeof(float))),
      .bytes = tfc_gemm_packed_bytes(p->k, p->n),
      .planned = true,
      .variable = TFC_NONE32,
      .alias = TFC_NONE32,
  };
  TFC_RETURN_IF_ERROR(tfc_ir_add_value(ir, &value, out_value));
  struct tfc_ir_input *inputs = TFC_ARENA_NEW(&ir->arena, struct tfc_ir_input);
  uint32_t *outputs = TFC_ARENA_NEW(&ir->arena, uint32_t);
  struct product *state = keep(ir, p);
  if (!inputs || !outputs || !state) return out_of_memory();
  inputs[0] = like.inputs[1];
  outputs[0] = *out_value;
  struct tfc_ir_op op = {.node = like.node,
                         .def = &pack_def,
                         .device = like.device,
                         .inputs = inputs,
                         .input_count = 1,
                         .outputs = outputs,
                         .output_count = 1,
                         .prepared = true,
                         .state = state,
                         .cost_us = 1e6 * (double)value.bytes / 8e9};
  uint32_t id;
  return tfc_ir_add_op(ir, &op, &id);
}

static tfc_status use_packed(struct tfc_ir *ir, uint32_t old, const struct product *p, uint32_t packed) {
  struct tfc_ir_op like = ir->ops.data[old];
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 2);
  struct product *state = keep(ir, p);
  if (!inputs || !state) return out_of_memory();
  inputs[0] = like.inputs[0];
  inputs[1] = (struct tfc_ir_input){.value = packed, .variable = TFC_NONE32};
  struct tfc_ir_op op = like;
  op.def = &packed_product_def;
  op.inputs = inputs;
  op.prepared = true;
  op.state = state;
  uint32_t id;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &id));
  tfc_ir_replace(ir, old, id);
  return NULL;
}

static tfc_status pack(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct shared {
    uint32_t first, count, packed;
  };
  struct tfc_intmap index = {0};
  TFC_ARRAY(struct shared) shared = {0};
  TFC_ARRAY(uint32_t) of = {0}; // op -> shared
  size_t ops = ir->ops.count;
  if (!tfc_array_resize(&of, ops)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < ops; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    struct product p;
    of.data[i] = TFC_NONE32;
    if (!is_product(ir, op, &p)) continue;
    uint64_t key = ((uint64_t)op->inputs[1].value << 17) | ((uint64_t)op->device << 1) | p.transpose_b;
    bool found;
    uint64_t *slot = tfc_intmap_put(&index, key, shared.count, &found);
    if (!slot || (!found && !tfc_array_push(&shared, (struct shared){i, 0, TFC_NONE32})))
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    // One value seen through different views would have different sizes.
    struct product first;
    is_product(ir, &ir->ops.data[shared.data[*slot].first], &first);
    if (first.k != p.k || first.n != p.n) continue;
    of.data[i] = (uint32_t)*slot;
    shared.data[*slot].count++;
  }
  for (uint32_t i = 0; i < ops; i++) {
    struct shared *use = of.data[i] == TFC_NONE32 ? NULL : &shared.data[of.data[i]];
    struct product p;
    if (!use || use->count < 2 || !is_product(ir, &ir->ops.data[i], &p)) continue;
    if (use->packed == TFC_NONE32) TFC_TRY(s, add_pack(ir, use->first, &p, &use->packed));
    TFC_TRY(s, use_packed(ir, i, &p, use->packed));
  }
out:
  tfc_intmap_deinit(&index);
  tfc_array_free(&shared);
  tfc_array_free(&of);
  return s;
}

// --- sum -----------------------------------------------------------------------------------------------------------
struct sum {
  int64_t count, m, n;
  struct product products[];
};

static tfc_status sum_kernel(struct tfc_kernel_ctx *ctx) {
  const struct sum *sum = ctx->state;
  struct tfc_product products[TFC_PRODUCTS_MOST];
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(sum->m, sum->n), &out));
  for (int64_t i = 0; i < sum->count; i++) {
    const struct product *p = &sum->products[i];
    products[i] = (struct tfc_product){.a = matrix(ctx->inputs[2 * i], p->transpose_a),
                                       .b = matrix(ctx->inputs[2 * i + 1], p->transpose_b),
                                       .k = p->k};
  }
  return tfc_products_run(ctx, products, sum->count, sum->m, sum->n, out->data);
}

static const struct tfc_op_def sum_def = {.name = "_SumOfProducts",
                                          .inputs = "operands: N * float",
                                          .outputs = "sum: float",
                                          .attrs = "N: int",
                                          .kernel = sum_kernel};

// The product behind term `input` of an AddN, if the sum is its only reader.
static bool is_term(const struct tfc_ir *ir, const struct tfc_ir_readers *readers, const struct tfc_ir_op *add,
                    uint32_t input, struct product *out, uint32_t *out_op) {
  uint32_t v = add->inputs[input].value;
  const struct tfc_ir_value *value = &ir->values.data[v];
  if (value->kind != TFC_IR_OP || value->fetched || value->op == TFC_NONE32 || add->inputs[input].view) return false;
  if (readers->begin[v + 1] - readers->begin[v] != 1) return false;
  const struct tfc_ir_op *op = &ir->ops.data[value->op];
  *out_op = value->op;
  return op->device == add->device && is_product(ir, op, out);
}

static tfc_status fuse_sum(struct tfc_ir *ir, const struct tfc_ir_readers *readers, uint32_t id, bool *out_fused) {
  struct tfc_ir_op add = ir->ops.data[id];
  if (add.input_count < 2 || add.input_count > TFC_PRODUCTS_MOST) return NULL;
  struct sum *sum = tfc_arena_zalloc(&ir->arena, sizeof *sum + add.input_count * sizeof *sum->products);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 2 * add.input_count);
  uint32_t *terms = TFC_ARENA_ARRAY(&ir->arena, uint32_t, add.input_count);
  if (!sum || !inputs || !terms) return out_of_memory();
  double cost = 0;
  for (uint32_t i = 0; i < add.input_count; i++) {
    struct product *p = &sum->products[i];
    if (!is_term(ir, readers, &add, i, p, &terms[i])) return NULL;
    if (p->m != sum->products[0].m || p->n != sum->products[0].n) return NULL;
    const struct tfc_ir_op *term = &ir->ops.data[terms[i]];
    inputs[2 * i] = term->inputs[0];
    inputs[2 * i + 1] = term->inputs[1];
    cost += term->cost_us;
  }
  sum->count = add.input_count, sum->m = sum->products[0].m, sum->n = sum->products[0].n;
  struct tfc_ir_op op = add;
  op.def = &sum_def;
  op.inputs = inputs;
  op.input_count = 2 * add.input_count;
  op.prepared = true;
  op.state = sum;
  op.cost_us = cost;
  uint32_t fused;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &fused));
  for (uint32_t i = 0; i < add.input_count; i++) tfc_ir_replace(ir, terms[i], fused);
  tfc_ir_replace(ir, id, fused);
  *out_fused = true;
  return NULL;
}

static tfc_status sum_products(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct tfc_arena arena = {0};
  struct tfc_ir_readers readers;
  TFC_TRY(s, tfc_ir_readers(ir, &arena, &readers));
  for (uint32_t i = 0, count = (uint32_t)ir->ops.count; i < count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    bool fused = false;
    if (op->dead || op->joint || op->prepared || !op->def || strcmp(op->def->name, "AddN") != 0) continue;
    TFC_TRY(s, fuse_sum(ir, &readers, i, &fused));
  }
out:
  tfc_arena_deinit(&arena);
  return s;
}

static const struct tfc_rewrite rows[] = {
    {"sum of products", 10, true, sum_products},
    {"pack weights", 20, true, pack},
};
TFC_REWRITES(rows);
