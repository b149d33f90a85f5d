// Compares every CUDA kernel, run on the CPU with the sample inputs of its op, with the op's reference kernel. Host
// code that accesses device memory faults, and the thread sanitizer reports races in kernels (see host.c).
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/str.h"
#include "runtime/device/cuda/kernels/common.h"
#include "tests/common/eval.h"
#include "tests/common/sample.h"
#include "tests/cuda_kernels/host.h"

static double element(const struct tfc_tensor *t, int64_t i) {
  switch (t->dtype) {
  case TFC_FLOAT: return ((float *)t->data)[i];
  case TFC_DOUBLE: return ((double *)t->data)[i];
  case TFC_HALF: return tfc_half_to_float(((uint16_t *)t->data)[i]);
  case TFC_BFLOAT16: return tfc_bfloat16_to_float(((uint16_t *)t->data)[i]);
  case TFC_BOOL: return ((uint8_t *)t->data)[i];
  default: return (double)tfc_tensor_int(t, i);
  }
}
// Tolerances are relative to the largest magnitude in a tensor.
static double float_tolerance = 2e-6;
static double tolerance(tfc_dtype t) {
  return t == TFC_FLOAT      ? float_tolerance
         : t == TFC_DOUBLE   ? 1e-13
         : t == TFC_HALF     ? 2e-3
         : t == TFC_BFLOAT16 ? 1.6e-2
                             : 0;
}

static tfc_status compare(const struct tfc_tensor *got, const struct tfc_tensor *want) {
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  if (got->dtype != want->dtype || !tfc_shape_equal(&got->shape, &want->shape))
    return tfc_status_make(TFC_INTERNAL, "%s%s instead of %s%s", tfc_dtype_name(got->dtype),
                           tfc_shape_show(&got->shape, a), tfc_dtype_name(want->dtype),
                           tfc_shape_show(&want->shape, b));
  if (!tfc_dtype_is_plain(got->dtype)) return NULL;
  if (tfc_dtype_is_complex(got->dtype))
    return memcmp(got->data, want->data, want->size) ? tfc_status_make(TFC_INTERNAL, "values differ") : NULL;
  int64_t n = tfc_tensor_elements(want);
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    double v = fabs(element(want, i));
    if (isfinite(v) && v > most) most = v;
  }
  for (int64_t i = 0; i < n; i++) {
    double g = element(got, i), w = element(want, i);
    bool same = g == w || (isnan(g) && isnan(w)) || fabs(g - w) <= tolerance(want->dtype) * most;
    if (!same) return tfc_status_make(TFC_INTERNAL, "element %lld is %.9g instead of %.9g", (long long)i, g, w);
  }
  return NULL;
}

// --- One node ----------------------------------------------------------------------------------------------------
static void keep(struct tfc_buffer *b) {
  free(b);
}
static tfc_status allocate(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out) {
  (void)env;
  struct tfc_buffer *b = calloc(1, sizeof *b);
  if (!b) abort();
  b->references = 1;
  b->data = cuda_host_allocate(bytes);
  b->size = bytes;
  b->destroy = keep;
  *out = b;
  return NULL;
}
static void to_device(const struct tfc_tensor *t, struct tfc_tensor *out) {
  *out = *t;
  out->buffer = NULL;
  out->data = cuda_host_allocate(t->size);
  tfc_host_begin();
  memcpy(out->data, t->data, t->size);
  tfc_host_end();
}

// The lists of operations that tfc prints show, for each CUDA row, which values it accepts for the op's first type
// attribute. So a row that ran must name the type that it ran with.
static const struct tfc_op_attr *first_type(const struct tfc_op_def *def) {
  const struct tfc_op_signature *s = tfc_op_signature(def);
  for (uint32_t i = 0; i < s->attr_count; i++)
    if (s->attrs[i].kind == TFC_ATTR_TYPE && !tfc_str_is(s->attrs[i].name, "Tidx")) // Tidx is the type of an axis
      return &s->attrs[i];
  return NULL;
}
static tfc_status is_said(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_cuda_kernel *row) {
  const struct tfc_op_attr *attr = first_type(n->def);
  if (!attr) return NULL;
  char *name = tfc_format("%.*s", TFC_STR_ARG(attr->name));
  tfc_dtype type = tfc_node_attr_type(g, n, name, TFC_DTYPE_NONE);
  free(name);
  if (tfc_cuda_row_types(row) & TFC_TYPE_BIT(type)) return NULL;
  return tfc_status_make(TFC_INTERNAL, "runs with %s, which its row does not name", tfc_dtype_name(type));
}

struct try {
  bool constants; // prepare sees the values of the inputs
  bool planned;   // outputs have places
};

static tfc_status run_row(const struct tfc_graph *g, uint32_t id, const struct tfc_tensor *const *inputs,
                          struct tfc_tensor *outputs, const struct tfc_tensor *const *want, struct try how) {
  const struct tfc_node *n = &g->nodes[id];
  struct tfc_arena arena = {0};
  struct tfc_shape shapes[64], out_shapes[64];
  tfc_dtype types[64];
  struct tfc_tensor device[64] = {0}, *out[64];
  const struct tfc_tensor *in[64];
  struct tfc_kernel_env env = {.allocate = allocate, .threads = 1};
  tfc_status s = NULL;
  cuda_host_reset();
  for (uint32_t i = 0; i < n->input_count; i++) {
    shapes[i] = inputs[i]->shape;
    types[i] = inputs[i]->dtype;
    bool host = (i < 32 && (n->def->host_inputs >> i & 1)) || !tfc_dtype_is_plain(types[i]);
    if (!host) to_device(inputs[i], &device[i]);
    in[i] = host ? inputs[i] : &device[i];
  }
  for (uint32_t i = 0; i < n->output_count; i++) {
    out_shapes[i] = how.constants ? want[i]->shape : TFC_SHAPE_UNKNOWN;
    out[i] = &outputs[i];
    if (how.planned && !(n->def->host_outputs >> i & 1) && tfc_dtype_is_plain(want[i]->dtype))
      outputs[i] = (struct tfc_tensor){.dtype = want[i]->dtype,
                                       .shape = want[i]->shape,
                                       .data = cuda_host_allocate(want[i]->size),
                                       .size = want[i]->size};
  }
  struct tfc_prepare_ctx base = {.graph = g,
                                 .node = n,
                                 .def = n->def,
                                 .input_shapes = shapes,
                                 .output_shapes = out_shapes,
                                 .input_dtypes = types,
                                 .input_values = how.constants ? inputs : NULL,
                                 .arena = &arena};
  struct tfc_cuda_prepare p = {.base = &base};
  const struct tfc_cuda_kernel *row = NULL;
  TFC_TRY(s, cuda_host_choose(&p, &row));
  TFC_TRY(s, is_said(g, n, row));
  struct tfc_kernel_ctx ctx = {.graph = g,
                               .node = n,
                               .env = &env,
                               .inputs = in,
                               .outputs = out,
                               .input_count = n->input_count,
                               .output_count = n->output_count,
                               .state = base.state};
  s = cuda_host_launch(row, &ctx, p.scratch);
  if (base.release) base.release(base.state);
out:
  tfc_arena_deinit(&arena);
  return s;
}

static tfc_status check(const struct tfc_graph *g, uint32_t id, struct eval *e, struct try how) {
  const struct tfc_node *n = &g->nodes[id];
  const struct tfc_tensor *inputs[64], *want[64];
  struct tfc_tensor outputs[64] = {0};
  tfc_status s = NULL;
  for (uint32_t i = 0; i < n->input_count; i++) TFC_TRY(s, eval_output(e, tfc_node_inputs(g, n)[i], &inputs[i]));
  for (uint32_t i = 0; i < n->output_count; i++)
    TFC_TRY(s, eval_output(e, (struct tfc_output){id, (int32_t)i}, &want[i]));
  TFC_TRY(s, run_row(g, id, inputs, outputs, want, how));
  tfc_host_begin();
  for (uint32_t i = 0; !s && i < n->output_count; i++) {
    s = compare(&outputs[i], want[i]);
    if (s) s = tfc_status_annotate(s, "output %u", i);
  }
  tfc_host_end();
out:
  for (uint32_t i = 0; i < n->output_count; i++) tfc_tensor_release(&outputs[i]);
  return s;
}

// False for kernels that need a session or give random values: they cannot be tested here.
static bool runs_alone(const struct tfc_op_def *def) {
  uint32_t left_out = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_VARIABLE | TFC_OP_ASYNC;
  return def->kernel && !(def->flags & left_out) && !strstr(def->inputs, "Ref(") && !strstr(def->inputs, "resource") &&
         !strstr(def->inputs, "variant");
}

// More samples, in addition to those of the ops: sizes larger than a block, a vector or a warp, and missing types.
static const struct {
  const char *op, *samples;
} extra[] = {
#include "tests/cuda_kernels/extra.inc"
};

struct wanted {
  const char *op;
  bool found;
};
static void is_row(void *arg, const struct tfc_cuda_kernel *row) {
  struct wanted *w = arg;
  if (!strcmp(row->op, w->op)) w->found = true;
}

#ifdef TFC_HOST_RACES // one way shows the races, and long samples would take minutes
enum { FIRST_WAY = 7, WAYS = 8, MOST_ELEMENTS = 5000 };
#else
enum { FIRST_WAY = 0, WAYS = 8, MOST_ELEMENTS = INT32_MAX };
#endif
static bool is_long(const struct tfc_graph *g) {
  int64_t elements = 0;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_attr *value = tfc_node_attr(g, &g->nodes[i], "value");
    if (value && value->kind == TFC_ATTR_TENSOR) elements += tfc_tensor_elements(value->tensor);
  }
  return elements > MOST_ELEMENTS;
}

static void run_samples(const struct tfc_op_def *def, const char *samples, int *passed, int *ran, int *failed,
                        int *declined) {
  int n = sample_count(samples);
  for (int k = 0; k < n; k++) {
    struct tfc_graph *g = NULL;
    uint32_t node = TFC_NONE;
    assert_ok(sample_graph(def, samples, k, 7, &g, &node));
    if (is_long(g)) {
      ++*passed; // in other builds
      tfc_graph_release(g);
      continue;
    }
    struct eval e = {0}; // computes the expected outputs once
    assert_ok(eval_create(g, &e));
    for (int how = FIRST_WAY; how < WAYS; how++) {
      cuda_host_backwards = how & 1;
      tfc_status s = check(g, node, &e, (struct try){.constants = how & 2, .planned = how & 4});
      if (s && tfc_status_code(s) == TFC_UNIMPLEMENTED) {
        ++*declined;
        if (getenv("ONLY")) print_message("%s, sample %d: %s\n", def->name, k, tfc_status_message(s));
      } else if (s) {
        ++*failed;
        print_message("FAILED %s, sample %d of '%.60s' (%d): %s\n", def->name, k, samples, how, tfc_status_message(s));
      } else {
        ++*passed;
      }
      tfc_status_free(s);
      ++*ran;
    }
    eval_deinit(&e);
    tfc_graph_release(g);
  }
}

#ifndef TFC_ONLY_LIBRARY
// A row names the types of its op's first type attribute if, and only if, that attribute is not the type of input 0.
static void is_consistent(void *arg, const struct tfc_cuda_kernel *row) {
  int *wrong = arg;
  const struct tfc_op_def *def = tfc_op_find(tfc_str_from(row->op));
  const struct tfc_op_attr *attr = def ? first_type(def) : NULL;
  const struct tfc_op_signature *s = def ? tfc_op_signature(def) : NULL;
  if (!attr || !s->input_count) return;
  bool other = !tfc_str_equal(s->inputs[0].type_attr, attr->name);
  const uint32_t marks = row->flags & ~(uint32_t)TFC_CUDA_NO_CAPTURE & ~TFC_CUDA_VARIANT(0xffff);
  if (other == (marks != 0)) return;
  print_message("FAILED %s: input 0 is %sof the first type attribute\n", row->op, other ? "not " : "");
  ++*wrong;
}
static void test_rows_name_their_types(void **state) {
  (void)state;
  int wrong = 0;
  cuda_host_each_row(is_consistent, &wrong);
  assert_int_equal(wrong, 0);
}
#endif

#ifdef TFC_ONLY_LIBRARY
// What a child process leaves for its parent and for later children: which ops asked a library for what (by their place
// in tfc_op_list), and what was chosen. Runs that check what the libraries do leave out the others.
enum { MOST_OPS = 4096, MULTIPLIES = 1, ASKS = 2 };
static struct left {
  int asks[MOST_OPS];
  char tuning[1 << 16];
} * left;
static int only_those;
#endif

static void test_samples(void **state) {
  (void)state;
  size_t count;
  const struct tfc_op_def *const *rows = tfc_op_list(&count);
  const char *only = getenv("ONLY");
  int ran = 0, failed = 0, declined = 0;
  for (size_t i = 0; i < count; i++) {
    struct wanted wanted = {rows[i]->name, false};
    cuda_host_each_row(is_row, &wanted);
    if (!wanted.found || !runs_alone(rows[i]) || (only && strcmp(only, rows[i]->name))) continue;
    // other ops run the same code with and without conv.c
    if (cuda_host_no_conv && !strstr(rows[i]->name, "Conv")) continue;
#ifdef TFC_ONLY_LIBRARY
    assert_true(i < MOST_OPS);
    if (only_those && !(left->asks[i] & only_those)) continue;
    const uint32_t multiplied = cuda_fake_products + cuda_fake_convolutions, asked = cuda_fake_dnn_calls;
#endif
    int passed = 0;
    bool any = rows[i]->samples != NULL;
    if (any) run_samples(rows[i], rows[i]->samples, &passed, &ran, &failed, &declined);
    for (size_t x = 0; x < sizeof extra / sizeof *extra; x++) {
      if (strcmp(extra[x].op, rows[i]->name)) continue;
      any = true;
      run_samples(rows[i], extra[x].samples, &passed, &ran, &failed, &declined);
    }
    if (any && !passed) {
      failed++;
      print_message("FAILED %s: no sample ran\n", rows[i]->name);
    }
#ifdef TFC_ONLY_LIBRARY
    if (multiplied != cuda_fake_products + cuda_fake_convolutions) left->asks[i] |= ASKS | MULTIPLIES;
    if (asked != cuda_fake_dnn_calls) left->asks[i] |= ASKS;
#endif
  }
  print_message("%d runs, %d failed, %d declined\n", ran, failed, declined);
  assert_int_equal(failed, 0);
  assert_true(only || ran > (cuda_host_no_conv ? 20 : 100));
}

#ifndef TFC_ONLY_LIBRARY
static void test_samples_without_a_convolution_library(void **state) {
  cuda_host_no_conv = true;
  test_samples(state);
  cuda_host_no_conv = false;
}
#endif

#ifdef TFC_ONLY_LIBRARY
// Every child begins without choices and with all counts at zero.
static void in_a_child(bool (*good)(void *arg), void *arg) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(!good(arg));
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

// Every sample of every op runs with the libraries. Later runs leave out what asks no library: it would run the same
// code again.
static bool everything_runs(void *arg) {
  (void)arg;
  test_samples(NULL);
  char *made = tfc_format("%s%s%s", tfc_cuda_conv_tuning(), tfc_cuda_dnn_tuning(), tfc_cuda_product_tuning());
  const size_t size = strlen(made);
  if (size >= sizeof left->tuning) return false;
  memcpy(left->tuning, made, size + 1);
  return size > 100 && cuda_fake_measurements > 10 && cuda_fake_timings > 20 && strstr(made, "\tdnn ") &&
         strstr(made, "\t0\n") && strstr(made, "\tproduct ") && strstr(made, "\t1 1\n") && !strstr(made, "\t0 1\n");
}
static void test_every_op(void **state) {
  (void)state;
  in_a_child(everything_runs, NULL);
  only_those = ASKS;
}
// A process that reads the choices of another process measures nothing again, and its results agree.
static bool nothing_is_measured(void *arg) {
  (void)arg;
  tfc_cuda_conv_set_tuning("nonsense\nx\tconv 12\t\n\tconv zz\t1 2 3\ngpu:0\tconv 0\t9 99 9");
  tfc_cuda_dnn_set_tuning("nonsense\nx\tdnn 12\t\n\tdnn zz\t1\ngpu:0\tdnn 0\t9");
  tfc_cuda_conv_set_tuning(left->tuning);
  tfc_cuda_dnn_set_tuning(left->tuning);
  tfc_cuda_product_set_tuning("nonsense\nx\tproduct 12\t\n\tproduct zz\t1\ngpu:0\tproduct 0\t9 1");
  tfc_cuda_product_set_tuning(left->tuning);
  test_samples(NULL);
  print_message("%u products, %u convolutions\n", cuda_fake_products, cuda_fake_convolutions);
  assert_int_equal(cuda_fake_products_by[0], 0); // algorithm 0 is slower than 1
  assert_int_equal(cuda_fake_products_by[1], cuda_fake_products);
  assert_int_equal(cuda_fake_measurements, 0);
  assert_int_equal(cuda_fake_timings, 0);
  assert_true(cuda_fake_products > 50);
  assert_true(cuda_fake_convolutions > 20);
  assert_true(cuda_fake_dnn_calls > 50);
  return true;
}
static void test_what_was_chosen_is_kept(void **state) {
  (void)state;
  in_a_child(nothing_is_measured, NULL);
}
// If cuDNN is slower, tfc's own kernels run, and this choice is kept.
static bool own_kernels_run(void *op) {
  cuda_fake_dnn_cost_ns = 1000000000;
  setenv("ONLY", op, 1);
  test_samples(NULL);
  char *made = tfc_cuda_dnn_tuning();
  // Each choice makes 4 events (2 for cuDNN, 2 for tfc's kernel) and 4 * 5 calls of cuDNN.
  const uint32_t measuring = cuda_fake_timings / 4 * 20;
  bool good = made && strstr(made, "\t1\n") && !strstr(made, "\t0\n") && cuda_fake_dnn_calls == measuring;
  if (!good)
    print_message("%s: %u calls, %u of them measuring: %s\n", (char *)op, cuda_fake_dnn_calls, measuring, made);
  return good;
}
static void test_the_slower_one_does_not_run(void **state) {
  (void)state;
  static char ops[][24] = {"MaxPool", "AvgPool", "AvgPoolGrad", "FusedBatchNormV3", "FusedBatchNormGradV3",
                           "Softmax", "LRN",     "LRNGrad"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) in_a_child(own_kernels_run, ops[i]);
}
// If cuDNN fails while algorithms are measured, plain loops compute the convolutions.
static bool plain_loops_run(void *arg) {
  (void)arg;
  cuda_fake_no_measurement = true;
  setenv("ONLY", "Conv2D", 1);
  test_samples(NULL);
  return cuda_fake_measurements && !cuda_fake_convolutions;
}
static void test_what_fails_is_declined(void **state) {
  (void)state;
  in_a_child(plain_loops_run, NULL);
}
// If a device is too full to measure in, plain loops compute the convolutions; later, with room, cuDNN is measured.
static bool room_comes_later(void *arg) {
  (void)arg;
  cuda_host_no_room = true;
  setenv("ONLY", "Conv2D", 1);
  test_samples(NULL);
  if (cuda_fake_measurements || cuda_fake_convolutions) return false;
  cuda_host_no_room = false;
  test_samples(NULL);
  return cuda_fake_measurements && cuda_fake_convolutions;
}
static void test_no_room_is_declined(void **state) {
  (void)state;
  in_a_child(room_comes_later, NULL);
}
// The option of the device (`math`) says in which arithmetic products of float32 are computed. If a library does not
// have that arithmetic, one that rounds less is used. Other types have one arithmetic each.
static uint32_t sum(const uint32_t *counts) {
  uint32_t n = 0;
  for (int m = 0; m < CUDA_FAKE_MATHS; m++) n += counts[m];
  return n;
}
struct arithmetic {
  tfc_math asked;
  uint32_t refused;
  tfc_math product, convolution; // expected
};
static bool runs_in(void *arg) {
  const struct arithmetic *a = arg;
  only_those = MULTIPLIES;
  cuda_host_library()->math = a->asked;
  cuda_fake_refused = a->refused;
  float_tolerance = a->asked == TFC_MATH_FLOAT32 ? 2e-6 : a->asked == TFC_MATH_BFLOAT16 ? 1.6e-2 : 2e-3;
  test_samples(NULL);
  const uint32_t *p = cuda_fake_products_in, *c = cuda_fake_convolutions_in;
  bool good = p[a->product] > 20 && sum(p) == p[a->product] && c[a->convolution] > 10 && sum(c) == c[a->convolution];
  for (int m = 0; m < CUDA_FAKE_MATHS && !good; m++)
    print_message("%s: %u products and %u convolutions in %s\n", tfc_math_name(a->asked), p[m], c[m],
                  m ? tfc_math_name((tfc_math)m) : "nothing");
  return good;
}
static void test_arithmetic(void **state) {
  (void)state;
  enum { TF32 = 1u << TFC_MATH_TF32, FLOAT16 = 1u << TFC_MATH_FLOAT16, BFLOAT16 = 1u << TFC_MATH_BFLOAT16 };
  static struct arithmetic all[] = {
      {TFC_MATH_FLOAT32, 0, TFC_MATH_FLOAT32, TFC_MATH_FLOAT32},
      {TFC_MATH_TF32, 0, TFC_MATH_TF32, TFC_MATH_TF32},
      {TFC_MATH_FLOAT16, 0, TFC_MATH_FLOAT16, TFC_MATH_FLOAT16},
      {TFC_MATH_BFLOAT16, 0, TFC_MATH_BFLOAT16, TFC_MATH_TF32}, // cuDNN has no such conversion
      {TFC_MATH_FLOAT16, FLOAT16, TFC_MATH_TF32, TFC_MATH_FLOAT16},
      {TFC_MATH_BFLOAT16, BFLOAT16 | TF32, TFC_MATH_FLOAT32, TFC_MATH_TF32},
      {TFC_MATH_TF32, TF32, TFC_MATH_FLOAT32, TFC_MATH_TF32},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) in_a_child(runs_in, &all[i]);
}
// A choice holds only for the arithmetic that it was measured in: the first run with an arithmetic measures, the second
// run with the same one does not. left->tuning has what the runs before have chosen.
static bool measures_once(void *number) {
  const int run = *(const int *)number;
  const size_t before = strlen(left->tuning);
  cuda_host_library()->math = (tfc_math)(1 + run / 2);
  float_tolerance = 1.6e-2;
  tfc_cuda_conv_set_tuning(left->tuning);
  test_samples(NULL);
  const char *now = tfc_cuda_conv_tuning();
  if (before + strlen(now) >= sizeof left->tuning) return false;
  strcpy(left->tuning + before, now);
  return run % 2 ? cuda_fake_measurements == 0 : cuda_fake_measurements > 10;
}
static void test_choices_are_of_one_arithmetic(void **state) {
  (void)state;
  left->tuning[0] = 0;
  setenv("ONLY", "Conv2D", 1);
  for (int run = 0; run < 2 * TFC_MATH_BFLOAT16; run++) in_a_child(measures_once, &run);
  unsetenv("ONLY");
}
// And only for the version of cuDNN that was loaded then, whichever version the headers are of.
static bool measures_again(void *unused) {
  (void)unused;
  int same_arithmetic = 1;
  cuda_fake_cudnn_version++;
  return !measures_once(&same_arithmetic) && cuda_fake_measurements > 10;
}
static void test_choices_are_of_one_version(void **state) { // after the test before, whose choices are left
  (void)state;
  setenv("ONLY", "Conv2D", 1);
  in_a_child(measures_again, NULL);
  unsetenv("ONLY");
}
static void test_chains_are_followed(void **state) {
  (void)state;
  for (int early = 0; early < 2; early++) {
    assert_true(cuda_fake_chain(1, early));
    assert_false(cuda_fake_chain(0, early));
    assert_false(cuda_fake_chain(2, early));
    assert_false(cuda_fake_chain(3, early));
    assert_true(cuda_fake_chain_back(0, early));
    assert_false(cuda_fake_chain_back(1, early));
  }
}
#endif

int main(void) {
#ifdef TFC_ONLY_LIBRARY
  left = mmap(NULL, sizeof *left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (left == MAP_FAILED) return 1;
#endif
  const struct CMUnitTest tests[] = {
#ifdef TFC_ONLY_LIBRARY
      cmocka_unit_test(test_every_op),
      cmocka_unit_test(test_what_was_chosen_is_kept),
      cmocka_unit_test(test_what_fails_is_declined),
      cmocka_unit_test(test_no_room_is_declined),
      cmocka_unit_test(test_chains_are_followed),
      cmocka_unit_test(test_the_slower_one_does_not_run),
      cmocka_unit_test(test_arithmetic),
      cmocka_unit_test(test_choices_are_of_one_arithmetic),
      cmocka_unit_test(test_choices_are_of_one_version),
#else
      cmocka_unit_test(test_rows_name_their_types),
      cmocka_unit_test(test_samples),
      cmocka_unit_test(test_samples_without_a_convolution_library),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
