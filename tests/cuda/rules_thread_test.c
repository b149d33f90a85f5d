// The fake of the CUDA calls refuses what CUDA refuses, with the same error, and counts each such call. The other tests
// of the driver check that this count is 0 (tfc_cuda_fake_violations), which proves something only if the fake notices
// every kind of wrong call. And a call that may not be captured makes the whole capture fail, as on a GPU.
#include "tests/common/test.h"

#include <pthread.h>

#include "runtime/device/cuda/device.h"
#include "tests/common/cuda_fake.h"
#include "tests/common/fake_watcher.h"

static const struct tfc_cuda_api *const api = &tfc_cuda_fake_api;
static uint64_t seen;
static void begin(bool readable) {
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2, .readable = readable});
  tfc_cuda_fake_reset();
  assert_int_equal(api->enter(0), 0);
  seen = 0;
}
static void refused(int error, int expected) {
  assert_int_equal(error, expected);
  assert_int_equal(tfc_cuda_fake_violations(), ++seen);
}
static void work(void *argument) {
  (void)argument;
}
static int launch(tfc_cuda_stream stream) {
  char none = 0;
  return tfc_cuda_fake_launch(stream, work, &none, 1);
}

static void streams_and_events_of_another_device(void **state) {
  (void)state;
  begin(false);
  tfc_cuda_stream first, second;
  tfc_cuda_event event;
  assert_int_equal(api->stream_create(NULL, &first), 0);
  assert_int_equal(api->event_create(false, &event), 0);
  assert_int_equal(api->enter(1), 0);
  assert_int_equal(api->stream_create(NULL, &second), 0);
  assert_int_equal(launch(second), 0);
  refused(launch(first), 400);
  refused(api->event_record(event, second), 400);
  assert_int_equal(api->event_record(event, first), 0); // no matter which device is current
  assert_int_equal(api->stream_wait(second, event), 0);
  assert_int_equal(api->stream_synchronize(second), 0);
  assert_int_equal(api->event_destroy(event), 0);
  assert_int_equal(api->stream_destroy(first), 0);
  assert_int_equal(api->stream_destroy(second), 0);
  assert_int_equal(tfc_cuda_fake_violations(), seen);
}

static void what_was_destroyed(void **state) {
  (void)state;
  begin(false);
  tfc_cuda_stream stream, other;
  tfc_cuda_event event;
  assert_int_equal(api->stream_create(NULL, &stream), 0);
  assert_int_equal(api->stream_create(NULL, &other), 0);
  assert_int_equal(api->event_create(false, &event), 0);
  assert_int_equal(api->stream_destroy(stream), 0);
  refused(launch(stream), 400);
  refused(api->stream_synchronize(stream), 400);
  refused(api->event_record(event, stream), 400);
  refused(api->stream_wait(stream, event), 400);
  refused(api->stream_destroy(stream), 400);
  assert_int_equal(api->event_destroy(event), 0);
  refused(api->event_query(event), 400);
  refused(api->event_record(event, other), 400);
  refused(api->stream_wait(other, event), 400);
  refused(api->event_destroy(event), 400);
  assert_int_equal(api->stream_destroy(other), 0);
}

static void streams_of_a_destroyed_context(void **state) {
  (void)state;
  begin(false);
  struct tfc_cuda_partition halves[2];
  int granularity, total;
  tfc_cuda_stream stream;
  assert_int_equal(api->split(0, 2, halves, &granularity, &total), 0);
  assert_int_equal(api->stream_create(&halves[1], &stream), 0);
  assert_int_equal(launch(stream), 0);
  assert_int_equal(api->unsplit(&halves[0]), 0);
  assert_int_equal(launch(stream), 0);
  (void)api->unsplit(&halves[1]);
  seen++; // the call before is a violation, since the partition still had a stream
  refused(launch(stream), 709);
  assert_int_equal(api->stream_destroy(stream), 0);
}

// Makes a stream, and 64 bytes on the device and of pinned memory.
static void begin_with_memory(tfc_cuda_stream *stream, void **block, void **pinned) {
  begin(false);
  assert_int_equal(api->stream_create(NULL, stream), 0);
  assert_int_equal(api->allocate(block, 64), 0);
  assert_int_equal(api->allocate_host(pinned, 64), 0);
}

static void memory_that_was_given_back(void **state) {
  (void)state;
  char host[64] = {0};
  tfc_cuda_stream stream;
  void *block = NULL, *pinned = NULL;
  begin_with_memory(&stream, &block, &pinned);
  assert_int_equal(api->copy(pinned, block, 64, stream), 0);
  assert_int_equal(api->stream_synchronize(stream), 0);
  for (int i = 0; i < 64; i++) assert_true(((const char *)pinned)[i]); // new memory is not cleared
  assert_int_equal(api->copy(block, host, 64, stream), 0);
  assert_int_equal(api->copy(pinned, block, 64, stream), 0);
  refused(api->copy(block, pinned, 65, stream), 1);
  refused(api->copy((char *)block + 32, pinned, 33, stream), 1);
  refused(api->set(block, 0, 65, stream), 1);
  assert_int_equal(api->stream_synchronize(stream), 0); // the two copies still need the block
  assert_int_equal(api->release(block), 0);
  refused(api->copy(block, pinned, 64, stream), 1);
  refused(api->copy(pinned, block, 64, stream), 1);
  refused(api->set(block, 0, 64, stream), 1);
  assert_int_equal(api->release_host(pinned), 0);
  assert_int_equal(api->stream_destroy(stream), 0);
}

// Work that is still to come finds its memory gone.
static void memory_that_was_given_back_too_early(void **state) {
  (void)state;
  tfc_cuda_stream stream;
  void *block = NULL, *pinned = NULL;
  begin_with_memory(&stream, &block, &pinned);
  for (int i = 0; i < 3; i++) { // a copy from it, a copy to it, a fill
    tfc_cuda_fake_hang(1);
    assert_int_equal(launch(stream), 0);
    assert_int_equal(i == 2   ? api->set(block, 0, 64, stream)
                     : i == 1 ? api->copy(block, pinned, 64, stream)
                              : api->copy(pinned, block, 64, stream),
                     0);
    assert_int_equal(api->release(block), 0); // does not wait
    tfc_cuda_fake_hang(0);
    refused(api->stream_synchronize(stream), 0);
    assert_int_equal(api->allocate(&block, 64), 0);
  }
  assert_int_equal(api->release(block), 0);
  assert_int_equal(api->release_host(pinned), 0);
  assert_int_equal(api->stream_destroy(stream), 0);
}

// A strict cuDNN wants the context of its handle's stream to be current in every call.
static void handles_of_another_context(void **state) {
  (void)state;
  struct tfc_cuda_partition halves[2];
  int granularity, total;
  tfc_cuda_stream stream, plain;
  struct cudnnContext *handle = NULL;
  const char *said = NULL;
  begin(false);
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2, .strict_cudnn = true});
  assert_int_equal(api->split(0, 2, halves, &granularity, &total), 0);
  assert_int_equal(api->stream_create(&halves[0], &stream), 0);
  assert_int_equal(api->stream_create(NULL, &plain), 0);
  assert_int_not_equal(api->cudnn_create(stream, &handle, &said), 0);
  assert_non_null(said);
  assert_int_equal(api->push(&halves[0]), 0);
  assert_int_equal(api->cudnn_create(stream, &handle, &said), 0);
  assert_int_not_equal(api->cudnn_stream(handle, plain), 0);
  assert_int_equal(api->pop(), 0);
  assert_int_not_equal(api->cudnn_stream(handle, stream), 0);
  assert_int_equal(tfc_cuda_fake_violations(), seen);
  refused(api->cudnn_destroy(handle), 0);
  assert_int_equal(api->stream_destroy(stream), 0);
  assert_int_equal(api->stream_destroy(plain), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(api->unsplit(&halves[i]), 0);
}

// A strict driver takes only events of the stream's own context; a green context is current on one thread at a time.
static void *push_too(void *context) {
  assert_int_equal(api->push(context), 0);
  return NULL;
}
static void events_of_another_context(void **state) {
  (void)state;
  struct tfc_cuda_partition halves[2];
  int granularity, total;
  tfc_cuda_stream stream, plain;
  tfc_cuda_event outside, inside;
  pthread_t other;
  begin(false);
  assert_int_equal(api->split(0, 2, halves, &granularity, &total), 0);
  assert_int_equal(api->stream_create(&halves[0], &stream), 0);
  assert_int_equal(api->stream_create(NULL, &plain), 0);
  assert_int_equal(api->event_create(false, &outside), 0);
  assert_int_equal(api->push(&halves[0]), 0);
  assert_int_equal(api->event_create(false, &inside), 0);
  assert_int_equal(api->event_record(outside, stream), TFC_CUDA_INVALID_HANDLE);
  assert_int_equal(api->event_record(inside, plain), TFC_CUDA_INVALID_HANDLE);
  assert_int_equal(api->event_record(inside, stream), 0);
  assert_int_equal(api->stream_wait(plain, inside), 0); // any stream may wait for it
  assert_int_equal(tfc_cuda_fake_violations(), seen);
  assert_int_equal(pthread_create(&other, NULL, push_too, &halves[0]), 0);
  assert_int_equal(pthread_join(other, NULL), 0);
  assert_int_equal(tfc_cuda_fake_violations(), ++seen);
  assert_int_equal(api->pop(), 0);
  assert_int_equal(api->event_record(outside, plain), 0);
  assert_int_equal(api->event_destroy(inside), 0);
  assert_int_equal(api->event_destroy(outside), 0);
  assert_int_equal(api->stream_destroy(stream), 0);
  assert_int_equal(api->stream_destroy(plain), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(api->unsplit(&halves[i]), 0);
  assert_int_equal(tfc_cuda_fake_violations(), seen);
}

static void events_of_a_destroyed_context(void **state) {
  (void)state;
  struct tfc_cuda_partition halves[2];
  int granularity, total;
  tfc_cuda_stream plain;
  tfc_cuda_event made[2], later;
  begin(false);
  assert_int_equal(api->split(0, 2, halves, &granularity, &total), 0);
  assert_int_equal(api->stream_create(NULL, &plain), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(api->push(&halves[i]), 0);
    assert_int_equal(api->event_create(false, &made[i]), 0);
    assert_int_equal(api->pop(), 0);
  }
  assert_int_equal(api->unsplit(&halves[0]), 0);
  refused(api->stream_wait(plain, made[0]), 709);
  refused(api->event_query(made[0]), 709);
  refused(api->event_destroy(made[0]), 709);
  assert_int_equal(api->stream_wait(plain, made[1]), 0);
  assert_int_equal(api->event_destroy(made[1]), 0);
  assert_int_equal(api->unsplit(&halves[1]), 0);
  assert_int_equal(api->split(0, 2, halves, &granularity, &total), 0); // a new context in the place of the old one
  assert_int_equal(api->push(&halves[0]), 0);
  assert_int_equal(api->event_create(false, &later), 0);
  assert_int_equal(api->pop(), 0);
  assert_int_equal(api->event_destroy(later), 0);
  assert_int_equal(api->stream_destroy(plain), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(api->unsplit(&halves[i]), 0);
  assert_int_equal(tfc_cuda_fake_violations(), seen);
}

// Entering a device replaces a green context that was pushed; what was below it comes back with `pop`.
static void entering_from_a_green_context(void **state) {
  (void)state;
  struct tfc_cuda_partition halves[2];
  int granularity, total;
  tfc_cuda_stream stream;
  begin(false);
  assert_int_equal(api->split(0, 2, halves, &granularity, &total), 0);
  assert_int_equal(api->stream_create(&halves[0], &stream), 0);
  assert_int_equal(api->push(&halves[0]), 0);
  assert_int_equal(tfc_cuda_fake_green(), halves[0].id);
  assert_int_equal(api->enter(1), 0);
  assert_int_equal(tfc_cuda_fake_green(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), seen);
  refused(launch(stream), TFC_CUDA_INVALID_HANDLE);
  assert_int_equal(api->pop(), 0);
  assert_int_equal(launch(stream), 0);
  refused(api->pop(), 0);
  assert_int_equal(api->stream_synchronize(stream), 0);
  assert_int_equal(api->stream_destroy(stream), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(api->unsplit(&halves[i]), 0);
}

// A flag is in pinned memory.
static void flags_elsewhere(void **state) {
  (void)state;
  tfc_cuda_stream stream;
  uint32_t *pinned = NULL, plain = 0;
  begin(false);
  assert_int_equal(api->stream_create(NULL, &stream), 0);
  assert_int_equal(api->allocate_host((void **)&pinned, sizeof *pinned), 0);
  refused(api->write_flag(stream, &plain, 3), 1);
  assert_int_equal(api->write_flag(stream, pinned, 3), 0);
  assert_int_equal(api->stream_synchronize(stream), 0);
  assert_int_equal(*pinned, 3);
  assert_int_equal(api->release_host(pinned), 0);
  assert_int_equal(api->stream_destroy(stream), 0);
}

static tfc_cuda_stream capturing;
static tfc_cuda_event before;
static void begin_capture(void) {
  begin(false);
  assert_int_equal(api->stream_create(NULL, &capturing), 0);
  assert_int_equal(api->event_create(false, &before), 0);
  assert_int_equal(api->event_record(before, capturing), 0);
  assert_int_equal(api->stream_synchronize(capturing), 0);
  assert_int_equal(api->capture_begin(capturing), 0);
  assert_int_equal(launch(capturing), 0);
}
static void end_capture(bool is_lost) {
  tfc_cuda_graph graph = NULL;
  size_t count = 0;
  assert_int_equal(api->capture_count(capturing, &count), is_lost ? 901 : 0);
  assert_int_equal(api->capture_end(capturing, NULL, 0, &count, &graph), is_lost ? 901 : 0);
  if (graph) (void)api->graph_destroy(graph);
  assert_int_equal(launch(capturing), 0); // the stream works as before the capture
  assert_int_equal(api->stream_synchronize(capturing), 0);
  assert_int_equal(api->event_destroy(before), 0);
  assert_int_equal(api->stream_destroy(capturing), 0);
}
static void what_may_not_be_captured(void **state) {
  (void)state;
  char host[8] = {0};
  void *block = NULL;
  begin_capture();
  end_capture(false);
  begin_capture();
  refused(api->stream_synchronize(capturing), 900);
  end_capture(true);
  begin_capture();
  refused(api->stream_wait(capturing, before), 905); // `before` was recorded before the capture began
  end_capture(true);
  begin_capture();
  assert_int_equal(api->allocate(&block, 8), 0);      // allowed: the capture is in relaxed mode
  refused(api->copy(block, host, 8, capturing), 900); // pageable memory
  assert_int_equal(api->release(block), 0);
  end_capture(true);
  begin_capture();
  refused(api->capture_begin(capturing), 900);
  end_capture(true);
}

static void events_of_a_capture(void **state) {
  (void)state;
  tfc_cuda_stream other;
  begin_capture();
  assert_int_equal(api->stream_create(NULL, &other), 0);
  assert_int_equal(api->event_record(before, capturing), 0);
  refused(api->event_query(before), 907);
  assert_int_equal(api->event_record(before, other), 0);
  assert_int_equal(api->stream_synchronize(other), 0);
  assert_int_equal(api->event_query(before), 0);
  assert_int_equal(api->event_record(before, capturing), 0);
  end_capture(false); // which destroys `before`
  begin_capture();
  assert_int_equal(api->event_record(before, capturing), 0);
  tfc_cuda_graph graph = NULL;
  size_t count = 0;
  assert_int_equal(api->capture_end(capturing, NULL, 0, &count, &graph), 0);
  assert_int_equal(api->graph_destroy(graph), 0);
  refused(api->stream_wait(other, before), 907); // its capture has ended
  assert_int_equal(api->capture_begin(capturing), 0);
  refused(api->stream_wait(capturing, before), 905); // it is another capture's
  assert_int_equal(api->stream_destroy(other), 0);
  end_capture(true);
}

// A stream becomes a part of a capture when it waits for an event of it. The stream on which the capture began has to
// come after everything that the others captured.
static tfc_cuda_stream side;
static tfc_cuda_event forked, joined;
static void begin_fork(void) {
  begin_capture();
  assert_int_equal(api->stream_create(NULL, &side), 0);
  assert_int_equal(api->event_create(false, &forked), 0);
  assert_int_equal(api->event_create(false, &joined), 0);
  assert_int_equal(api->event_record(forked, capturing), 0);
  assert_int_equal(api->stream_wait(side, forked), 0);
  assert_int_equal(launch(side), 0);
  assert_int_equal(launch(capturing), 0);
}
static void end_fork(void) {
  assert_int_equal(launch(side), 0); // works as before the capture
  assert_int_equal(api->stream_synchronize(side), 0);
  assert_int_equal(api->stream_synchronize(capturing), 0);
  assert_int_equal(api->event_destroy(forked), 0);
  assert_int_equal(api->event_destroy(joined), 0);
  assert_int_equal(api->event_destroy(before), 0);
  assert_int_equal(api->stream_destroy(side), 0);
  assert_int_equal(api->stream_destroy(capturing), 0);
}
static tfc_cuda_graph join_and_end(void) {
  tfc_cuda_graph graph = NULL;
  size_t count = 0;
  assert_int_equal(api->event_record(joined, side), 0);
  assert_int_equal(api->stream_wait(capturing, joined), 0);
  assert_int_equal(launch(capturing), 0);
  assert_int_equal(api->capture_end(capturing, NULL, 0, &count, &graph), 0);
  assert_int_equal(count, 4);
  return graph;
}
static void not_ended(int expected) {
  tfc_cuda_graph graph = NULL;
  size_t count = 0;
  assert_int_equal(api->capture_end(capturing, NULL, 0, &count, &graph), expected);
  assert_null(graph);
}

static void branches_of_a_capture(void **state) {
  (void)state;
  struct tfc_cuda_graph_node nodes[2] = {{0}};
  begin_fork();
  assert_int_equal(launch(side), 0);
  assert_int_equal(api->capture_nodes(side, nodes, 2), 0);
  assert_true(nodes[0].id && nodes[1].id > nodes[0].id + 1); // a node of the other stream is between them
  assert_int_equal(api->capture_nodes(capturing, nodes, 2), 0);
  assert_int_equal(nodes[1].id, nodes[0].id + 2);
  api->capture_abort(capturing);
  end_fork();
  begin_fork();
  tfc_cuda_graph graph = join_and_end();
  assert_int_equal(api->graph_launch(graph, capturing), 0);
  assert_int_equal(tfc_cuda_fake_graph().works, 4);
  assert_int_equal(tfc_cuda_fake_graph().longest, 3);
  assert_int_equal(tfc_cuda_fake_graph().lanes, 2);
  const uint64_t works = tfc_cuda_fake_works();
  assert_int_equal(api->stream_synchronize(capturing), 0);
  assert_true(tfc_cuda_fake_works() >= works);
  assert_int_equal(api->graph_destroy(graph), 0);
  end_fork();
  assert_int_equal(tfc_cuda_fake_violations(), seen);
}

static void forks_that_are_not_joined(void **state) {
  (void)state;
  begin_fork();
  not_ended(904);
  seen++;
  end_fork();
  begin_fork(); // work after the event is not joined
  assert_int_equal(api->event_record(joined, side), 0);
  assert_int_equal(launch(side), 0);
  assert_int_equal(api->stream_wait(capturing, joined), 0);
  not_ended(904);
  seen++;
  assert_int_equal(tfc_cuda_fake_violations(), seen);
  end_fork();
}

static void where_a_capture_may_not_end_or_join(void **state) {
  (void)state;
  tfc_cuda_graph graph = NULL;
  size_t count = 0;
  tfc_cuda_stream second;
  begin_fork();
  refused(api->capture_end(side, NULL, 0, &count, &graph), 903);
  not_ended(901);
  end_fork();
  begin_fork();
  refused(api->stream_synchronize(side), 900);
  not_ended(901);
  end_fork();
  begin_fork();
  assert_int_equal(api->stream_create(NULL, &second), 0);
  assert_int_equal(api->capture_begin(second), 0);
  assert_int_equal(launch(second), 0);
  refused(api->stream_wait(second, forked), 902); // two captures would become one
  assert_int_equal(api->capture_end(second, NULL, 0, &count, &graph), 901);
  not_ended(901);
  assert_int_equal(api->stream_destroy(second), 0);
  end_fork();
  begin_fork(); // an event from before the capture
  assert_int_equal(api->stream_create(NULL, &second), 0);
  assert_int_equal(api->event_record(joined, second), 0);
  refused(api->stream_wait(side, joined), 905);
  not_ended(901);
  assert_int_equal(api->stream_synchronize(second), 0);
  assert_int_equal(api->stream_destroy(second), 0);
  end_fork();
}

// A stream that is captured takes no graph and may not go away, and no other thread may ask for memory meanwhile.
static void *allocate_and_release(void *unused) {
  void *block = NULL, *pinned = NULL;
  (void)unused;
  assert_int_equal(api->enter(0), 0);
  assert_int_equal(api->allocate(&block, 8), 0);
  assert_int_equal(api->allocate_host(&pinned, 8), 0);
  assert_int_equal(api->release(block), 0);
  assert_int_equal(api->release_host(pinned), 0);
  return NULL;
}
// cuDNN takes memory for a handle, and waits for the device when it destroys one.
static struct cudnnContext *made;
static int device_of_handle;
static void *make_handle(void *unused) {
  tfc_cuda_stream stream;
  const char *said = NULL;
  (void)unused;
  assert_int_equal(api->enter(device_of_handle), 0);
  assert_int_equal(api->stream_create(NULL, &stream), 0);
  assert_int_equal(api->cudnn_create(stream, &made, &said), 0);
  assert_int_equal(api->stream_destroy(stream), 0);
  return NULL;
}
static void *destroy_handle(void *unused) {
  (void)unused;
  assert_int_equal(api->enter(device_of_handle), 0);
  assert_int_equal(api->cudnn_destroy(made), 0);
  return NULL;
}
static void in_a_thread(void *(*run)(void *)) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}
static void handles_during_a_capture(void **state) {
  (void)state;
  for (device_of_handle = 0; device_of_handle < 2; device_of_handle++) {
    begin_capture(); // on device 0
    in_a_thread(make_handle);
    assert_int_equal(tfc_cuda_fake_violations(), ++seen);
    end_capture(false);
    begin_capture();
    in_a_thread(destroy_handle);
    seen += device_of_handle == 0;
    assert_int_equal(tfc_cuda_fake_violations(), seen);
    end_capture(device_of_handle == 0);
  }
}

static void what_others_may_not_do_meanwhile(void **state) {
  (void)state;
  tfc_cuda_graph graph = NULL;
  size_t count = 0;
  pthread_t thread;
  begin_capture();
  assert_int_equal(api->capture_end(capturing, NULL, 0, &count, &graph), 0);
  assert_int_equal(api->capture_begin(capturing), 0);
  refused(api->graph_launch(graph, capturing), 900);
  assert_int_equal(api->graph_destroy(graph), 0);
  end_capture(true);
  begin_capture();
  assert_int_equal(pthread_create(&thread, NULL, allocate_and_release, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  seen += 4; // each of its calls
  assert_int_equal(tfc_cuda_fake_violations(), seen);
  end_capture(false);
  begin_capture();
  (void)api->stream_destroy(capturing);
  assert_int_equal(tfc_cuda_fake_violations(), ++seen);
  assert_int_equal(api->event_destroy(before), 0);
}

static void times_between_events(void **state) {
  (void)state;
  tfc_cuda_stream streams[2];
  tfc_cuda_event timed[2], other, untimed;
  float ms = -1;
  begin(false);
  assert_int_equal(api->stream_create(NULL, &streams[0]), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(api->event_create(true, &timed[i]), 0);
  assert_int_equal(api->event_create(false, &untimed), 0);
  assert_int_equal(api->enter(1), 0);
  assert_int_equal(api->stream_create(NULL, &streams[1]), 0);
  assert_int_equal(api->event_create(true, &other), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(api->event_record(timed[i], streams[0]), 0);
  assert_int_equal(api->event_record(untimed, streams[0]), 0);
  assert_int_equal(api->event_record(other, streams[1]), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(api->stream_synchronize(streams[i]), 0);
  assert_int_equal(api->event_elapsed(timed[0], timed[1], &ms), 0);
  assert_true(ms >= 0);
  refused(api->event_elapsed(timed[0], untimed, &ms), 400);
  refused(api->event_elapsed(timed[0], other, &ms), 400);
  assert_int_equal(api->event_destroy(timed[0]), 0);
  assert_int_equal(api->event_destroy(timed[1]), 0);
  assert_int_equal(api->event_destroy(untimed), 0);
  assert_int_equal(api->event_destroy(other), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(api->stream_destroy(streams[i]), 0);
}

// A copy between devices names the devices of both ends.
static void copies_between_devices(void **state) {
  (void)state;
  void *blocks[2] = {NULL, NULL};
  tfc_cuda_stream stream;
  begin(false);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(api->enter(i), 0);
    assert_int_equal(api->allocate(&blocks[i], 64), 0);
  }
  assert_int_equal(api->stream_create(NULL, &stream), 0);
  assert_int_equal(api->copy_peer(blocks[1], 1, blocks[0], 0, 64, stream), 0); // with and without direct access
  refused(api->copy_peer(blocks[1], 0, blocks[0], 0, 64, stream), 1);
  refused(api->copy_peer(blocks[1], 1, blocks[0], 1, 64, stream), 1);
  assert_int_equal(api->stream_synchronize(stream), 0);
  for (int i = 0; i < 2; i++) assert_int_equal(api->release(blocks[i]), 0);
  assert_int_equal(api->stream_destroy(stream), 0);
}

static void graphs_of_another_device(void **state) {
  (void)state;
  tfc_cuda_graph graph = NULL;
  size_t count = 0;
  begin_capture();
  assert_int_equal(api->capture_end(capturing, NULL, 0, &count, &graph), 0);
  assert_int_equal(count, 1);
  assert_int_equal(api->enter(1), 0);
  refused(api->graph_launch(graph, capturing), 400);
  assert_int_equal(api->enter(0), 0);
  assert_int_equal(api->graph_launch(graph, capturing), 0);
  assert_int_equal(api->stream_synchronize(capturing), 0);
  assert_int_equal(api->graph_destroy(graph), 0);
  assert_int_equal(api->event_destroy(before), 0);
  assert_int_equal(api->stream_destroy(capturing), 0);
}

static void peers_twice(void **state) {
  (void)state;
  begin(false);
  assert_int_equal(api->enable_peer(1), 0);
  assert_int_equal(api->enable_peer(1), TFC_CUDA_PEER_ALREADY);
  assert_int_equal(api->enter(1), 0);
  assert_int_equal(api->enable_peer(0), 0); // access in the other direction has to be enabled separately
  refused(api->enable_peer(1), 101);
  assert_int_equal(api->enter(0), 0);
}

// A profiler keeps what a thread has launched in a buffer of that thread, and a flush delivers only buffers of which
// everything has run.
static void *launch_marked(void *stream) {
  fake_push(1);
  assert_int_equal(launch(stream), 0);
  fake_pop();
  return NULL;
}
static void delivers(struct tfc_activity *activity, size_t links, size_t expected_works) {
  size_t works = 0;
  assert_ok(fake_deliver());
  assert_int_equal(tfc_activity_held(activity, &works), links + expected_works);
  assert_int_equal(works, expected_works);
}
static void records_of_a_thread(void **state) {
  (void)state;
  static const struct tfc_cuda_fake_watcher watcher = {fake_launched, fake_ran};
  struct tfc_activity *activity = NULL;
  tfc_cuda_stream stream;
  pthread_t thread;
  begin(false);
  assert_ok(tfc_activity_create(&activity));
  assert_ok(fake_start(activity));
  assert_ok(fake_record(true));
  tfc_cuda_fake_watch(&watcher);
  assert_int_equal(api->stream_create(NULL, &stream), 0);
  assert_int_equal(pthread_create(&thread, NULL, launch_marked, stream), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  launch_marked(stream);
  assert_int_equal(api->stream_synchronize(stream), 0);
  tfc_cuda_fake_hang(1);
  launch_marked(stream);
  delivers(activity, 1, 1); // of the other thread
  tfc_cuda_fake_hang(0);
  assert_int_equal(api->stream_synchronize(stream), 0);
  delivers(activity, 3, 3);
  // Work that a sticky error drops holds up no later records.
  tfc_cuda_fake_fail_work(1, 700);
  launch_marked(stream);
  assert_int_equal(api->stream_synchronize(stream), 700);
  tfc_cuda_fake_reset();
  launch_marked(stream);
  assert_int_equal(api->stream_synchronize(stream), 0);
  delivers(activity, 5, 4);
  tfc_cuda_fake_watch(NULL);
  assert_int_equal(api->stream_destroy(stream), 0);
  tfc_activity_free(activity);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(streams_and_events_of_another_device),
      cmocka_unit_test(what_was_destroyed),
      cmocka_unit_test(streams_of_a_destroyed_context),
      cmocka_unit_test(memory_that_was_given_back),
      cmocka_unit_test(memory_that_was_given_back_too_early),
      cmocka_unit_test(handles_of_another_context),
      cmocka_unit_test(events_of_another_context),
      cmocka_unit_test(events_of_a_destroyed_context),
      cmocka_unit_test(entering_from_a_green_context),
      cmocka_unit_test(flags_elsewhere),
      cmocka_unit_test(what_may_not_be_captured),
      cmocka_unit_test(events_of_a_capture),
      cmocka_unit_test(branches_of_a_capture),
      cmocka_unit_test(forks_that_are_not_joined),
      cmocka_unit_test(where_a_capture_may_not_end_or_join),
      cmocka_unit_test(what_others_may_not_do_meanwhile),
      cmocka_unit_test(handles_during_a_capture),
      cmocka_unit_test(times_between_events),
      cmocka_unit_test(copies_between_devices),
      cmocka_unit_test(graphs_of_another_device),
      cmocka_unit_test(peers_twice),
      cmocka_unit_test(records_of_a_thread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
