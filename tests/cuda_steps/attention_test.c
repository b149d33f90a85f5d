// Attention and its gradients as one operation each (runtime/exec/rewrites/attention.c), on the CUDA driver with its
// kernels: beside the plain operations, with sizes around the borders of blocks, masks that leave out whole blocks, and
// what may not be joined.
#include "tests/common/test.h"

#include <math.h>

#include "runtime/device/cuda/device.h"
#include "runtime/pass/pass.h"
#include "tests/cuda_kernels/host.h"
#include "tests/cuda_steps/fed_step.h"

enum mask { NO_MASK, CAUSAL, FED, HOLES, OF_HEADS, QUERIES };
enum odd { // one thing that forbids it, or nothing
  NOTHING,
  FETCHED,         // the weights are fetched
  DROPPED,         // the weights are changed before they weigh
  LEARNED_MASK,    // the mask has a gradient, too
  OTHER_SCALE,     // something else reads the scores
  ADDED_GRADIENTS, // the weights have another gradient
};
struct form {
  int64_t batch, heads, queries, keys, depth, width;
  bool exchanged; // heads and rows are exchanged before and after
  bool rank3;     // no batch
  bool scaled, gradients;
  enum mask mask;
  enum odd odd;
};

static struct tfc_output exchange(struct fed_step *m, struct tfc_output x) {
  return tfc_add2(m->builder, "Transpose", x, tfc_add_i32_vector(m->builder, (int32_t[]){0, 2, 1, 3}, 4));
}
static struct tfc_output operand(struct fed_step *m, const struct form *f, int64_t rows, int64_t columns,
                                 struct tfc_output *source) {
  *source = feed(m, f->rank3       ? TFC_SHAPE(f->heads, rows, columns)
                    : f->exchanged ? TFC_SHAPE(f->batch, rows, f->heads, columns)
                                   : TFC_SHAPE(f->batch, f->heads, rows, columns));
  const struct tfc_output x = *source = tfc_add1(m->builder, "Sin", *source); // as a layer before it
  return f->exchanged ? exchange(m, x) : x;
}
static struct tfc_output product(struct fed_step *m, struct tfc_output a, struct tfc_output b, bool adj_y) {
  const struct tfc_attr attrs[] = {tfc_attr_bool("adj_x", false), tfc_attr_bool("adj_y", adj_y)};
  return tfc_add(m->builder, "BatchMatMulV2", NULL, (struct tfc_output[]){a, b}, 2, attrs, 2);
}
// Causal: a query sees keys up to its own. Holes: it does not see any of the first 70 keys, by -inf; without gradients
// the second query sees none at all, and its result is NaN.
static struct tfc_output constant_mask(struct fed_step *m, const struct form *f) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(f->queries, f->keys), &t));
  for (int64_t i = 0; i < f->queries; i++)
    for (int64_t k = 0; k < f->keys; k++)
      ((float *)t.data)[i * f->keys + k] = f->mask == CAUSAL ? (k <= i ? 0 : -1e9f)
                                           : (k < 70 && f->keys > 70) || (i == 1 && !f->gradients) ? -INFINITY
                                                                                                   : 0.25f;
  const struct tfc_output o = tfc_add_const(m->builder, "", &t);
  tfc_tensor_release(&t);
  return o;
}

static void build(struct fed_step *m, const struct form *f, struct tfc_graph **out) {
  struct tfc_output sources[4];
  *m = (struct fed_step){0};
  assert_ok(tfc_builder_create(NULL, &m->builder));
  const struct tfc_output q = operand(m, f, f->queries, f->depth, &sources[0]),
                          k = operand(m, f, f->keys, f->depth, &sources[1]),
                          v = operand(m, f, f->keys, f->width, &sources[2]);
  struct tfc_output s = product(m, q, k, true), y;
  if (f->odd == OTHER_SCALE) m->fetches[m->fetch_count++] = tfc_add1(m->builder, "Sin", s);
  if (f->scaled) s = tfc_add2(m->builder, "Mul", s, tfc_add_scalar(m->builder, TFC_FLOAT, 0.37));
  if (f->mask == FED) { // of each batch and key
    sources[3] = feed(m, f->rank3 ? TFC_SHAPE(1, 1, f->keys) : TFC_SHAPE(f->batch, 1, 1, f->keys));
    if (f->odd == LEARNED_MASK) sources[3] = tfc_add1(m->builder, "Sin", sources[3]);
    s = tfc_add2(m->builder, "AddV2", sources[3], s); // in the other order
  } else if (f->mask == OF_HEADS) {                   // channels come first: a number for each head, not for each key
    const struct tfc_output inputs[] = {s, feed(m, TFC_SHAPE(f->heads))};
    const struct tfc_attr format = tfc_attr_string("data_format", TFC_STR("NCHW"));
    s = tfc_add(m->builder, "BiasAdd", NULL, inputs, 2, &format, 1);
  } else if (f->mask == QUERIES) { // the queries are the mask, too
    s = tfc_add2(m->builder, "AddV2", s, q);
  } else if (f->mask != NO_MASK) {
    s = tfc_add2(m->builder, "AddV2", s, constant_mask(m, f));
  }
  struct tfc_output p = tfc_add1(m->builder, "Softmax", s);
  if (f->odd == FETCHED) m->fetches[m->fetch_count++] = p;
  if (f->odd == DROPPED) p = tfc_add1(m->builder, "Square", p);
  y = product(m, p, v, false);
  if (f->exchanged) y = exchange(m, y);
  m->fetches[m->fetch_count++] = y = tfc_add1(m->builder, "Sin", y);
  if (f->gradients) {
    const struct tfc_output ys[2] = {y, tfc_add1(m->builder, "Square", p)};
    const struct tfc_output gs[2] = {tfc_add1(m->builder, "Square", y), ys[1]};
    const uint32_t outputs = f->odd == ADDED_GRADIENTS ? 2 : 1, inputs = f->odd == LEARNED_MASK ? 4 : 3;
    assert_ok(tfc_builder_gradients(m->builder, ys, outputs, sources, inputs, gs, m->fetches + m->fetch_count));
    m->fetch_count += inputs;
  }
  assert_ok(tfc_builder_finish(m->builder, out));
}

static void run(const struct tfc_graph *g, const struct fed_step *m, const char *devices, bool all,
                struct outcome *out) {
  struct tfc_session_options with = {0};
  if (all) with.execution.rewrites = TFC_REWRITES_ALL, with.execution.gpu_math = TFC_MATH_FLOAT32;
  run_fed_step(g, m, devices, with, 0.06f, 0, out);
}

static void compare(const struct outcome *want, const struct outcome *got) {
  float largest = 0;
  assert_int_equal(want->count, got->count);
  for (size_t i = 0; i < want->count; i++)
    if (fabsf(want->values[i]) > largest) largest = fabsf(want->values[i]);
  for (size_t i = 0; i < want->count; i++)
    if (isnan(want->values[i]) != isnan(got->values[i]) || fabsf(want->values[i] - got->values[i]) > 2e-5f * largest)
      fail_msg("element %zu: %.9g, not %.9g", i, (double)got->values[i], (double)want->values[i]);
}

static struct outcome host, apart, joined, again;

// Returns how many operations the rewrite saves.
static uint32_t check(const struct form *f) {
  struct fed_step m;
  struct tfc_graph *g = NULL;
  build(&m, f, &g);
  run(g, &m, "cpu:0", false, &host);
  run(g, &m, "gpu:0", false, &apart);
  run(g, &m, "gpu:0", true, &joined);
  compare(&host, &apart);
  compare(&host, &joined);
  cuda_host_backwards = true;
  run(g, &m, "gpu:0", true, &again);
  cuda_host_backwards = false;
  if (memcmp(joined.values, again.values, joined.count * sizeof(float)))
    fail_msg("the order of blocks and threads shows in the result");
  tfc_graph_release(g);
  tfc_builder_free(m.builder);
  return apart.ops - joined.ops;
}

static void sizes(void **state) {
  (void)state;
  static const struct form forms[] = {
      {1, 1, 1, 2, 1, 1, .gradients = true},
      {2, 3, 5, 7, 4, 6, .scaled = true, .gradients = true, .mask = FED},
      {1, 2, 33, 65, 33, 31, .scaled = true, .gradients = true, .mask = FED},
      {2, 2, 32, 64, 32, 32, .exchanged = true, .scaled = true, .gradients = true, .mask = CAUSAL},
      {1, 2, 70, 31, 64, 128, .exchanged = true, .gradients = true},
      {1, 1, 66, 130, 100, 5, .rank3 = true, .scaled = true, .gradients = true, .mask = CAUSAL},
      {1, 3, 9, 10, 128, 65, .rank3 = true, .scaled = true, .mask = FED},
      {2, 2, 20, 20, 8, 8, .exchanged = true, .scaled = true, .mask = CAUSAL},
      {1, 2, 40, 140, 16, 16, .scaled = true, .gradients = true, .mask = HOLES},
      {1, 2, 40, 140, 16, 16, .scaled = true, .mask = HOLES},
  };
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    const struct form *f = &forms[i];
    const uint32_t saved = check(f);
    print_message("%lld queries, %lld keys: %u operations, joined %u\n", (long long)f->queries, (long long)f->keys,
                  apart.ops, joined.ops);
    // Forward two products, the softmax, and a chain of scale and mask if there is one, become one; back, four products
    // and a kernel with the sum of rows; and every exchange of heads and rows is gone.
    const uint32_t forward = (f->scaled || f->mask ? 3 : 2) + (f->exchanged ? 4 : 0);
    const uint32_t back = 4 + (f->exchanged ? 4 : 0);
    assert_true(saved >= forward + (f->gradients ? back : 0));
  }
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

// What the mask reads is still computed, also where attention itself reads what is before it.
static void operands_as_masks(void **state) {
  (void)state;
  static const struct form forms[] = {{2, 3, 5, 4, 4, 6, .exchanged = true, .mask = QUERIES},
                                      {2, 3, 5, 4, 4, 6, .scaled = true, .mask = QUERIES}};
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) assert_true(check(&forms[i]) >= 2);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static void what_is_not_joined(void **state) {
  (void)state;
  static const struct form forms[] = {
      {1, 2, 9, 10, 4, 5, .scaled = true, .gradients = true, .odd = FETCHED},
      {1, 2, 9, 10, 4, 5, .scaled = true, .gradients = true, .odd = DROPPED},
      {1, 2, 9, 10, 4, 5, .gradients = true, .mask = FED, .odd = LEARNED_MASK},
      {1, 2, 9, 10, 4, 5, .scaled = true, .gradients = true, .odd = OTHER_SCALE},
      {1, 2, 9, 10, 4, 5, .scaled = true, .gradients = true, .odd = ADDED_GRADIENTS},
      {1, 10, 9, 10, 4, 5, .mask = OF_HEADS},
      {1, 1, 9, 10, 129, 5, .scaled = true}, // too wide for the kernel
      {1, 1, 9, 10, 5, 129, .scaled = true}, // the values are
  };
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) assert_int_equal(check(&forms[i]), 0);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(operands_as_masks),
                                     cmocka_unit_test(what_is_not_joined)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
