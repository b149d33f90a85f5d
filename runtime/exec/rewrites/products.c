// Rewrites of matrix products in float32 on CPU devices. Both are exact, because every element of a product is one
// chain of fused multiply-adds whatever is done around it (runtime/device/cpu/gemm/gemm.h):
//
// - sum: an AddN whose terms are products that nobody else reads (the weight gradients of an unrolled cell) becomes one
//   operation that adds them up tile by tile, left to right as AddN does, without writing any of them. Beside other
//   devices it is done in parts, each as soon as its own terms can be had: one operation would begin when the last
//   operand has come, and everybody waits for it. Terms on several devices, in a few runs, are parts too, each added
//   where it is placed, and the sum so far moves on.
// - pack: a matrix that several products of one device, alone or in sums, read on their right side (the weights of an
//   unrolled cell) is packed once per step, and they read the packed form.
#include <math.h>

#include "runtime/device/cpu/gemm/products.h"
#include "runtime/exec/rewrite.h"

// --- What both need to know of a product ---------------------------------------------------------------------------
struct product {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  bool packed_b; // what it reads on its right side is packed
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

static struct tfc_product operands(const struct product *p, const struct tfc_tensor *a, const struct tfc_tensor *b) {
  struct tfc_product out = {.a = matrix(a, p->transpose_a), .k = p->k};
  if (p->packed_b)
    out.packed_b = b->data;
  else
    out.b = matrix(b, p->transpose_b);
  return out;
}

static tfc_status out_of_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
}

// --- sum -----------------------------------------------------------------------------------------------------------
struct sum {
  int64_t count, m, n;
  bool goes_on; // input 0 is the sum of the terms before these
  struct product products[];
};

static tfc_status sum_kernel(struct tfc_kernel_ctx *ctx) {
  const struct sum *sum = ctx->state;
  struct tfc_product products[TFC_PRODUCTS_MOST];
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(sum->m, sum->n), &out));
  for (int64_t i = 0; i < sum->count; i++)
    products[i] = operands(&sum->products[i], ctx->inputs[sum->goes_on + 2 * i], ctx->inputs[sum->goes_on + 2 * i + 1]);
  if (sum->goes_on && out->data != ctx->inputs[0]->data) memcpy(out->data, ctx->inputs[0]->data, ctx->inputs[0]->size);
  return tfc_products_run(ctx, products, sum->count, sum->m, sum->n, sum->goes_on, out->data);
}

static const struct tfc_op_def sum_def = {.name = "_SumOfProducts",
                                          .inputs = "operands: N * float",
                                          .outputs = "sum: float",
                                          .attrs = "N: int",
                                          .kernel = sum_kernel};
static const struct tfc_op_def next_sum_def = {.name = "_AddProducts",
                                               .inputs = "sum_so_far: float, operands: N * float",
                                               .outputs = "sum: float",
                                               .attrs = "N: int",
                                               .flags = TFC_OP_INPLACE_FIRST,
                                               .kernel = sum_kernel};

static bool is_sum(const struct tfc_ir_op *op) {
  return !op->dead && (op->def == &sum_def || op->def == &next_sum_def);
}

// The product behind term `input` of an AddN, if the sum is its only reader.
static bool is_term(const struct tfc_ir *ir, const struct tfc_ir_readers *readers, const struct tfc_ir_op *add,
                    uint32_t input, struct product *out, uint32_t *out_op) {
  uint32_t v = add->inputs[input].value;
  const struct tfc_ir_value *value = &ir->values.data[v];
  if (value->kind != TFC_IR_OP || value->fetched || value->op == TFC_NONE32 || add->inputs[input].view) return false;
  if (readers->begin[v + 1] - readers->begin[v] != 1) return false;
  *out_op = value->op;
  return is_product(ir, &ir->ops.data[value->op], out);
}

// A sum in the making.
struct summing {
  struct tfc_ir_op add;
  struct product products[TFC_PRODUCTS_MOST];
  uint32_t terms[TFC_PRODUCTS_MOST]; // operations
  double from[TFC_PRODUCTS_MOST];    // when a term can be had at the earliest
};

// One operation for terms [begin, end); *sum: the value that it goes on from (TFC_NONE32: none), then its own.
static tfc_status add_part(struct tfc_ir *ir, const struct summing *g, uint32_t begin, uint32_t end, uint32_t *sum) {
  bool goes_on = *sum != TFC_NONE32, last = end == g->add.input_count;
  uint32_t count = end - begin, latest = begin;
  struct sum *state = tfc_arena_zalloc(&ir->arena, sizeof *state + count * sizeof *state->products);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 2 * count + goes_on);
  uint32_t *outputs = last ? g->add.outputs : TFC_ARENA_NEW(&ir->arena, uint32_t);
  if (!state || !inputs || !outputs) return out_of_memory();
  struct tfc_ir_op op = g->add;
  op.cost_us = 0;
  op.device = ir->ops.data[g->terms[begin]].device;
  if (goes_on) inputs[0] = (struct tfc_ir_input){.value = *sum, .variable = TFC_NONE32};
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_ir_op *term = &ir->ops.data[g->terms[begin + i]];
    state->products[i] = g->products[begin + i];
    inputs[goes_on + 2 * i] = term->inputs[0];
    inputs[goes_on + 2 * i + 1] = term->inputs[1];
    op.cost_us += term->cost_us;
    if (g->from[begin + i] >= g->from[latest]) latest = begin + i;
  }
  if (!last) {
    struct tfc_ir_value value = ir->values.data[g->add.outputs[0]];
    op.node = ir->ops.data[g->terms[latest]].node;
    value.origin = ir->values.data[ir->ops.data[g->terms[latest]].outputs[0]].origin;
    value.fetched = false;
    TFC_RETURN_IF_ERROR(tfc_ir_add_value(ir, &value, &outputs[0]));
  }
  state->count = count, state->goes_on = goes_on, state->m = g->products[0].m, state->n = g->products[0].n;
  op.def = goes_on ? &next_sum_def : &sum_def;
  op.inputs = inputs, op.input_count = 2 * count + goes_on;
  op.outputs = outputs;
  op.prepared = true;
  op.state = state;
  uint32_t id;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &id));
  for (uint32_t i = begin; i < end; i++) tfc_ir_replace(ir, g->terms[i], id);
  *sum = outputs[0];
  return NULL;
}

// In how many parts: each but the first reads and writes the sum again, 8 bytes an element at some 10 GB/s, where a
// product takes 2 k FLOP an element at some 100 GFLOP/s. An eighth more work is worth it, if the terms do not all come
// at the end.
static uint32_t parts_of(const struct summing *g) {
  double k = 0;
  for (uint32_t i = 0; i < g->add.input_count; i++) k += (double)g->products[i].k;
  double most = 1 + 0.125 * 0.02 * k / 0.8;
  uint32_t parts = most < 4 ? (uint32_t)(most + 0.5) : 4;
  return parts < g->add.input_count / 2 ? parts : g->add.input_count / 2;
}

// Ends of the parts, by count of terms: where the device changes, and what `parts_of` says for what is not all late.
// How many, or 0 where that is so many that the sum had better stay as it is.
static uint32_t divide(const struct tfc_ir *ir, const struct summing *g, uint32_t *ends) {
  uint32_t count = g->add.input_count, parts = ir->in_parts ? parts_of(g) : 1, most = parts + 3, n = 0, begin = 0;
  double latest = 0;
  for (uint32_t i = 0; i < count; i++) latest = fmax(latest, g->from[i]);
  for (uint32_t i = 1, part = 1; i <= count; i++) {
    bool elsewhere = i < count && ir->ops.data[g->terms[i]].device != ir->ops.data[g->terms[i - 1]].device;
    bool due = part < parts && i == count * part / parts;
    double all = 0; // when this part could be done
    for (uint32_t k = begin; k < i; k++) all = fmax(all, g->from[k]);
    part += due;
    if (!elsewhere && !(due && all < latest) && i < count) continue;
    if (n == most) return 0;
    ends[n++] = begin = i;
  }
  return n;
}

static tfc_status fuse_sum(struct tfc_ir *ir, const struct tfc_ir_readers *readers, const double *end, uint32_t id,
                           struct summing *g) {
  g->add = ir->ops.data[id];
  uint32_t count = g->add.input_count, sum = TFC_NONE32, ends[TFC_PRODUCTS_MOST];
  if (count < 2 || count > TFC_PRODUCTS_MOST) return NULL;
  for (uint32_t i = 0; i < count; i++) {
    struct product *p = &g->products[i];
    if (!is_term(ir, readers, &g->add, i, p, &g->terms[i])) return NULL;
    if (p->m != g->products[0].m || p->n != g->products[0].n) return NULL;
    g->from[i] = end[g->terms[i]];
  }
  uint32_t parts = divide(ir, g, ends);
  if (!parts || ir->ops.data[g->terms[count - 1]].device != g->add.device) return NULL;
  for (uint32_t part = 0; part < parts; part++)
    TFC_RETURN_IF_ERROR(add_part(ir, g, part ? ends[part - 1] : 0, ends[part], &sum));
  tfc_ir_replace(ir, id, ir->values.data[sum].op);
  return NULL;
}

// When each operation could end at the earliest, on as many devices as one likes. Operations are in topological order.
static double *earliest_ends(struct tfc_ir *ir, struct tfc_arena *arena) {
  double *end = TFC_ARENA_ARRAY(arena, double, ir->ops.count + 1);
  for (size_t i = 0; end && i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    double start = 0;
    for (uint32_t k = 0; k < op->input_count; k++) {
      uint32_t v = op->inputs[k].value, from = v == TFC_NONE32 ? TFC_NONE32 : ir->values.data[v].op;
      if (from != TFC_NONE32 && from < i) start = fmax(start, end[from]);
    }
    end[i] = start + op->cost_us;
  }
  return end;
}

static tfc_status sum_products(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct tfc_arena arena = {0};
  struct tfc_ir_readers readers;
  double *end = earliest_ends(ir, &arena);
  struct summing *g = TFC_ARENA_NEW(&arena, struct summing);
  if (!end || !g) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_ir_readers(ir, &arena, &readers));
  for (uint32_t i = 0, count = (uint32_t)ir->ops.count; i < count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead || op->joint || op->prepared || !op->def || strcmp(op->def->name, "AddN") != 0) continue;
    TFC_TRY(s, fuse_sum(ir, &readers, end, i, g));
  }
out:
  tfc_arena_deinit(&arena);
  return s;
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
  struct tfc_product product = operands(p, ctx->inputs[0], ctx->inputs[1]);
  return tfc_products_run(ctx, &product, 1, p->m, p->n, false, out->data);
}

static const struct tfc_op_def pack_def = {
    .name = "_PackMatrix", .inputs = "b: float", .outputs = "packed: float", .attrs = "", .kernel = pack_kernel};
static const struct tfc_op_def packed_product_def = {.name = "_PackedMatMul",
                                                     .inputs = "a: float, packed: float",
                                                     .outputs = "product: float",
                                                     .attrs = "",
                                                     .kernel = packed_product_kernel};

// Products of an operation, and what the i-th reads on its right side: a product alone, or the terms of a sum.
static uint32_t product_count(const struct tfc_ir *ir, const struct tfc_ir_op *op) {
  struct product p;
  if (is_sum(op)) return op->input_count / 2;
  return is_product(ir, op, &p);
}
static const struct tfc_ir_input *product_at(const struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t i,
                                             struct product *out) {
  if (is_sum(op))
    *out = ((const struct sum *)op->state)->products[i];
  else
    is_product(ir, op, out);
  return &op->inputs[op->input_count % 2 + 2 * i + 1];
}

// The operation that packs `b` of product `p`; *out_value is the packed matrix.
static tfc_status add_pack(struct tfc_ir *ir, uint32_t reader, const struct tfc_ir_input *b, const struct product *p,
                           uint32_t *out_value) {
  struct tfc_ir_op like = ir->ops.data[reader];
  struct tfc_ir_value value = {
      .kind = TFC_IR_OP,
      .op = TFC_NONE32,
      .origin = ir->values.data[b->value].origin,
      .dtype = TFC_FLOAT,
      .shape = TFC_SHAPE((int64_t)(tfc_gemm_packed_bytes(p->k, p->n) / sizeof(float))),
      .bytes = tfc_gemm_packed_bytes(p->k, p->n),
      .planned = true,
      .variable = TFC_NONE32,
      .alias = TFC_NONE32,
  };
  struct tfc_ir_input *inputs = TFC_ARENA_NEW(&ir->arena, struct tfc_ir_input);
  uint32_t *outputs = TFC_ARENA_NEW(&ir->arena, uint32_t);
  struct product *state = TFC_ARENA_NEW(&ir->arena, struct product);
  if (!inputs || !outputs || !state) return out_of_memory();
  *inputs = *b;
  *state = *p;
  TFC_RETURN_IF_ERROR(tfc_ir_add_value(ir, &value, out_value));
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

// `packed[i]`: the packed matrix that the i-th product is to read, TFC_NONE32 for its own.
static tfc_status use_packed(struct tfc_ir *ir, uint32_t old, const uint32_t *packed) {
  struct tfc_ir_op op = ir->ops.data[old];
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, op.input_count);
  uint32_t count = op.input_count / 2;
  struct sum *sum = tfc_arena_zalloc(&ir->arena, sizeof *sum + count * sizeof *sum->products);
  if (!inputs || !sum) return out_of_memory();
  memcpy(inputs, op.inputs, op.input_count * sizeof *inputs);
  for (uint32_t i = 0; i < count; i++) {
    product_at(ir, &op, i, &sum->products[i]);
    if (packed[i] == TFC_NONE32) continue;
    sum->products[i].packed_b = true;
    inputs[op.input_count % 2 + 2 * i + 1] = (struct tfc_ir_input){.value = packed[i], .variable = TFC_NONE32};
  }
  sum->count = count, sum->m = sum->products[0].m, sum->n = sum->products[0].n;
  sum->goes_on = op.input_count % 2;
  op.state = is_sum(&op) ? (void *)sum : sum->products;
  if (!is_sum(&op)) op.def = &packed_product_def;
  op.inputs = inputs;
  op.prepared = true;
  uint32_t id;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &id));
  tfc_ir_replace(ir, old, id);
  return NULL;
}

// A right side that is read from several places. One value seen through different views has different sizes: the
// first one counts.
struct shared {
  uint64_t key; // value, device, transposed
  int64_t k, n;
  uint32_t count, packed;
  uint32_t node; // that reads it first
};
typedef TFC_ARRAY(struct shared) shared_array;

static uint64_t shared_key(const struct tfc_ir_op *op, const struct tfc_ir_input *b, const struct product *p) {
  return ((uint64_t)b->value << 17) | ((uint64_t)op->device << 1) | p->transpose_b;
}

static tfc_status count_readers(const struct tfc_ir *ir, struct tfc_intmap *index, shared_array *all) {
  for (uint32_t i = 0; i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    for (uint32_t t = 0, terms = product_count(ir, op); t < terms; t++) {
      struct product p;
      const struct tfc_ir_input *b = product_at(ir, op, t, &p);
      bool found;
      uint64_t *slot = tfc_intmap_put(index, shared_key(op, b, &p), all->count, &found);
      struct shared fresh = {.k = p.k, .n = p.n, .packed = TFC_NONE32};
      if (!slot || (!found && !tfc_array_push(all, fresh))) return out_of_memory();
      struct shared *shared = &all->data[*slot];
      shared->count += shared->k == p.k && shared->n == p.n;
    }
  }
  return NULL;
}

static tfc_status pack(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct tfc_intmap index = {0};
  shared_array all = {0};
  TFC_TRY(s, count_readers(ir, &index, &all));
  for (uint32_t i = 0, count = (uint32_t)ir->ops.count; i < count; i++) {
    uint32_t packed[TFC_PRODUCTS_MOST], used = 0, terms = product_count(ir, &ir->ops.data[i]);
    for (uint32_t t = 0; t < terms; t++) {
      struct product p;
      const struct tfc_ir_op *op = &ir->ops.data[i];
      const struct tfc_ir_input b = *product_at(ir, op, t, &p);
      struct shared *shared = &all.data[*tfc_intmap_get(&index, shared_key(op, &b, &p))];
      packed[t] = TFC_NONE32;
      if (shared->count < 2 || shared->k != p.k || shared->n != p.n) continue;
      if (shared->packed == TFC_NONE32) {
        TFC_TRY(s, add_pack(ir, i, &b, &p, &shared->packed));
        shared->node = ir->ops.data[i].node;
      } else if (!tfc_array_push(&ir->shared, (struct tfc_ir_shared){ir->ops.data[i].node, shared->node,
                                                                     tfc_gemm_packed_bytes(p.k, p.n)})) {
        TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
      }
      packed[t] = shared->packed;
      used++;
    }
    if (used) TFC_TRY(s, use_packed(ir, i, packed));
  }
out:
  tfc_intmap_deinit(&index);
  tfc_array_free(&all);
  return s;
}

static const struct tfc_rewrite rows[] = {
    {"sum of products", 10, true, sum_products},
    {"pack weights", 20, true, pack},
};
TFC_REWRITES(rows);
