// Philox (Salmon et al. 2011), and random numbers made from its stream as TensorFlow makes them. A thread makes one
// group: the four 32-bit or two 64-bit numbers that one draw of 128 bits gives. Rejection sampling (truncated normal)
// may need more draws: 256 words of the stream are reserved for each number, and each group begins at its own words.
#include "runtime/device/cuda/kernels/random.h"

#include "runtime/device/cuda/kernels/device.cuh"

namespace tfc {
namespace {

struct philox {
  uint32_t counter[4], key[2];
  // Skips `count` draws. A carry out of the low 64 bits goes into the third word of the counter.
  TFC_HD void skip(uint64_t count) {
    uint64_t low = (uint64_t)counter[1] << 32 | counter[0], sum = low + count;
    counter[0] = (uint32_t)sum;
    counter[1] = (uint32_t)(sum >> 32);
    if (sum < low && ++counter[2] == 0) counter[3]++;
  }
  TFC_HD void draw(uint32_t *out) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
      uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
      c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
      c1 = (uint32_t)b;
      c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
      c3 = (uint32_t)a;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
    skip(1);
  }
};

TFC_HD float unit_float(uint32_t x) {
  union {
    uint32_t u;
    float f;
  } v = {(x & 0x7fffffu) | 0x3f800000u};
  return v.f - 1.0f;
}
TFC_HD double unit_double(uint32_t x0, uint32_t x1) {
  union {
    uint64_t u;
    double f;
  } v = {((uint64_t)(x0 & 0xfffffu) << 32 | x1) | (uint64_t)1023 << 52};
  return v.f - 1.0;
}
const double TWO_PI = 6.283185307179586;

// Makes two independent standard normal numbers (Box and Muller 1958).
TFC_HD void normal_floats(uint32_t x0, uint32_t x1, float *out) {
  float u = unit_float(x0);
  if (u < 1.0e-7f) u = 1.0e-7f;
  float angle = (float)(TWO_PI * (double)unit_float(x1)), radius = sqrtf(-2.0f * logf(u));
  out[0] = sinf(angle) * radius;
  out[1] = cosf(angle) * radius;
}
TFC_HD void normal_doubles(const uint32_t *x, double *out) {
  double u = unit_double(x[0], x[1]);
  if (u < 1.0e-7) u = 1.0e-7;
  double angle = TWO_PI * unit_double(x[2], x[3]), radius = sqrt(-2.0 * log(u));
  out[0] = sin(angle) * radius;
  out[1] = cos(angle) * radius;
}

// Makes one group of four numbers of type T.
template <class T> struct group_of_four {
  static const int COUNT = 4;
  static TFC_HD float unit(uint32_t word);
  static TFC_HD void make(int kind, philox p, T *out) {
    uint32_t w[4];
    float v[4];
    if (kind == TFC_CUDA_RANDOM_TRUNCATED_NORMAL) {
      for (int n = 0; n < 4;) { // takes two words at a time; a draw has two such pairs
        p.draw(w);
        for (int pair = 0; pair < 2 && n < 4; pair++) {
          float f[2];
          normal_floats(w[2 * pair], w[2 * pair + 1], f);
          for (int k = 0; k < 2; k++)
            if (fabsf(f[k]) < 2.0f && n < 4) v[n++] = f[k];
        }
      }
    } else {
      p.draw(w);
      if (kind == TFC_CUDA_RANDOM_NORMAL) {
        normal_floats(w[0], w[1], v);
        normal_floats(w[2], w[3], v + 2);
      } else {
        for (int k = 0; k < 4; k++) v[k] = unit(w[k]);
      }
    }
    for (int k = 0; k < 4; k++) out[k] = put<T>(v[k]);
  }
};
template <> TFC_HD float group_of_four<f32>::unit(uint32_t word) {
  return unit_float(word);
}
// Returns a number in [0, 1) made of as many random bits as the type's mantissa has.
template <> TFC_HD float group_of_four<f16>::unit(uint32_t word) {
  return (float)(word & 0x3ffu) * 0.0009765625f;
}
template <> TFC_HD float group_of_four<b16>::unit(uint32_t word) {
  return (float)(word & 0x7fu) * 0.0078125f;
}
struct group_of_two {
  static const int COUNT = 2;
  static TFC_HD void make(int kind, philox p, double *out) {
    uint32_t w[4];
    if (kind == TFC_CUDA_RANDOM_TRUNCATED_NORMAL) {
      for (int n = 0; n < 2;) {
        double d[2];
        p.draw(w);
        normal_doubles(w, d);
        for (int k = 0; k < 2; k++)
          if (fabs(d[k]) < 2.0 && n < 2) out[n++] = d[k];
      }
      return;
    }
    p.draw(w);
    if (kind == TFC_CUDA_RANDOM_NORMAL) {
      normal_doubles(w, out);
    } else {
      out[0] = unit_double(w[0], w[1]);
      out[1] = unit_double(w[2], w[3]);
    }
  }
};

// Stores group g of y [n]: in one access if the group is complete and y is aligned.
template <class T, int COUNT> TFC_HD void store(const pack<T, COUNT> &made, int64_t g, T *y, int64_t n) {
  if ((g + 1) * COUNT <= n && (uintptr_t)y % sizeof made == 0)
    ((pack<T, COUNT> *)y)[g] = made;
  else
    for (int k = 0; k < COUNT && g * COUNT + k < n; k++) y[g * COUNT + k] = made.v[k];
}
template <class G, class T> __global__ void float_kernel(int kind, philox p, T *y, int64_t n) {
  int64_t groups = (n + G::COUNT - 1) / G::COUNT;
  uint64_t draws = kind == TFC_CUDA_RANDOM_TRUNCATED_NORMAL ? (uint64_t)G::COUNT * 64 : 1;
  for (int64_t g = first(); g < groups; g += stride()) {
    philox at = p;
    pack<T, G::COUNT> made;
    at.skip((uint64_t)g * draws);
    G::make(kind, at, made.v);
    store(made, g, y, n);
  }
}
template <class T> __global__ void int_kernel(bool full, philox p, int64_t low, uint64_t range, T *y, int64_t n) {
  const int COUNT = 16 / sizeof(T);
  for (int64_t g = first(); g < (n + COUNT - 1) / COUNT; g += stride()) {
    philox at = p;
    uint32_t w[4];
    pack<T, COUNT> made;
    at.skip((uint64_t)g);
    at.draw(w);
    for (int k = 0; k < COUNT; k++) {
      if (COUNT == 4) {
        made.v[k] = (T)(full ? w[k] : (uint32_t)low + w[k] % (uint32_t)range);
      } else {
        uint64_t bits = w[2 * k & 3] | (uint64_t)w[(2 * k + 1) & 3] << 32;
        made.v[k] = (T)(full ? bits : (uint64_t)low + bits % range);
      }
    }
    store(made, g, y, n);
  }
}
template <class G, class T> int floats(int kind, const philox &p, void *y, int64_t n, void *stream) {
  return launch(float_kernel<G, T>, blocks_for((n + G::COUNT - 1) / G::COUNT), THREADS, stream, kind, p, (T *)y, n);
}
template <class T> int ints(int kind, const philox &p, const tfc_cuda_random *r, void *y, int64_t n, void *stream) {
  const int64_t COUNT = 16 / sizeof(T);
  return launch(int_kernel<T>, blocks_for((n + COUNT - 1) / COUNT), THREADS, stream, kind == TFC_CUDA_RANDOM_FULL_INT,
                p, r->low, r->range, (T *)y, n);
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_random_fill(int kind, int type, const tfc_cuda_random *r, void *y, int64_t n, void *stream) {
  using namespace tfc;
  philox p = {{r->counter[0], r->counter[1], r->counter[2], r->counter[3]}, {r->key[0], r->key[1]}};
  if (kind >= TFC_CUDA_RANDOM_UNIFORM_INT) {
    if (type == OPS_DT_i32 || type == OPS_DT_u32) return ints<u32>(kind, p, r, y, n, stream);
    if (type == OPS_DT_i64 || type == OPS_DT_u64) return ints<u64>(kind, p, r, y, n, stream);
    return TFC_CUDA_INVALID_VALUE;
  }
  switch (type) {
  case OPS_DT_f32: return floats<group_of_four<f32>, f32>(kind, p, y, n, stream);
  case OPS_DT_f16: return floats<group_of_four<f16>, f16>(kind, p, y, n, stream);
  case OPS_DT_b16: return floats<group_of_four<b16>, b16>(kind, p, y, n, stream);
  case OPS_DT_f64: return floats<group_of_two, f64>(kind, p, y, n, stream);
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
