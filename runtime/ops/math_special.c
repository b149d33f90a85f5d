// Special functions (math_special.h). Sources: Abramowitz & Stegun, 6.3.18 (digamma), 6.4 (polygamma), 6.5.29 and
// 6.5.31 (incomplete gamma), 9.6.10 and 9.7.1 (Bessel); the Hurwitz zeta function is computed by the Euler–Maclaurin
// formula, inverse functions by Newton's method on libm's erf and erfc.
#include "runtime/ops/math_special.h"

#include <math.h>

double ops_lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double ops_digamma(double x) {
  if (isnan(x) || x == -INFINITY) return NAN;
  if (x <= 0) {
    if (x == floor(x)) return NAN;
    return ops_digamma(1 - x) - M_PI / tan(M_PI * x);
  }
  double sum = 0;
  for (; x < 12; x += 1) sum -= 1 / x;
  // ln x - 1/2x - Σ B₂ₖ / (2k x^2k)
  double z = 1 / (x * x);
  double series =
      z *
      (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return sum + log(x) - 0.5 / x - series;
}

double ops_zeta(double s, double q) {
  // B₂ₖ / (2k)!
  static const double b[] = {1.0 / 12,
                             -1.0 / 720,
                             1.0 / 30240,
                             -1.0 / 1209600,
                             1.0 / 47900160,
                             -691.0 / 1307674368000.0,
                             1.0 / 74724249600.0,
                             -3617.0 / 10670622842880000.0,
                             43867.0 / 5109094217170944000.0,
                             -174611.0 / 802857662698291200000.0};
  if (s == 1) return INFINITY;
  if (isnan(s) || isnan(q) || s < 1) return NAN;
  if (q <= 0) {
    if (q == floor(q)) return s == floor(s) && fmod(s, 2) == 0 ? INFINITY : NAN;
    if (s != floor(s)) return NAN; // a negative base with a fractional exponent
  }
  double sum = 0;
  int k = 0;
  for (; k < 12 || q < 12; k++, q += 1) {
    double term = pow(q, -s);
    sum += term;
    if (q > 0 && fabs(term) < fabs(sum) * 1e-17) return sum;
  }
  double power = pow(q, -s);
  sum += power * q / (s - 1) + 0.5 * power; // the integral over the remaining terms, and half of the first of them
  double factor = s, term = power / q;
  for (int i = 0; i < 10; i++) {
    double add = b[i] * factor * term;
    sum += add;
    if (fabs(add) < fabs(sum) * 1e-17) break;
    factor *= (s + 2 * i + 1) * (s + 2 * i + 2);
    term /= q * q;
  }
  return sum;
}

double ops_polygamma(double n, double x) {
  if (isnan(n) || n < 0 || n != floor(n)) return NAN;
  if (n == 0) return ops_digamma(x);
  if (isinf(x) && x > 0) return fmod(n, 2) == 1 ? 0 : -0.0;
  double sign = fmod(n, 2) == 1 ? 1 : -1;
  return sign * exp(ops_lgamma(n + 1)) * ops_zeta(n + 1, x);
}

// Finds t with erfc(t) = c, for 0 < c <= 1, by Newton's method on ln erfc, which is nearly quadratic in t.
static double inverse_erfc(double c) {
  double goal = log(c), t = c > 0.1 ? (1 - c) * 0.886 : sqrt(-goal - 0.5 * log(-goal * M_PI));
  for (int i = 0; i < 50; i++) {
    double e = erfc(t), slope = -2 / sqrt(M_PI) * exp(-t * t) / e;
    double step = (log(e) - goal) / slope;
    t -= step;
    if (fabs(step) <= fabs(t) * 1e-16) break;
  }
  return t;
}

double ops_erfinv(double x) {
  if (isnan(x) || fabs(x) > 1) return NAN;
  if (fabs(x) == 1) return copysign(INFINITY, x);
  if (x == 0) return x;
  double a = fabs(x);
  if (a > 0.5) return copysign(inverse_erfc(1 - a), x);
  double t = a * 0.886226925452758; // √π / 2
  for (int i = 0; i < 20; i++) {
    double step = (erf(t) - a) * 0.886226925452758 * exp(t * t);
    t -= step;
    if (fabs(step) <= t * 1e-17) break;
  }
  return copysign(t, x);
}

double ops_ndtri(double p) {
  if (isnan(p) || p < 0 || p > 1) return NAN;
  if (p == 0) return -INFINITY;
  if (p == 1) return INFINITY;
  if (p == 0.5) return 0;
  return p < 0.5 ? -M_SQRT2 * inverse_erfc(2 * p) : M_SQRT2 * inverse_erfc(2 * (1 - p));
}

// x^a e^-x / Γ(a)
static double gamma_factor(double a, double x) {
  return exp(a * log(x) - x - ops_lgamma(a));
}

static double igamma_series(double a, double x) { // Σ x^k / (a (a+1) … (a+k))
  double term = 1 / a, sum = term;
  for (int k = 1; k < 100000; k++) {
    term *= x / (a + k);
    sum += term;
    if (term < sum * 1e-17) break;
  }
  return sum * gamma_factor(a, x);
}

static double igammac_fraction(double a, double x) { // by Lentz's method
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int i = 1; i < 100000; i++) {
    double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (fabs(d) < 1e-300) d = 1e-300;
    c = b + an / c;
    if (fabs(c) < 1e-300) c = 1e-300;
    d = 1 / d;
    double factor = d * c;
    h *= factor;
    if (fabs(factor - 1) < 1e-16) break;
  }
  return h * gamma_factor(a, x);
}

double ops_igamma(double a, double x) {
  if (isnan(a) || isnan(x) || x < 0 || a <= 0) return NAN;
  if (x == 0) return 0;
  if (isinf(a)) return isinf(x) ? NAN : 0;
  if (isinf(x)) return 1;
  return x > 1 && x > a ? 1 - igammac_fraction(a, x) : igamma_series(a, x);
}

double ops_igammac(double a, double x) {
  if (isnan(a) || isnan(x) || x < 0 || a <= 0) return NAN;
  if (x == 0) return 1;
  if (isinf(a)) return isinf(x) ? NAN : 1;
  if (isinf(x)) return 0;
  return x < 1 || x < a ? 1 - igamma_series(a, x) : igammac_fraction(a, x);
}

double ops_igamma_grad_a(double a, double x) {
  if (isnan(a) || isnan(x) || x < 0 || a <= 0) return NAN;
  if (x == 0 || isinf(x)) return 0;
  // Sums the terms of the series and their derivatives by a.
  double term = 1, harmonic = 0, sum = 1, slope = 0;
  for (int k = 1; k < 100000; k++) {
    term *= x / (a + k);
    harmonic += 1 / (a + k);
    sum += term;
    slope -= term * harmonic;
    if (k > x && term * harmonic < 1e-17 * fabs(slope)) break;
  }
  double factor = exp(a * log(x) - x - ops_lgamma(a + 1));
  return factor * (sum * (log(x) - ops_digamma(a + 1)) + slope);
}

// Asymptotic: 1/√(2πx) Σ (-1)^k Π ((2j-1)² - 4 n²)… / (k! (8x)^k), with signs folded in.
static double bessel_large(double mu, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 60; k++) {
    double odd = 2 * k - 1, next = term * -(mu - odd * odd) / (k * 8 * x);
    if (fabs(next) > fabs(term)) break;
    term = next;
    sum += term;
    if (fabs(term) < 1e-17) break;
  }
  return sum / sqrt(2 * M_PI * x);
}

double ops_bessel_i0e(double x) {
  double a = fabs(x);
  if (isnan(a)) return NAN;
  if (a > 25) return isinf(a) ? 0 : bessel_large(0, a);
  double z = a * a / 4, term = 1, sum = 1;
  for (int k = 1; k < 200 && term > sum * 1e-18; k++) {
    term *= z / ((double)k * k);
    sum += term;
  }
  return sum * exp(-a);
}

double ops_bessel_i1e(double x) {
  double a = fabs(x);
  if (isnan(a)) return NAN;
  if (a > 25) return copysign(isinf(a) ? 0 : bessel_large(4, a), x);
  double z = a * a / 4, term = a / 2, sum = term;
  for (int k = 1; k < 200 && term > sum * 1e-18; k++) {
    term *= z / ((double)k * (k + 1));
    sum += term;
  }
  return copysign(sum * exp(-a), x);
}
