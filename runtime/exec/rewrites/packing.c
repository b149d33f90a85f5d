// A matrix that several products of one device, alone or in sums, read as their right operand (the weights of an
// unrolled cell) is packed once per step, and these products read the packed form. The results are bit-identical,
// because the same numbers are multiplied. If rounding may change and the processor has a tile unit, the matrix is
// packed for that unit. In plans of several devices it is packed in pieces: a device packs while it waits, and a piece
// is short, so that an input that arrives meanwhile is not kept waiting.
#include "runtime/exec/rewrites/sums.h"

static size_t packed_bytes(const struct tfc_product_form *p) {
  return p->split_b ? tfc_split_packed_bytes(p->k, p->n) : tfc_gemm_packed_bytes(p->k, p->n);
}

struct pack_piece {
  struct tfc_product_form form;
  int64_t first, last; // rows of B that the piece packs, `last` excluded
};

static tfc_status pack_kernel(struct tfc_kernel_ctx *ctx) {
  const struct pack_piece *piece = ctx->state;
  const struct tfc_product_form *p = &piece->form;
  struct tfc_tensor *out = NULL;
  int64_t floats = (int64_t)(packed_bytes(p) / sizeof(float));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(floats), &out));
  struct tfc_matrix b = tfc_product_matrix(ctx->inputs[0], p->transpose_b);
  if (p->split_b) {
    tfc_split_pack_b(&(struct tfc_split_matrix){.matrix = b}, p->k, p->n, 0, tfc_split_sides(p->n), out->data);
  } else if (piece->first == 0 && piece->last == p->k) {
    tfc_products_pack(ctx, b, p->k, p->n, out->data);
  } else {
    if (ctx->input_count == 2 && ctx->inputs[1]->data != out->data) memcpy(out->data, ctx->inputs[1]->data, out->size);
    tfc_gemm_pack_part(b, p->k, p->n, piece->first, piece->last, 0, tfc_gemm_panels(p->n), out->data);
  }
  return NULL;
}

static tfc_status packed_product_kernel(struct tfc_kernel_ctx *ctx) {
  const struct tfc_product_form *p = ctx->state;
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(p->m, p->n), &out));
  struct tfc_product product = tfc_product_operands(p, 0, ctx->inputs[0], ctx->inputs[1]);
  return tfc_products_run(ctx, &product, 1, p->m, p->n, false, out->data);
}

static const struct tfc_op_def pack_def = {
    .name = "_PackMatrix", .inputs = "b: float", .outputs = "packed: float", .attrs = "", .kernel = pack_kernel};
static const struct tfc_op_def pack_on_def = {.name = "_PackMatrixOn",
                                              .inputs = "b: float, begun: float",
                                              .outputs = "packed: float",
                                              .attrs = "",
                                              .kernel = pack_kernel};
static const struct tfc_op_def packed_product_def = {.name = "_PackedMatMul",
                                                     .inputs = "a: float, packed: float",
                                                     .outputs = "product: float",
                                                     .attrs = "",
                                                     .kernel = packed_product_kernel};

// Lists the products of an operation: its only product, or the terms of a sum; returns their number (0: it computes
// none).
static uint32_t products_of(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_product_form *out) {
  if (!tfc_is_product_sum(op)) return tfc_is_product(ir, op, out);
  memcpy(out, ((const struct tfc_product_sum *)op->state)->products, op->input_count / 2 * sizeof *out);
  return op->input_count / 2;
}
// Returns the index of the input that is the right operand of the i-th product.
static uint32_t right_side(const struct tfc_ir_op *op, uint32_t i) {
  return op->input_count % 2 + 2 * i + 1;
}

// Adds one operation that packs some rows of `b`. *value: the packed matrix that it continues (TFC_NONE: it packs the
// first piece); on return, its output.
static tfc_status add_piece(struct tfc_ir *ir, uint32_t reader, const struct tfc_ir_input *b,
                            const struct pack_piece *piece, uint32_t *value) {
  static const uint32_t over_begun[] = {1u << 1};
  const bool goes_on = *value != TFC_NONE;
  const struct tfc_ir_op *like = &ir->ops.data[reader];
  const size_t bytes = packed_bytes(&piece->form);
  struct pack_piece *state = TFC_ARENA_NEW(&ir->arena, struct pack_piece);
  if (!state) return tfc_status_no_memory("planning a step");
  *state = *piece;
  const struct tfc_ir_tensor packed = {ir->values.data[b->value].origin, TFC_FLOAT,
                                       TFC_SHAPE((int64_t)(bytes / sizeof(float)))};
  const double share = (double)(piece->last - piece->first) / (double)piece->form.k;
  const struct tfc_ir_op op = {.node = like->node,
                               .def = goes_on ? &pack_on_def : &pack_def,
                               .device = like->device,
                               .inputs = (struct tfc_ir_input[]){*b, {.value = *value, .variable = TFC_NONE}},
                               .input_count = goes_on ? 2 : 1,
                               .in_place = goes_on ? over_begun : NULL,
                               .goes_on = goes_on,
                               .prepared = true,
                               .state = state,
                               .cost_us = 1e6 * share * (double)bytes / 8e9};
  return tfc_ir_add_maker(ir, &op, &packed, value);
}

// Adds the operations that pack `b`, the right operand of product `p`; *out_value is the packed matrix.
static tfc_status add_pack(struct tfc_ir *ir, uint32_t reader, const struct tfc_ir_input *b,
                           const struct tfc_product_form *p, uint32_t *out_value) {
  enum { ROWS = 64, BYTES = 1 << 19 }; // the size of a piece: a multiple of ROWS rows, about BYTES bytes
  const int64_t row_bytes = (p->n > 0 ? p->n : 1) * (int64_t)sizeof(float);
  const int64_t rows = (BYTES / row_bytes + ROWS - 1) / ROWS * ROWS, step = rows > ROWS ? rows : ROWS;
  struct pack_piece piece = {.form = *p, .last = p->k};
  *out_value = TFC_NONE;
  if (!ir->in_parts || p->split_b) return add_piece(ir, reader, b, &piece, out_value);
  do {
    piece.last = piece.first + step < p->k ? piece.first + step : p->k;
    TFC_RETURN_IF_ERROR(add_piece(ir, reader, b, &piece, out_value));
    piece.first = piece.last;
  } while (piece.last < p->k);
  return NULL;
}

// Makes operation `old` read packed matrices. `packed[i]`: the packed matrix that the i-th product reads; TFC_NONE:
// it reads its right operand as before. `split[i]`: that matrix is packed for the tile unit. Either all products of a
// sum read such matrices, or none does.
static tfc_status use_packed(struct tfc_ir *ir, uint32_t old, const struct tfc_product_form *products,
                             const uint32_t *packed, const bool *split) {
  struct tfc_ir_op op;
  TFC_RETURN_IF_ERROR(tfc_ir_copy_op(ir, old, &op));
  const uint32_t count = op.input_count / 2;
  struct tfc_product_sum *sum = tfc_arena_zalloc(&ir->arena, sizeof *sum + count * sizeof *sum->products);
  if (!sum) return tfc_status_no_memory("planning a step");
  if (tfc_is_product_sum(&op)) *sum = *(const struct tfc_product_sum *)op.state;
  bool any_split = false;
  for (uint32_t i = 0; i < count; i++) any_split |= packed[i] != TFC_NONE && split[i];
  for (uint32_t i = 0; i < count; i++) {
    sum->products[i] = products[i];
    if (packed[i] == TFC_NONE || split[i] != any_split) continue;
    sum->products[i].packed_b = true, sum->products[i].split_b = any_split;
    op.inputs[right_side(&op, i)] = (struct tfc_ir_input){.value = packed[i], .variable = TFC_NONE};
  }
  op.state = tfc_is_product_sum(&op) ? (void *)sum : sum->products;
  if (!tfc_is_product_sum(&op)) op.def = &packed_product_def;
  op.prepared = true;
  return tfc_ir_add_instead(ir, &op, old);
}

// A right operand that several products read. They may read different views of one value, whose sizes differ; only
// products with the size of the first view share the packed matrix.
struct shared {
  int64_t k, n;
  uint32_t count, packed;
  bool split;    // all readers are faster with the tile unit
  uint32_t node; // its first reader
};
typedef TFC_ARRAY(struct shared) shared_array;

static uint64_t shared_key(const struct tfc_ir_op *op, const struct tfc_ir_input *b, const struct tfc_product_form *p) {
  return ((uint64_t)b->value << 17) | ((uint64_t)op->device << 1) | p->transpose_b;
}

static bool may_split(const struct tfc_ir *ir, uint16_t device) {
  return ir->all_rewrites && ir->device_count == 1 &&
         ir->devices[device]->driver->host_kernels == TFC_HOST_KERNELS_IN_PLACE &&
         ir->devices[device]->info.cores == 1 && tfc_split_available();
}

struct reading { // a product that reads a shared right operand
  uint32_t op, shared;
  struct tfc_product_form form;
};
typedef TFC_ARRAY(struct reading) reading_array;

static tfc_status find_readings(const struct tfc_ir *ir, reading_array *readings, shared_array *all) {
  tfc_status s = NULL;
  struct tfc_intmap index = {0};
  struct tfc_product_form forms[TFC_PRODUCTS_MOST];
  for (uint32_t i = 0; i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    for (uint32_t t = 0, terms = products_of(ir, op, forms); t < terms; t++) {
      const struct tfc_product_form *p = &forms[t];
      bool found;
      uint64_t *slot = tfc_intmap_put(&index, shared_key(op, &op->inputs[right_side(op, t)], p), all->count, &found);
      struct shared fresh = {.k = p->k, .n = p->n, .packed = TFC_NONE, .split = may_split(ir, op->device)};
      if (!slot || (!found && !tfc_array_push(all, fresh)) ||
          !tfc_array_push(readings, (struct reading){i, (uint32_t)*slot, *p}))
        TFC_TRY(s, tfc_status_no_memory(NULL));
      struct shared *shared = &all->data[*slot];
      shared->count += shared->k == p->k && shared->n == p->n;
      shared->split = shared->split && tfc_split_pays(p->m, p->n, p->k, tfc_split_blocks(p->k), true);
    }
  }
out:
  tfc_intmap_deinit(&index);
  return s;
}

static tfc_status pack(struct tfc_ir *ir) {
  tfc_status s = NULL;
  reading_array readings = {0};
  shared_array all = {0};
  TFC_TRY(s, find_readings(ir, &readings, &all));
  for (size_t r = 0; r < readings.count;) {
    bool split[TFC_PRODUCTS_MOST];
    struct tfc_product_form forms[TFC_PRODUCTS_MOST];
    uint32_t packed[TFC_PRODUCTS_MOST], used = 0, i = readings.data[r].op;
    for (uint32_t t = 0; r < readings.count && readings.data[r].op == i; t++, r++) {
      const struct tfc_ir_input b = ir->ops.data[i].inputs[right_side(&ir->ops.data[i], t)];
      struct shared *shared = &all.data[readings.data[r].shared];
      struct tfc_product_form p = forms[t] = readings.data[r].form;
      packed[t] = TFC_NONE, split[t] = p.split_b = shared->split;
      if (shared->count < 2 || shared->k != p.k || shared->n != p.n) continue;
      if (shared->packed == TFC_NONE) {
        TFC_TRY(s, add_pack(ir, i, &b, &p, &shared->packed));
        shared->node = ir->ops.data[i].node;
      } else if (!tfc_array_push(&ir->shared,
                                 (struct tfc_plan_shared){ir->ops.data[i].node, shared->node, packed_bytes(&p)})) {
        TFC_TRY(s, tfc_status_no_memory(NULL));
      }
      packed[t] = shared->packed;
      used++;
    }
    if (used) TFC_TRY(s, use_packed(ir, i, forms, packed, split));
  }
out:
  tfc_array_free(&readings);
  tfc_array_free(&all);
  return s;
}

static const struct tfc_rewrite rows[] = {{"pack weights", 20, true, pack}};
TFC_REWRITES(rows);
