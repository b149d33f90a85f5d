// Tests the CUPTI session on stubs of CUPTI's functions: which calls it makes and in which order, what it does and
// which message it gives when a call is refused, and what its callbacks do.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/cupti/toolkit/session.c" // NOLINT: its calls are the stubs below

// --- Stubs -------------------------------------------------------------------------------------------------------
enum call { SUBSCRIBE, CALLBACK, CLOCK, ZEROED, BUFFERS, KIND, QUERIES, QUIET, LAST };
static enum call calls[256];
static size_t call_count;
static bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
static CUptiResult subscribing, refusing;
static CUpti_ActivityKind refused_kind;
static int subscribed;
static size_t drops;
static CUpti_CallbackFunc callback;
static CUpti_BuffersCallbackRequestFunc wanted;
static CUpti_BuffersCallbackCompleteFunc completed;
static CUpti_TimestampCallbackFunc timestamp;

static void called(enum call c) {
  assert_true(call_count < sizeof calls / sizeof *calls);
  calls[call_count++] = c;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc f, void *data) {
  (void)out, (void)data;
  called(SUBSCRIBE);
  callback = f;
  subscribed += subscribing == CUPTI_SUCCESS;
  return subscribing;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle s) {
  (void)s;
  subscribed--;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  (void)s;
  called(CALLBACK);
  assert_true(on && domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc f) {
  called(CLOCK);
  timestamp = f;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  called(BUFFERS);
  wanted = request;
  completed = complete;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  called(KIND);
  if (kind == refused_kind) return refusing;
  enabled[kind] = true;
  return CUPTI_SUCCESS;
}
static bool queries = true, zeroed;
static CUptiResult refusing_queries, refusing_zeroed;
CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t on) { // must come after the kind is enabled, like the calls below
  called(QUERIES);
  assert_true(!on && enabled[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION]);
  if (!refusing_queries) queries = false;
  return refusing_queries;
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute which, size_t *size, void *value) {
  called(ZEROED);
  assert_int_equal(which, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
  assert_int_equal(*size, 1);
  if (!refusing_zeroed) zeroed = *(const uint8_t *)value;
  return refusing_zeroed;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  enabled[kind] = false;
  return CUPTI_SUCCESS;
}
// Turns off the records of one API call. It must come after the kind is enabled, since enabling the kind turns them on.
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, uint8_t on) {
  (void)id;
  called(QUIET);
  assert_true(!on && enabled[CUPTI_ACTIVITY_KIND_RUNTIME]);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t on) {
  (void)id;
  called(QUIET);
  assert_true(!on && enabled[CUPTI_ACTIVITY_KIND_DRIVER]);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *out) {
  (void)context, (void)stream;
  *out = drops;
  drops = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record) {
  (void)buffer, (void)valid, (void)record;
  return CUPTI_ERROR_MAX_LIMIT_REACHED;
}
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *out) {
  *out = (uint64_t)(uintptr_t)node;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **out) {
  *out = result == CUPTI_ERROR_NOT_SUPPORTED ? "not supported, says the stub" : NULL;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  assert_int_equal(flag, 0); // a forced flush would deliver records that have no time stamps yet
  return CUPTI_SUCCESS;
}
static uint64_t pushed;
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  assert_int_equal(kind, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
  pushed = id;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *last) {
  assert_int_equal(kind, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
  *last = pushed;
  pushed = 0;
  return CUPTI_SUCCESS;
}

// --- Tests -------------------------------------------------------------------------------------------------------
static struct tfc_activity *activity;

static void refuse(CUptiResult result, CUpti_ActivityKind kind, CUptiResult of_kind, const char *words) {
  subscribing = result;
  refused_kind = kind;
  refusing = of_kind;
  call_count = 0;
  assert_fails(tfc_gpu_profiler.start(activity), TFC_UNAVAILABLE, words);
  assert_int_equal(subscribed, 0); // the next session may try again
  for (int i = 0; i < CUPTI_ACTIVITY_KIND_COUNT; i++) assert_false(enabled[i]);
  subscribing = CUPTI_SUCCESS;
  refused_kind = CUPTI_ACTIVITY_KIND_INVALID;
}

static void refusals(void **state) {
  (void)state;
  const CUpti_ActivityKind none = CUPTI_ACTIVITY_KIND_INVALID;
  refuse(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, none, CUPTI_SUCCESS, "another profiler or a debugger");
  refuse(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, none, CUPTI_SUCCESS, "no permission");
  refuse(CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, none, CUPTI_SUCCESS, "confidential-computing");
  refuse(CUPTI_ERROR_NOT_SUPPORTED, none, CUPTI_SUCCESS, "subscribing: not supported, says the stub");
  refuse(CUPTI_SUCCESS, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ERROR_UNKNOWN, "kernels: unknown error");
}

static void starts(void **state) {
  (void)state;
  refused_kind = CUPTI_ACTIVITY_KIND_MEMORY2; // a session starts even if memory records are refused
  refusing = CUPTI_ERROR_NOT_SUPPORTED;
  call_count = 0;
  assert_ok(tfc_gpu_profiler.start(activity));
  refused_kind = CUPTI_ACTIVITY_KIND_INVALID;
  for (size_t i = 1; i < call_count; i++) assert_true(calls[i] >= calls[i - 1]); // in the order of the enum
  assert_int_equal(calls[0], SUBSCRIBE);
  assert_int_equal(calls[call_count - 1], QUIET);
  assert_true(enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] && enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION]);
  assert_false(enabled[CUPTI_ACTIVITY_KIND_KERNEL] || enabled[CUPTI_ACTIVITY_KIND_MEMORY2]);
  size_t first = call_count;
  assert_ok(tfc_gpu_profiler.start(activity)); // a second start makes no calls
  assert_int_equal(call_count, first);
  size_t quiet = 0;
  for (size_t i = 0; i < first; i++) quiet += calls[i] == QUIET;
  assert_ok(tfc_gpu_profiler.record(false));
  assert_false(enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] || enabled[CUPTI_ACTIVITY_KIND_RUNTIME]);
  call_count = 0;
  assert_ok(tfc_gpu_profiler.record(true)); // enabling a kind again undoes what was turned off in it
  for (size_t i = 0; i < call_count; i++) quiet -= calls[i] == QUIET;
  assert_int_equal(quiet, 0);
  // Synchronization records are enabled only without those of event queries (the second part: if CUPTI refuses that,
  // there are none).
  assert_true(!queries && enabled[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION]);
  assert_ok(tfc_gpu_profiler.record(false));
  call_count = 0;
  refusing_queries = CUPTI_ERROR_NOT_SUPPORTED;
  assert_ok(tfc_gpu_profiler.record(true));
  assert_false(enabled[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION]);
  assert_true(enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]);
  refusing_queries = CUPTI_SUCCESS;
  uint64_t a = timestamp(), b = timestamp();
  assert_true(a > 0 && b >= a);
  tfc_gpu_profiler.push(77);
  assert_int_equal(pushed, 77);
  tfc_gpu_profiler.pop();
  assert_int_equal(pushed, 0);
}

static void buffers(void **state) {
  (void)state;
  uint8_t *one = NULL, *two = NULL, *again = NULL;
  size_t size = 0, most = 1;
  wanted(&one, &size, &most);
  wanted(&two, &size, &most);
  assert_true(one && two && one != two && size >= 1 << 20 && most == 0); // most: as many as fit
  // CUPTI was told that buffers are already zeroed, since otherwise it clears them on the launching thread. So the part
  // that it has written must be cleared here.
  assert_true(zeroed);
  enum { USED = 100000 };
  for (size_t i = 0; i < size; i++) assert_int_equal(one[i], 0);
  memset(one, 0x5a, USED);
  assert_int_equal((uintptr_t)one % 8, 0);
  drops = 3;
  completed(NULL, 0, one, size, USED);
  wanted(&again, &size, &most);
  assert_ptr_equal(again, one); // the same buffer is used again: nothing is allocated while steps run
  for (size_t i = 0; i < size; i++) assert_int_equal(again[i], 0);
  drops = 2;
  assert_ok(tfc_gpu_profiler.flush());
  struct tfc_activity_result r = {0};
  assert_ok(tfc_activity_take(activity, 1, &r));
  assert_int_equal(r.dropped, 5);
  assert_fails(tfc_activity_trust(&r), TFC_ABORTED, "5 records dropped");
  tfc_activity_result_deinit(&r);
  free(one);
  free(two);
}

// A CUPTI without that option clears buffers on the launching thread, so they are small.
static void not_cleared(void **state) {
  (void)state;
  uint8_t *one = NULL;
  size_t size = 0, most = 0;
  call_count = 0;
  refusing_zeroed = CUPTI_ERROR_INVALID_PARAMETER;
  clear_buffers_here();
  spare = NULL;
  wanted(&one, &size, &most);
  assert_true(one && size <= 256 << 10 && size >= 64 << 10);
  free(one);
  refusing_zeroed = CUPTI_SUCCESS;
  clear_buffers_here();
}

static void clones(void **state) {
  (void)state;
  CUpti_GraphData graph = {.originalNode = (CUgraphNode)(uintptr_t)40, .node = (CUgraphNode)(uintptr_t)41};
  CUpti_ResourceData resource = {.resourceDescriptor = &graph};
  tfc_activity_map(activity, 40, 7);
  callback(NULL, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, &resource);
  struct tfc_activity_work w = {.start_ns = 1, .end_ns = 2, .correlation = 9, .graph_node = 41};
  tfc_activity_add(activity, &w);
  tfc_activity_correlate(activity, 9, tfc_activity_external(1, 0, 3));
  struct tfc_activity_result r = {0};
  assert_ok(tfc_activity_take(activity, 1, &r));
  assert_int_equal(r.works.count, 1);
  assert_int_equal(r.works.data[0].uid, 7);
  tfc_activity_result_deinit(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refusals), cmocka_unit_test(starts), cmocka_unit_test(buffers),
                                     cmocka_unit_test(not_cleared), cmocka_unit_test(clones)};
  assert_ok(tfc_activity_create(&activity));
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tfc_activity_free(activity);
  return failed;
}
