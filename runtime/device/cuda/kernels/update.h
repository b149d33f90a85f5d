// Optimizer updates of variables, dense or by rows; and scatters, gathers and one-hot tensors.
//
// Updates of rows by index are deterministic: positions are sorted by the row that they refer to, and the thread with
// the first position of a row handles all positions of the row, in their order. (An index out of range is skipped, as
// in TensorFlow's GPU kernels.)
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_UPDATE_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_UPDATE_H

#include "runtime/device/cuda/kernels/types.h"

// name, number of slots (without var), number of scalars. TFC_CUDA_ROW_RULES: the rules that have sparse ops;
// TFC_CUDA_RULES: all.
#define TFC_CUDA_ROW_RULES(X)                                                                                          \
  X(Momentum, 1, 2)                                                                                                    \
  X(KerasMomentum, 1, 2)                                                                                               \
  X(Adagrad, 1, 1)                                                                                                     \
  X(AdagradV2, 1, 2)                                                                                                   \
  X(Adadelta, 2, 3)                                                                                                    \
  X(RMSProp, 2, 4)                                                                                                     \
  X(CenteredRMSProp, 3, 4)                                                                                             \
  X(ProximalGradientDescent, 0, 3)                                                                                     \
  X(ProximalAdagrad, 1, 3)                                                                                             \
  X(Ftrl, 2, 4)                                                                                                        \
  X(FtrlV2, 2, 5)                                                                                                      \
  X(AdagradDA, 2, 4)
#define TFC_CUDA_RULES(X)                                                                                              \
  TFC_CUDA_ROW_RULES(X)                                                                                                \
  X(GradientDescent, 0, 1)                                                                                             \
  X(Adam, 2, 6)                                                                                                        \
  X(AdamWithAmsgrad, 3, 6)                                                                                             \
  X(AdaMax, 2, 5)                                                                                                      \
  X(AddSign, 1, 4)                                                                                                     \
  X(PowerSign, 1, 4)
enum tfc_cuda_rule {
#define TFC_CUDA_RULE_ENUM(name, slots, scalars) TFC_CUDA_RULE_##name,
  TFC_CUDA_RULES(TFC_CUDA_RULE_ENUM)
#undef TFC_CUDA_RULE_ENUM
      TFC_CUDA_RULE_COUNT
};

// Positions sorted by row: place k has position[k], whose index is row[k]. Positions with a row out of range come last,
// with the row `none`.
struct tfc_cuda_runs {
  int64_t positions;
  const uint32_t *row;
  const int32_t *position;
  uint32_t none;
};
// tfc_cuda_runs_bytes: bytes of `memory`, in which positions are sorted; the result points into it. There must be fewer
// than 2^31 positions and fewer than 2^32 - 1 rows.
TFC_CUDA_API int tfc_cuda_runs_bytes(int64_t positions, size_t *out);
TFC_CUDA_API int tfc_cuda_make_runs(int index_type, const void *indices, int64_t positions, int64_t rows, void *memory,
                                    struct tfc_cuda_runs *out, void *stream);

struct tfc_cuda_update {
  void *var, *slots[3];
  const void *grad;
  const void *scale;      // a number by which the gradient is multiplied first; NULL: it is not
  const void *scalars[6]; // in device memory, of the variable's type (except those of `longs`)
  uint32_t longs;         // bit i: scalar i is an int64 (a number of steps)
  int64_t count;          // elements of the variable; for updates by rows: of one row
  bool flag;              // use_nesterov, update_slots or multiply_linear_by_lr
  // Rows: grad [positions, count], each of which updates its row of var [rows, count].
  struct tfc_cuda_runs runs;
};
// Dense updates of several variables in one launch, passed to the kernel by value. Block b works on the first of them
// whose `ends` is greater than b. No update may read or write memory that another one writes.
enum { TFC_CUDA_UPDATES = 32 };
struct tfc_cuda_dense {
  void *var, *slots[3];
  const void *grad, *scale;
  const void *scalars[6];
  int64_t count;
};
struct tfc_cuda_updates {
  int32_t count;
  uint32_t longs; // these two as in struct tfc_cuda_update, the same for all
  bool flag;
  int32_t ends[TFC_CUDA_UPDATES]; // set by tfc_cuda_apply
  struct tfc_cuda_dense items[TFC_CUDA_UPDATES];
};
TFC_CUDA_API int tfc_cuda_apply(int rule, int type, struct tfc_cuda_updates *list, void *stream);
TFC_CUDA_API int tfc_cuda_apply_rows(int rule, int type, const struct tfc_cuda_update *u, void *stream);

enum tfc_cuda_combine {
  TFC_CUDA_COMBINE_UPDATE,
  TFC_CUDA_COMBINE_ADD,
  TFC_CUDA_COMBINE_SUB,
  TFC_CUDA_COMBINE_MUL,
  TFC_CUDA_COMBINE_DIV,
  TFC_CUDA_COMBINE_MIN,
  TFC_CUDA_COMBINE_MAX,
};
// Combines rows of var [rows, width] with updates ([positions, width], or one value for all).
struct tfc_cuda_scatter {
  void *var;
  const void *updates;
  struct tfc_cuda_runs runs;
  int64_t width;
  bool scalar;
};
TFC_CUDA_API int tfc_cuda_scatter_rows(int how, int type, const struct tfc_cuda_scatter *s, void *stream);
// Fills y with the identity element of the combination (0 for a sum), which is its result if there are no updates.
TFC_CUDA_API int tfc_cuda_combine_identity(int how, int type, void *y, int64_t n, void *stream);

// Converts index tuples to row numbers: flat[i] = the row-major position of indices[i, 0 … depth) in dims; -1: an index
// of the tuple is out of range.
struct tfc_cuda_tuples {
  int64_t positions;
  int32_t depth;
  int64_t dims[TFC_CUDA_RANK];
};
TFC_CUDA_API int tfc_cuda_flatten(int index_type, const struct tfc_cuda_tuples *t, const void *indices, int64_t *flat,
                                  void *stream);

// y [batch, outer, count, inner] = x [batch, outer, axis, inner] at indices [batch, count]; 0 for an index out of
// range. Elements have `size` bytes.
struct tfc_cuda_gather {
  int64_t batch, outer, count, axis, inner;
  int32_t size;
};
TFC_CUDA_API int tfc_cuda_gather_rows(int index_type, const struct tfc_cuda_gather *g, const void *x,
                                      const void *indices, void *y, void *stream);
// y [outer, depth, inner]: `on` if indices [outer, inner] equals the position along depth, else `off`. Both values are
// in device memory.
TFC_CUDA_API int tfc_cuda_one_hot(int size, int index_type, int64_t outer, int64_t depth, int64_t inner,
                                  const void *indices, const void *on, const void *off, void *y, void *stream);

#endif
