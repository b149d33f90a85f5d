// Tests how CUPTI's records are decoded. The records are built in memory as CUPTI's headers define them.
#include "tests/common/test.h"

#include <string.h>

#include "profiler/cupti/toolkit/decode.h"

static struct tfc_activity *a;
static struct tfc_activity_result r;

static int set_up(void **state) {
  (void)state;
  assert_ok(tfc_activity_create(&a));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  tfc_activity_free(a);
  tfc_activity_result_deinit(&r);
  return 0;
}

static void decode(const void *record) {
  tfc_cupti_decode(a, record);
}
static void correlate(uint32_t correlation, uint64_t external) {
  CUpti_ActivityExternalCorrelation e = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                         .externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                         .externalId = external,
                                         .correlationId = correlation};
  decode(&e);
  e.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1; // a kind that tfc does not use
  e.externalId = 1;
  decode(&e);
}
static CUpti_ActivityKernel10 kernel(uint32_t correlation, uint64_t start, uint64_t end) {
  CUpti_ActivityKernel10 k;
  memset(&k, 0, sizeof k);
  k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  k.start = start;
  k.end = end;
  k.contextId = 3;
  k.streamId = 9;
  k.correlationId = correlation;
  k.gridX = 10, k.gridY = 2, k.gridZ = 1;
  k.blockX = 256, k.blockY = 1, k.blockZ = 1;
  k.registersPerThread = 40;
  k.staticSharedMemory = 1024;
  k.dynamicSharedMemory = 4096;
  k.name = "a_kernel_with_a_rather_long_name_that_does_not_fit_into_sixty_four_characters";
  return k;
}

static void kernels(void **state) {
  (void)state;
  CUpti_ActivityKernel10 k = kernel(5, 1000, 1500);
  decode(&k);
  correlate(5, tfc_activity_external(2, 1, 77));
  assert_ok(tfc_activity_take(a, 2, &r));
  assert_ok(tfc_activity_trust(&r));
  assert_int_equal(r.works.count, 1);
  const struct tfc_activity_work *w = &r.works.data[0];
  assert_int_equal(w->uid, 77);
  assert_int_equal(w->device, 1);
  assert_int_equal(w->grid[0], 10);
  assert_int_equal(w->block[0], 256);
  assert_int_equal(w->registers, 40);
  assert_int_equal(w->shared, 5120);
  assert_int_equal(w->stream, 9);
  assert_int_equal(w->context, 3);
  assert_int_equal(strlen(w->name), TFC_ACTIVITY_NAME - 1);
}

static void names(void **state) {
  (void)state;
  static const struct {
    const char *mangled, *shown;
  } cases[] = {{"_ZN3tfcL13binary_kernelINS_55_GLOBAL__N__2de34b98_22_elementwise_compare_cu_"
                "2065037112GreaterEqualIfEEfbEEv18tfc_"
                "cuda_broadcastPKT0_S7_PT1_T_",
                "binary_kernel GreaterEqual"},
               {"_ZN3tfc48_GLOBAL__N__ff3fa7c2_15_update_dense_cu_47b5c6d9L12dense_kernelINS_"
                "10AdaMaxRuleIfEEfLi2ELi5EEEv15tfc_cuda_"
                "update",
                "dense_kernel AdaMaxRule"},
               {"_ZN3tfcL12unary_kernelINS_53_GLOBAL__N__8427d71a_20_elementwise_unary_cu_dc6e5de13AbsINS_3f16EEES3_S3_"
                "EEv18tfc_cuda_"
                "broadcastPKT0_PT1_T_",
                "unary_kernel Abs f16"},
               {"_ZN7cutlass7Kernel2I66cutlass_80_simt_sgemm_128x64_8x5_nn_align1_of_a_long_name_indeedEEvNT_6ParamsE",
                "cutlass Kernel2 cutlass_80_simt_sgemm_128x64_8x5_nn_align1_of_a"},
               {"sm90_xmma_gemm", "sm90_xmma_gemm"},
               {"_Z", "_Z"},
               {"_Z9cut", "_Z9cut"},
               {"_Z99999999999999999999x", "_Z99999999999999999999x"},
               {"_ZLb", "_ZLb"},
               {"", ""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CUpti_ActivityKernel10 k = kernel(1, 1, 2);
    k.name = cases[i].mangled;
    decode(&k);
    assert_ok(tfc_activity_take(a, 1, &r));
    assert_int_equal(r.works.count, 1);
    assert_string_equal(r.works.data[0].name, cases[i].shown);
  }
}

static void copies(void **state) {
  (void)state;
  CUpti_ActivityMemcpy6 c;
  memset(&c, 0, sizeof c);
  c.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  c.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  c.bytes = 1 << 20;
  c.start = 10, c.end = 90;
  c.correlationId = 6;
  decode(&c);
  CUpti_ActivityMemcpyPtoP4 p;
  memset(&p, 0, sizeof p);
  p.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  p.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  p.bytes = 5;
  p.start = 100, p.end = 120;
  p.correlationId = 7;
  decode(&p);
  CUpti_ActivityMemset4 m;
  memset(&m, 0, sizeof m);
  m.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  m.bytes = 64;
  m.start = 130, m.end = 131;
  m.correlationId = 8;
  decode(&m);
  correlate(6, tfc_activity_external(1, 0, 4 | TFC_TRACE_UID_TRANSFER));
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.works.count, 3);
  assert_string_equal(r.works.data[0].direction, "DtoH");
  assert_int_equal(r.works.data[0].bytes, 1 << 20);
  assert_int_equal(r.works.data[0].uid, 4 | TFC_TRACE_UID_TRANSFER);
  assert_string_equal(r.works.data[1].direction, "PtoP");
  assert_int_equal(r.works.data[2].kind, TFC_ACTIVITY_SET);
  assert_int_equal(r.works.data[2].bytes, 64);
}

static void broken(void **state) {
  (void)state;
  CUpti_ActivityKernel10 k = kernel(1, 0, 0); // times of 0: CUPTI could not get them
  decode(&k);
  k = kernel(1, 50, 40);
  decode(&k);
  k = kernel(1, 100, 200000);
  k.name = NULL;
  k.gridX = -1;
  decode(&k);
  k = kernel(1, 150, 250000);
  decode(&k);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.zero_stamped, 1);
  assert_int_equal(r.out_of_order, 2);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "no measurement");
  // CUPTI delivers three records twice: of work, of a wait, and of memory.
  CUpti_ActivitySynchronization2 wait;
  CUpti_ActivityMemory4 memory;
  memset(&wait, 0, sizeof wait);
  memset(&memory, 0, sizeof memory);
  wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
  wait.start = 5, wait.end = 8, wait.correlationId = 9;
  memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  memory.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  memory.bytes = 99, memory.timestamp = 6, memory.address = 0x1000;
  k = kernel(1, 100, 200);
  for (int i = 0; i < 2; i++) {
    decode(&k);
    decode(&wait);
    decode(&memory);
  }
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.twice, 2);
  assert_int_equal(r.waits_broken, 1);
  assert_int_equal(r.busy_ns, 100);
  assert_int_equal(r.allocations, 1);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "2 delivered twice");
  wait.correlationId = 10; // another wait, another piece of memory
  memory.address = 0x2000;
  decode(&wait);
  decode(&memory);
  wait.correlationId = 11;
  memory.address = 0x3000;
  decode(&wait);
  decode(&memory);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));
  // Time stamps that CUPTI could not get are 0.
  wait.start = wait.end = 0;
  decode(&wait);
  memory.timestamp = 0;
  decode(&memory);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.zero_stamped, 1);
  assert_int_equal(r.waits_broken, 1);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "1 without time stamps");
  CUpti_ActivityAPI api; // records of calls are used only for their correlation
  memset(&api, 0, sizeof api);
  api.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  decode(&api);
  CUpti_Activity unknown = {.kind = (CUpti_ActivityKind)9999};
  decode(&unknown);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.works.count, 0);
}

// The times of two kernels that follow each other in a stream may seem to overlap: the second is cut to begin when the
// first ends. Kernels in parallel branches of a graph do overlap. In both cases, the busy time counts the overlap once.
static void overlaps(void **state) {
  (void)state;
  CUpti_ActivityKernel10 k = kernel(1, 1000, 5000);
  decode(&k);
  k = kernel(1, 4000, 6000);
  decode(&k);
  k = kernel(1, 5500, 5800); // inside the one before
  decode(&k);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));
  assert_int_equal(r.works.count, 3);
  assert_int_equal(r.works.data[1].start_ns, 5000);
  assert_int_equal(r.works.data[2].start_ns, 6000);
  assert_int_equal(r.works.data[2].end_ns, 6000);
  assert_int_equal(r.busy_ns, 5000);
  k = kernel(1, 10000, 90000);
  k.graphNodeId = 5;
  decode(&k);
  k = kernel(1, 20000, 95000);
  k.graphNodeId = 6;
  decode(&k);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));
  assert_int_equal(r.busy_ns, 85000);
}

// A library's kernel may begin before the one ahead of it has ended, if it was launched later and ends later.
static void early(void **state) {
  (void)state;
  CUpti_ActivityKernel10 k = kernel(1, 1000, 50000);
  decode(&k);
  k = kernel(2, 30000, 60000);
  decode(&k);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));
  assert_int_equal(r.works.count, 2);
  assert_int_equal(r.busy_ns, 59000); // the overlap is counted once
  // These are not early: the second ends inside the one ahead; it was launched earlier; it is a fill.
  for (int i = 0; i < 3; i++) {
    k = kernel(2, 1000, 500000);
    decode(&k);
    k = kernel(i == 1 ? 1 : 3, 300000, i == 0 ? 400000 : 600000);
    CUpti_ActivityMemset4 m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    m.start = 300000, m.end = 600000, m.contextId = 3, m.streamId = 9, m.correlationId = 3;
    if (i == 2)
      decode(&m);
    else
      decode(&k);
    assert_ok(tfc_activity_take(a, 1, &r));
    assert_int_equal(r.out_of_order, 1);
  }
}

static void others(void **state) {
  (void)state;
  CUpti_ActivitySynchronization2 s;
  memset(&s, 0, sizeof s);
  s.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  s.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  s.start = 5, s.end = 8, s.contextId = 2, s.streamId = 7;
  decode(&s);
  CUpti_ActivitySynchronization2 unfinished = s; // a query of an event that had not happened
  unfinished.returnValue = CUDA_ERROR_NOT_READY;
  for (uint32_t i = 0; i < 3; i++) {
    unfinished.correlationId = 100 + i;
    decode(&unfinished);
  }
  CUpti_ActivityMemory4 m;
  memset(&m, 0, sizeof m);
  m.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  m.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  m.bytes = 99, m.timestamp = 6;
  decode(&m);
  m.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  decode(&m);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_int_equal(r.synchronizations, 1);
  assert_int_equal(r.synchronized_ns, 3);
  assert_int_equal(r.allocated_bytes, 99);
  assert_int_equal(r.allocations, 1);
  assert_int_equal(r.calls.count, 3);
  assert_string_equal(r.calls.data[0].name, "stream");
  assert_int_equal(r.calls.data[0].context, 2);
  assert_int_equal(r.calls.data[0].stream, 7);
  assert_string_equal(r.calls.data[1].name, "device");
  assert_int_equal(r.calls.data[1].stream, TFC_NONE);
}

// Decodes a complete buffer, in which CUPTI's own function finds the next record.
static void buffer(void **state) {
  (void)state;
  enum { COUNT = 100 };
  static _Alignas(8)
      uint8_t bytes[COUNT * (sizeof(CUpti_ActivityKernel10) + sizeof(CUpti_ActivityExternalCorrelation))];
  size_t at = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    CUpti_ActivityExternalCorrelation e = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                           .externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                           .externalId = tfc_activity_external(1, 0, i),
                                           .correlationId = i + 1};
    memcpy(bytes + at, &e, sizeof e);
    at += sizeof e;
    CUpti_ActivityKernel10 k = kernel(i + 1, 1000 + 10 * i, 1005 + 10 * i);
    memcpy(bytes + at, &k, sizeof k);
    at += sizeof k;
  }
  CUpti_Activity *record = NULL;
  if (cuptiActivityGetNextRecord(bytes, at, &record) != CUPTI_SUCCESS)
    skip(); // this function works only after CUPTI was started
  tfc_cupti_decode_buffer(a, bytes, at);
  assert_ok(tfc_activity_take(a, 1, &r));
  assert_ok(tfc_activity_trust(&r));
  assert_int_equal(r.works.count, COUNT);
  for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(r.works.data[i].uid, i);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(kernels, set_up, tear_down),
      cmocka_unit_test_setup_teardown(names, set_up, tear_down),
      cmocka_unit_test_setup_teardown(copies, set_up, tear_down),
      cmocka_unit_test_setup_teardown(broken, set_up, tear_down),
      cmocka_unit_test_setup_teardown(overlaps, set_up, tear_down),
      cmocka_unit_test_setup_teardown(early, set_up, tear_down),
      cmocka_unit_test_setup_teardown(others, set_up, tear_down),
      cmocka_unit_test_setup_teardown(buffer, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
