// Compares convolutions of the CPU device and their gradients with the reference kernels, over random geometries.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>

#include "runtime/base/random.h"
#include "runtime/host/gemm/split.h"
#include "tests/common/fast.h"

static int64_t between(struct tfc_random *r, int64_t low, int64_t high) {
  return low + (int64_t)tfc_random_below(r, (uint64_t)(high - low + 1));
}

static struct tfc_attr ints(const char *name, const int64_t *values, uint32_t count) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_LIST_INT, .ints = values, .count = count};
}

#ifdef TFC_SANITIZED
enum { STRIDE = 2 };
#else
enum { STRIDE = 1 };
#endif

static void geometries(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 3);
  tfc_split_suppose_fast(true);
  for (int round = 0; round < 256; round += STRIDE) {
    bool wide = round >= 120 && round < 212; // long lines, whose filter gradients are made line by line
    bool deep = round >= 160 && round < 200; // many channels, for which tile units are used
    bool many =
        round >= 200 && round < 212;  // many positions per element of the filter, computed in pieces at the same time
    bool few = round >= 224;          // few filters or few channels: vectors go along the windows
    bool late = round >= 212 && !few; // few positions, many channels: the transposed filter is packed when it is used
    int64_t size[2], stride[2], dilation[2], in[2], out[2], batch = between(&r, 1, 3);
    int64_t channels = tfc_random_below(&r, 3) ? 8 * between(&r, 1, 4) : between(&r, 1, 19);
    int64_t filters = tfc_random_below(&r, 3) ? 16 * between(&r, 1, 5) : between(&r, 1, 70);
    if (wide) batch = 2;
    if (many) channels = between(&r, 1, 20), filters = between(&r, 65, 130);
    if (late) channels = between(&r, 100, 200), filters = between(&r, 140, 220), batch = 3;
    if (deep) channels = between(&r, 4, 9) * 8, filters = between(&r, 24, 90);
    if (few) channels = between(&r, 1, 4), filters = between(&r, 6, 40);
    if (few && round % 4 < 2) filters = channels, channels = between(&r, 6, 40);
    bool same = tfc_random_below(&r, 2);
    for (int k = 0; k < 2; k++) {
      size[k] = tfc_random_below(&r, 3) ? between(&r, 1, 3) : between(&r, 1, 7);
      if (late) size[k] = between(&r, 2, 4);
      stride[k] = between(&r, 1, many ? 2 : 3), dilation[k] = 1;
      if (stride[k] == 1 && tfc_random_below(&r, 4) == 0) dilation[k] = between(&r, 1, 3);
      int64_t reach = (size[k] - 1) * dilation[k] + 1;
      in[k] = between(&r, same ? 1 : reach, reach + 12);
      if (late) in[k] = between(&r, 4, 8) + reach;
      if (wide)
        in[k] = k ? between(&r, 24 * stride[k], 40 * stride[k]) + reach : between(&r, 10, 16) * stride[k] + reach;
      out[k] = same ? (in[k] + stride[k] - 1) / stride[k] : (in[k] - reach) / stride[k] + 1;
    }
    struct tfc_builder *b = NULL;
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_shape xs = TFC_SHAPE(batch, in[0], in[1], channels), ws = TFC_SHAPE(size[0], size[1], channels, filters);
    struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &xs), w = tfc_add_placeholder(b, "w", TFC_FLOAT, &ws);
    struct tfc_output dy = tfc_add_placeholder(b, "dy", TFC_FLOAT, &TFC_SHAPE(batch, out[0], out[1], filters));
    int64_t strides[] = {1, stride[0], stride[1], 1}, dilations[] = {1, dilation[0], dilation[1], 1};
    struct tfc_attr attrs[] = {ints("strides", strides, 4), ints("dilations", dilations, 4),
                               tfc_attr_string("padding", same ? TFC_STR("SAME") : TFC_STR("VALID"))};
    int32_t x_sizes[4], w_sizes[4];
    for (int k = 0; k < 4; k++) x_sizes[k] = (int32_t)xs.dims[k], w_sizes[k] = (int32_t)ws.dims[k];
    struct tfc_output outputs[3] = {
        tfc_add(b, "Conv2D", NULL, (struct tfc_output[]){x, w}, 2, attrs, 3),
        tfc_add(b, "Conv2DBackpropInput", NULL, (struct tfc_output[]){tfc_add_i32_vector(b, x_sizes, 4), w, dy}, 3,
                attrs, 3),
        tfc_add(b, "Conv2DBackpropFilter", NULL, (struct tfc_output[]){x, tfc_add_i32_vector(b, w_sizes, 4), dy}, 3,
                attrs, 3)};
    char what[256];
    snprintf(what, sizeof what, "x %lldx%lldx%lldx%lld w %lldx%lldx%lld strides %lld %lld dilations %lld %lld %s",
             (long long)batch, (long long)in[0], (long long)in[1], (long long)channels, (long long)size[0],
             (long long)size[1], (long long)filters, (long long)stride[0], (long long)stride[1], (long long)dilation[0],
             (long long)dilation[1], same ? "SAME" : "VALID");
    fast_compare(b, outputs, 3, 1e-5, what);
    tfc_builder_free(b);
  }
}

static void volumes(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 7);
  for (int round = 0; round < 72; round += STRIDE) {
    const bool same = tfc_random_below(&r, 2), large = round >= 50; // large: several pieces of positions
    const bool narrow = round >= 60; // few channels, for which images get a border; filters that are read in place
    const int64_t channels = between(&r, 1, narrow ? 5 : large ? 12 : 40);
    const int64_t filters = narrow && round % 2 ? 16 * between(&r, 1, 2) : between(&r, 1, large ? 100 : 70);
    struct tfc_shape xs = TFC_SHAPE(between(&r, 1, 3), 1, 1, 1, channels), ys = xs,
                     ws = TFC_SHAPE(1, 1, 1, channels, 1);
    int64_t strides[5] = {1, 1, 1, 1, 1}, dilations[5] = {1, 1, 1, 1, 1};
    for (int k = 1; k < 4; k++) {
      const int64_t size = between(&r, 1, 4);
      strides[k] = between(&r, 1, 3);
      if (strides[k] == 1 && tfc_random_below(&r, 4) == 0) dilations[k] = between(&r, 1, 3);
      const int64_t reach = (size - 1) * dilations[k] + 1, in = between(&r, same ? 1 : reach, reach + (large ? 14 : 6));
      xs.dims[k] = in, ws.dims[k - 1] = size;
      ys.dims[k] = same ? (in + strides[k] - 1) / strides[k] : (in - reach) / strides[k] + 1;
    }
    ws.dims[4] = ys.dims[4] = filters;
    struct tfc_builder *b = NULL;
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &xs), w = tfc_add_placeholder(b, "w", TFC_FLOAT, &ws);
    struct tfc_output dy = tfc_add_placeholder(b, "dy", TFC_FLOAT, &ys);
    struct tfc_attr attrs[] = {ints("strides", strides, 5), ints("dilations", dilations, 5),
                               tfc_attr_string("padding", same ? TFC_STR("SAME") : TFC_STR("VALID"))};
    int32_t x_sizes[5], w_sizes[5];
    for (int k = 0; k < 5; k++) x_sizes[k] = (int32_t)xs.dims[k], w_sizes[k] = (int32_t)ws.dims[k];
    struct tfc_output outputs[3] = {
        tfc_add(b, "Conv3D", NULL, (struct tfc_output[]){x, w}, 2, attrs, 3),
        tfc_add(b, "Conv3DBackpropInputV2", NULL, (struct tfc_output[]){tfc_add_i32_vector(b, x_sizes, 5), w, dy}, 3,
                attrs, 3),
        tfc_add(b, "Conv3DBackpropFilterV2", NULL, (struct tfc_output[]){x, tfc_add_i32_vector(b, w_sizes, 5), dy}, 3,
                attrs, 3)};
    char what[64];
    snprintf(what, sizeof what, "volume %d", round);
    fast_compare(b, outputs, 3, 1e-5, what);
    tfc_builder_free(b);
  }
}

// A filter that is a constant is packed when the plan is made.
static void constant_filters(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 9);
  for (int round = 0; round < 40; round += STRIDE) {
    const int64_t channels = between(&r, 1, 100), filters = between(&r, 1, 100), stride = between(&r, 1, 3);
    const int64_t size = between(&r, 1, 4), in = between(&r, 4, 12), out = (in + stride - 1) / stride;
    struct tfc_builder *b = NULL;
    struct tfc_tensor filter = {0};
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_shape xs = TFC_SHAPE(2, in, in, channels), ws = TFC_SHAPE(size, size, channels, filters);
    assert_ok(tfc_tensor_create(TFC_FLOAT, &ws, &filter));
    for (int64_t k = 0; k < tfc_tensor_elements(&filter); k++)
      ((float *)filter.data)[k] = (float)(2 * tfc_random_unit(&r) - 1);
    struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &xs), w = tfc_add_const(b, NULL, &filter);
    struct tfc_output dy = tfc_add_placeholder(b, "dy", TFC_FLOAT, &TFC_SHAPE(2, out, out, filters));
    int64_t strides[] = {1, stride, stride, 1};
    struct tfc_attr attrs[] = {ints("strides", strides, 4), tfc_attr_string("padding", TFC_STR("SAME"))};
    int32_t x_sizes[4];
    for (int k = 0; k < 4; k++) x_sizes[k] = (int32_t)xs.dims[k];
    struct tfc_output outputs[2] = {tfc_add(b, "Conv2D", NULL, (struct tfc_output[]){x, w}, 2, attrs, 2),
                                    tfc_add(b, "Conv2DBackpropInput", NULL,
                                            (struct tfc_output[]){tfc_add_i32_vector(b, x_sizes, 4), w, dy}, 3, attrs,
                                            2)};
    char what[64];
    snprintf(what, sizeof what, "constant filter %d", round);
    fast_compare(b, outputs, 2, 1e-5, what);
    tfc_tensor_release(&filter);
    tfc_builder_free(b);
  }
}

// A filter with an infinite element or NaN: their products with padding are NaN, also where lines of windows are
// computed without padding. The element is in each cell of the window once.
static void padding_meets_infinite_filters(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 31);
  for (int round = 0; round < 54; round += STRIDE) {
    const int64_t channels = between(&r, 1, 3) * 8, filters = between(&r, 5, 70), in = between(&r, 8, 26),
                  cell = round % 9;
    struct tfc_builder *b = NULL;
    struct tfc_tensor filter = {0};
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_shape xs = TFC_SHAPE(1, in, in, channels), ws = TFC_SHAPE(3, 3, channels, filters);
    assert_ok(tfc_tensor_create(TFC_FLOAT, &ws, &filter));
    for (int64_t k = 0; k < tfc_tensor_elements(&filter); k++)
      ((float *)filter.data)[k] = (float)(2 * tfc_random_unit(&r) - 1);
    ((float *)filter.data)[(cell * channels + between(&r, 0, channels - 1)) * filters + between(&r, 0, filters - 1)] =
        round % 2 ? INFINITY : NAN;
    struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &xs), w = tfc_add_const(b, NULL, &filter);
    struct tfc_attr attrs[] = {ints("strides", (int64_t[]){1, 1, 1, 1}, 4),
                               tfc_attr_string("padding", TFC_STR("SAME"))};
    struct tfc_output y = tfc_add(b, "Conv2D", NULL, (struct tfc_output[]){x, w}, 2, attrs, 2);
    char what[64];
    snprintf(what, sizeof what, "infinite filter %d", round);
    fast_compare(b, &y, 1, 1e-5, what);
    tfc_tensor_release(&filter);
    tfc_builder_free(b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(geometries), cmocka_unit_test(volumes),
                                     cmocka_unit_test(constant_filters),
                                     cmocka_unit_test(padding_meets_infinite_filters)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
