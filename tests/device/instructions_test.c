// --cpu: the instruction set that kernels may use is set once per process, by the first session.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/base/instructions.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "runtime/host/gemm/gemm.h"
#include "runtime/host/gemm/split.h"

static void test_limit(void **state) {
  (void)state;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) skip();
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  assert_ok(tfc_builder_create(NULL, &b));
  (void)tfc_add(b, "NoOp", "nothing", NULL, 0, NULL, 0);
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  assert_ok(tfc_session_create(
      g, &(struct tfc_session_options){.devices = &set, .execution.cpu = TFC_INSTRUCTIONS_AVX2}, &session));
  tfc_session_free(session), session = NULL;
  assert_string_equal(tfc_gemm_name(), "avx2");
  assert_int_equal(tfc_gemm_panel() % 8, 0);
  assert_false(tfc_split_available());
  assert_false(tfc_instructions_allowed(TFC_INSTRUCTIONS_AVX512));
  // Once kernels are chosen, a session with another limit is refused, and one without a limit changes nothing.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    assert_fails(
        tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .execution.cpu = TFC_INSTRUCTIONS_AVX512},
                           &session),
        TFC_FAILED_PRECONDITION, "AVX-512");
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  assert_string_equal(tfc_gemm_name(), "avx2");
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_builder_free(b);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_limit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
