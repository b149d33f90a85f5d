#include "runtime/host/chain/chain.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/base/none.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/nn_leaky.h"

enum { widest = 8, most_repeated = 8 }; // most bytes of an element; most operands that are written out

static bool continues(const struct tfc_chain_operand *o, int64_t columns) {
  return !o->each && ((o->column == 1 && o->row == columns) || (o->column == 0 && o->row == 0));
}

// Whether a block of several rows needs a copy of this operand in which its rows follow each other: rows of the operand
// are used several times, or are one number each, or do not follow each other in memory.
static bool repeats(const struct tfc_chain_operand *o, int64_t columns) {
  return o->size == sizeof(float) && !continues(o, columns);
}

// --- Normalisations ------------------------------------------------------------------------------------------------
// A normalisation computes each element by the same operations as the loops of its steps, so the bits are the same.
#define NORM_LOOP(name, result)                                                                                        \
  OPS_CLONES static void name(const float *x, const float *center, const float *factor, const float *shift,            \
                              float *out, int64_t n) {                                                                 \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) { /* out may be x */                                          \
      const float v = (x[i] - center[i]) * factor[i] + shift[i];                                                       \
      out[i] = result;                                                                                                 \
    }                                                                                                                  \
  }
NORM_LOOP(norm, v)
#define RELU (!(v <= 0) ? v : 0) // for NaN the result is NaN
NORM_LOOP(norm_relu, RELU)
NORM_LOOP(norm_relu6, v > 6 ? 6 : RELU)

struct loops { // the loops of the ops that a normalisation and a last pass consist of
  tfc_binary_loop *sub, *mul, *add, *bias, *leaky_relu;
  tfc_unary_loop *relu, *relu6;
};
static struct loops known_loops;
static pthread_once_t known_once = PTHREAD_ONCE_INIT;
static void know_loops(void) {
  known_loops = (struct loops){tfc_op_find(TFC_STR("Sub"))->elementwise->binary[TFC_FLOAT],
                               tfc_op_find(TFC_STR("Mul"))->elementwise->binary[TFC_FLOAT],
                               tfc_op_find(TFC_STR("AddV2"))->elementwise->binary[TFC_FLOAT],
                               tfc_op_find(TFC_STR("BiasAdd"))->elementwise->binary[TFC_FLOAT],
                               tfc_leaky_relu_loops.binary[TFC_FLOAT],
                               tfc_op_find(TFC_STR("Relu"))->elementwise->unary[TFC_FLOAT],
                               tfc_op_find(TFC_STR("Relu6"))->elementwise->unary[TFC_FLOAT]};
}
static struct loops find_loops(void) {
  pthread_once(&known_once, know_loops);
  return known_loops;
}

// Whether step `from` or a later one reads the register before it is written again.
static bool is_read(const struct tfc_chain *chain, uint16_t from, int16_t place) {
  for (uint16_t i = from; i < chain->step_count; i++) {
    const struct tfc_chain_step *s = &chain->steps[i];
    if (s->a == place || (s->binary && s->b == place)) return true;
    if (s->out == place) return false;
  }
  return false;
}

static bool is_vector(const struct tfc_chain *chain, int16_t place) {
  return place < 0 || (chain->operands[place].column == 1 && chain->operands[place].size == sizeof(float));
}

// Returns how many steps, from step `at` on, form a normalisation, and sets *out to the one step that replaces them; 0:
// they form none.
static uint16_t norm_at(const struct tfc_chain *chain, const struct loops *l, uint16_t at, struct tfc_chain_step *out) {
  const struct tfc_chain_step *s = chain->steps + at;
  if (at + 3 > chain->step_count || s[0].binary != l->sub || s[1].binary != l->mul || s[2].binary != l->add) return 0;
  if (s[0].out >= 0 || s[1].out >= 0 || s[1].a != s[0].out || s[2].a != s[1].out) return 0;
  if (s[1].b == s[0].out || s[2].b == s[0].out || s[2].b == s[1].out) return 0;
  if (!is_vector(chain, s[0].a) || !is_vector(chain, s[0].b) || !is_vector(chain, s[1].b) || !is_vector(chain, s[2].b))
    return 0;
  if (s[1].out != s[0].out && s[2].out != s[0].out && is_read(chain, at + 3, s[0].out)) return 0;
  if (s[2].out != s[1].out && is_read(chain, at + 3, s[1].out)) return 0;
  *out = s[2];
  out->binary = NULL, out->norm = norm, out->a = s[0].a, out->b = s[0].b, out->c = s[1].b, out->d = s[2].b;
  const bool more = at + 3 < chain->step_count && s[2].out < 0 && s[3].a == s[2].out && s[3].unary &&
                    (s[3].unary == l->relu || s[3].unary == l->relu6);
  if (!more || (s[3].out != s[2].out && is_read(chain, at + 4, s[2].out))) return 3;
  out->norm = s[3].unary == l->relu ? norm_relu : norm_relu6;
  out->out = s[3].out;
  return 4;
}

void tfc_chain_join(struct tfc_chain *chain) {
  const struct loops loops = find_loops();
  uint16_t kept = 0;
  for (uint16_t i = 0, taken; i < chain->step_count; i = (uint16_t)(i + taken)) {
    struct tfc_chain_step joined;
    taken = norm_at(chain, &loops, i, &joined);
    chain->steps[kept++] = taken ? joined : chain->steps[i];
    if (!taken) taken = 1;
  }
  chain->step_count = kept;
}

// --- Last passes ---------------------------------------------------------------------------------------------------
struct last { // a last pass, as far as it is found
  const struct tfc_chain_finish *finish;
  void *const *inputs;
  struct tfc_last_pass *pass;
};

// Whether the operand has an element for each of the operation's output, in the same order.
static bool is_tensor(const struct tfc_chain_finish *f, const struct tfc_chain_operand *o) {
  return o->size == sizeof(float) && o->column == 1 && o->row == f->columns && !o->each && !o->offset;
}
static bool is_output(const struct tfc_chain_finish *f, int16_t place) {
  if (place < 0) return false;
  const struct tfc_chain_operand *o = &f->chain.operands[place];
  return o->tensor < f->input_count && f->from[o->tensor] == TFC_NONE && is_tensor(f, o);
}

// Returns the operand if it has an element for each column; NULL: it has not.
static const float *row_of_columns(const struct last *l, int16_t place) {
  const struct tfc_chain_finish *f = l->finish;
  if (place < 0 || f->chain.columns != f->columns) return NULL;
  const struct tfc_chain_operand *o = &f->chain.operands[place];
  if (o->size != sizeof(float) || o->column != 1 || o->row || o->each) return NULL;
  if (o->tensor >= f->input_count || f->from[o->tensor] == TFC_NONE) return NULL;
  return (const float *)l->inputs[o->tensor] + o->offset;
}

static bool is_rectified(const struct tfc_last_pass *p) {
  return p->relu || p->leaky;
}

// The next functions add one operation to the pass; false: that operation cannot follow what the pass has already.
static bool add_center(const struct last *l, int16_t place) {
  struct tfc_last_pass *p = l->pass;
  if (p->center || p->factor || p->shift || p->tensor || is_rectified(p)) return false;
  return (p->center = row_of_columns(l, place)) != NULL;
}
static bool add_factor(const struct last *l, int16_t place) {
  struct tfc_last_pass *p = l->pass;
  if (p->factor || p->shift || p->tensor || is_rectified(p)) return false;
  return (p->factor = row_of_columns(l, place)) != NULL;
}
static bool add_sum(const struct last *l, int16_t place) {
  const struct tfc_chain_finish *f = l->finish;
  struct tfc_last_pass *p = l->pass;
  if (p->tensor || is_rectified(p)) return false;
  if (!p->shift && (p->shift = row_of_columns(l, place))) return true;
  if (place < 0 || !is_tensor(f, &f->chain.operands[place])) return false;
  const uint16_t tensor = f->chain.operands[place].tensor;
  if (tensor >= f->input_count || f->from[tensor] == TFC_NONE) return false;
  return (p->tensor = l->inputs[tensor]) != NULL;
}
static bool add_relu(const struct last *l, bool six) {
  if (is_rectified(l->pass)) return false;
  l->pass->relu = true, l->pass->six = six;
  return true;
}
static bool add_leaky(const struct last *l, int16_t place) {
  const struct tfc_chain_finish *f = l->finish;
  if (place < 0 || is_rectified(l->pass)) return false;
  const struct tfc_chain_operand *o = &f->chain.operands[place];
  if (o->size != sizeof(float) || o->column || o->row || o->each) return false;
  if (o->tensor >= f->input_count || f->from[o->tensor] == TFC_NONE) return false;
  l->pass->leaky = true, l->pass->slope = ((const float *)l->inputs[o->tensor])[o->offset];
  return true;
}

bool tfc_chain_last_pass(const struct tfc_chain_finish *f, void *const *inputs, struct tfc_last_pass *out) {
  const struct loops loops = find_loops();
  *out = (struct tfc_last_pass){NULL};
  const struct last l = {f, inputs, out};
  int16_t value = 0; // where the step before has written
  for (uint16_t i = 0; i < f->chain.step_count; i++) {
    const struct tfc_chain_step *s = &f->chain.steps[i];
    const bool sum = s->binary == loops.add || s->binary == loops.bias, product = s->binary == loops.mul;
    int16_t a = s->a, b = s->b;
    if ((sum || product) && (i ? b == value : is_output(f, b))) a = s->b, b = s->a;
    if (i ? value >= 0 || a != value : !is_output(f, a)) return false;
    bool can = false;
    if (s->norm)
      can = add_center(&l, s->b) && add_factor(&l, s->c) && add_sum(&l, s->d) && out->shift &&
            (s->norm == norm || add_relu(&l, s->norm == norm_relu6));
    else if (s->unary)
      can = (s->unary == loops.relu || s->unary == loops.relu6) && add_relu(&l, s->unary == loops.relu6);
    else
      can = sum                             ? add_sum(&l, b)
            : product                       ? add_factor(&l, b)
            : s->binary == loops.leaky_relu ? add_leaky(&l, b)
                                            : s->binary == loops.sub && add_center(&l, b);
    if (!can) return false;
    value = s->out;
  }
  if (!f->chain.step_count || value < 0) return false;
  const struct tfc_chain_operand *result = &f->chain.operands[value];
  return result->tensor == f->input_count && is_tensor(f, result);
}

void tfc_chain_flatten(struct tfc_chain *chain) {
  uint16_t whole = 0, repeated = 0;
  for (uint16_t i = 0; i < chain->operand_count; i++) {
    whole = (uint16_t)(whole + continues(&chain->operands[i], chain->columns));
    repeated = (uint16_t)(repeated + repeats(&chain->operands[i], chain->columns));
  }
  if (whole == chain->operand_count) {
    chain->columns *= chain->rows;
    chain->rows = 1;
  } else if (whole + repeated == chain->operand_count && repeated <= most_repeated && chain->columns > 0) {
    chain->together = TFC_CHAIN_BLOCK / chain->columns;
  }
}

static int64_t blocks_of_row(const struct tfc_chain *chain) {
  return (chain->columns + TFC_CHAIN_BLOCK - 1) / TFC_CHAIN_BLOCK;
}

int64_t tfc_chain_blocks(const struct tfc_chain *chain) {
  if (chain->together > 1) return (chain->rows + chain->together - 1) / chain->together;
  return chain->rows * blocks_of_row(chain);
}

struct place {
  void *data;
  int64_t step;
};

// The copies of operands that a block of several rows needs (see `repeats`).
struct repeated {
  _Alignas(64) float rows[most_repeated][TFC_CHAIN_BLOCK];
};

// transposed: the operand that is read at `to`; TFC_NONE: each is read where it is. `repeated`: NULL, or the copies of
// the operands that need one, in the order of the operands.
static void run_block(const struct tfc_chain *chain, void *const *tensors, int64_t row, int64_t column, int64_t n,
                      uint32_t transposed, void *to, struct repeated *repeated) {
  _Alignas(64) char registers[TFC_CHAIN_REGISTERS][TFC_CHAIN_BLOCK * widest];
  struct place places[TFC_CHAIN_OPERANDS];
  uint16_t next = 0;
  for (uint16_t i = 0; i < chain->operand_count; i++) {
    const struct tfc_chain_operand *o = &chain->operands[i];
    int64_t at = o->offset + (o->each ? row / o->each % o->cycle : row) * o->row + column * o->column;
    places[i] = (struct place){i == transposed ? to : (char *)tensors[o->tensor] + at * o->size, o->column};
    if (repeated && repeats(o, chain->columns)) places[i] = (struct place){repeated->rows[next++], 1};
  }
  for (uint16_t i = 0; i < chain->step_count; i++) {
    const struct tfc_chain_step *s = &chain->steps[i];
    struct place a = s->a >= 0 ? places[s->a] : (struct place){registers[-1 - s->a], 1};
    void *out = s->out >= 0 ? places[s->out].data : registers[-1 - s->out];
    if (s->unary) {
      s->unary(a.data, out, n);
    } else if (s->norm) {
      const void *operands[3];
      const int16_t from[3] = {s->b, s->c, s->d};
      for (int k = 0; k < 3; k++) operands[k] = from[k] >= 0 ? places[from[k]].data : registers[-1 - from[k]];
      s->norm(a.data, operands[0], operands[1], operands[2], out, n);
    } else {
      struct place b = s->b >= 0 ? places[s->b] : (struct place){registers[-1 - s->b], 1};
      s->binary(a.data, a.step, b.data, b.step, out, n);
    }
  }
}

// Returns the row of an operand that row `row` of the space uses.
static int64_t row_of(const struct tfc_chain_operand *o, int64_t row) {
  return o->each ? row / o->each % o->cycle : o->row ? row : 0;
}

static void write_out(const struct tfc_chain_operand *o, const float *from, int64_t row, int64_t count, int64_t columns,
                      float *to) {
  for (int64_t r = 0; r < count; r++, to += columns) {
    const float *at = from + o->offset + row_of(o, row + r) * o->row;
    if (o->column == 1)
      memcpy(to, at, (size_t)columns * sizeof *to);
    else
      for (int64_t c = 0; c < columns; c++) to[c] = *at;
  }
}

// Runs rows [begin, end), chain->together of them at a time.
static void run_together(const struct tfc_chain *chain, void *const *tensors, int64_t begin, int64_t end) {
  struct repeated repeated;
  int64_t written[most_repeated]; // the only row of the operand that its copy has; -1: it has several
  for (int k = 0; k < most_repeated; k++) written[k] = -1;
  for (int64_t row = begin; row < end; row += chain->together) {
    const int64_t left = end - row;
    const int64_t count = left < chain->together ? left : chain->together;
    for (uint16_t k = 0, next = 0; k < chain->operand_count; k++) {
      const struct tfc_chain_operand *o = &chain->operands[k];
      if (!repeats(o, chain->columns)) continue;
      const int64_t first = row_of(o, row), last = row_of(o, row + count - 1);
      const bool one = first == last && (o->row == 0 || (o->each && row / o->each == (row + count - 1) / o->each));
      if (!one || written[next] != first)
        write_out(o, tensors[o->tensor], row, count, chain->columns, repeated.rows[next]);
      // The last block may be shorter; no block after it uses its copy.
      written[next++] = one ? first : -1;
    }
    run_block(chain, tensors, row, 0, count * chain->columns, TFC_NONE, NULL, &repeated);
  }
}

void tfc_chain_run(const struct tfc_chain *chain, void *const *tensors, int64_t begin, int64_t end) {
  if (begin < end && chain->together > 1) {
    const int64_t last = end * chain->together;
    run_together(chain, tensors, begin * chain->together, last < chain->rows ? last : chain->rows);
    return;
  }
  int64_t per_row = blocks_of_row(chain);
  if (begin >= end) return;
  int64_t row = begin / per_row, block = begin % per_row;
  for (int64_t i = begin; i < end; i++) {
    int64_t column = block * TFC_CHAIN_BLOCK, n = chain->columns - column;
    run_block(chain, tensors, row, column, n < TFC_CHAIN_BLOCK ? n : TFC_CHAIN_BLOCK, TFC_NONE, NULL, NULL);
    if (++block == per_row) block = 0, row++;
  }
}

// Runs columns [first, last) of one row.
static void run_columns(const struct tfc_chain *chain, void *const *tensors, int64_t row, int64_t first, int64_t last) {
  for (int64_t at = first; at < last; at += TFC_CHAIN_BLOCK)
    run_block(chain, tensors, row, at, last - at < TFC_CHAIN_BLOCK ? last - at : TFC_CHAIN_BLOCK, TFC_NONE, NULL, NULL);
}

void tfc_chain_run_rows(const struct tfc_chain *chain, void *const *tensors, int64_t columns, int64_t begin,
                        int64_t end) {
  if (chain->columns != columns)
    run_columns(chain, tensors, 0, begin * columns, end * columns);
  else if (chain->together > 1)
    run_together(chain, tensors, begin, end);
  else
    for (int64_t row = begin; row < end; row++) run_columns(chain, tensors, row, 0, columns);
}

void tfc_chain_run_into(const struct tfc_chain *chain, void *const *tensors, int64_t first, int64_t count,
                        uint16_t operand, void *out) {
  run_block(chain, tensors, 0, first, count, operand, out, NULL);
}
