// Batch normalisation of the CPU device and its gradient against the reference kernels.
#include "tests/common/test.h"

#include <stdio.h>

#include "runtime/base/random.h"
#include "tests/common/fast.h"

static void shapes(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 5);
  for (int round = 0; round < 70; round++) {
    const bool first = round >= 40; // channels first, as libraries normalise layers
    int64_t channels = 1 + (int64_t)tfc_random_below(&r, round % 4 ? 80 : 2000);
    struct tfc_shape xs = TFC_SHAPE(1 + (int64_t)tfc_random_below(&r, 4), 1 + (int64_t)tfc_random_below(&r, 20),
                                    1 + (int64_t)tfc_random_below(&r, 20), channels);
    if (first && round % 4) // few channels of many elements
      xs = TFC_SHAPE(round % 3 ? 1 : xs.dims[0], channels,
                     1 + (int64_t)tfc_random_below(&r, round % 4 == 1 ? 9000 : 600), 1);
    else if (first)
      xs = TFC_SHAPE(xs.dims[0], channels, xs.dims[1], xs.dims[2]);
    bool training = tfc_random_below(&r, 3), slow = training && tfc_random_below(&r, 2);
    struct tfc_builder *b = NULL;
    assert_ok(tfc_builder_create(NULL, &b));
    struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &xs), v[4], positive;
    struct tfc_output dy = tfc_add_placeholder(b, "dy", TFC_FLOAT, &xs);
    for (int i = 0; i < 4; i++) v[i] = tfc_add_placeholder(b, "vector", TFC_FLOAT, &TFC_SHAPE(channels));
    positive = tfc_add1(b, "Square", v[3]);
    struct tfc_attr attrs[] = {tfc_attr_bool("is_training", training), tfc_attr_float("epsilon", 0.001),
                               tfc_attr_string("data_format", first ? TFC_STR("NCHW") : TFC_STR("NHWC")),
                               tfc_attr_float("exponential_avg_factor", slow ? 0.25 : 1)};
    struct tfc_output y =
        tfc_add(b, "FusedBatchNormV3", NULL, (struct tfc_output[]){x, v[0], v[1], v[2], positive}, 5, attrs, 4);
    struct tfc_output third = {y.node, 5}, mean = {y.node, 3}, variance = {y.node, 4};
    struct tfc_output dx = tfc_add(b, "FusedBatchNormGradV3", NULL,
                                   (struct tfc_output[]){dy, x, v[0], mean, variance, third}, 6, attrs, 3);
    struct tfc_output outputs[] = {y, {y.node, 1}, {y.node, 2}, mean, variance, dx, {dx.node, 1}, {dx.node, 2}};
    char what[128];
    snprintf(what, sizeof what, "%lldx%lldx%lldx%lld %s %s %s", (long long)xs.dims[0], (long long)xs.dims[1],
             (long long)xs.dims[2], (long long)xs.dims[3], first ? "channels first" : "",
             training ? "training" : "frozen", slow ? "slowly" : "");
    fast_compare(b, outputs, 8, 2e-5, what);
    tfc_builder_free(b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
