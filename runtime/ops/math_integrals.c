// Bessel functions and integrals. Each function chooses, by where x lies, a sum that converges fast. Formulas are those
// of Abramowitz and Stegun 1964 (by their numbers below) and, for the continued fractions, of Press et al., "Numerical
// Recipes".
#include "runtime/ops/math_integrals.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/math_special.h"

double ops_bessel_i0(double x) {
  return exp(fabs(x)) * ops_bessel_i0e(x);
}
double ops_bessel_i1(double x) {
  return exp(fabs(x)) * ops_bessel_i1e(x);
}
double ops_bessel_j0(double x) {
  return isinf(x) ? NAN : j0(x); // NaN, as the asymptotic series gives
}
double ops_bessel_j1(double x) {
  return isinf(x) ? NAN : j1(x);
}
double ops_bessel_y0(double x) {
  return x <= 0 ? -INFINITY : isinf(x) ? NAN : y0(x);
}
double ops_bessel_y1(double x) {
  return x <= 0 ? -INFINITY : isinf(x) ? NAN : y1(x);
}

// 9.6.24: e^x K_n(x) = ∫ e^(-x (cosh t - 1)) cosh nt dt over t > 0. The trapezoidal rule converges exponentially: the
// integrand is entire and falls like a double exponential, or like a bell of width 1/√x.
static double bessel_k(int n, double x) {
  if (isnan(x)) return NAN;
  if (x <= 0) return INFINITY;
  if (isinf(x)) return 0;
  double step = fmin(0.125, 0.5 / sqrt(x)), sum = 0.5;
  for (int i = 1; i < 20000; i++) {
    double t = i * step, rise = sinh(t / 2); // cosh t - 1 = 2 sinh²(t/2)
    double term = exp(-2 * x * rise * rise) * (n ? cosh(t) : 1);
    sum += term;
    if (term < 1e-18 * sum && 2 * x * rise * rise > 1) break;
  }
  return sum * step;
}
double ops_bessel_k0e(double x) {
  return bessel_k(0, x);
}
double ops_bessel_k1e(double x) {
  return bessel_k(1, x);
}
double ops_bessel_k0(double x) {
  return x <= 0 ? INFINITY : exp(-x) * bessel_k(0, x);
}
double ops_bessel_k1(double x) {
  return x <= 0 ? INFINITY : exp(-x) * bessel_k(1, x);
}

// Rybicki 1989: π^-½ Σ e^(-(x - n h)²)/n over odd n, with an error of e^(-(π/2h)²).
double ops_dawsn(double x) {
  if (isnan(x)) return x;
  double size = fabs(x);
  if (size > 1e4) return (1 + 0.5 / (x * x)) / (2 * x);
  if (size < 0.25) {
    double term = x, sum = x;
    for (int k = 1; k < 30; k++) {
      term *= -2 * x * x / (2 * k + 1);
      sum += term;
    }
    return sum;
  }
  const double step = 0.25;
  double sum = 0;
  long middle = lround(size / step) | 1;
  for (long n = middle - 30; n <= middle + 30; n += 2) {
    double off = size - (double)n * step;
    sum += exp(-off * off) / (double)n;
  }
  return copysign(sum * 0.56418958354775628695, x);
}

double ops_expint(double x) { // 5.1.10, and 5.1.51 for large x
  const double euler = 0.57721566490153286061;
  if (isnan(x) || x < 0) return NAN;
  if (x == 0) return -INFINITY;
  if (isinf(x)) return INFINITY;
  double term = 1, sum = 0;
  if (x < 40) {
    for (int k = 1; k < 300; k++) {
      term *= x / k;
      sum += term / k;
      if (term / k < 1e-18 * sum) break;
    }
    return euler + log(x) + sum;
  }
  sum = 1;
  for (int k = 1; k < x; k++) {
    term *= k / x;
    sum += term;
    if (term < 1e-18) break;
  }
  return exp(x) / x * sum;
}

// C + i S: by 7.3.11 and 7.3.13 for small x, otherwise by the continued fraction of the complementary error function
// (7.3.22, 7.1.14).
static double complex fresnel(double x) {
  double size = fabs(x);
  if (isnan(x)) return CMPLX(x, x);
  if (isinf(x) || size > 1e8) return CMPLX(copysign(0.5, x), copysign(0.5, x));
  if (size < 1.5) {
    double square = M_PI_2 * x * x, term = x, c = 0, s = 0;
    for (int k = 0; k < 60; k++) { // term: square^k x / k!
      double part = term / (2 * k + 1);
      if (k & 1)
        s += k & 2 ? -part : part;
      else
        c += k & 2 ? -part : part;
      term *= square / (k + 1);
    }
    return CMPLX(c, s);
  }
  double square = M_PI * size * size;
  double complex b = CMPLX(1, -square), c = 1e300, d = 1 / b, h = d;
  for (int k = 1, n = -1; k < 1000; k++) {
    n += 2;
    double a = -n * (n + 1.0);
    b += 4;
    d = 1 / (a * d + b);
    c = b + a / c;
    double complex factor = c * d;
    h *= factor;
    if (fabs(creal(factor) - 1) + fabs(cimag(factor)) < 1e-16) break;
  }
  h *= CMPLX(size, -size);
  double angle = fmod(0.5 * size * size, 2) * M_PI;
  double complex result = CMPLX(0.5, 0.5) * (1 - CMPLX(cos(angle), sin(angle)) * h);
  return x < 0 ? -result : result;
}
double ops_fresnel_cos(double x) {
  return creal(fresnel(x));
}
double ops_fresnel_sin(double x) {
  return cimag(fresnel(x));
}

// Li₂(z) for z <= 1, computed from arguments in 0 <= z <= ½ (27.7.3 to 27.7.6).
static double dilogarithm(double z) {
  const double sixth = M_PI * M_PI / 6;
  if (z == 1) return sixth;
  if (z < -1) return -sixth - 0.5 * log(-z) * log(-z) - dilogarithm(1 / z);
  if (z < 0) return -dilogarithm(z / (z - 1)) - 0.5 * log1p(-z) * log1p(-z);
  if (z > 0.5) return sixth - log(z) * log1p(-z) - dilogarithm(1 - z);
  double power = 1, sum = 0;
  for (int k = 1; k < 60; k++) {
    power *= z;
    sum += power / k / k;
  }
  return sum;
}
double ops_spence(double x) {
  if (isnan(x) || x < 0 || isinf(x)) return NAN; // TensorFlow gives NaN for infinity too
  return dilogarithm(1 - x);
}

// Returns the continued fraction of Iₓ(a, b) (26.5.8), by Lentz's method. It converges fast if x < (a+1)/(a+b+2).
static double beta_fraction(double a, double b, double x) {
  const double tiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (fabs(d) < tiny ? tiny : d);
  double h = d;
  for (int m = 1; m < 20000; m++) {
    for (int odd = 0; odd < 2; odd++) {
      double t = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                     : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 + t * d;
      d = 1 / (fabs(d) < tiny ? tiny : d);
      c = 1 + t / c;
      if (fabs(c) < tiny) c = tiny;
      h *= d * c;
      if (odd && fabs(d * c - 1) < 1e-16) return h;
    }
  }
  return h;
}
double ops_betainc(double a, double b, double x) {
  if (isnan(a) || isnan(b) || isnan(x) || a <= 0 || b <= 0 || x < 0 || x > 1) return NAN;
  if (x == 0 || x == 1) return x;
  double front = exp(a * log(x) + b * log1p(-x) - ops_lgamma(a) - ops_lgamma(b) + ops_lgamma(a + b));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// If the quantile P(a, x) of a sample x stays fixed, x changes with a by -∂P/∂a divided by the density.
double ops_random_gamma_grad(double a, double x) {
  if (x == 0) return 0; // for every a
  if (isnan(a) || isnan(x) || a <= 0 || x < 0) return NAN;
  if (isinf(a)) return 0;
  const double lg = ops_lgamma(a);
  if (isinf(x) || x - a * log(x) + lg > log(DBL_MAX))
    return x > 1 && x > a ? -0.0 : 0; // the density underflows: TensorFlow gives zero with this sign
  return -ops_igamma_grad_a(a, x) / exp((a - 1) * log(x) - x - lg);
}
