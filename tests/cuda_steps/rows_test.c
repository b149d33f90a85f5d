// Sums and means of rows with the operations around them in one kernel (runtime/exec/rewrites/rows.c), on the CUDA
// driver with its kernels: the same bits as one launch for each operation, and one launch for the normalisation of a
// layer.
#include "tests/common/test.h"

#include <math.h>

#include "runtime/base/random.h"
#include "runtime/device/cuda/device.h"
#include "runtime/pass/pass.h"
#include "tests/cuda_kernels/host.h"
#include "tests/cuda_steps/fed_step.h"

static struct tfc_output one(struct fed_step *m, const char *op, struct tfc_output x) {
  return tfc_add1(m->builder, op, x);
}
static struct tfc_output two(struct fed_step *m, const char *op, struct tfc_output x, struct tfc_output y) {
  return tfc_add2(m->builder, op, x, y);
}
static struct tfc_output reduce(struct fed_step *m, const char *op, struct tfc_output x, bool keep, int axis) {
  const struct tfc_attr keeps = tfc_attr_bool("keep_dims", keep);
  return tfc_add(m->builder, op, NULL, (struct tfc_output[]){x, tfc_add_i32_vector(m->builder, &axis, 1)}, 2, &keeps,
                 1);
}

// x [.., columns] normalised by rows, as libraries write it, and its gradients.
static void normalise(struct fed_step *m, struct tfc_shape shape, bool gradients) {
  const struct tfc_shape row = TFC_SHAPE(shape.dims[shape.rank - 1]);
  const struct tfc_output x = feed(m, shape), scale = feed(m, row), offset = feed(m, row), weight = feed(m, shape);
  const struct tfc_output in = one(m, "Sin", x); // its kernel is no step of a chain
  const struct tfc_output mean = reduce(m, "Mean", in, true, -1);
  const struct tfc_output variance = reduce(m, "Mean", two(m, "SquaredDifference", in, mean), true, shape.rank - 1);
  const struct tfc_output root =
      one(m, "Rsqrt", two(m, "AddV2", variance, tfc_add_scalar(m->builder, TFC_FLOAT, 1e-6)));
  const struct tfc_output y =
      two(m, "AddV2", two(m, "Mul", two(m, "Mul", two(m, "Sub", in, mean), root), scale), offset);
  m->fetches[m->fetch_count++] = one(m, "Sin", y);
  if (!gradients) return;
  assert_ok(tfc_builder_gradients(m->builder, &y, 1, (struct tfc_output[]){in, scale, offset}, 3, &weight,
                                  m->fetches + m->fetch_count));
  m->fetch_count += 3;
}

static void run(const struct tfc_graph *g, const struct fed_step *m, const char *devices, bool no_rewrites,
                struct outcome *out) {
  run_fed_step(g, m, devices, (struct tfc_session_options){.no_rewrites = no_rewrites}, 0.019f, 0.31f, out);
}

static void compare(const struct outcome *want, const struct outcome *got, bool bits) {
  assert_int_equal(want->count, got->count);
  for (size_t i = 0; i < want->count; i++) {
    if (!memcmp(&want->values[i], &got->values[i], sizeof(float))) continue;
    if (bits || !(fabsf(want->values[i] - got->values[i]) <= 1e-3f * (1 + fabsf(want->values[i]))))
      fail_msg("element %zu: %.9g, not %.9g", i, (double)got->values[i], (double)want->values[i]);
  }
}

static struct outcome apart, joined, host;

static void layers_are_normalised_in_one_launch(void **state) {
  (void)state;
  static const int64_t shapes[][2] = {{7, 5}, {40, 61}, {3, 64}, {19, 512}, {1, 64}, {5, 1100}, {3, 4096}};
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int gradients = 0; gradients < 2; gradients++) {
      struct fed_step m = {0};
      struct tfc_graph *g = NULL;
      assert_ok(tfc_builder_create(NULL, &m.builder));
      if (i % 2)
        normalise(&m, TFC_SHAPE(1, shapes[i][0], shapes[i][1]), gradients);
      else
        normalise(&m, TFC_SHAPE(shapes[i][0], shapes[i][1]), gradients);
      assert_ok(tfc_builder_finish(m.builder, &g));
      run(g, &m, "gpu:0", true, &apart);
      run(g, &m, "cpu:0", true, &host);
      compare(&host, &apart, false);
      for (int backwards = 0; backwards < 2; backwards++) {
        cuda_host_backwards = backwards;
        run(g, &m, "gpu:0", false, &joined);
        cuda_host_backwards = false;
        compare(&apart, &joined, true);
      }
      print_message("%d x %d%s: %u operations and %llu pieces of work, joined %u and %llu\n", (int)shapes[i][0],
                    (int)shapes[i][1], gradients ? " with gradients" : "", apart.ops, (unsigned long long)apart.works,
                    joined.ops, (unsigned long long)joined.works);
      // The two sines, the normalisation, its gradient, and two sums over all rows. Chains leave out single numbers.
      if (shapes[i][0] > 1) assert_int_equal(joined.ops, gradients ? 5 : 3);
      tfc_graph_release(g);
      tfc_builder_free(m.builder);
    }
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

// The gates of an LSTM cell and their gradients take one launch each, beside the products; those of a GRU as Keras has
// it (the reset gate multiplies a product) one launch forward. x [rows, depth], state h [rows, width].
static struct tfc_output dense(struct fed_step *m, struct tfc_output x, int64_t from, int64_t to,
                               struct tfc_output *weights) {
  weights[0] = feed(m, TFC_SHAPE(from, to)), weights[1] = feed(m, TFC_SHAPE(to));
  return two(m, "BiasAdd", two(m, "MatMul", x, weights[0]), weights[1]);
}
static void split(struct fed_step *m, struct tfc_output x, int count, struct tfc_output *out) {
  const struct tfc_attr parts = tfc_attr_int("num_split", count);
  const struct tfc_output inputs[2] = {tfc_add_i32(m->builder, 1), x};
  const uint32_t node = tfc_add(m->builder, "Split", NULL, inputs, 2, &parts, 1).node;
  for (int i = 0; i < count; i++) out[i] = (struct tfc_output){node, i};
}
static void cell(struct fed_step *m, bool gru, int64_t rows, int64_t depth, int64_t width) {
  struct tfc_output xs[5], a[4], b[4], h, y, c = feed(m, TFC_SHAPE(rows, width));
  const struct tfc_output x = feed(m, TFC_SHAPE(rows, depth));
  uint32_t count = 2;
  if (gru) {
    h = c;
    split(m, dense(m, x, depth, 3 * width, xs), 3, a);
    split(m, dense(m, h, width, 3 * width, xs + 2), 3, b);
    const struct tfc_output z = one(m, "Sigmoid", two(m, "AddV2", a[0], b[0])),
                            r = one(m, "Sigmoid", two(m, "AddV2", a[1], b[1]));
    const struct tfc_output fresh = one(m, "Tanh", two(m, "AddV2", a[2], two(m, "Mul", r, b[2])));
    y = two(m, "AddV2", two(m, "Mul", z, h),
            two(m, "Mul", two(m, "Sub", tfc_add_scalar(m->builder, TFC_FLOAT, 1), z), fresh));
    count = 4;
  } else {
    split(m, dense(m, x, depth, 4 * width, xs), 4, a);
    c = two(m, "AddV2", two(m, "Mul", one(m, "Sigmoid", a[2]), c),
            two(m, "Mul", one(m, "Sigmoid", a[0]), one(m, "Tanh", a[1])));
    y = two(m, "Mul", one(m, "Tanh", c), one(m, "Sigmoid", a[3]));
  }
  y = two(m, "Transpose", y, tfc_add_i32_vector(m->builder, (int32_t[]){1, 0}, 2));
  m->fetches[m->fetch_count++] = y;
  const struct tfc_output weight = one(m, "Sin", y); // what follows, so that gradients wait for it
  xs[count] = x;
  assert_ok(tfc_builder_gradients(m->builder, &y, 1, xs, count + 1, &weight, m->fetches + m->fetch_count));
  m->fetch_count += count + 1;
}
static void gates_of_a_cell_take_one_launch(void **state) {
  (void)state;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (int gru = 0; gru < 2; gru++) {
    struct fed_step m = {0};
    struct tfc_graph *g = NULL;
    assert_ok(tfc_builder_create(NULL, &m.builder));
    cell(&m, gru, 6, 7, 8);
    assert_ok(tfc_builder_finish(m.builder, &g));
    run(g, &m, "gpu:0", true, &apart);
    run(g, &m, "gpu:0", false, &joined);
    compare(&apart, &joined, true);
    print_message("%s: %u operations, joined %u\n", gru ? "GRU" : "LSTM", apart.ops, joined.ops);
    // Two launches for gates, three between them; for each product itself, the gradients of its weights and bias; and
    // the gradient of x. In a GRU two of the gates' gradients go into two tensors, so the gates take two launches back
    // and putting together two more, and the bias of the second product is added before several launches read the sum.
    assert_int_equal(joined.ops, gru ? 2 + 3 + 2 * 3 + 1 + 4 : 2 + 3 + 3 + 1);
    tfc_graph_release(g);
    tfc_builder_free(m.builder);
  }
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

#ifdef TFC_SANITIZED
enum { SEEDS = 6 };
#else
enum { SEEDS = 30 };
#endif

// A random step of operations on rows × columns, rows × 1, columns and numbers, with sums and means of rows between
// them.
static void draw(struct fed_step *m, struct tfc_random *random, int64_t rows, int64_t columns) {
  static const char *const unary[] = {"Tanh", "Neg", "Square", "Sin", "Sigmoid"};
  static const char *const binary[] = {"AddV2", "Sub", "Mul", "Maximum", "SquaredDifference"};
  enum { LENGTH = 40 };
  struct tfc_output whole[LENGTH + 2], each[LENGTH + 2];
  uint32_t wholes = 0, eaches = 0;
  whole[wholes++] = feed(m, TFC_SHAPE(rows, columns)), whole[wholes++] = feed(m, TFC_SHAPE(rows, columns));
  each[eaches++] = feed(m, TFC_SHAPE(rows, 1));
  const struct tfc_output others[2] = {feed(m, TFC_SHAPE(columns)), feed(m, (struct tfc_shape){.rank = 0})};
#define ANY(list) list[tfc_random_below(random, sizeof list / sizeof *list)]
#define LATE(list, count) list[count - 1 - tfc_random_below(random, count < 4 ? count : 4)]
  for (int i = 0; i < LENGTH; i++) {
    const struct tfc_output w = LATE(whole, wholes), e = LATE(each, eaches);
    struct tfc_output made;
    bool narrow = false;
    switch (tfc_random_below(random, 10)) {
    case 0: narrow = true, made = reduce(m, "Mean", w, true, 1); break;
    case 1: { // as gradients make it: without the dimension, which comes back later
      const struct tfc_output sum = two(m, "Mul", reduce(m, "Sum", w, false, -1),
                                        tfc_add_scalar(m->builder, TFC_FLOAT, 0.125)); // the sum of few numbers
      narrow = true, made = two(m, "Reshape", sum, tfc_add_i32_vector(m->builder, (int32_t[]){(int32_t)rows, 1}, 2));
      break;
    }
    case 2: narrow = true, made = one(m, ANY(unary), e); break;
    case 3: narrow = true, made = two(m, ANY(binary), e, LATE(each, eaches)); break;
    case 4: made = two(m, ANY(binary), w, e); break;
    case 5: made = two(m, ANY(binary), w, ANY(others)); break;
    case 6: made = one(m, ANY(unary), w); break;
    case 7:
      made =
          tfc_add(m->builder, "AddN", NULL,
                  (struct tfc_output[]){w, LATE(whole, wholes), LATE(whole, wholes), LATE(whole, wholes)}, 4, NULL, 0);
      break;
    case 8:
      made = two(m, "BroadcastTo", one(m, "Tanh", e),
                 tfc_add_i32_vector(m->builder, (int32_t[]){(int32_t)rows, (int32_t)columns}, 2));
      break;
    default: made = one(m, "Tanh", two(m, ANY(binary), w, LATE(whole, wholes)));
    }
    if (narrow)
      each[eaches++] = made;
    else
      whole[wholes++] = made;
  }
  m->fetches[m->fetch_count++] = one(m, "Tanh", whole[wholes - 1]);
  m->fetches[m->fetch_count++] = one(m, "Tanh", each[eaches - 1]);
  m->fetches[m->fetch_count++] = LATE(whole, wholes);
  m->fetches[m->fetch_count++] = reduce(m, "Sum", one(m, "Tanh", LATE(whole, wholes)), false, 0);
}

static void random_steps_have_the_same_bits(void **state) {
  (void)state;
  uint64_t works = 0, fewer = 0;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    struct fed_step m = {0};
    struct tfc_graph *g = NULL;
    struct tfc_random random;
    tfc_random_init(&random, seed);
    assert_ok(tfc_builder_create(NULL, &m.builder));
    const int64_t rows = 1 + (int64_t)tfc_random_below(&random, 40),
                  columns = 2 + (int64_t)tfc_random_below(&random, 90);
    draw(&m, &random, rows, seed % 10 ? columns : 1030);
    assert_ok(tfc_builder_finish(m.builder, &g));
    run(g, &m, "gpu:0", true, &apart);
    cuda_host_backwards = seed % 2;
    run(g, &m, "gpu:0", false, &joined);
    cuda_host_backwards = false;
    print_message("seed %d: ", (int)seed);
    compare(&apart, &joined, true);
    print_message("%u operations, joined %u\n", apart.ops, joined.ops);
    works += apart.works, fewer += joined.works;
    tfc_graph_release(g);
    tfc_builder_free(m.builder);
  }
  print_message("%llu pieces of work, joined %llu\n", (unsigned long long)works, (unsigned long long)fewer);
  assert_true(fewer * 2 < works);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_are_normalised_in_one_launch),
                                     cmocka_unit_test(gates_of_a_cell_take_one_launch),
                                     cmocka_unit_test(random_steps_have_the_same_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
