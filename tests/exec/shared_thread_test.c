// Tests devices that read each other's memory (",shared" behind their names): nothing is copied between them, the bits
// are the same, and memory that another device still reads is not overwritten.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/device/emulated/emulated.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "tests/common/same_bits.h"

static void names(void **state) {
  (void)state;
  struct tfc_device_set set = {0};
  assert_fails(tfc_devices_open("shared", NULL, 0, &set), TFC_UNAVAILABLE, "'shared'");
  assert_fails(tfc_devices_open(",shared", NULL, 0, &set), TFC_INVALID_ARGUMENT, "no device");
  assert_ok(tfc_devices_open("emu:0-1,cpu:0,shared", NULL, 0, &set));
  assert_int_equal(set.count, 3);
  assert_int_equal(set.devices[0]->info.address_space, set.devices[1]->info.address_space);
  assert_int_equal(set.devices[2]->info.address_space, 0);
  assert_null(tfc_virtual_transfers(&set.devices[0]->info, 1));
  tfc_devices_close(&set);
  const struct tfc_device_info infos[] = {{.label = "virtual", .address_space = 7},
                                          {.label = "measured", .address_space = 7},
                                          {.label = "virtual", .address_space = 7},
                                          {.label = "virtual", .address_space = 8}};
  assert_null(tfc_virtual_transfers(infos, 2));
  assert_string_equal(tfc_virtual_transfers(infos, 3), "handed over");
  assert_string_equal(tfc_virtual_transfers(infos + 2, 2), "copy on one GPU");
}

static void same_bits(void **state) {
  (void)state;
#ifdef TFC_SANITIZED
  enum { MANY = 2 };
#else
  enum { MANY = 8 };
#endif
  tfc_same_bits("mlp", "emu:0-3,shared", MANY, 1, false);
  tfc_same_bits("mlp", "emu:0-3,shared", 3, 2, true);
  tfc_same_bits("ridge", "emu:0-2,cpu:0,shared", MANY, 3, true);
}

// A second device, which is slow, reads a. So does an operation on the first device, whose output could overwrite a.
static void still_read(void **state) {
  (void)state;
  enum { N = 1024, A = 1, THERE = 2, HERE = 3, NODES = 4 };
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor x = {0}, got[2] = {0};
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output in = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(N)), a = tfc_add1(b, "Neg", in);
  struct tfc_output fetches[2] = {tfc_add1(b, "Sign", a), tfc_add1(b, "Neg", a)};
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  assert_int_equal(fetches[1].node, HERE);
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(N), &x));
  for (int i = 0; i < N; i++) ((float *)x.data)[i] = (float)(i % 2 ? i : -i);
  assert_ok(tfc_devices_open("emu:0-1,shared", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = true}, &session));
  static const uint16_t placement[NODES] = {[THERE] = 1};
  static const double order[NODES] = {0, 1, 2, 3};
  const struct tfc_shape shape = TFC_SHAPE(N);
  assert_ok(tfc_plan_create(session,
                            &(struct tfc_run_spec){.feeds = &in,
                                                   .feed_count = 1,
                                                   .feed_shapes = &shape,
                                                   .fetches = fetches,
                                                   .fetch_count = 2,
                                                   .placement = placement,
                                                   .order = order},
                            &plan));
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  int handed_over = 0;
  for (uint32_t t = 0; t < info->transfer_count; t++) handed_over += info->transfers[t].handed_over;
  assert_int_equal(info->transfer_count, 2); // only the feed is copied
  assert_int_equal(handed_over, 1);
  tfc_emulated_delay(set.devices[1], &(struct tfc_emulated_delay){.run_ns = 20000000});
  const uint64_t copies = tfc_emulated_calls(set.devices[1], TFC_EMULATED_COPY);
  for (int step = 0; step < 3; step++) {
    assert_ok(tfc_plan_run(plan, &x, got, NULL));
    for (int i = 0; i < N; i++) {
      const float v = ((const float *)x.data)[i];
      assert_true(((const float *)got[0].data)[i] == (float)((v < 0) - (v > 0)) &&
                  ((const float *)got[1].data)[i] == v);
    }
    for (int k = 0; k < 2; k++) tfc_tensor_release(&got[k]);
  }
  assert_int_equal(tfc_emulated_calls(set.devices[1], TFC_EMULATED_COPY), copies);
  tfc_tensor_release(&x);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(still_read),
                                     cmocka_unit_test(same_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
