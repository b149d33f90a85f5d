// Compares products and convolutions of bytes with plain sums, over random geometries and zero points, also zero points
// outside of a byte.
#include "tests/common/test.h"

#include "runtime/base/random.h"
#include "runtime/exec/session.h"

static int64_t between(struct tfc_random *r, int64_t low, int64_t high) {
  return low + (int64_t)tfc_random_below(r, (uint64_t)(high - low + 1));
}

struct operand {
  struct tfc_tensor t;
  int32_t zero;
};
static struct operand draw(struct tfc_random *r, const struct tfc_shape *shape, bool far) {
  struct operand o = {.zero = (int32_t)(far ? between(r, 256, 300) : between(r, 0, 255))};
  assert_ok(tfc_tensor_create(TFC_QUINT8, shape, &o.t));
  for (int64_t i = 0; i < tfc_tensor_elements(&o.t); i++) ((uint8_t *)o.t.data)[i] = (uint8_t)tfc_random_below(r, 256);
  return o;
}

// Runs `op` on two operands. One step of their ranges is 1/16, so that zero points are whole numbers.
static void run(const char *op, struct operand *in, const struct tfc_attr *attrs, uint32_t count,
                struct tfc_tensor *out) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_output inputs[6], feeds[2], fetch;
  struct tfc_shape shapes[2] = {in[0].t.shape, in[1].t.shape};
  struct tfc_tensor values[2] = {in[0].t, in[1].t};
  assert_ok(tfc_builder_create(NULL, &b));
  for (int i = 0; i < 2; i++) {
    feeds[i] = inputs[i] = tfc_add_placeholder(b, i ? "b" : "a", TFC_QUINT8, &shapes[i]);
    inputs[2 + 2 * i] = tfc_add_scalar(b, TFC_FLOAT, -in[i].zero / 16.0);
    inputs[3 + 2 * i] = tfc_add_scalar(b, TFC_FLOAT, (255 - in[i].zero) / 16.0);
  }
  fetch = tfc_add(b, op, NULL, inputs, 6, attrs, count);
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open("cpu:0-1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = 2, .feed_shapes = shapes, .fetches = &fetch, .fetch_count = 1};
  assert_ok(tfc_session_run(session, &spec, values, out, NULL));
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
}

static void products(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 1);
  for (int round = 0; round < 24; round++) {
    const int64_t m = between(&r, 1, 20), n = between(&r, 1, 20), k = between(&r, 1, 70);
    const bool ta = tfc_random_below(&r, 2), tb = tfc_random_below(&r, 2);
    struct operand in[2] = {draw(&r, ta ? &TFC_SHAPE(k, m) : &TFC_SHAPE(m, k), round % 8 == 7),
                            draw(&r, tb ? &TFC_SHAPE(n, k) : &TFC_SHAPE(k, n), round % 8 == 3)};
    struct tfc_attr attrs[] = {tfc_attr_bool("transpose_a", ta), tfc_attr_bool("transpose_b", tb)};
    struct tfc_tensor out = {0};
    run("QuantizedMatMul", in, attrs, 2, &out);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        int32_t sum = 0;
        for (int64_t q = 0; q < k; q++)
          sum += (((uint8_t *)in[0].t.data)[ta ? q * m + i : i * k + q] - in[0].zero) *
                 (((uint8_t *)in[1].t.data)[tb ? j * k + q : q * n + j] - in[1].zero);
        assert_int_equal(((int32_t *)out.data)[i * n + j], sum);
      }
    tfc_tensor_release(&out), tfc_tensor_release(&in[0].t), tfc_tensor_release(&in[1].t);
  }
}

static void convolutions(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 2);
  for (int round = 0; round < 32; round++) {
    const bool valid = tfc_random_below(&r, 2);
    const int64_t batch = between(&r, 1, 2), c = between(&r, 1, 20), filters = between(&r, 1, 10);
    const int64_t fh = between(&r, 1, 4), fw = between(&r, 1, 4), stride = between(&r, 1, 3);
    const int64_t h = between(&r, fh, 12), w = between(&r, fw, 12);
    struct operand in[2] = {draw(&r, &TFC_SHAPE(batch, h, w, c), false),
                            draw(&r, &TFC_SHAPE(fh, fw, c, filters), false)};
    int64_t strides[] = {1, stride, stride, 1};
    struct tfc_attr attrs[] = {
        {.name = tfc_str_from("strides"), .kind = TFC_ATTR_LIST_INT, .ints = strides, .count = 4},
        tfc_attr_string("padding", tfc_str_from(valid ? "VALID" : "SAME"))};
    struct tfc_tensor out = {0};
    run("QuantizedConv2D", in, attrs, 2, &out);
    const int64_t oh = out.shape.dims[1], ow = out.shape.dims[2];
    const int64_t top = ((oh - 1) * stride + fh - h + valid) / 2, left = ((ow - 1) * stride + fw - w + valid) / 2;
    const uint8_t *x = in[0].t.data, *f = in[1].t.data;
    for (int64_t p = 0; p < batch * oh * ow; p++)
      for (int64_t o = 0; o < filters; o++) {
        int32_t sum = 0;
        for (int64_t i = 0; i < fh * fw * c; i++) {
          const int64_t y = p / ow % oh * stride - top + i / c / fw, z = p % ow * stride - left + i / c % fw;
          if (y < 0 || y >= h || z < 0 || z >= w) continue;
          sum += (x[((p / ow / oh * h + y) * w + z) * c + i % c] - in[0].zero) * (f[i * filters + o] - in[1].zero);
        }
        assert_int_equal(((int32_t *)out.data)[p * filters + o], sum);
      }
    tfc_tensor_release(&out), tfc_tensor_release(&in[0].t), tfc_tensor_release(&in[1].t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(convolutions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
