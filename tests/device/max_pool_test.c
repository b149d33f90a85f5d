// MaxPool and its gradient with channels last, beside plain loops, to the bit: random windows, strides, borders and
// channel numbers, with equal values and NaN.
#include "tests/common/test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"

enum { ROUNDS = 40 };

struct sizes {
  int64_t batch, in[2], window[2], stride[2], out[2], before[2], channels;
};

static struct sizes draw(struct tfc_random *r, bool same) {
  struct sizes z = {.batch = 1 + (int64_t)tfc_random_below(r, 3), .channels = 1 + (int64_t)tfc_random_below(r, 37)};
  if (tfc_random_below(r, 2)) z.channels = 8 * (1 + (int64_t)tfc_random_below(r, 9)); // these are vectors
  for (int k = 0; k < 2; k++) {
    z.window[k] = 1 + (int64_t)tfc_random_below(r, 4), z.stride[k] = 1 + (int64_t)tfc_random_below(r, 4);
    z.in[k] = z.window[k] + (int64_t)tfc_random_below(r, 9);
    z.out[k] = same ? (z.in[k] + z.stride[k] - 1) / z.stride[k] : (z.in[k] - z.window[k]) / z.stride[k] + 1;
    const int64_t missing = (z.out[k] - 1) * z.stride[k] + z.window[k] - z.in[k];
    z.before[k] = missing > 0 ? missing / 2 : 0;
  }
  return z;
}

// The largest value of each window that is greater than the least finite number.
static void plain_maxima(const struct sizes *z, const float *x, float *y) {
  for (int64_t row = 0; row < z->batch * z->out[0] * z->out[1]; row++)
    for (int64_t c = 0; c < z->channels; c++) {
      const int64_t left = row % z->out[1] * z->stride[1] - z->before[1];
      const int64_t top = row / z->out[1] % z->out[0] * z->stride[0] - z->before[0], n = row / z->out[1] / z->out[0];
      float best = -FLT_MAX;
      for (int64_t i = top; i < top + z->window[0]; i++)
        for (int64_t j = left; j < left + z->window[1]; j++) {
          if (i < 0 || j < 0 || i >= z->in[0] || j >= z->in[1]) continue;
          const float v = x[((n * z->in[0] + i) * z->in[1] + j) * z->channels + c];
          best = v > best ? v : best;
        }
      y[row * z->channels + c] = best;
    }
}

// Gives the gradient to the first of the largest values of each window.
static void plain(const struct sizes *z, const float *x, const float *dy, float *dx) {
  memset(dx, 0, (size_t)(z->batch * z->in[0] * z->in[1] * z->channels) * sizeof *dx);
  for (int64_t row = 0; row < z->batch * z->out[0] * z->out[1]; row++)
    for (int64_t c = 0; c < z->channels; c++) {
      const int64_t left = row % z->out[1] * z->stride[1] - z->before[1];
      const int64_t top = row / z->out[1] % z->out[0] * z->stride[0] - z->before[0], n = row / z->out[1] / z->out[0];
      int64_t best = -1;
      for (int64_t i = top; i < top + z->window[0]; i++)
        for (int64_t j = left; j < left + z->window[1]; j++) {
          const int64_t at = ((n * z->in[0] + i) * z->in[1] + j) * z->channels + c;
          if (i < 0 || j < 0 || i >= z->in[0] || j >= z->in[1]) continue;
          if (best < 0 || x[at] > x[best]) best = at;
        }
      if (best >= 0) dx[best] += dy[row * z->channels + c];
    }
}

static void one_round(struct tfc_random *r, int round) {
  const bool same = round % 2;
  const struct sizes z = draw(r, same);
  struct tfc_shape shapes[] = {TFC_SHAPE(z.batch, z.in[0], z.in[1], z.channels),
                               TFC_SHAPE(z.batch, z.out[0], z.out[1], z.channels)};
  struct tfc_tensor values[2] = {0}, got[2] = {{0}};
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_output in[2];
  assert_ok(tfc_builder_create(NULL, &b));
  for (int i = 0; i < 2; i++) {
    in[i] = tfc_add_placeholder(b, i ? "dy" : "x", TFC_FLOAT, &shapes[i]);
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[i], &values[i]));
    float *to = values[i].data;
    for (int64_t k = 0; k < tfc_shape_elements(&shapes[i]); k++)
      to[k] = i ? (float)tfc_random_unit(r) - 0.5f : (float)tfc_random_below(r, 9) - 4;
    if (i == 0 && round % 5 == 0)
      for (int k = 0; k < 3; k++) to[tfc_random_below(r, (uint64_t)tfc_shape_elements(&shapes[i]))] = NAN;
  }
  int64_t window[] = {1, z.window[0], z.window[1], 1}, stride[] = {1, z.stride[0], z.stride[1], 1};
  const struct tfc_attr attrs[] = {{.name = TFC_STR("ksize"), .kind = TFC_ATTR_LIST_INT, .count = 4, .ints = window},
                                   {.name = TFC_STR("strides"), .kind = TFC_ATTR_LIST_INT, .count = 4, .ints = stride},
                                   tfc_attr_string("padding", same ? TFC_STR("SAME") : TFC_STR("VALID"))};
  struct tfc_output y = tfc_add(b, "MaxPool", NULL, in, 1, attrs, 3);
  struct tfc_output dx = tfc_add(b, "MaxPoolGrad", NULL, (struct tfc_output[]){in[0], y, in[1]}, 3, attrs, 3);
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  const struct tfc_run_spec spec = {
      .feeds = in, .feed_count = 2, .feed_shapes = shapes, .fetches = (struct tfc_output[]){dx, y}, .fetch_count = 2};
  assert_ok(tfc_session_run(session, &spec, values, got, NULL));
  float *expected = malloc(got[0].size + got[1].size + 1);
  plain(&z, values[0].data, values[1].data, expected);
  for (int64_t k = 0; k < tfc_tensor_elements(&got[0]); k++) assert_true(expected[k] == ((float *)got[0].data)[k]);
  plain_maxima(&z, values[0].data, expected);
  for (int64_t k = 0; k < tfc_tensor_elements(&got[1]); k++) assert_true(expected[k] == ((float *)got[1].data)[k]);
  free(expected);
  for (int i = 0; i < 2; i++) tfc_tensor_release(&values[i]);
  for (int i = 0; i < 2; i++) tfc_tensor_release(&got[i]);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
}

static void maxima_and_their_gradients(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 21);
  for (int round = 0; round < ROUNDS; round++) one_round(&r, round);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(maxima_and_their_gradients)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
