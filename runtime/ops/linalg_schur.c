// The matrix is first reduced to Hessenberg form by Householder reflections. QR steps with Wilkinson's shift follow,
// made of rotations: each moves the element that the one before left below the subdiagonal further down (Golub and Van
// Loan, "Matrix Computations", 7.4 and 7.5). Signs and phases are chosen as in Eigen's solvers, because TensorFlow
// returns their vectors.
#include "runtime/ops/linalg_schur.h"

#include <complex.h>
#include <float.h>
#include <math.h>

typedef double _Complex cplx;
enum { STEPS_PER_ROW = 30 };

static double square(cplx v) {
  return creal(v) * creal(v) + cimag(v) * cimag(v);
}
static double size_of(cplx v) {
  return fabs(creal(v)) + fabs(cimag(v));
}

// Reflects column k below the subdiagonal to 0: transforms t from both sides, and u.
static void reflect(int64_t n, int64_t k, cplx *t, cplx *u) {
  double tail = 0;
  cplx first = t[(k + 1) * n + k];
  for (int64_t i = k + 2; i < n; i++) tail += square(t[i * n + k]);
  if (tail <= DBL_MIN && cimag(first) * cimag(first) <= DBL_MIN) {
    for (int64_t i = k + 2; i < n; i++) t[i * n + k] = 0;
    return;
  }
  double beta = sqrt(square(first) + tail);
  if (creal(first) >= 0) beta = -beta;
  const cplx tau = conj((beta - first) / beta), scale = 1 / (first - beta);
  // H = I - tau v v* with v = (1, column / (first - beta)); v is stored in place of the column while it is needed
  for (int64_t i = k + 2; i < n; i++) t[i * n + k] *= scale;
#define V(i) ((i) == k + 1 ? 1 : t[(i)*n + k])
  for (int64_t c = k + 1; c < n; c++) {
    cplx dot = 0;
    for (int64_t i = k + 1; i < n; i++) dot += conj(V(i)) * t[i * n + c];
    for (int64_t i = k + 1; i < n; i++) t[i * n + c] -= tau * dot * V(i);
  }
  for (int side = 0; side < 2; side++) {
    cplx *x = side == 0 ? t : u; // multiply by H* from the right
    for (int64_t r = 0; r < n; r++) {
      cplx dot = 0;
      for (int64_t i = k + 1; i < n; i++) dot += x[r * n + i] * V(i);
      for (int64_t i = k + 1; i < n; i++) x[r * n + i] -= conj(tau) * dot * conj(V(i));
    }
  }
#undef V
  t[(k + 1) * n + k] = beta;
  for (int64_t i = k + 2; i < n; i++) t[i * n + k] = 0;
}

struct rotation {
  double c;
  cplx s;
};
// Returns the rotation that turns (p, q) into (*out, 0).
static struct rotation rotation_of(cplx p, cplx q, cplx *out) {
  struct rotation r;
  if (q == 0) {
    r = (struct rotation){creal(p) < 0 ? -1 : 1, 0};
    *out = r.c * p;
  } else if (p == 0) {
    r = (struct rotation){0, -q / cabs(q)};
    *out = cabs(q);
  } else {
    const double size = size_of(p) >= size_of(q) ? size_of(p) : size_of(q), length = cabs(p / size);
    double u = size * sqrt(square(p / size) + square(q / size));
    if (creal(p) < 0) u = -u;
    const cplx phase = p / size / length;
    r = (struct rotation){length * size / u, -conj(phase) * (q / u)};
    *out = phase * u;
  }
  return r;
}
static void turn_rows(int64_t n, cplx *x, int64_t i, int64_t from, struct rotation r) {
  for (int64_t c = from; c < n; c++) {
    const cplx a = x[i * n + c], b = x[(i + 1) * n + c];
    x[i * n + c] = r.c * a - conj(r.s) * b;
    x[(i + 1) * n + c] = r.s * a + r.c * b;
  }
}
static void turn_columns(int64_t n, cplx *x, int64_t i, int64_t rows, struct rotation r) {
  for (int64_t k = 0; k < rows; k++) {
    const cplx a = x[k * n + i], b = x[k * n + i + 1];
    x[k * n + i] = r.c * a - r.s * b;
    x[k * n + i + 1] = conj(r.s) * a + r.c * b;
  }
}

static bool negligible(int64_t n, cplx *t, int64_t i) { // the subdiagonal's element below t[i, i]
  cplx *below = &t[(i + 1) * n + i];
  if (size_of(*below) > DBL_EPSILON * (size_of(t[i * n + i]) + size_of(t[(i + 1) * n + i + 1]))) return false;
  *below = 0;
  return true;
}
// Of the eigenvalues of the 2 x 2 block that ends at `end`, returns the one that is nearer to the block's last element.
static cplx shift_of(int64_t n, const cplx *t, int64_t end, int step) {
  const cplx *above = &t[(end - 1) * n + end - 1], *last = &t[end * n + end - 1];
  if (step == 10 || step == 20) // an exceptional shift, because the iteration does not converge
    return fabs(creal(last[0])) + (end > 1 ? fabs(creal(t[(end - 1) * n + end - 2])) : 0);
  const double size = cabs(above[0]) + cabs(above[1]) + cabs(last[0]) + cabs(last[1]);
  if (size == 0) return 0;
  const cplx a = above[0] / size, b = above[1] / size * (last[0] / size), d = last[1] / size;
  const cplx root = csqrt((a - d) * (a - d) + 4 * b), determinant = a * d - b;
  cplx one = (a + d + root) / 2, other = (a + d - root) / 2;
  if (size_of(one) > size_of(other))
    other = determinant / one;
  else if (other != 0)
    one = determinant / other;
  return size * (size_of(one - d) < size_of(other - d) ? one : other);
}

bool ops_linalg_schur(int64_t n, cplx *t, cplx *u) {
  for (int64_t i = 0; i < n * n; i++) {
    if (!isfinite(creal(t[i])) || !isfinite(cimag(t[i]))) return false;
    u[i] = i % (n + 1) == 0;
  }
  for (int64_t k = 0; k + 1 < n; k++) reflect(n, k, t, u);
  int64_t left = STEPS_PER_ROW * n;
  int step = 0;
  for (int64_t end = n - 1; end > 0;) {
    if (negligible(n, t, end - 1)) {
      end--;
      step = 0;
      continue;
    }
    if (left-- == 0) return false;
    int64_t begin = end - 1;
    while (begin > 0 && !negligible(n, t, begin - 1)) begin--;
    const cplx shift = shift_of(n, t, end, ++step);
    for (int64_t i = begin; i < end; i++) {
      cplx unused;
      struct rotation r;
      if (i == begin) {
        r = rotation_of(t[i * n + i] - shift, t[(i + 1) * n + i], &unused);
      } else {
        r = rotation_of(t[i * n + i - 1], t[(i + 1) * n + i - 1], &t[i * n + i - 1]);
        t[(i + 1) * n + i - 1] = 0;
      }
      turn_rows(n, t, i, i, r);
      turn_columns(n, t, i, (i + 2 < end ? i + 2 : end) + 1, r);
      turn_columns(n, u, i, n, r);
    }
  }
  return true;
}
