#include "tests/common/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "tests/common/eval.h"
#include "tests/common/sample.h"

enum { POOL = 96, OPS = 24, BODY_OPS = 3, ELEMENTS = 4096 };

struct value {
  struct tfc_output o;
  tfc_dtype dtype;
  struct tfc_shape shape;
};
struct maker {
  struct tfc_builder *b;
  struct tfc_random random;
  struct value pool[POOL];
  uint32_t count;
  char frame[32]; // the frame of the loop that is being built, or ""
};

static uint32_t below(struct maker *m, uint32_t n) {
  return (uint32_t)tfc_random_below(&m->random, n);
}

// --- Which ops -----------------------------------------------------------------------------------------------------
static bool eligible(const struct tfc_op_def *def) {
  static const char *const left_out[] = {
      // ops whose errors depend on values
      "Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod", "Pow", "RealDiv", "Cholesky", "MatrixInverse",
      "MatrixSolve", "MatrixDeterminant", "MatrixTriangularSolve", "CheckNumerics", "Assert", "Bitcast", "LeftShift",
      "RightShift",
      // ops whose output shapes depend on values
      "Where", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "ListDiff", "DynamicPartition",
      "StringSplit", "StringSplitV2", "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3",
      "NonMaxSuppressionV4", "NonMaxSuppressionV5", "NonMaxSuppressionWithOverlaps", "SparseToDense", "TopK",
      "ApproximateEqual", "Bincount", "DenseBincount", "CTCLoss",
      // ops with output rows that TensorFlow does not initialise; ops without a CPU kernel in TensorFlow; ops whose
      // gradient differs if several elements are the maximum or the minimum
      "DynamicStitch", "ParallelDynamicStitch", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3",
      "DebugIdentity", "Print", "PrintV2",
      // ops that refuse singular matrices, which repeated rows make here, or that have several decompositions of these
      "Qr", "Svd", "Lu", "SelfAdjointEigV2", "LogMatrixDeterminant", "MatrixSolveLs", "MatrixSquareRoot",
      "TridiagonalSolve", "BandedTriangularSolve",
      // in this op, the number of rows comes from the logits, and a loop may change it, while labels of one row stay
      // one row
      "SoftmaxCrossEntropyWithLogits"};
  uint32_t flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_VARIABLE | TFC_OP_ASYNC | TFC_OP_SAVES | TFC_OP_SWITCH |
                   TFC_OP_MERGE | TFC_OP_ENTER | TFC_OP_EXIT | TFC_OP_NEXT_ITERATION | TFC_OP_LOOP_COND |
                   TFC_OP_FUNCTIONAL | TFC_OP_PLACEHOLDER | TFC_OP_HOST;
  if (!def->kernel || !def->samples || def->flags & flags || def->name[0] == '_') return false;
  if (strstr(def->inputs, "Ref(") || strstr(def->inputs, "resource") || strstr(def->inputs, "variant") ||
      strstr(def->outputs, "resource") || strstr(def->outputs, "variant"))
    return false;
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
    if (!strcmp(left_out[i], def->name)) return false;
  return true;
}

// Whether values of this type are passed from op to op.
static bool carried(tfc_dtype t) {
  return t == TFC_FLOAT || t == TFC_DOUBLE || t == TFC_INT32 || t == TFC_INT64 || t == TFC_BOOL;
}

// --- Nodes ---------------------------------------------------------------------------------------------------------
// Passes a value from outside into the loop by an Enter node.
static struct tfc_output enter(struct maker *m, struct tfc_output o, bool constant) {
  if (!m->frame[0]) return o;
  struct tfc_attr attrs[3] = {tfc_attr_string("frame_name", tfc_str_from(m->frame)),
                              tfc_attr_bool("is_constant", constant), tfc_attr_int("parallel_iterations", 4)};
  return tfc_add(m->b, "Enter", "", &o, 1, attrs, 3);
}
static struct tfc_output scalar(struct maker *m, tfc_dtype t, double v) {
  return enter(m, tfc_add_scalar(m->b, t, v), true);
}
static struct tfc_output ints(struct maker *m, const struct tfc_shape *s) {
  int32_t v[TFC_MAX_RANK];
  for (int d = 0; d < s->rank; d++) v[d] = (int32_t)s->dims[d];
  return enter(m, tfc_add_i32_vector(m->b, v, (uint32_t)s->rank), true);
}

// Computes floor(16 x + 0.2871) / 16 of x in [-4, 4], and 0 if x is not finite. The offset moves the borders between
// grid points to where no arithmetic on grid points can end.
static struct tfc_output to_grid(struct maker *m, struct tfc_output x, tfc_dtype t) {
  x = tfc_add3(m->b, "SelectV2", tfc_add1(m->b, "IsFinite", x), x, tfc_add1(m->b, "ZerosLike", x));
  x = tfc_add2(m->b, "Minimum", tfc_add2(m->b, "Maximum", x, scalar(m, t, -4)), scalar(m, t, 4));
  x = tfc_add2(m->b, "AddV2", tfc_add2(m->b, "Mul", x, scalar(m, t, 16)), scalar(m, t, 0.2871));
  return tfc_add2(m->b, "Mul", tfc_add1(m->b, "Floor", x), scalar(m, t, 0.0625));
}

// Returns `v`, repeated or cut to another shape.
static struct tfc_output reshaped(struct maker *m, const struct value *v, const struct tfc_shape *to) {
  if (tfc_shape_equal(&v->shape, to)) return v->o;
  int64_t have = tfc_shape_elements(&v->shape), want = tfc_shape_elements(to);
  struct tfc_output x = tfc_add2(m->b, "Reshape", v->o, ints(m, &TFC_SHAPE(have)));
  if (have < want) x = tfc_add2(m->b, "Tile", x, ints(m, &TFC_SHAPE((want + have - 1) / have)));
  if (have != want) x = tfc_add3(m->b, "Slice", x, ints(m, &TFC_SHAPE(0)), ints(m, &TFC_SHAPE(want)));
  return tfc_add2(m->b, "Reshape", x, ints(m, to));
}

static const struct value *pick(struct maker *m, tfc_dtype t, uint32_t first) {
  uint32_t found = 0, chosen = 0;
  for (uint32_t i = first; i < m->count; i++)
    if (m->pool[i].dtype == t && below(m, ++found) == 0) chosen = i;
  return found ? &m->pool[chosen] : NULL;
}

static void put(struct maker *m, struct tfc_output o, tfc_dtype t, const struct tfc_shape *shape) {
  int64_t n = tfc_shape_elements(shape);
  if (!carried(t) || n < 1 || n > ELEMENTS || m->count == POOL) return;
  if (t == TFC_FLOAT || t == TFC_DOUBLE) o = to_grid(m, o, t);
  m->pool[m->count++] = (struct value){o, t, *shape};
}

// Runs the op on its sample, to know the types and shapes of its outputs.
static tfc_status outputs_of(const struct tfc_op_def *def, int index, struct value *out, uint32_t *out_count) {
  struct tfc_graph *g = NULL;
  struct eval e = {0};
  uint32_t node;
  tfc_status s = NULL;
  TFC_TRY(s, sample_graph(def, def->samples, index, 7, &g, &node));
  TFC_TRY(s, eval_create(g, &e));
  *out_count = g->nodes[node].output_count;
  for (uint32_t i = 0; i < *out_count && i < SAMPLE_MOST; i++) {
    const struct tfc_tensor *t = NULL;
    TFC_TRY(s, eval_output(&e, (struct tfc_output){node, (int32_t)i}, &t));
    out[i] = (struct value){.dtype = t->dtype, .shape = t->shape};
  }
out:
  eval_deinit(&e);
  tfc_graph_release(g);
  return s;
}

// Adds a random op. Its inputs come from the pool, from place `first` on, if there are any of their type; otherwise
// they are constants.
static tfc_status add_op(struct maker *m, uint32_t first) {
  size_t rows;
  const struct tfc_op_def *const *list = tfc_op_list(&rows);
  const struct tfc_op_def *def = list[below(m, (uint32_t)rows)];
  struct sample sample = {0};
  struct value outputs[SAMPLE_MOST];
  struct tfc_output inputs[SAMPLE_MOST];
  uint32_t output_count = 0, bound = 0;
  tfc_status s = NULL;
  if (!eligible(def)) return NULL;
  int index = (int)below(m, (uint32_t)sample_count(def->samples));
  TFC_TRY(s, sample_read(def, def->samples, index, m->random.state[0], &sample));
  for (uint32_t i = 0; i < sample.input_count; i++) {
    const struct tfc_tensor *t = &sample.inputs[i];
    bool free = !sample.given[i] && carried(t->dtype) && tfc_tensor_elements(t);
    const struct value *v = free ? pick(m, t->dtype, first) : NULL;
    bound += v != NULL;
    inputs[i] = v ? reshaped(m, v, &t->shape) : enter(m, tfc_add_const(m->b, "", t), true);
  }
  // In a branch or loop, at least one input must come from inside; otherwise the op would not be part of it.
  if (first && !bound) goto out;
  TFC_TRY(s, outputs_of(def, index, outputs, &output_count));
  struct tfc_node_spec spec = {.op = def->name,
                               .inputs = inputs,
                               .input_count = sample.input_count,
                               .attrs = sample.attrs,
                               .attr_count = sample.attr_count,
                               .colocate_with = TFC_NONE};
  uint32_t node = tfc_builder_add(m->b, &spec);
  for (uint32_t i = 0; i < output_count && i < SAMPLE_MOST; i++)
    put(m, (struct tfc_output){node, (int32_t)i}, outputs[i].dtype, &outputs[i].shape);
out:
  sample_deinit(&sample);
  return s;
}

// --- Control flow --------------------------------------------------------------------------------------------------
// Makes a scalar bool that depends on a value.
static struct tfc_output predicate(struct maker *m, const struct value *v) {
  struct tfc_shape one = TFC_SHAPE_SCALAR;
  struct tfc_output x = reshaped(m, v, &one);
  if (v->dtype == TFC_BOOL) return x;
  return tfc_add2(m->b, "Less", x, scalar(m, v->dtype, 1));
}

// Adds random ops after `x`; the result is brought back to the type and shape of `x`.
static tfc_status body(struct maker *m, struct value x, struct tfc_output *out) {
  uint32_t kept = m->count;
  tfc_status s = NULL;
  if (kept == POOL) {
    *out = x.o;
    return NULL;
  }
  m->pool[m->count++] = x;
  for (int tries = 0; !s && tries < 200 && m->count < kept + 1 + BODY_OPS && m->count < POOL; tries++)
    s = add_op(m, kept);
  const struct value *last = NULL;
  for (uint32_t i = kept; i < m->count; i++)
    if (m->pool[i].dtype == x.dtype) last = &m->pool[i];
  *out = reshaped(m, last, &x.shape);
  m->count = kept; // ops outside of the loop must not use values from inside
  return s;
}

static tfc_status add_branch(struct maker *m) {
  const struct value v = m->pool[below(m, m->count)], by = m->pool[below(m, m->count)];
  struct tfc_output condition = predicate(m, &by), sides[2], ends[2];
  struct tfc_output in[2] = {v.o, condition};
  sides[0] = tfc_add(m->b, "Switch", "", in, 2, NULL, 0);
  sides[1] = (struct tfc_output){sides[0].node, 1};
  for (int i = 0; i < 2; i++) TFC_RETURN_IF_ERROR(body(m, (struct value){sides[i], v.dtype, v.shape}, &ends[i]));
  put(m, tfc_add(m->b, "Merge", "", ends, 2, NULL, 0), v.dtype, &v.shape);
  return NULL;
}

// Adds a loop: for (i = 0; i < n; i++) x = body(x).
static tfc_status add_loop(struct maker *m, uint32_t number) {
  const struct value v = m->pool[below(m, m->count)];
  snprintf(m->frame, sizeof m->frame, "loop%u", number);
  struct tfc_output zero = tfc_add_i32(m->b, 0);
  struct tfc_output i = enter(m, zero, false), x = enter(m, v.o, false), end;
  struct tfc_output merge_i = tfc_add(m->b, "Merge", "", (struct tfc_output[]){i, i}, 2, NULL, 0);
  struct tfc_output merge_x = tfc_add(m->b, "Merge", "", (struct tfc_output[]){x, x}, 2, NULL, 0);
  struct tfc_output more = tfc_add2(m->b, "Less", merge_i, scalar(m, TFC_INT32, 1 + below(m, 4)));
  struct tfc_output go = tfc_add1(m->b, "LoopCond", more);
  struct tfc_output switch_i = tfc_add2(m->b, "Switch", merge_i, go), switch_x = tfc_add2(m->b, "Switch", merge_x, go);
  struct tfc_output inside_i = tfc_add1(m->b, "Identity", (struct tfc_output){switch_i.node, 1});
  struct tfc_output inside_x = tfc_add1(m->b, "Identity", (struct tfc_output){switch_x.node, 1});
  struct tfc_output next_i = tfc_add2(m->b, "AddV2", inside_i, scalar(m, TFC_INT32, 1));
  TFC_RETURN_IF_ERROR(body(m, (struct value){inside_x, v.dtype, v.shape}, &end));
  tfc_builder_set_input(m->b, merge_i.node, 1, tfc_add1(m->b, "NextIteration", next_i));
  tfc_builder_set_input(m->b, merge_x.node, 1, tfc_add1(m->b, "NextIteration", end));
  m->frame[0] = 0;
  struct tfc_output out_i = tfc_add1(m->b, "Exit", switch_i), out_x = tfc_add1(m->b, "Exit", switch_x);
  put(m, out_i, TFC_INT32, &TFC_SHAPE_SCALAR);
  put(m, out_x, v.dtype, &v.shape);
  return NULL;
}

// --- A graph -------------------------------------------------------------------------------------------------------
static tfc_status begin(struct maker *m) {
  static const tfc_dtype types[] = {TFC_FLOAT, TFC_FLOAT, TFC_FLOAT, TFC_DOUBLE, TFC_INT32, TFC_INT64, TFC_BOOL};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    struct tfc_tensor t = {0};
    struct tfc_shape s = {.rank = (int)below(m, 4)};
    for (int d = 0; d < s.rank; d++) s.dims[d] = 1 + below(m, 5);
    TFC_RETURN_IF_ERROR(tfc_tensor_create(types[k], &s, &t));
    for (int64_t i = 0; i < tfc_tensor_elements(&t); i++) {
      int v = (int)below(m, 64) - 32;
      switch (types[k]) {
      case TFC_FLOAT: ((float *)t.data)[i] = (float)v / 16; break;
      case TFC_DOUBLE: ((double *)t.data)[i] = (double)v / 16; break;
      case TFC_INT32: ((int32_t *)t.data)[i] = v; break;
      case TFC_INT64: ((int64_t *)t.data)[i] = v; break;
      default: ((bool *)t.data)[i] = v > 0;
      }
    }
    m->pool[m->count++] = (struct value){tfc_add_const(m->b, "", &t), types[k], t.shape};
    tfc_tensor_release(&t);
  }
  return NULL;
}

tfc_status random_graph_make(uint64_t seed, struct random_graph *out) {
  struct maker m = {0};
  struct random_graph made = {0};
  tfc_status s = NULL;
  tfc_random_init(&m.random, seed);
  TFC_TRY(s, tfc_builder_create(NULL, &m.b));
  TFC_TRY(s, begin(&m));
  uint32_t first = m.count, loops = 0;
  for (int tries = 0; tries < 1000 && m.count < first + OPS; tries++) {
    uint32_t kind = below(&m, 100);
    if (kind < 2)
      TFC_TRY(s, add_branch(&m));
    else if (kind < 4)
      TFC_TRY(s, add_loop(&m, loops++));
    else
      TFC_TRY(s, add_op(&m, 0));
  }
  for (uint32_t i = m.count; i-- > first && made.fetch_count < RANDOM_GRAPH_FETCHES;)
    made.fetches[made.fetch_count++] = m.pool[i].o;
  TFC_TRY(s, tfc_builder_finish(m.b, &made.graph));
  *out = made;
out:
  tfc_builder_free(m.b);
  return s;
}

void random_graph_deinit(struct random_graph *g) {
  tfc_graph_release(g->graph);
  *g = (struct random_graph){0};
}
