// Bessel functions and integrals in double precision. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_MATH_INTEGRALS_H
#define TFC_RUNTIME_OPS_MATH_INTEGRALS_H

double ops_bessel_i0(double x);
double ops_bessel_i1(double x);
double ops_bessel_j0(double x);
double ops_bessel_j1(double x);
double ops_bessel_k0(double x); // +inf for x <= 0, as in TensorFlow
double ops_bessel_k1(double x);
double ops_bessel_k0e(double x); // e^x K₀(x)
double ops_bessel_k1e(double x);
double ops_bessel_y0(double x); // -inf for x <= 0, as in TensorFlow
double ops_bessel_y1(double x);
double ops_dawsn(double x);       // e^(-x²) ∫₀ˣ e^(t²) dt
double ops_expint(double x);      // Ei(x) = ∫ e^t/t dt from -∞, x > 0
double ops_fresnel_cos(double x); // ∫₀ˣ cos(π t²/2) dt
double ops_fresnel_sin(double x);
double ops_spence(double x);                      // -∫₁ˣ ln t/(t-1) dt, x >= 0
double ops_betainc(double a, double b, double x); // regularised incomplete beta function Iₓ(a, b)
double ops_random_gamma_grad(double a, double x); // dx/da for a sample x of the gamma distribution

#endif
