// An AddN whose terms are matrix products that have no other reader (the weight gradients of an unrolled cell) becomes
// one operation. It adds the products up tile by tile, from left to right as AddN does, without writing any of them to
// memory. The result is exact: an element of a product is one chain of fused multiply-adds, whatever is computed before
// or after it (runtime/host/gemm/gemm.h).
//
// In a plan of several devices the sum is computed in parts, each as soon as its own terms are known. One single
// operation could begin only when the last operand has arrived, and its readers would wait for it. If neighbouring
// terms are on one device and the next ones on another, these groups are parts, too: each part is computed where its
// terms are placed, and the partial sum is sent on. A long part is split into pieces by rows, so that operations which
// other devices wait for can run in between.
#include <math.h>

#include "runtime/exec/rewrites/merging.h"
#include "runtime/exec/rewrites/sums.h"

static tfc_status sum_kernel(struct tfc_kernel_ctx *ctx) {
  const struct tfc_product_sum *sum = ctx->state;
  struct tfc_product products[TFC_PRODUCTS_MOST];
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(sum->m, sum->n), &out));
  for (int64_t i = 0; i < sum->count; i++)
    products[i] = tfc_product_operands(&sum->products[i], sum->row, ctx->inputs[sum->goes_on + 2 * i],
                                       ctx->inputs[sum->goes_on + 2 * i + 1]);
  if (sum->goes_on && out->data != ctx->inputs[0]->data) memcpy(out->data, ctx->inputs[0]->data, ctx->inputs[0]->size);
  return tfc_products_run(ctx, products, sum->count, sum->rows, sum->n, sum->adds,
                          (float *)out->data + sum->row * sum->n);
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

bool tfc_is_product_sum(const struct tfc_ir_op *op) {
  return !op->dead && (op->def == &sum_def || op->def == &next_sum_def);
}

// Whether input `input` of an AddN is a product that nothing but the sum reads. *out describes the product, *out_op is
// its operation.
static bool is_term(const struct tfc_ir *ir, const struct tfc_ir_readers *readers, const struct tfc_ir_op *add,
                    uint32_t input, struct tfc_product_form *out, uint32_t *out_op) {
  uint32_t v = add->inputs[input].value;
  const struct tfc_ir_value *value = &ir->values.data[v];
  if (value->kind != TFC_IR_OP || value->fetched || value->op == TFC_NONE || add->inputs[input].view) return false;
  if (readers->begin[v + 1] - readers->begin[v] != 1) return false;
  *out_op = value->op;
  return tfc_is_product(ir, &ir->ops.data[value->op], out);
}

// The AddN that is being divided into parts.
struct summing {
  struct tfc_ir_op add;
  struct tfc_product_form products[TFC_PRODUCTS_MOST];
  uint32_t terms[TFC_PRODUCTS_MOST]; // operations
  double from[TFC_PRODUCTS_MOST];    // the earliest time at which a term is known, µs
  uint32_t sum, node;                // the value of the sum so far, and the node that computes it; TFC_NONE: none yet
};

// Terms [begin, end) form one part.
struct part {
  uint32_t begin, end;
  bool last;                             // the last part of the sum, which gets the AddN's node
  uint32_t pieces;                       // number of pieces, each of some rows
  uint32_t place[TFC_PRODUCTS_MOST + 1]; // [piece] the term whose node it gets; TFC_NONE: the AddN's node
};

// Sets the pieces of a part. A piece is long (about 2 ms), because each one reads the right operands again, and
// other operations become ready only now and then.
static void divide_part(const struct tfc_ir *ir, const struct summing *g, struct part *part) {
  const double piece_us = 2000;
  const uint32_t count = part->end - part->begin;
  uint32_t latest = part->begin, most = count + part->last, n = 0;
  double us = 0;
  for (uint32_t i = part->begin; i < part->end; i++) {
    us += ir->ops.data[g->terms[i]].cost_us;
    if (g->from[i] >= g->from[latest]) latest = i;
  }
  if ((double)most > (double)g->products[0].m / 64) most = (uint32_t)(g->products[0].m / 64);
  part->pieces = ir->in_parts ? (uint32_t)fmin((double)most, us / piece_us) : 1;
  if (part->pieces < 1) part->pieces = 1;
  for (uint32_t i = part->begin; i < part->end && n + 1 < part->pieces; i++)
    if (part->last || i != latest) part->place[n++] = i;
  part->place[part->pieces - 1] = part->last ? TFC_NONE : latest;
}

// Adds the operation for piece `index` of a part.
static tfc_status add_piece(struct tfc_ir *ir, struct summing *g, const struct part *part, uint32_t index,
                            uint32_t *out_id) {
  const int64_t m = g->products[0].m, each = ((m + 7) / 8 + part->pieces - 1) / part->pieces * 8;
  const uint32_t count = part->end - part->begin, at = part->place[index];
  const bool goes_on = g->sum != TFC_NONE;
  struct tfc_product_sum *state = tfc_arena_zalloc(&ir->arena, sizeof *state + count * sizeof *state->products);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 2 * count + goes_on);
  uint32_t *outputs = at == TFC_NONE ? g->add.outputs : TFC_ARENA_NEW(&ir->arena, uint32_t);
  if (!state || !inputs || !outputs) return tfc_status_no_memory("planning a step");
  *state = (struct tfc_product_sum){
      .count = count, .m = m, .n = g->products[0].n, .goes_on = goes_on, .adds = part->begin > 0};
  state->row = each * index < m ? each * index : m;
  state->rows = index + 1 < part->pieces && state->row + each < m ? each : m - state->row;
  struct tfc_ir_op op = g->add;
  op.cost_us = 0;
  op.device = ir->ops.data[g->terms[part->begin]].device;
  if (goes_on) inputs[0] = (struct tfc_ir_input){.value = g->sum, .variable = TFC_NONE};
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_ir_op *term = &ir->ops.data[g->terms[part->begin + i]];
    state->products[i] = g->products[part->begin + i];
    inputs[goes_on + 2 * i] = term->inputs[0];
    inputs[goes_on + 2 * i + 1] = term->inputs[1];
    op.cost_us += term->cost_us / part->pieces;
  }
  if (at != TFC_NONE) {
    const struct tfc_ir_op *term = &ir->ops.data[g->terms[at]];
    struct tfc_ir_value value = ir->values.data[g->add.outputs[0]];
    op.node = term->node;
    value.origin = ir->values.data[term->outputs[0]].origin;
    value.fetched = false;
    TFC_RETURN_IF_ERROR(tfc_ir_add_value(ir, &value, &outputs[0]));
  }
  op.def = goes_on ? &next_sum_def : &sum_def;
  op.inputs = inputs, op.input_count = 2 * count + goes_on;
  op.outputs = outputs;
  op.prepared = true;
  op.state = state;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, out_id));
  if (goes_on && !tfc_array_push(&ir->continued, (struct tfc_plan_continued){op.node, g->node, index > 0}))
    return tfc_status_no_memory("planning a step");
  g->sum = outputs[0], g->node = op.node;
  return NULL;
}

static tfc_status add_part(struct tfc_ir *ir, struct summing *g, uint32_t begin, uint32_t end) {
  struct part part = {.begin = begin, .end = end, .last = end == g->add.input_count};
  uint32_t id[TFC_PRODUCTS_MOST + 1];
  divide_part(ir, g, &part);
  const size_t edges = ir->edges.count;
  for (uint32_t i = 0; i < part.pieces; i++) TFC_RETURN_IF_ERROR(add_piece(ir, g, &part, i, &id[i]));
  for (uint32_t i = begin; i < end; i++) {
    uint32_t by = id[0];
    // Every piece reads the operands of every term. So what has to come after a term (an update of a variable that it
    // reads) comes after the last piece, and what has to come before it comes before the first one.
    for (size_t e = 0; e < edges && part.pieces > 1; e++) {
      const struct tfc_ir_edge edge = ir->edges.data[e];
      if (edge.from == g->terms[i]) TFC_RETURN_IF_ERROR(tfc_ir_add_edge(ir, id[part.pieces - 1], edge.to));
      if (edge.to == g->terms[i]) TFC_RETURN_IF_ERROR(tfc_ir_add_edge(ir, edge.from, id[0]));
    }
    for (uint32_t k = 0; k < part.pieces; k++)
      if (part.place[k] == i) by = id[k];
    tfc_ir_replace(ir, g->terms[i], by);
  }
  return NULL;
}

// Returns into how many parts a sum is divided. Each part but the first reads and writes the sum once more: 8 bytes for
// each element, at about 10 GB/s. The products take 2 k FLOP for each element, at about 100 GFLOP/s. Parts may cost an
// eighth more time, unless all terms come at the end.
static uint32_t parts_of(const struct summing *g) {
  double k = 0;
  for (uint32_t i = 0; i < g->add.input_count; i++) k += (double)g->products[i].k;
  double most = 1 + 0.125 * 0.02 * k / 0.8;
  uint32_t parts = most < 4 ? (uint32_t)(most + 0.5) : 4;
  return parts < g->add.input_count / 2 ? parts : g->add.input_count / 2;
}

// Finds where each part of a sum ends, as numbers of terms. A part ends where the device changes, and at the places
// that the number from `parts_of` gives, unless the terms of the part are known as late as those of the whole sum.
// Returns the number of parts; 0: there would be too many, so the sum is not divided.
static uint32_t divide(const struct tfc_ir *ir, const struct summing *g, uint32_t *ends) {
  uint32_t count = g->add.input_count, parts = ir->in_parts ? parts_of(g) : 1, most = parts + 3, n = 0, begin = 0;
  double latest = 0;
  for (uint32_t i = 0; i < count; i++) latest = fmax(latest, g->from[i]);
  for (uint32_t i = 1, part = 1; i <= count; i++) {
    bool elsewhere = i < count && ir->ops.data[g->terms[i]].device != ir->ops.data[g->terms[i - 1]].device;
    bool due = part < parts && i == count * part / parts;
    double all = 0; // the time at which all terms of this part are known
    for (uint32_t k = begin; k < i; k++) all = fmax(all, g->from[k]);
    part += due;
    if (!elsewhere && !(due && all < latest) && i < count) continue;
    if (n == most) return 0;
    ends[n++] = begin = i;
  }
  return n;
}

static tfc_status fuse_sum(struct tfc_ir *ir, const struct tfc_ir_readers *readers, struct tfc_merging *merging,
                           const double *end, uint32_t id, struct summing *g) {
  g->add = ir->ops.data[id];
  g->sum = g->node = TFC_NONE;
  uint32_t count = g->add.input_count, ends[TFC_PRODUCTS_MOST];
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_product_form *p = &g->products[i];
    if (!is_term(ir, readers, &g->add, i, p, &g->terms[i])) return NULL;
    if (p->m != g->products[0].m || p->n != g->products[0].n) return NULL;
    g->from[i] = end[g->terms[i]];
  }
  uint32_t parts = divide(ir, g, ends);
  if (!parts || ir->ops.data[g->terms[count - 1]].device != g->add.device) return NULL;
  if (tfc_merging_waits(merging, g->terms, count, id)) return NULL;
  tfc_merging_note(merging, g->terms, count, id);
  for (uint32_t part = 0; part < parts; part++)
    TFC_RETURN_IF_ERROR(add_part(ir, g, part ? ends[part - 1] : 0, ends[part]));
  tfc_ir_replace(ir, id, ir->values.data[g->sum].op);
  return NULL;
}

// Returns [ops] the earliest end of each operation in µs, as if there were a device for each operation. Operations are
// in topological order.
static double *earliest_ends(struct tfc_ir *ir, struct tfc_arena *arena) {
  double *end = TFC_ARENA_ARRAY(arena, double, ir->ops.count + 1);
  for (size_t i = 0; end && i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    double start = 0;
    for (uint32_t k = 0; k < op->input_count; k++) {
      uint32_t v = op->inputs[k].value, from = v == TFC_NONE ? TFC_NONE : ir->values.data[v].op;
      if (from != TFC_NONE && from < i) start = fmax(start, end[from]);
    }
    end[i] = start + op->cost_us;
  }
  return end;
}

static tfc_status sum_products(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct tfc_arena arena = {0};
  struct tfc_ir_readers readers = {0};
  struct tfc_merging merging = {0};
  double *end = NULL; // these four are made for the first sum
  struct summing *g = NULL;
  for (uint32_t i = 0, count = (uint32_t)ir->ops.count; i < count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead || op->joint || op->prepared || !op->def || op->def->role != TFC_ROLE_ADD_N) continue;
    if (op->input_count < 2 || op->input_count > TFC_PRODUCTS_MOST) continue;
    if (!g) {
      end = earliest_ends(ir, &arena);
      g = TFC_ARENA_NEW(&arena, struct summing);
      if (!end || !g) TFC_TRY(s, tfc_status_no_memory(NULL));
      TFC_TRY(s, tfc_ir_readers(ir, &arena, &readers));
      TFC_TRY(s, tfc_merging_begin(ir, &arena, &readers, &merging));
    }
    TFC_TRY(s, fuse_sum(ir, &readers, &merging, end, i, g));
  }
out:
  tfc_arena_deinit(&arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"sum of products", 10, true, sum_products}};
TFC_REWRITES(rows);
