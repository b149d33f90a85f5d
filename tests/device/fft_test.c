// Compares Fourier transforms of float32 lines, several of which are computed at a time, with the same in float64.
#include "tests/common/test.h"

#include <math.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"

static struct tfc_output cast(struct tfc_builder *b, struct tfc_output x, tfc_dtype to) {
  struct tfc_attr attr = tfc_attr_type("DstT", to);
  return tfc_add(b, "Cast", NULL, &x, 1, &attr, 1);
}

// Compares the op of x [lines, length] in float32 with that in float64; `n`: fft_length of real transforms.
static void compare(const char *op, int64_t lines, int64_t length, int32_t n, bool real, bool inverse) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_tensor x = {0}, got[2] = {0};
  struct tfc_output fetches[2];
  struct tfc_random r;
  tfc_random_init(&r, (uint64_t)n);
  const struct tfc_shape shape = TFC_SHAPE(lines, length);
  const tfc_dtype type = real && !inverse ? TFC_FLOAT : TFC_COMPLEX64;
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output given = tfc_add_placeholder(b, "x", type, &shape), of = tfc_add_i32_vector(b, &n, 1);
  for (int wide = 0; wide < 2; wide++) {
    const tfc_dtype of_real = wide ? TFC_DOUBLE : TFC_FLOAT, of_complex = wide ? TFC_COMPLEX128 : TFC_COMPLEX64;
    struct tfc_attr attrs[] = {tfc_attr_type("Treal", of_real), tfc_attr_type("Tcomplex", of_complex)};
    struct tfc_output in = wide ? cast(b, given, type == TFC_FLOAT ? of_real : of_complex) : given;
    fetches[wide] =
        tfc_add(b, op, NULL, (struct tfc_output[]){in, of}, real ? 2 : 1, real ? attrs : &attrs[1], real ? 2 : 1);
  }
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_tensor_create(type, &shape, &x));
  for (size_t i = 0; i < x.size / sizeof(float); i++) ((float *)x.data)[i] = (float)(2 * tfc_random_unit(&r) - 1);
  assert_ok(tfc_devices_open("cpu:0-1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {
      .feeds = &given, .feed_count = 1, .feed_shapes = &shape, .fetches = fetches, .fetch_count = 2};
  assert_ok(tfc_session_run(session, &spec, &x, got, NULL));
  assert_true(tfc_shape_equal(&got[0].shape, &got[1].shape));
  const size_t count = got[0].size / sizeof(float);
  double most = 0;
  for (size_t i = 0; i < count; i++) most = fmax(most, fabs(((double *)got[1].data)[i]));
  for (size_t i = 0; i < count; i++) {
    const double a = (double)((float *)got[0].data)[i], want = ((double *)got[1].data)[i];
    if (!(fabs(a - want) <= 1e-6 * most)) fail_msg("%s of %d: number %zu is %.9g, not %.9g", op, n, i, a, want);
  }
  for (int i = 0; i < 2; i++) tfc_tensor_release(&got[i]);
  tfc_tensor_release(&x);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
}

static void powers_of_two(void **state) {
  (void)state;
  for (int32_t n = 2; n <= 4096; n *= 2)
    for (int64_t lines = 1; lines <= 19; lines += 6) {
      compare("RFFT", lines, n + lines % 3, n, true, false);
      compare("FFT", lines, n, n, false, false);
      compare("IFFT", lines, n, n, false, true);
      compare("IRFFT", lines, n / 2 + 1 + lines % 3, n, true, true);
    }
}

// The magnitude of a complex number is what the C library's hypotf gives, also where a part is infinite, NaN or so
// large or small that its square is not a float32.
static void magnitudes(void **state) {
  (void)state;
  enum { COUNT = 1003 };
  static const float special[] = {0, -0.0f, 1, INFINITY, -INFINITY, NAN, 3e38f, 1e-30f, 5e-20f, 2e19f};
  const int kinds = (int)(sizeof special / sizeof *special);
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_tensor x = {0}, y = {0};
  struct tfc_random r;
  tfc_random_init(&r, 3);
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output given = tfc_add_placeholder(b, "x", TFC_COMPLEX64, &TFC_SHAPE(COUNT));
  struct tfc_output size = tfc_add1(b, "ComplexAbs", given);
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_tensor_create(TFC_COMPLEX64, &TFC_SHAPE(COUNT), &x));
  float *parts = x.data;
  for (int i = 0; i < 2 * COUNT; i++) parts[i] = (float)(2 * tfc_random_unit(&r) - 1);
  for (int i = 0; i < kinds * kinds; i++) parts[2 * i] = special[i / kinds], parts[2 * i + 1] = special[i % kinds];
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {
      .feeds = &given, .feed_count = 1, .feed_shapes = &x.shape, .fetches = &size, .fetch_count = 1};
  assert_ok(tfc_session_run(session, &spec, &x, &y, NULL));
  for (int i = 0; i < COUNT; i++) {
    const float got = ((const float *)y.data)[i], want = hypotf(parts[2 * i], parts[2 * i + 1]);
    if (!(got == want || (isnan(got) && isnan(want))))
      fail_msg("|%.9g + %.9g i| is %.9g, not %.9g", (double)parts[2 * i], (double)parts[2 * i + 1], (double)got,
               (double)want);
  }
  tfc_tensor_release(&y);
  tfc_tensor_release(&x);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(powers_of_two), cmocka_unit_test(magnitudes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
