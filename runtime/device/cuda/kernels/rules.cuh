// What each optimizer does to an element, with TensorFlow's order of operations (so that rounding is the same).
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_RULES_CUH
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_RULES_CUH

#include "runtime/device/cuda/kernels/device.cuh"
#include "runtime/device/cuda/kernels/update.h"

namespace tfc {

// v, g, s: the element of the variable, of the gradient, and of each slot; h: the op's scalar inputs (learning rate,
// ...).
#define TFC_RULE(name, ...)                                                                                            \
  template <class C> struct name##Rule {                                                                               \
    static TFC_HD void of(C &v, C *s, C g, const C *h, bool flag, bool sparse) {                                       \
      (void)s, (void)flag, (void)sparse;                                                                               \
      const C one = 1;                                                                                                 \
      (void)one;                                                                                                       \
      __VA_ARGS__                                                                                                      \
    }                                                                                                                  \
  };

template <class C> TFC_HD C sign_of(C x) {
  return (C)((x > 0) - (x < 0));
}
template <class C> TFC_HD C shrink(C prox, C by) {
  C shrunk = fabs(prox) - by;
  return sign_of(prox) * (shrunk > 0 ? shrunk : (C)0);
}

TFC_RULE(GradientDescent, { v = v - g * h[0]; })
TFC_RULE(Momentum, {
  s[0] = s[0] * h[1] + g;
  v = flag ? v - (g * h[0] + s[0] * h[1] * h[0]) : v - s[0] * h[0];
})
TFC_RULE(KerasMomentum, {
  s[0] = s[0] * h[1] - g * h[0];
  v = flag ? v + (s[0] * h[1] - g * h[0]) : v + s[0];
})
TFC_RULE(Adam, {
  const C alpha = h[2] * sqrt(one - h[1]) / (one - h[0]);
  C m = s[0];
  C u = s[1];
  m += (g - m) * (one - h[3]);
  u += (g * g - u) * (one - h[4]);
  s[0] = m;
  s[1] = u;
  v = flag ? v - ((g * (one - h[3]) + h[3] * m) * alpha) / (sqrt(u) + h[5]) : v - (m * alpha) / (sqrt(u) + h[5]);
})
TFC_RULE(AdaMax, {
  C m = s[0];
  C u = s[1] * h[3];
  C size = fabs(g);
  m += (g - m) * (one - h[2]);
  u = u < size ? size : u;
  s[0] = m;
  s[1] = u;
  v = v - h[1] / (one - h[0]) * (m / (u + h[4]));
})
TFC_RULE(Adagrad, {
  if (flag) s[0] += g * g;
  v = v - g * h[0] * (one / sqrt(s[0]));
})
TFC_RULE(AdagradV2, {
  if (flag) s[0] += g * g;
  v = v - g * h[0] / (sqrt(s[0]) + h[1]);
})
TFC_RULE(Adadelta, {
  C past = s[1];
  s[0] = s[0] * h[1] + g * g * (one - h[1]);
  C update = sqrt(past + h[2]) * (one / sqrt(s[0] + h[2])) * g;
  v = v - update * h[0];
  s[1] = past * h[1] + update * update * (one - h[1]);
})
TFC_RULE(RMSProp, {
  if (sparse) {
    s[0] = s[0] * h[1] + g * g * (one - h[1]);
    s[1] = s[1] * h[2] + (one / sqrt(s[0] + h[3])) * h[0] * g;
  } else {
    s[0] += (g * g - s[0]) * (one - h[1]);
    s[1] = s[1] * h[2] + (g * h[0]) / sqrt(s[0] + h[3]);
  }
  v = v - s[1];
})
TFC_RULE(CenteredRMSProp, { // slots: mg, ms, mom
  if (sparse) {
    s[1] = s[1] * h[1] + g * g * (one - h[1]);
    s[0] = s[0] * h[1] + g * (one - h[1]);
    s[2] = s[2] * h[2] + (one / sqrt(s[1] - s[0] * s[0] + h[3])) * h[0] * g;
  } else {
    s[1] += (g * g - s[1]) * (one - h[1]);
    s[0] += (g - s[0]) * (one - h[1]);
    s[2] = s[2] * h[2] + (g * h[0]) / sqrt((s[1] - s[0] * s[0]) + h[3]);
  }
  v = v - s[2];
})
TFC_RULE(AddSign, {
  s[0] = s[0] * h[3] + g * (one - h[3]);
  v = v - h[0] * (h[1] + h[2] * (sign_of(g) * sign_of(s[0]))) * g;
})
TFC_RULE(PowerSign, {
  s[0] = s[0] * h[3] + g * (one - h[3]);
  v = v - h[0] * exp(h[1] * h[2] * (sign_of(g) * sign_of(s[0]))) * g;
})
TFC_RULE(ProximalGradientDescent, {
  C prox = v - g * h[0];
  if (h[1] > 0) prox = shrink(prox, h[0] * h[1]);
  v = prox / (one + h[2] * h[0]);
})
TFC_RULE(ProximalAdagrad, {
  s[0] += g * g;
  C rate = (one / sqrt(s[0])) * h[0];
  C prox = v - g * rate;
  if (h[1] > 0) prox = shrink(prox, rate * h[1]);
  v = prox / (one + h[2] * rate);
})

// McMahan et al. 2013, "Ad click prediction"; slots: accum, linear. V2 adds a shrinkage term to the gradient.
template <class C> TFC_HD void ftrl(C &v, C *s, C g, C lr, C l1, C l2, C shrinkage, C power, bool scaled) {
  const C two = 2;
  const bool root = power == (C)-0.5;
  const C bound = scaled ? l1 * lr : l1, next = s[0] + g * g;
  C shrunk = shrinkage != 0 ? g + two * shrinkage * v : g;
  C p1 = root ? sqrt(next) : pow(next, -power), p0 = root ? sqrt(s[0]) : pow(s[0], -power);
  s[1] += scaled ? shrunk * lr - (p1 - p0) * v : shrunk - (p1 - p0) / lr * v;
  C y = scaled ? p1 + two * l2 * lr : p1 / lr + two * l2;
  C clipped = s[1] < bound ? s[1] : bound;
  clipped = clipped > -bound ? clipped : -bound;
  s[0] = next;
  v = (clipped - s[1]) / y;
}
TFC_RULE(Ftrl, { ftrl<C>(v, s, g, h[0], h[1], h[2], 0, h[3], flag); })
TFC_RULE(FtrlV2, { ftrl<C>(v, s, g, h[0], h[1], h[2], h[3], h[4], flag); })

// Dual averaging (Duchi et al. 2011); slots: the sums of the gradients and of their squares.
TFC_RULE(AdagradDA, {
  s[0] += g;
  s[1] += g * g;
  C shrunk = h[1] > 0 ? shrink(s[0], h[1] * h[3]) : s[0];
  v = (-h[0] * shrunk) / (h[2] * h[3] * h[0] + sqrt(s[1]));
})
TFC_RULE(AdamWithAmsgrad, { // slots: m, v, vhat
  const C alpha = h[2] * sqrt(one - h[1]) / (one - h[0]);
  s[0] += (g - s[0]) * (one - h[3]);
  s[1] += (g * g - s[1]) * (one - h[4]);
  s[2] = s[2] < s[1] ? s[1] : s[2];
  v = v - (s[0] * alpha) / (sqrt(s[2]) + h[5]);
})

// --- Elements ----------------------------------------------------------------------------------------------------
template <class T, int SCALARS> TFC_HD void scalars_of(const tfc_cuda_update &u, typename number<T>::C *h) {
  for (int i = 0; i < SCALARS; i++)
    h[i] = u.longs >> i & 1 ? (typename number<T>::C)(*(const int64_t *)u.scalars[i]) : get(*(const T *)u.scalars[i]);
}
template <class T, int SLOTS> struct element {
  typedef typename number<T>::C C;
  C v, s[SLOTS ? SLOTS : 1];
  TFC_HD void load(const tfc_cuda_update &u, int64_t i) {
    v = get(((const T *)u.var)[i]);
    for (int k = 0; k < SLOTS; k++) s[k] = get(((const T *)u.slots[k])[i]);
  }
  TFC_HD void round() {
    v = rounded<T>(v);
    for (int k = 0; k < SLOTS; k++) s[k] = rounded<T>(s[k]);
  }
  TFC_HD void store(const tfc_cuda_update &u, int64_t i) const {
    ((T *)u.var)[i] = put<T>(v);
    for (int k = 0; k < SLOTS; k++) ((T *)u.slots[k])[i] = put<T>(s[k]);
  }
};

} // namespace tfc

#endif
