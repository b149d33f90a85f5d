// Special functions in double precision. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_MATH_SPECIAL_H
#define TFC_RUNTIME_OPS_MATH_SPECIAL_H

double ops_lgamma(double x);              // ln |Γ(x)|; thread-safe
double ops_digamma(double x);             // ψ(x) = d ln Γ / dx; NaN at the poles
double ops_zeta(double s, double q);      // Σ (q + k)^-s over k >= 0, s > 1
double ops_polygamma(double n, double x); // the n-th derivative of ψ
double ops_erfinv(double x);              // erf⁻¹
double ops_ndtri(double p);               // quantile of the normal distribution
double ops_igamma(double a, double x);    // lower regularised incomplete gamma function P(a, x)
double ops_igammac(double a, double x);   // 1 - P(a, x)
double ops_igamma_grad_a(double a, double x);
double ops_bessel_i0e(double x); // e^-|x| I₀(x)
double ops_bessel_i1e(double x);

#endif
