// Combines rows of a tensor, for all families of segment operations. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_SEGMENT_ROWS_H
#define TFC_RUNTIME_OPS_SEGMENT_ROWS_H

#include "runtime/ops/kernel.h"

enum ops_combine { OPS_COMBINE_SUM, OPS_COMBINE_PROD, OPS_COMBINE_MAX, OPS_COMBINE_MIN };

// y[i] = y[i] combined with x[i], i < n
typedef void ops_combine_fn(void *y, const void *x, int64_t n);
ops_combine_fn *ops_combine_loop(enum ops_combine how, tfc_dtype dtype); // NULL: the type is not supported
// Fills y[0 … n) with the result for no rows: 0, 1, the least or the greatest value.
void ops_combine_identity(enum ops_combine how, tfc_dtype dtype, void *y, int64_t n);
// y[i] = y[i] * factor (floating and integer types; for means, `divide` instead)
void ops_scale_rows(tfc_dtype dtype, void *y, int64_t n, double factor, bool divide);

#endif
