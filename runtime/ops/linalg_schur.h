// The Schur form of a complex matrix: a = u t u* with u unitary and t upper triangular; the eigenvalues are t's
// diagonal.
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_LINALG_SCHUR_H
#define TFC_RUNTIME_OPS_LINALG_SCHUR_H

#include <stdbool.h>
#include <stdint.h>

// t [n, n] holds a and becomes t; u is [n, n]. Returns false if the iteration did not converge or a is not finite.
bool ops_linalg_schur(int64_t n, double _Complex *t, double _Complex *u);

#endif
