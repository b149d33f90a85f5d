// Element-wise operations that follow on a kernel's output, in a form that the kernel's inner loop can run: on each
// vector of elements before it is written.
#ifndef TFC_RUNTIME_OPS_LAST_PASS_H
#define TFC_RUNTIME_OPS_LAST_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// y becomes ((y - center) * factor + shift) + tensor, and then 0 if it is not above 0 (`relu`), 6 if it is above 6
// (`six`), or y * slope if it is not above 0 (`leaky`). What is NULL or false is left out. Each operation rounds by
// itself, so the bits are those of the operations one after the other.
struct tfc_last_pass {
  const float *center, *factor, *shift; // an element for each column
  const float *tensor;                  // an element for each element of the output
  bool relu, six, leaky;                // `leaky` excludes the other two
  float slope;
};

// Where a tile of the output lies: `at` elements behind the output's first one, with `step` elements from row to row,
// and its first element is in column `column`.
struct tfc_last_tile {
  const struct tfc_last_pass *pass;
  int64_t at, step, column;
};

// Runs a last pass on `rows` x `vectors` vectors of floats in registers. `vector` is their type, with `lanes` floats
// and no alignment beyond a float's; VALUE(r, q) is vector q of row r. UNROLLED stands before loops with a constant
// number of rounds. The product and the sum are in different blocks, so that the compiler does not make a multiply-add
// of them.
#define TFC_LAST_PASS_RUN(tile, rows, vectors, vector, lanes, VALUE, UNROLLED)                                         \
  do {                                                                                                                 \
    const struct tfc_last_tile tile_ = (tile);                                                                         \
    const struct tfc_last_pass *const pass_ = tile_.pass;                                                              \
    if (pass_->center) TFC_LAST_EACH_(pass_->center, rows, vectors, vector, lanes, UNROLLED, VALUE(r_, q_) -= o_);     \
    if (pass_->factor) TFC_LAST_EACH_(pass_->factor, rows, vectors, vector, lanes, UNROLLED, VALUE(r_, q_) *= o_);     \
    if (pass_->shift) TFC_LAST_EACH_(pass_->shift, rows, vectors, vector, lanes, UNROLLED, VALUE(r_, q_) += o_);       \
    if (pass_->tensor)                                                                                                 \
      UNROLLED for (int r_ = 0; r_ < (rows); r_++) UNROLLED for (int q_ = 0; q_ < (vectors); q_++) VALUE(r_, q_) +=    \
          *(const vector *)(pass_->tensor + tile_.at + r_ * tile_.step + q_ * (lanes));                                \
    if (pass_->relu)                                                                                                   \
      UNROLLED for (int r_ = 0; r_ < (rows); r_++) UNROLLED for (int q_ = 0; q_ < (vectors); q_++) VALUE(r_, q_) =     \
          TFC_LAST_CHOOSE_(vector, VALUE(r_, q_) <= 0, (vector){0}, VALUE(r_, q_));                                    \
    if (pass_->six)                                                                                                    \
      UNROLLED for (int r_ = 0; r_ < (rows); r_++) UNROLLED for (int q_ = 0; q_ < (vectors); q_++) VALUE(r_, q_) =     \
          TFC_LAST_CHOOSE_(vector, VALUE(r_, q_) > 6, (vector){0} + 6, VALUE(r_, q_));                                 \
    if (pass_->leaky)                                                                                                  \
      UNROLLED for (int r_ = 0; r_ < (rows); r_++) UNROLLED for (int q_ = 0; q_ < (vectors); q_++) VALUE(r_, q_) =     \
          TFC_LAST_CHOOSE_(vector, VALUE(r_, q_) > 0, VALUE(r_, q_), VALUE(r_, q_) * pass_->slope);                    \
  } while (0)
#define TFC_LAST_EACH_(operand, rows, vectors, vector, lanes, UNROLLED, computation)                                   \
  UNROLLED for (int q_ = 0; q_ < (vectors); q_++) {                                                                    \
    const vector o_ = *(const vector *)((operand) + tile_.column + q_ * (lanes));                                      \
    UNROLLED for (int r_ = 0; r_ < (rows); r_++) computation;                                                          \
  }
// Each lane of `condition` is all ones or all zeros.
#define TFC_LAST_CHOOSE_(vector, condition, a, b)                                                                      \
  ((vector)(((condition) & (__typeof__(condition))(a)) | (~(condition) & (__typeof__(condition))(b))))

#endif
