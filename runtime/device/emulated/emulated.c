// Tensors' addresses are real addresses with bits set that no mapping has (runner.h), so host code that uses them
// faults. The device has one thread for segments and one for copies. Every call of the driver first calls `count`,
// which returns the failures that tests have injected.
#include "runtime/device/emulated/emulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/no_memory.h"
#include "runtime/base/random.h"
#include "runtime/device/copy.h"
#include "runtime/device/queue.h"
#include "runtime/device/runner.h"

struct emulated_device {
  struct tfc_device base;
  struct tfc_memory memory;
  struct tfc_queue compute, copies;
  struct tfc_runner runner;
  _Atomic uint64_t calls[TFC_EMULATED_CALL_COUNT];
  pthread_mutex_t lock; // guards the members below
  struct tfc_emulated_fault fault;
  uint64_t fault_from, fault_to;
  struct tfc_emulated_delay delay;
  struct tfc_random random;
};

static const char *const call_names[] = {
#define TFC_EMULATED_NAME(name, text) text,
    TFC_EMULATED_CALLS(TFC_EMULATED_NAME)
#undef TFC_EMULATED_NAME
};

static struct emulated_device *emulated_of(struct tfc_device *d) {
  return (struct emulated_device *)(void *)d;
}

static tfc_status count(struct emulated_device *d, tfc_emulated_call call) {
  uint64_t any = atomic_fetch_add(&d->calls[TFC_EMULATED_ANY], 1) + 1;
  uint64_t number = atomic_fetch_add(&d->calls[call], 1) + 1;
  pthread_mutex_lock(&d->lock);
  struct tfc_emulated_fault f = d->fault;
  uint64_t n = f.call == TFC_EMULATED_ANY ? any : f.call == call ? number : 0;
  bool fails = f.number && n >= d->fault_from && n < d->fault_to;
  pthread_mutex_unlock(&d->lock);
  if (!fails) return NULL;
  if (f.delay_ns > 0) return tfc_sleep_ns(f.delay_ns), NULL;
  return tfc_status_make(f.code ? f.code : TFC_UNAVAILABLE, "%s: injected failure of call %s number %llu",
                         d->base.info.name, call_names[call], (unsigned long long)n);
}

void tfc_emulated_inject(struct tfc_device *device, const struct tfc_emulated_fault *fault) {
  struct emulated_device *d = emulated_of(device);
  pthread_mutex_lock(&d->lock);
  d->fault = fault ? *fault : (struct tfc_emulated_fault){0};
  d->fault_from = atomic_load(&d->calls[d->fault.call]) + d->fault.number;
  d->fault_to = d->fault_from + (d->fault.times ? d->fault.times : 1);
  pthread_mutex_unlock(&d->lock);
}

void tfc_emulated_delay(struct tfc_device *device, const struct tfc_emulated_delay *delay) {
  struct emulated_device *d = emulated_of(device);
  pthread_mutex_lock(&d->lock);
  d->delay = *delay;
  tfc_random_init(&d->random, delay->jitter);
  pthread_mutex_unlock(&d->lock);
}

uint64_t tfc_emulated_calls(const struct tfc_device *device, tfc_emulated_call call) {
  return atomic_load(&((const struct emulated_device *)(const void *)device)->calls[call]);
}

static void delay_work(struct emulated_device *d, bool copy) {
  pthread_mutex_lock(&d->lock);
  int64_t ns = copy ? d->delay.copy_ns : d->delay.run_ns;
  if (ns > 0 && d->delay.jitter) ns = (int64_t)tfc_random_below(&d->random, (uint64_t)ns + 1);
  pthread_mutex_unlock(&d->lock);
  if (ns > 0) tfc_sleep_ns(ns);
}

static tfc_status discover(const struct tfc_driver_options *options, struct tfc_device_info **out,
                           uint32_t *out_count) {
  uint32_t n = options->whole || !options->count ? 1 : options->count;
  if (n > 4096) return tfc_status_make(TFC_UNAVAILABLE, "%u emulated devices: at most 4096", n);
  struct tfc_device_info *infos = calloc(n, sizeof *infos);
  if (!infos) return tfc_status_no_memory("listing devices");
  for (uint32_t i = 0; i < n; i++) {
    struct tfc_device_info *info = &infos[i];
    snprintf(info->name, sizeof info->name, "emu:%u", i);
    snprintf(info->kind, sizeof info->kind, "emu");
    snprintf(info->tensorflow, sizeof info->tensorflow, "/job:localhost/replica:0/task:0/device:EMU:%u", i);
    snprintf(info->model, sizeof info->model, "emulated device");
    snprintf(info->label, sizeof info->label, "emulated");
    info->memory = options->memory ? options->memory[i] : UINT64_MAX;
    info->cores = 1;
    info->address_space = options->shared ? 1 : 1 + i; // all devices use the same offset, so they can share
  }
  *out = infos;
  *out_count = n;
  return NULL;
}

static tfc_status env_allocate(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out) {
  struct emulated_device *d = emulated_of(env->device);
  TFC_RETURN_IF_ERROR(count(d, TFC_EMULATED_ALLOCATE));
  TFC_RETURN_IF_ERROR(tfc_memory_allocate(&d->memory, bytes, out));
  (*out)->data = tfc_to_host((*out)->data); // the kernel needs a real address; the runner hides it again afterwards
  return NULL;
}

static void environment(struct tfc_device *device, struct tfc_kernel_env *env) {
  env->allocate = env_allocate;
  env->parallel_for = tfc_env_serial_for;
  env->threads = 1;
  env->device = device;
  env->device_cores = device->info.cores;
}

static void close_device(struct tfc_device *device) {
  if (!device) return;
  struct emulated_device *d = emulated_of(device);
  tfc_queue_deinit(&d->compute);
  tfc_queue_deinit(&d->copies);
  tfc_memory_deinit(&d->memory);
  pthread_mutex_destroy(&d->lock);
  free(d);
}

static tfc_status open_device(const struct tfc_device_info *info, struct tfc_device **out) {
  tfc_status s = NULL;
  struct emulated_device *d = calloc(1, sizeof *d);
  if (!d) return tfc_status_no_memory_for("opening %s", info->name);
  d->base.driver = &tfc_driver_emulated;
  d->base.info = *info;
  pthread_mutex_init(&d->lock, NULL);
  TFC_TRY(s, tfc_memory_init(&d->memory, d->base.info.name, info->memory, TFC_FOREIGN_OFFSET));
  d->runner =
      (struct tfc_runner){.device = &d->base, .memory = &d->memory, .offset = TFC_FOREIGN_OFFSET, .fast_kernels = true};
  environment(&d->base, &d->runner.env);
  d->runner.env.cancelled = tfc_env_step_stopped;
  TFC_TRY(s, tfc_queue_init(&d->compute, &d->base, &(struct tfc_queue_options){.name = info->name}));
  TFC_TRY(s, tfc_queue_init(&d->copies, &d->base, &(struct tfc_queue_options){.name = "tfc-emu-copy"}));
  *out = &d->base, d = NULL;
out:
  close_device(d ? &d->base : NULL);
  return s;
}

static tfc_status allocate(struct tfc_device *device, size_t bytes, struct tfc_buffer **out) {
  TFC_RETURN_IF_ERROR(count(emulated_of(device), TFC_EMULATED_ALLOCATE));
  return tfc_memory_allocate(&emulated_of(device)->memory, bytes, out);
}

static uint64_t peak(struct tfc_device *device, bool restart) {
  return tfc_memory_peak(&emulated_of(device)->memory, restart);
}

static uint64_t in_use(struct tfc_device *device) {
  return tfc_memory_held(&emulated_of(device)->memory);
}

static tfc_status prepare(struct tfc_device *device, const struct tfc_segment *segment, struct tfc_prepared **out) {
  TFC_RETURN_IF_ERROR(count(emulated_of(device), TFC_EMULATED_PREPARE));
  return tfc_runner_prepare(&emulated_of(device)->runner, segment, out);
}

static void release(struct tfc_device *device, struct tfc_prepared *prepared) {
  (void)device;
  tfc_runner_release(prepared);
}

static void run_entry(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  struct emulated_device *d = emulated_of(device);
  delay_work(d, false);
  tfc_runner_run(&d->runner, e->prepared, e->step, count(d, TFC_EMULATED_RUN), from, to);
}

static tfc_status submit(struct tfc_device *device, struct tfc_prepared *prepared, struct tfc_step *step,
                         const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                         uint32_t signal_count) {
  TFC_RETURN_IF_ERROR(count(emulated_of(device), TFC_EMULATED_SUBMIT));
  return tfc_queue_submit(&emulated_of(device)->compute,
                          &(struct tfc_queue_entry){.run = prepared ? run_entry : NULL,
                                                    .prepared = prepared,
                                                    .step = step,
                                                    .wait_count = wait_count,
                                                    .signal_count = signal_count},
                          waits, signals);
}

static void copy_entry(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  (void)from, (void)to;
  struct emulated_device *d = emulated_of(device);
  delay_work(d, true);
  tfc_status s = count(d, TFC_EMULATED_COPY_RUN);
  if (s)
    tfc_step_fail(e->step, s);
  else
    tfc_runner_copy_step(device, &e->copy, e->step);
}

static tfc_status copy(struct tfc_device *device, const struct tfc_copy *record, struct tfc_step *step,
                       const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                       uint32_t signal_count) {
  TFC_RETURN_IF_ERROR(count(emulated_of(device), TFC_EMULATED_COPY));
  return tfc_queue_submit(
      &emulated_of(device)->copies,
      &(struct tfc_queue_entry){
          .run = copy_entry, .copy = *record, .step = step, .wait_count = wait_count, .signal_count = signal_count},
      waits, signals);
}

static void task_entry(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  (void)from, (void)to;
  delay_work(emulated_of(device), false);
  e->task->run(e->task);
}

static tfc_status post(struct tfc_device *device, struct tfc_task *task) {
  TFC_RETURN_IF_ERROR(count(emulated_of(device), TFC_EMULATED_POST));
  return tfc_queue_submit(&emulated_of(device)->compute, &(struct tfc_queue_entry){.run = task_entry, .task = task},
                          NULL, NULL);
}

static tfc_status launch(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                         struct tfc_kernel_ctx *ctx) {
  TFC_RETURN_IF_ERROR(count(emulated_of(device), TFC_EMULATED_LAUNCH));
  return tfc_runner_launch(&emulated_of(device)->runner, prepared, index, ctx);
}

static tfc_status read_tensor(struct tfc_device *device, const struct tfc_tensor *source, void *target) {
  TFC_RETURN_IF_ERROR(count(emulated_of(device), TFC_EMULATED_READ));
  if (source->size) memcpy(target, tfc_to_host(source->data), source->size);
  return NULL;
}

static tfc_status write_tensor(struct tfc_device *device, const void *source, struct tfc_tensor *target) {
  TFC_RETURN_IF_ERROR(count(emulated_of(device), TFC_EMULATED_WRITE));
  if (target->size) memcpy(tfc_to_host(target->data), source, target->size);
  return NULL;
}

static tfc_status synchronize(struct tfc_device *device) {
  tfc_queue_drain(&emulated_of(device)->compute);
  tfc_queue_drain(&emulated_of(device)->copies); // before `count`: also if it injects an error, no work is left
  return count(emulated_of(device), TFC_EMULATED_SYNCHRONIZE);
}

static bool supports(struct tfc_device *device, const struct tfc_op_def *def, tfc_dtype type, const char **out_reason) {
  return tfc_runner_supports(&emulated_of(device)->runner, def, type, out_reason);
}

const struct tfc_device_driver tfc_driver_emulated = {
    .kind = "emu",
    .host_kernels = TFC_HOST_KERNELS_APART,
    .discover = discover,
    .open = open_device,
    .close = close_device,
    .allocate = allocate,
    .in_use = in_use,
    .peak = peak,
    .prepare = prepare,
    .release = release,
    .submit = submit,
    .copy = copy,
    .environment = environment,
    .post = post,
    .launch = launch,
    .read = read_tensor,
    .write = write_tensor,
    .synchronize = synchronize,
    .supports = supports,
};
