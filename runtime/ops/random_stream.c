// Fills tensors from a Philox stream, and keeps the streams of stateful ops.
//
// A group is what one draw of 128 bits gives: four 32-bit numbers or two 64-bit ones. Rejection sampling (truncated
// normal) reserves 256 words for each output, and each group starts at its own reservation.
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"

enum { RESERVED_WORDS_PER_OUTPUT = 256, WORDS_PER_DRAW = 4, GROUPS_PER_PIECE = 1024 };

struct fill {
  const struct tfc_random_request *request;
  struct tfc_tensor *out;
  int64_t count;
};

static void normals(const uint32_t w[4], float out[4]) {
  tfc_box_muller_float(w[0], w[1], out);
  tfc_box_muller_float(w[2], w[3], out + 2);
}

static void truncated_floats(struct tfc_philox generator, float out[4]) {
  struct tfc_philox_words words = tfc_philox_words(&generator);
  for (int n = 0;;) {
    uint32_t x0 = tfc_philox_word(&words), x1 = tfc_philox_word(&words);
    float f[2];
    tfc_box_muller_float(x0, x1, f);
    for (int k = 0; k < 2; k++)
      if (fabsf(f[k]) < 2.0f) {
        out[n++] = f[k];
        if (n == 4) return;
      }
  }
}

static void truncated_doubles(struct tfc_philox generator, double out[2]) {
  for (int n = 0;;) {
    uint32_t x[4];
    double d[2];
    tfc_philox_draw(&generator, x);
    tfc_box_muller_double(x, d);
    for (int k = 0; k < 2; k++)
      if (fabs(d[k]) < 2.0) {
        out[n++] = d[k];
        if (n == 2) return;
      }
  }
}

// Makes one group of floats; `generator` is at its first draw.
static void float_group(const struct tfc_random_request *r, struct tfc_philox *generator, tfc_dtype dtype,
                        float out[4]) {
  uint32_t w[4];
  if (r->kind == TFC_RANDOM_TRUNCATED_NORMAL) {
    truncated_floats(*generator, out);
    return;
  }
  tfc_philox_draw(generator, w);
  if (r->kind == TFC_RANDOM_NORMAL) {
    normals(w, out);
    return;
  }
  for (int k = 0; k < 4; k++)
    out[k] = dtype == TFC_HALF       ? (float)(w[k] & 0x3ffu) * 0x1p-10f // uses as many bits as the mantissa has
             : dtype == TFC_BFLOAT16 ? (float)(w[k] & 0x7fu) * 0x1p-7f
                                     : tfc_bits_to_float(w[k]);
}

static void double_group(const struct tfc_random_request *r, struct tfc_philox *generator, double out[2]) {
  uint32_t w[4];
  if (r->kind == TFC_RANDOM_TRUNCATED_NORMAL) {
    truncated_doubles(*generator, out);
    return;
  }
  tfc_philox_draw(generator, w);
  if (r->kind == TFC_RANDOM_NORMAL) {
    tfc_box_muller_double(w, out);
    return;
  }
  out[0] = tfc_bits_to_double(w[0], w[1]);
  out[1] = tfc_bits_to_double(w[2], w[3]);
}

static bool wide(tfc_dtype t) {
  return t == TFC_DOUBLE || t == TFC_INT64 || t == TFC_UINT64;
}

// Makes 256 uniform floats of the next 64 draws, whose counters differ in their first word alone. (With fewer draws,
// GCC unrolls the loops instead of making vectors of them.)
enum { DRAWS = 64 };
OPS_CLONES static void draw_uniform(const struct tfc_philox *p, float *out) {
  uint32_t c0[DRAWS], c1[DRAWS], c2[DRAWS], c3[DRAWS];
  uint32_t k0 = p->key[0], k1 = p->key[1];
  for (uint32_t i = 0; i < DRAWS; i++)
    c0[i] = p->counter[0] + i, c1[i] = p->counter[1], c2[i] = p->counter[2], c3[i] = p->counter[3];
  for (int round = 0; round < 10; round++) {
    OPS_INDEPENDENT for (int i = 0; i < DRAWS; i++) {
      const uint64_t a = (uint64_t)0xD2511F53u * c0[i], b = (uint64_t)0xCD9E8D57u * c2[i];
      c0[i] = (uint32_t)(b >> 32) ^ c1[i] ^ k0, c1[i] = (uint32_t)b;
      c2[i] = (uint32_t)(a >> 32) ^ c3[i] ^ k1, c3[i] = (uint32_t)a;
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < DRAWS; i++) {
    out[4 * i] = tfc_bits_to_float(c0[i]), out[4 * i + 1] = tfc_bits_to_float(c1[i]);
    out[4 * i + 2] = tfc_bits_to_float(c2[i]), out[4 * i + 3] = tfc_bits_to_float(c3[i]);
  }
}

// Makes uniform floats of whole groups from `begin` on, as long as counters do not carry. Returns the first group that
// is left.
static int64_t fill_uniform(const struct fill *f, struct tfc_philox *generator, int64_t begin, int64_t end) {
  int64_t group = begin;
  while (group + DRAWS <= end && (group + DRAWS) * 4 <= f->count && generator->counter[0] <= UINT32_MAX - DRAWS) {
    draw_uniform(generator, (float *)f->out->data + group * 4);
    tfc_philox_skip(generator, DRAWS);
    group += DRAWS;
  }
  return group;
}

static void fill_groups(void *arg, int64_t begin, int64_t end) {
  const struct fill *f = arg;
  const struct tfc_random_request *r = f->request;
  tfc_dtype dtype = f->out->dtype;
  int per_group = wide(dtype) ? 2 : 4;
  uint64_t draws =
      r->kind == TFC_RANDOM_TRUNCATED_NORMAL ? (uint64_t)per_group * RESERVED_WORDS_PER_OUTPUT / WORDS_PER_DRAW : 1;
  struct tfc_philox generator = r->generator;
  tfc_philox_skip(&generator, (uint64_t)begin * draws);
  if (r->kind == TFC_RANDOM_UNIFORM && dtype == TFC_FLOAT) begin = fill_uniform(f, &generator, begin, end);
  for (int64_t group = begin; group < end; group++) {
    int64_t first = group * per_group;
    int n = (int)(f->count - first < per_group ? f->count - first : per_group);
    if (r->kind >= TFC_RANDOM_UNIFORM_INT) {
      uint32_t w[4];
      tfc_philox_draw(&generator, w);
      for (int k = 0; k < n; k++) {
        if (per_group == 4) {
          uint32_t v = r->kind == TFC_RANDOM_FULL_INT ? w[k] : (uint32_t)r->low + w[k] % (uint32_t)r->range;
          ((uint32_t *)f->out->data)[first + k] = v;
        } else {
          uint64_t bits = w[2 * k] | (uint64_t)w[2 * k + 1] << 32;
          ((uint64_t *)f->out->data)[first + k] =
              r->kind == TFC_RANDOM_FULL_INT ? bits : (uint64_t)r->low + bits % r->range;
        }
      }
      continue;
    }
    if (dtype == TFC_DOUBLE) {
      double v[2];
      double_group(r, &generator, v);
      for (int k = 0; k < n; k++) ((double *)f->out->data)[first + k] = v[k];
    } else {
      float v[4];
      float_group(r, &generator, dtype, v);
      for (int k = 0; k < n; k++)
        if (dtype == TFC_FLOAT)
          ((float *)f->out->data)[first + k] = v[k];
        else
          ((uint16_t *)f->out->data)[first + k] =
              dtype == TFC_HALF ? tfc_float_to_half(v[k]) : tfc_float_to_bfloat16(v[k]);
    }
    if (r->kind == TFC_RANDOM_TRUNCATED_NORMAL) tfc_philox_skip(&generator, draws);
  }
}

void tfc_random_fill(struct tfc_kernel_ctx *ctx, const struct tfc_random_request *request, struct tfc_tensor *out) {
  struct fill f = {request, out, tfc_tensor_elements(out)};
  int64_t per_group = wide(out->dtype) ? 2 : 4, groups = (f.count + per_group - 1) / per_group;
  tfc_kernel_parallel_for(ctx, groups, GROUPS_PER_PIECE, fill_groups, &f);
}

struct random_state {
  uint64_t seed, seed2;
  uint64_t name_hash;
};

tfc_status tfc_random_prepare(struct tfc_prepare_ctx *ctx) {
  struct random_state *s = TFC_ARENA_NEW(ctx->arena, struct random_state);
  if (!s) return tfc_status_no_memory(NULL);
  s->seed = (uint64_t)tfc_node_attr_int(ctx->graph, ctx->node, "seed", 0);
  s->seed2 = (uint64_t)tfc_node_attr_int(ctx->graph, ctx->node, "seed2", 0);
  // FNV-1a hash of the name: nodes without seeds then draw from different streams of the session's seed.
  s->name_hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < ctx->node->name.size; i++)
    s->name_hash = (s->name_hash ^ (uint8_t)ctx->node->name.data[i]) * 0x100000001b3u;
  ctx->state = s;
  return NULL;
}

struct tfc_philox tfc_random_reserve(struct tfc_kernel_ctx *ctx, uint64_t draws) {
  const struct random_state *s = ctx->state;
  _Atomic uint64_t *used = ctx->node_state; // steps that run at the same time each take their own part of the stream
  uint64_t seed = s->seed, seed2 = s->seed2;
  if (!seed && !seed2) seed = ctx->env->seed, seed2 = s->name_hash;
  struct tfc_philox p = tfc_philox_seed(seed, seed2);
  tfc_philox_skip(&p, atomic_fetch_add(used, draws));
  return p;
}
