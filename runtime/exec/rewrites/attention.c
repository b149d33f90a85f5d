// On devices that launch kernels, attention becomes one operation, and its gradients another: the softmax of scaled
// products of queries and keys, plus a mask, which weighs values. Neither writes the scores, which the gradients
// compute again. Both read and write heads as they lie between the other operations, so that nothing transposes them.
//
// The operations add in another order than those that they replace, so this needs `--rewrites all`. They compute in
// float32, without tensor cores, which costs more than launches and passes over the scores where there are many scores.
#include "runtime/ops/attention.h"
#include "runtime/exec/rewrites/merging.h"

// The most scores times depth. An estimate from data sheets, for the GPU for which the kernels are built: a score takes
// some 10 ps in a kernel at a third of float32's peak, or 6 ps in a product in TF32 and four passes over memory, where
// each of the three launches more takes 1 µs.
static const int64_t MOST_WORK = (int64_t)1 << 26;

static const struct tfc_op_def attention_def = {.name = "_Attention",
                                                .inputs = "q: float, k: float, v: float, mask: M * float",
                                                .outputs = "out: float, logs: N * float",
                                                .attrs = "M: int, N: int"};
static const struct tfc_op_def gradients_def = {.name = "_AttentionGradients",
                                                .inputs = "q: float, k: float, v: float, rest: M * float",
                                                .outputs = "dq: float, dk: float, dv: float",
                                                .attrs = "M: int"};

enum { MOST_MEMBERS = 24 };
struct group { // operations that become one
  uint32_t ops[MOST_MEMBERS], count;
};

struct search {
  struct tfc_ir *ir;
  struct tfc_arena arena;
  struct tfc_ir_readers readers;
  struct tfc_merging merging; // begun for the first attention that is found
  bool is_merging;
};
struct found {
  struct group forward, backward;
  uint32_t softmax, weigh, scores, d_keys; // ops; `scores`: the product
  struct tfc_ir_input q, k, v, mask, d_out;
  uint32_t d_q, d_k, d_v; // values; TFC_NONE: no gradients
  struct tfc_attention a;
};

// --- The graph around an operation -----------------------------------------------------------------------------------
static bool is_plain(const struct tfc_ir *ir, uint32_t id) {
  const struct tfc_ir_op *op = &ir->ops.data[id];
  if (op->dead || op->joint || op->prepared || op->wanted || op->host.all || !op->def || op->output_variables ||
      op->output_count != 1 || op->outputs[0] == TFC_NONE)
    return false;
  for (uint32_t k = 0; k < op->input_count; k++)
    if (op->inputs[k].value == TFC_NONE || op->inputs[k].variable != TFC_NONE) return false;
  const struct tfc_ir_value *v = &ir->values.data[op->outputs[0]];
  return v->dtype == TFC_FLOAT && v->planned && v->alias == TFC_NONE &&
         tfc_ir_launches(ir, op->device, &attention_def) && tfc_ir_launches(ir, op->device, &gradients_def);
}
static bool is_whole(const struct tfc_ir *ir, const struct tfc_ir_input *in) { // the value with its own shape
  return !in->view || tfc_shape_equal(in->view, &ir->values.data[in->value].shape);
}
static bool same_input(const struct tfc_ir *ir, const struct tfc_ir_input *a, const struct tfc_ir_input *b) {
  return a->value == b->value && tfc_shape_equal(tfc_ir_shape(ir, a), tfc_ir_shape(ir, b));
}
static uint32_t output_of(const struct tfc_ir *ir, uint32_t op) {
  return ir->ops.data[op].outputs[0];
}
static uint32_t reader_count(const struct search *s, uint32_t value) {
  return s->ir->values.data[value].fetched ? TFC_NONE : s->readers.begin[value + 1] - s->readers.begin[value];
}
static uint32_t reader(const struct search *s, uint32_t value, uint32_t i) {
  return s->readers.ops[s->readers.begin[value] + i];
}

// The operation with this trait, of the same device as `like`, that makes an input, or TFC_NONE.
static uint32_t maker(const struct search *s, const struct tfc_ir_input *in, tfc_plan_trait trait, uint32_t like) {
  const struct tfc_ir *ir = s->ir;
  const struct tfc_ir_value *v = in->value == TFC_NONE ? NULL : &ir->values.data[in->value];
  if (!v || v->kind != TFC_IR_OP || v->op == TFC_NONE || !is_whole(ir, in) || !is_plain(ir, v->op)) return TFC_NONE;
  const struct tfc_ir_op *op = &ir->ops.data[v->op];
  return op->device == ir->ops.data[like].device && op->def->plan_trait == trait ? v->op : TFC_NONE;
}
static bool is_batched(const struct tfc_ir *ir, uint32_t id, bool adj_x, bool adj_y) {
  const struct tfc_ir_op *op = &ir->ops.data[id];
  const struct tfc_node *node = &ir->graph->nodes[op->node];
  return op->def->plan_trait == TFC_PLAN_BATCHED && op->input_count == 2 &&
         tfc_node_attr_bool(ir->graph, node, "adj_x", false) == adj_x &&
         tfc_node_attr_bool(ir->graph, node, "adj_y", false) == adj_y;
}

// Whether the operation multiplies a tensor by a number that the plan knows. *out_whole: the tensor's input.
static bool scales(const struct tfc_ir *ir, uint32_t id, uint32_t *out_whole, float *out_factor) {
  const struct tfc_ir_op *op = &ir->ops.data[id];
  if (op->def->plan_trait != TFC_PLAN_MULTIPLY || op->input_count != 2) return false;
  for (uint32_t k = 0; k < 2; k++) {
    const struct tfc_ir_value *v = &ir->values.data[op->inputs[k].value];
    if (v->kind != TFC_IR_CONST || !v->constant || v->dtype != TFC_FLOAT || tfc_tensor_elements(v->constant) != 1)
      continue;
    *out_whole = !k, *out_factor = *(const float *)v->constant->data;
    return true;
  }
  return false;
}

static bool add(struct group *g, uint32_t op) {
  for (uint32_t i = 0; i < g->count; i++)
    if (g->ops[i] == op) return true;
  if (g->count == MOST_MEMBERS) return false;
  g->ops[g->count++] = op;
  return true;
}
static bool contains(const struct found *f, uint32_t op) {
  for (uint32_t i = 0; i < f->forward.count; i++)
    if (f->forward.ops[i] == op) return true;
  for (uint32_t i = 0; i < f->backward.count; i++)
    if (f->backward.ops[i] == op) return true;
  return false;
}

// --- Finding attention ----------------------------------------------------------------------------------------------
// Goes from the softmax back to the product of queries and keys; everything on the way has one reader.
static bool find_scores(const struct search *s, struct found *f) {
  const struct tfc_ir *ir = s->ir;
  const struct tfc_ir_input *in = &ir->ops.data[f->softmax].inputs[0];
  f->a.scale = 1;
  uint32_t id = maker(s, in, TFC_PLAN_ADD, f->softmax), whole;
  if (id != TFC_NONE) {
    const struct tfc_ir_op *op = &ir->ops.data[id];
    const uint32_t y = op->outputs[0];
    if (!tfc_ir_adds(ir, op) || reader_count(s, y) != 1 || !add(&f->forward, id)) return false;
    uint32_t k = 0;
    for (; k < 2; k++)
      if (tfc_shape_equal(tfc_ir_shape(ir, &op->inputs[k]), &ir->values.data[y].shape) &&
          (maker(s, &op->inputs[k], TFC_PLAN_BATCHED, id) != TFC_NONE ||
           maker(s, &op->inputs[k], TFC_PLAN_MULTIPLY, id) != TFC_NONE))
        break;
    if (k == 2) return false;
    in = &op->inputs[k];
    f->mask = op->inputs[!k], f->a.masked = true;
  }
  id = maker(s, in, TFC_PLAN_MULTIPLY, f->softmax);
  if (id != TFC_NONE) {
    if (!scales(ir, id, &whole, &f->a.scale) || reader_count(s, output_of(ir, id)) != 1 || !add(&f->forward, id))
      return false;
    in = &ir->ops.data[id].inputs[whole];
  }
  id = maker(s, in, TFC_PLAN_BATCHED, f->softmax);
  if (id == TFC_NONE || !is_batched(ir, id, false, true) || reader_count(s, output_of(ir, id)) != 1) return false;
  f->scores = id;
  f->q = ir->ops.data[id].inputs[0], f->k = ir->ops.data[id].inputs[1];
  return add(&f->forward, id);
}

// Whether input `k` of the operation is the value.
static bool reads(const struct tfc_ir *ir, uint32_t op, uint32_t k, uint32_t value) {
  const struct tfc_ir_input *in = &ir->ops.data[op].inputs[k];
  return in->value == value && is_whole(ir, in);
}
static bool has_readers(const struct search *s, uint32_t value, uint32_t a, uint32_t b) { // b TFC_NONE: only a
  if (reader_count(s, value) != (b == TFC_NONE ? 1 : 2)) return false;
  if (b == TFC_NONE) return reader(s, value, 0) == a;
  const uint32_t x = reader(s, value, 0), y = reader(s, value, 1);
  return (x == a && y == b) || (x == b && y == a);
}
static bool sums_last(const struct tfc_ir *ir, uint32_t id) { // and keeps the dimension
  const struct tfc_ir_op *op = &ir->ops.data[id];
  if (op->input_count != 2) return false;
  const struct tfc_ir_value *axes = &ir->values.data[op->inputs[1].value];
  const struct tfc_shape *y = &ir->values.data[op->outputs[0]].shape, *x = tfc_ir_shape(ir, &op->inputs[0]);
  if (axes->kind != TFC_IR_CONST || !axes->constant || tfc_tensor_elements(axes->constant) != 1) return false;
  const int64_t axis = tfc_tensor_int(axes->constant, 0);
  return (axis == -1 || axis == x->rank - 1) && y->rank == x->rank && y->dims[y->rank - 1] == 1;
}

// The gradient of a softmax p to its scores is p (g - Σ p g), where g is the gradient to p. `product`: p g. `last`: the
// product with the difference.
static bool find_gradients(const struct search *s, struct found *f, uint32_t d_values, uint32_t product,
                           uint32_t last) {
  const struct tfc_ir *ir = s->ir;
  const uint32_t p = output_of(ir, f->softmax);
  uint32_t k = reads(ir, last, 0, p) ? 1 : 0;
  const uint32_t difference = maker(s, &ir->ops.data[last].inputs[k], TFC_PLAN_SUBTRACT, f->softmax);
  if (difference == TFC_NONE || ir->ops.data[difference].input_count != 2) return false;
  const uint32_t d_weights = maker(s, &ir->ops.data[difference].inputs[0], TFC_PLAN_BATCHED, f->softmax),
                 sum = maker(s, &ir->ops.data[difference].inputs[1], TFC_PLAN_SUM, f->softmax);
  if (d_weights == TFC_NONE || sum == TFC_NONE || !sums_last(ir, sum)) return false;
  k = reads(ir, product, 0, p) ? 1 : 0;
  if (!reads(ir, product, k, output_of(ir, d_weights)) || !reads(ir, sum, 0, output_of(ir, product)) ||
      !has_readers(s, output_of(ir, d_weights), product, difference) ||
      !has_readers(s, output_of(ir, product), sum, TFC_NONE) ||
      !has_readers(s, output_of(ir, sum), difference, TFC_NONE) ||
      !has_readers(s, output_of(ir, difference), last, TFC_NONE))
    return false;
  if (!is_batched(ir, d_weights, false, true) || !same_input(ir, &ir->ops.data[d_weights].inputs[1], &f->v) ||
      !same_input(ir, &ir->ops.data[d_weights].inputs[0], &ir->ops.data[d_values].inputs[1]))
    return false;
  f->d_out = ir->ops.data[d_weights].inputs[0];
  uint32_t d_scores = last;
  if (reader_count(s, output_of(ir, last)) == 1) { // the gradient of the scale
    uint32_t whole;
    float factor;
    d_scores = reader(s, output_of(ir, last), 0);
    if (!is_plain(ir, d_scores) || ir->ops.data[d_scores].device != ir->ops.data[f->softmax].device ||
        !scales(ir, d_scores, &whole, &factor) || factor != f->a.scale ||
        !reads(ir, d_scores, whole, output_of(ir, last)) || !add(&f->backward, d_scores))
      return false;
  } else if (f->a.scale != 1) {
    return false;
  }
  const uint32_t y = output_of(ir, d_scores);
  if (reader_count(s, y) != 2) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t id = reader(s, y, i);
    if (!is_plain(ir, id) || ir->ops.data[id].device != ir->ops.data[f->softmax].device || !reads(ir, id, 0, y))
      return false;
    const bool to_keys = is_batched(ir, id, true, false);
    if ((!to_keys && !is_batched(ir, id, false, false)) ||
        !same_input(ir, &ir->ops.data[id].inputs[1], to_keys ? &f->q : &f->k) || !add(&f->backward, id))
      return false;
    *(to_keys ? &f->d_k : &f->d_q) = output_of(ir, id);
    if (to_keys) f->d_keys = id;
  }
  f->d_v = output_of(ir, d_values);
  return f->d_k != TFC_NONE && f->d_q != TFC_NONE && add(&f->backward, d_values) && add(&f->backward, product) &&
         add(&f->backward, sum) && add(&f->backward, difference) && add(&f->backward, d_weights) &&
         add(&f->backward, last);
}

static bool find_attention(const struct search *s, uint32_t softmax, struct found *f) {
  const struct tfc_ir *ir = s->ir;
  *f = (struct found){.softmax = softmax, .weigh = TFC_NONE, .d_q = TFC_NONE, .d_k = TFC_NONE, .d_v = TFC_NONE};
  const uint32_t p = output_of(ir, softmax), count = reader_count(s, p);
  if ((count != 1 && count != 4) || !find_scores(s, f) || !add(&f->forward, softmax)) return false;
  uint32_t d_values = TFC_NONE, products[2], product_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t id = reader(s, p, i);
    if (!is_plain(ir, id) || ir->ops.data[id].device != ir->ops.data[softmax].device) return false;
    if (is_batched(ir, id, false, false) && reads(ir, id, 0, p) && f->weigh == TFC_NONE)
      f->weigh = id;
    else if (is_batched(ir, id, true, false) && reads(ir, id, 0, p) && d_values == TFC_NONE)
      d_values = id;
    else if (ir->ops.data[id].def->plan_trait == TFC_PLAN_MULTIPLY && product_count < 2 &&
             ir->ops.data[id].input_count == 2 && (reads(ir, id, 0, p) || reads(ir, id, 1, p)))
      products[product_count++] = id;
    else
      return false;
  }
  if (f->weigh == TFC_NONE || !add(&f->forward, f->weigh)) return false;
  f->v = ir->ops.data[f->weigh].inputs[1];
  if (count == 1) return true;
  if (d_values == TFC_NONE || product_count != 2) return false;
  const uint32_t y = output_of(ir, products[0]);
  const bool first = reader_count(s, y) == 1 && ir->ops.data[reader(s, y, 0)].def->plan_trait == TFC_PLAN_SUM;
  return find_gradients(s, f, d_values, products[!first], products[first]);
}

// --- Shapes ---------------------------------------------------------------------------------------------------------
static bool has_shape(const struct tfc_ir *ir, const struct tfc_ir_input *in, const struct tfc_shape *like,
                      int64_t rows, int64_t columns) {
  const struct tfc_shape *x = tfc_ir_shape(ir, in);
  if (ir->values.data[in->value].dtype != TFC_FLOAT || x->rank != like->rank || in->variable != TFC_NONE) return false;
  for (int d = 0; d < x->rank - 2; d++)
    if (x->dims[d] != like->dims[d]) return false;
  return x->dims[x->rank - 2] == rows && x->dims[x->rank - 1] == columns;
}

static bool fits(const struct tfc_ir *ir, struct found *f) {
  struct tfc_attention *a = &f->a;
  const struct tfc_shape *y = &ir->values.data[output_of(ir, f->softmax)].shape, *q = tfc_ir_shape(ir, &f->q),
                         *v = tfc_ir_shape(ir, &f->v);
  if (!tfc_shape_is_static(y) || (y->rank != 3 && y->rank != 4) || q->rank != y->rank || v->rank != y->rank)
    return false;
  const int r = y->rank;
  a->batches = r == 4 ? y->dims[0] : 1, a->heads = y->dims[r - 3];
  a->queries = y->dims[r - 2], a->keys = y->dims[r - 1];
  const int64_t depth = q->dims[r - 1], width = v->dims[r - 1], count = tfc_shape_elements(y);
  if (count < 1 || depth < 1 || width < 1 || depth > TFC_ATTENTION_WIDTH || width > TFC_ATTENTION_WIDTH ||
      count > MOST_WORK / depth)
    return false;
  a->depth = (int32_t)depth, a->width = (int32_t)width;
  if (!has_shape(ir, &f->q, y, a->queries, depth) || !has_shape(ir, &f->k, y, a->keys, depth) ||
      !has_shape(ir, &f->v, y, a->keys, width) ||
      (f->d_q != TFC_NONE && !has_shape(ir, &f->d_out, y, a->queries, width)))
    return false;
  if (!a->masked) return true;
  const struct tfc_shape *m = tfc_ir_shape(ir, &f->mask);
  if (f->mask.value == TFC_NONE || f->mask.variable != TFC_NONE || ir->values.data[f->mask.value].dtype != TFC_FLOAT ||
      !tfc_shape_is_static(m) || m->rank > r)
    return false;
  int64_t stride = 1, *const strides[4] = {&a->mask_column, &a->mask.row, &a->mask.head, &a->mask.batch};
  for (int d = 0; d < m->rank; d++) { // from the last dimension
    const int64_t size = m->dims[m->rank - 1 - d];
    if (size != 1 && size != y->dims[r - 1 - d]) return false;
    *strides[d] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return true;
}

// Whether the operation exchanges heads and rows.
static bool exchanges(const struct tfc_ir *ir, uint32_t id) {
  const struct tfc_ir_op *op = &ir->ops.data[id];
  if (!is_plain(ir, id) || op->def->plan_trait != TFC_PLAN_TRANSPOSE || op->input_count != 2) return false;
  const struct tfc_ir_value *order = &ir->values.data[op->inputs[1].value];
  if (order->kind != TFC_IR_CONST || !order->constant || tfc_tensor_elements(order->constant) != 4) return false;
  static const int64_t wanted[4] = {0, 2, 1, 3};
  for (int64_t i = 0; i < 4; i++)
    if (tfc_tensor_int(order->constant, i) != wanted[i]) return false;
  return true;
}
static struct tfc_attention_strides strides_of(const struct tfc_attention *a, int64_t rows, int64_t columns,
                                               bool between) {
  if (between) return (struct tfc_attention_strides){rows * a->heads * columns, columns, a->heads * columns};
  return (struct tfc_attention_strides){a->heads * rows * columns, rows * columns, columns};
}

// Reads the operand before its heads were exchanged with its rows, if only these operations read it after that, and
// none of them as the mask.
static struct tfc_attention_strides take(const struct search *s, struct found *f, struct group *g,
                                         struct tfc_ir_input *in, int64_t rows, int64_t columns) {
  const struct tfc_ir *ir = s->ir;
  const struct tfc_ir_value *v = &ir->values.data[in->value];
  bool between = v->kind == TFC_IR_OP && v->op != TFC_NONE && is_whole(ir, in) && exchanges(ir, v->op) &&
                 ir->ops.data[v->op].device == ir->ops.data[f->softmax].device && !v->fetched &&
                 (!f->a.masked || f->mask.value != in->value);
  for (uint32_t i = 0; between && i < reader_count(s, in->value); i++) between = contains(f, reader(s, in->value, i));
  between = between && add(g, v->op);
  if (between) *in = ir->ops.data[v->op].inputs[0];
  return strides_of(&f->a, rows, columns, between);
}
// Writes the result as the only operation that reads it, which exchanges heads and rows, would.
static struct tfc_attention_strides give(const struct search *s, struct found *f, struct group *g, uint32_t *value,
                                         int64_t rows, int64_t columns) {
  const struct tfc_ir *ir = s->ir;
  const uint32_t id = reader_count(s, *value) == 1 ? reader(s, *value, 0) : TFC_NONE;
  const bool between = id != TFC_NONE && exchanges(ir, id) && reads(ir, id, 0, *value) &&
                       ir->ops.data[id].device == ir->ops.data[f->softmax].device && add(g, id);
  if (between) *value = output_of(ir, id);
  return strides_of(&f->a, rows, columns, between);
}

// --- Making the operations ------------------------------------------------------------------------------------------
static tfc_status make(struct search *s, const struct group *g, struct tfc_ir_op *op, uint32_t *out_id) {
  struct tfc_ir *ir = s->ir;
  op->device = ir->ops.data[g->ops[0]].device;
  op->prepared = true;
  for (uint32_t i = 0; i < g->count; i++) op->cost_us += ir->ops.data[g->ops[i]].cost_us;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, op, out_id));
  tfc_merging_note(&s->merging, g->ops, g->count, TFC_NONE);
  for (uint32_t i = 0; i < g->count; i++) tfc_ir_replace(ir, g->ops[i], *out_id);
  return NULL;
}

static tfc_status join(struct search *s, struct found *f) {
  struct tfc_ir *ir = s->ir;
  struct tfc_attention *a = TFC_ARENA_NEW(&ir->arena, struct tfc_attention);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 4),
                      *back = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 7);
  uint32_t *outputs = TFC_ARENA_ARRAY(&ir->arena, uint32_t, 2), *gradients = TFC_ARENA_ARRAY(&ir->arena, uint32_t, 3);
  uint32_t id, value = output_of(ir, f->weigh), n = 0;
  const bool trains = f->d_q != TFC_NONE;
  if (!a || !inputs || !back || !outputs || !gradients) return tfc_status_no_memory("planning a step");
  f->a.q = take(s, f, &f->forward, &f->q, f->a.queries, f->a.depth);
  f->a.k = take(s, f, &f->forward, &f->k, f->a.keys, f->a.depth);
  f->a.v = take(s, f, &f->forward, &f->v, f->a.keys, f->a.width);
  f->a.out = give(s, f, &f->forward, &value, f->a.queries, f->a.width);
  if (trains) {
    f->a.d_out = take(s, f, &f->backward, &f->d_out, f->a.queries, f->a.width);
    f->a.dq = give(s, f, &f->backward, &f->d_q, f->a.queries, f->a.depth);
    f->a.dk = give(s, f, &f->backward, &f->d_k, f->a.keys, f->a.depth);
    f->a.dv = give(s, f, &f->backward, &f->d_v, f->a.keys, f->a.width);
  }
  if (!s->is_merging) TFC_RETURN_IF_ERROR(tfc_merging_begin(ir, &s->arena, &s->readers, &s->merging));
  s->is_merging = true;
  if (tfc_merging_waits(&s->merging, f->forward.ops, f->forward.count, TFC_NONE) ||
      (trains && tfc_merging_waits(&s->merging, f->backward.ops, f->backward.count, TFC_NONE)))
    return NULL;
  *a = f->a;
  inputs[n++] = f->q, inputs[n++] = f->k, inputs[n++] = f->v;
  if (a->masked) inputs[n++] = f->mask;
  outputs[0] = value;
  if (trains) {
    const struct tfc_ir_value *out = &ir->values.data[value];
    const struct tfc_ir_value logs = {.kind = TFC_IR_OP,
                                      .op = TFC_NONE,
                                      .origin = out->origin,
                                      .dtype = TFC_FLOAT,
                                      .shape = TFC_SHAPE(a->batches * a->heads * a->queries),
                                      .bytes = (uint64_t)(a->batches * a->heads * a->queries) * sizeof(float),
                                      .planned = true,
                                      .variable = TFC_NONE,
                                      .alias = TFC_NONE};
    TFC_RETURN_IF_ERROR(tfc_ir_add_value(ir, &logs, &outputs[1]));
  }
  TFC_RETURN_IF_ERROR(make(s, &f->forward,
                           &(struct tfc_ir_op){.node = ir->ops.data[f->weigh].node,
                                               .def = &attention_def,
                                               .inputs = inputs,
                                               .input_count = n,
                                               .outputs = outputs,
                                               .output_count = trains ? 2 : 1,
                                               .state = a},
                           &id));
  if (!trains) return NULL;
  memcpy(back, inputs, n * sizeof *inputs);
  back[n++] = (struct tfc_ir_input){.value = value, .variable = TFC_NONE};
  back[n++] = (struct tfc_ir_input){.value = outputs[1], .variable = TFC_NONE};
  back[n++] = f->d_out;
  gradients[0] = f->d_q, gradients[1] = f->d_k, gradients[2] = f->d_v;
  return make(s, &f->backward,
              &(struct tfc_ir_op){.node = ir->ops.data[f->d_keys].node,
                                  .def = &gradients_def,
                                  .inputs = back,
                                  .input_count = n,
                                  .outputs = gradients,
                                  .output_count = 3,
                                  .state = a},
              &id);
}

static tfc_status join_attention(struct tfc_ir *ir) {
  tfc_status status = NULL;
  struct search s = {.ir = ir};
  const uint32_t count = (uint32_t)ir->ops.count;
  if (!tfc_ir_any_launches(ir, &attention_def)) return NULL;
  TFC_TRY(status, tfc_ir_readers(ir, &s.arena, &s.readers));
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_op_def *def = ir->ops.data[i].def;
    struct found f;
    if (def && def->plan_trait == TFC_PLAN_SOFTMAX && is_plain(ir, i) && find_attention(&s, i, &f) && fits(ir, &f))
      TFC_TRY(status, join(&s, &f));
  }
out:
  tfc_arena_deinit(&s.arena);
  return status;
}

static const struct tfc_rewrite rows[] = {{"attention", 9, false, join_attention}};
TFC_REWRITES(rows);
