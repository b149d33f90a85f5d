// Which error is reported when a library (cuBLASLt, cuDNN) fails because the device is lost, on a fake of the CUDA
// calls. The "libraries" here are kernels that return a library's error; before that, they may end the CUDA context
// themselves.
#include "tests/common/test.h"

#include <pthread.h>
#include <time.h>

#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/segment.h"
#include "tests/common/cuda_fake.h"

static bool dies; // if true, the work that the library gives the device ends the CUDA context

static void break_device(const struct tfc_cuda_library *library, struct CUstream_st *stream) {
  void *memory = NULL;
  const struct tfc_cuda_device *d = tfc_cuda_device_of(library->device);
  if (!dies) return;
  tfc_cuda_fake_fail_work(1, 700);
  assert_int_equal(d->api->allocate(&memory, 64), 0);
  assert_int_equal(d->api->set(memory, 0, 64, stream), 0);
  (void)d->api->stream_synchronize(stream); // as a library that synchronizes and does not report the error
  (void)d->api->release(memory);
}
static tfc_status product_prepare(struct tfc_cuda_prepare *p) {
  break_device(p->library, tfc_cuda_device_of(p->library->device)->compute);
  return tfc_status_make(TFC_UNIMPLEMENTED, "cuBLASLt: CUBLAS_STATUS_INTERNAL_ERROR");
}
static tfc_status convolution_launch(struct tfc_cuda_launch *l) {
  break_device(l->library, l->stream);
  return tfc_status_make(TFC_INTERNAL, "cuDNN: CUDNN_STATUS_EXECUTION_FAILED");
}
// The green contexts that were current when this row was prepared and when it was launched (0: none). It uses cuDNN,
// which needs the context of its handle to be current.
static uint64_t green_in[2];
// A library's kernels time themselves with events, which the device's stream has to take.
static void time_something(struct tfc_cuda_library *library) {
  const struct tfc_cuda_device *d = tfc_cuda_device_of(library->device);
  struct CUevent_st *events[2];
  float ms = -1;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(library->event(library, true, &events[i]), 0);
    assert_int_equal(d->api->event_record(events[i], d->compute), 0);
  }
  assert_int_equal(d->api->stream_synchronize(d->compute), 0);
  assert_int_equal(d->api->event_elapsed(events[0], events[1], &ms), 0);
  assert_true(ms >= 0);
  for (int i = 0; i < 2; i++) assert_int_equal(d->api->event_destroy(events[i]), 0);
}
static tfc_status handle_prepare(struct tfc_cuda_prepare *p) {
  struct cudnnContext *handle = NULL;
  time_something(p->library); // as for a product, which cuDNN does not compute
  TFC_RETURN_IF_ERROR(p->library->cudnn(p->library, &handle));
  time_something(p->library);
  green_in[0] = tfc_cuda_fake_green();
  return NULL;
}
static struct tfc_device *other; // of another GPU, whose memory goes back to CUDA while the row is launched; or NULL
static void nothing(void *argument) {
  (void)argument;
}
static tfc_status handle_launch(struct tfc_cuda_launch *l) {
  struct cudnnContext *handle = NULL;
  struct tfc_buffer *memory = NULL;
  int argument = 0;
  TFC_RETURN_IF_ERROR(l->library->cudnn(l->library, &handle));
  if (other) {
    TFC_RETURN_IF_ERROR(other->driver->allocate(other, 64, &memory));
    tfc_buffer_release(memory);
    tfc_cuda_memory_trim(&tfc_cuda_device_of(other)->memory);
  }
  green_in[1] = tfc_cuda_fake_green();
  return tfc_cuda_status(l, tfc_cuda_fake_launch(l->stream, nothing, &argument, sizeof argument));
}
// The `prepare` of a row whose library declines the operation: the next row of the op, which uses no library, is taken.
static tfc_status declines(struct tfc_cuda_prepare *p) {
  p->declined = true;
  return tfc_status_make(TFC_UNIMPLEMENTED, "cuDNN: CUDNN_STATUS_NOT_SUPPORTED");
}
static tfc_status plain_launch(struct tfc_cuda_launch *l) {
  (void)l;
  return NULL;
}
static const struct tfc_cuda_kernel rows[] = {{"TestDeclined", 0, declines, plain_launch, 0},
                                              {"TestDeclined", 0, NULL, plain_launch, 0},
                                              {"TestHandle", 0, handle_prepare, handle_launch, 0},
                                              {"TestProduct", 0, product_prepare, convolution_launch, 0},
                                              {"TestConvolution", 0, NULL, convolution_launch, 0}};
TFC_CUDA_KERNELS(rows);

static tfc_status on_host(struct tfc_kernel_ctx *ctx) {
  (void)ctx;
  return NULL;
}

struct subject {
  struct tfc_device_set set;
  struct tfc_device *device;
  struct tfc_prepared *prepared;
  struct tfc_semaphore *done;
};
static struct tfc_op_def def = {.inputs = "x: float", .outputs = "y: float", .kernel = on_host};
static struct tfc_node node;
static struct tfc_output edge = {0, 0};
static tfc_dtype type = TFC_FLOAT;
static struct tfc_graph graph;
static struct tfc_shape shape;
static struct tfc_tensor slot;
static const struct tfc_tensor *in = &slot;
static struct tfc_tensor *out = &slot;
static struct tfc_segment_op op;
static struct tfc_segment segment;

static bool strict, loose;
static int devices = 1;
static tfc_status prepare_on(struct subject *s, const char *names, const char *name) {
  tfc_cuda_fake_install(
      &(struct tfc_cuda_fake_options){.devices = devices, .strict_cudnn = strict, .loose_events = loose});
  tfc_cuda_fake_reset();
  *s = (struct subject){0};
  assert_ok(tfc_devices_open(names, NULL, 0, &s->set));
  assert_ok(tfc_semaphore_create(&s->done));
  s->device = s->set.devices[0];
  def.name = name;
  shape = TFC_SHAPE(4);
  slot = (struct tfc_tensor){.dtype = TFC_FLOAT, .shape = shape, .size = 16};
  node = (struct tfc_node){
      .name = TFC_STR("p"), .op = tfc_str_from(name), .def = &def, .input_count = 1, .output_count = 1};
  graph = (struct tfc_graph){
      .nodes = &node, .node_count = 1, .inputs = &edge, .edge_count = 1, .output_dtypes = &type, .output_total = 1};
  op = (struct tfc_segment_op){.def = &def,
                               .inputs = &in,
                               .outputs = &out,
                               .input_count = 1,
                               .output_count = 1,
                               .input_shapes = &shape,
                               .output_shapes = &shape,
                               .input_dtypes = &type};
  segment = (struct tfc_segment){.graph = &graph, .ops = &op, .op_count = 1};
  return s->device->driver->prepare(s->device, &segment, &s->prepared);
}
static tfc_status prepare(struct subject *s, const char *name) {
  return prepare_on(s, "gpu:0", name);
}
static void subject_deinit(struct subject *s) {
  if (s->prepared) s->device->driver->release(s->device, s->prepared);
  tfc_devices_close(&s->set);
  tfc_semaphore_free(s->done);
}

static tfc_status run(struct subject *s) {
  struct tfc_step step = {.id = 1};
  assert_ok(s->device->driver->submit(s->device, s->prepared, &step, NULL, 0, &(struct tfc_timepoint){s->done, 1}, 1));
  assert_ok(tfc_semaphore_wait(s->done, 1, 0, -1));
  return step.status;
}
static tfc_status is_alive(struct subject *s) {
  struct tfc_buffer *b = NULL;
  tfc_status status = s->device->driver->allocate(s->device, 64, &b);
  if (b) tfc_buffer_release(b);
  return status;
}

static void launches(void **state) {
  (void)state;
  struct subject s;
  dies = false; // the library's own error is reported, and the device still works
  assert_ok(prepare(&s, "TestConvolution"));
  assert_fails(run(&s), TFC_INTERNAL, "CUDNN_STATUS_EXECUTION_FAILED");
  assert_ok(is_alive(&s));
  subject_deinit(&s);
  dies = true;
  assert_ok(prepare(&s, "TestConvolution"));
  tfc_status status = run(&s);
  if (!strstr(tfc_status_message(status), "caused here or before") ||
      !strstr(tfc_status_message(status), "the device is lost to this process") ||
      !strstr(tfc_status_message(status), "CUDNN_STATUS_EXECUTION_FAILED"))
    fail_msg("%s", tfc_status_message(status));
  assert_fails(status, TFC_UNAVAILABLE, "illegal memory access");
  assert_fails(is_alive(&s), TFC_UNAVAILABLE, "stopped working");
  subject_deinit(&s);
}

static void plans(void **state) {
  (void)state;
  struct subject s;
  dies =
      false; // the library only declines the product: the operation runs on the host, and the driver gives the reason
  assert_ok(prepare(&s, "TestProduct"));
  assert_string_equal(s.device->driver->fallback(s.prepared, 0), "cuBLASLt: CUBLAS_STATUS_INTERNAL_ERROR");
  assert_null(s.device->driver->declined(s.prepared, 0));
  assert_ok(is_alive(&s));
  subject_deinit(&s);
  assert_ok(prepare(&s, "TestDeclined")); // the device has another kernel, and the driver says why it is used
  assert_null(s.device->driver->fallback(s.prepared, 0));
  assert_string_equal(s.device->driver->declined(s.prepared, 0), "cuDNN: CUDNN_STATUS_NOT_SUPPORTED");
  assert_ok(run(&s));
  subject_deinit(&s);
  dies = true;
  assert_fails(prepare(&s, "TestProduct"), TFC_UNAVAILABLE, "illegal memory access");
  assert_fails(is_alive(&s), TFC_UNAVAILABLE, "stopped working");
  subject_deinit(&s);
}

// If cuDNN accepts only streams of the context that its handle was made in (`strict`), the driver makes the green
// context of a virtual device current while it makes or uses the handle, and at no other time. Whether streams accept
// events of the primary context, too (`loose`), or not, events can be recorded on the device's streams.
static void green_handles(void **state) {
  (void)state;
  struct subject s;
  for (int i = 0; i < 8; i++) {
    strict = i & 1, loose = i & 2;
    assert_ok(prepare_on(&s, i & 4 ? "vgpu:0-1" : "gpu:0", "TestHandle"));
    const bool is_green = strict && i & 4;
    assert_true((green_in[0] != 0) == is_green);
    assert_int_equal(tfc_cuda_fake_green(), 0);
    for (int step = 0; step < 4; step++) {
      green_in[1] = 77;
      struct tfc_step one = {.id = 1};
      assert_ok(s.device->driver->submit(s.device, s.prepared, &one, NULL, 0,
                                         &(struct tfc_timepoint){s.done, (uint64_t)step + 1}, 1));
      assert_ok(tfc_semaphore_wait(s.done, (uint64_t)step + 1, 0, -1));
      assert_ok(one.status);
      assert_int_equal(green_in[1], green_in[0]);
    }
    subject_deinit(&s);
    assert_int_equal(tfc_cuda_fake_violations(), 0);
  }
  strict = loose = false;
}

// What gives another GPU's memory back to CUDA enters that GPU. After that, and after the row, the thread is where it
// was: it launches on its own device, with its green context current where cuDNN needs that.
static void memory_of_another(void **state) {
  (void)state;
  struct subject s;
  for (int i = 0; i < 4; i++) {
    strict = i & 1;
    devices = 2;
    assert_ok(prepare_on(&s, i & 2 ? "vgpu:0-1,gpu:1" : "gpu:0,gpu:1", "TestHandle"));
    other = s.set.devices[s.set.count - 1];
    for (uint64_t step = 1; step < 4; step++) {
      struct tfc_step one = {.id = (int64_t)step};
      assert_ok(
          s.device->driver->submit(s.device, s.prepared, &one, NULL, 0, &(struct tfc_timepoint){s.done, step}, 1));
      assert_ok(tfc_semaphore_wait(s.done, step, 0, -1));
      assert_ok(one.status);
      assert_int_equal(green_in[1], green_in[0]);
    }
    other = NULL;
    subject_deinit(&s);
    assert_int_equal(tfc_cuda_fake_violations(), 0);
  }
  strict = false, devices = 1;
}

// Another device of the same GPU is opened, makes a handle of cuDNN and is closed while a stream is captured: cuDNN
// takes memory for the handle and waits for the GPU when it destroys it, which both have to wait until the capture
// ends.
static struct tfc_device_set beside;
static void *use_cudnn(void *unused) {
  struct tfc_prepared *prepared = NULL;
  (void)unused;
  assert_ok(beside.devices[0]->driver->prepare(beside.devices[0], &segment, &prepared));
  beside.devices[0]->driver->release(beside.devices[0], prepared);
  return NULL;
}
static void *close_it(void *unused) {
  (void)unused;
  tfc_devices_close(&beside);
  return NULL;
}
static void while_captured(const struct tfc_cuda_device *d, void *(*other_thread)(void *)) {
  tfc_cuda_graph captured = NULL;
  size_t count = 0;
  pthread_t thread;
  struct timespec until;
  tfc_cuda_memory_capture_begin();
  assert_int_equal(d->api->capture_begin(d->capture), 0);
  assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1; // time to do what it should not do
  const bool ended = !pthread_timedjoin_np(thread, NULL, &until);
  assert_int_equal(d->api->capture_end(d->capture, NULL, 0, &count, &captured), 0);
  tfc_cuda_memory_capture_end();
  if (!ended) assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(d->api->graph_destroy(captured), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}
static void handles_while_another_captures(void **state) {
  (void)state;
  struct subject s;
  assert_ok(prepare(&s, "TestHandle"));
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &beside));
  while_captured(tfc_cuda_device_of(s.device), use_cudnn);
  while_captured(tfc_cuda_device_of(s.device), close_it);
  subject_deinit(&s);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  tfc_driver_add(&tfc_driver_vgpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(launches), cmocka_unit_test(plans),
                                     cmocka_unit_test(green_handles), cmocka_unit_test(memory_of_another),
                                     cmocka_unit_test(handles_while_another_captures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
