// One queue for operations and one for copies, each with its thread. The runner runs operations without the CPU's table
// of fast kernels, and the executor does not rewrite them, because the driver offers no host kernels.
#include "runtime/device/plain/plain.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/no_memory.h"
#include "runtime/device/copy.h"
#include "runtime/device/queue.h"
#include "runtime/device/runner.h"

struct plain_device {
  struct tfc_device base;
  struct tfc_memory memory;
  struct tfc_queue compute, copies;
  struct tfc_runner runner;
};

static struct plain_device *plain_of(struct tfc_device *d) {
  return (struct plain_device *)(void *)d;
}

static tfc_status discover(const struct tfc_driver_options *options, struct tfc_device_info **out,
                           uint32_t *out_count) {
  const uint32_t n = options->whole || !options->count ? 1 : options->count;
  struct tfc_device_info *infos = calloc(n, sizeof *infos);
  if (!infos) return tfc_status_no_memory_for("listing %u devices", n);
  for (uint32_t i = 0; i < n; i++) {
    struct tfc_device_info *info = &infos[i];
    snprintf(info->name, sizeof info->name, "plain:%u", i);
    snprintf(info->kind, sizeof info->kind, "plain");
    snprintf(info->tensorflow, sizeof info->tensorflow, "/job:localhost/replica:0/task:0/device:PLAIN:%u", i);
    snprintf(info->model, sizeof info->model, "reference kernels on one thread");
    snprintf(info->label, sizeof info->label, "measured");
    info->memory = options->memory ? options->memory[i] : UINT64_MAX;
    info->cores = 1;
  }
  *out = infos;
  *out_count = n;
  return NULL;
}

static tfc_status allocate(struct tfc_device *device, size_t bytes, struct tfc_buffer **out) {
  return tfc_memory_allocate(&plain_of(device)->memory, bytes, out);
}

static tfc_status env_allocate(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out) {
  return allocate(env->device, bytes, out);
}

static void environment(struct tfc_device *device, struct tfc_kernel_env *env) {
  env->allocate = env_allocate;
  env->parallel_for = tfc_env_serial_for;
  env->threads = 1;
  env->device = device;
  env->device_cores = 1;
}

static void close_device(struct tfc_device *device) {
  if (!device) return;
  struct plain_device *d = plain_of(device);
  tfc_queue_deinit(&d->compute);
  tfc_queue_deinit(&d->copies);
  tfc_memory_deinit(&d->memory);
  free(d);
}

static tfc_status open_device(const struct tfc_device_info *info, struct tfc_device **out) {
  tfc_status s = NULL;
  struct plain_device *d = calloc(1, sizeof *d);
  if (!d) return tfc_status_no_memory_for("opening %s", info->name);
  d->base = (struct tfc_device){.driver = &tfc_driver_plain, .info = *info};
  TFC_TRY(s, tfc_memory_init(&d->memory, d->base.info.name, info->memory, 0));
  d->runner = (struct tfc_runner){.device = &d->base, .memory = &d->memory};
  environment(&d->base, &d->runner.env);
  d->runner.env.cancelled = tfc_env_step_stopped;
  TFC_TRY(s, tfc_queue_init(&d->compute, &d->base, &(struct tfc_queue_options){.name = info->name}));
  TFC_TRY(s, tfc_queue_init(&d->copies, &d->base, &(struct tfc_queue_options){.name = "tfc-plain-copy"}));
  *out = &d->base, d = NULL;
out:
  close_device(d ? &d->base : NULL);
  return s;
}

static uint64_t in_use(struct tfc_device *device) {
  return tfc_memory_held(&plain_of(device)->memory);
}

static uint64_t peak(struct tfc_device *device, bool restart) {
  return tfc_memory_peak(&plain_of(device)->memory, restart);
}

static tfc_status prepare(struct tfc_device *device, const struct tfc_segment *segment, struct tfc_prepared **out) {
  return tfc_runner_prepare(&plain_of(device)->runner, segment, out);
}

static void release(struct tfc_device *device, struct tfc_prepared *prepared) {
  (void)device;
  tfc_runner_release(prepared);
}

static void run_entry(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  tfc_runner_run(&plain_of(device)->runner, e->prepared, e->step, NULL, from, to);
}
static void copy_entry(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  (void)from, (void)to;
  tfc_runner_copy_step(device, &e->copy, e->step);
}

static tfc_status submit(struct tfc_device *device, struct tfc_prepared *prepared, struct tfc_step *step,
                         const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                         uint32_t signal_count) {
  struct tfc_queue_entry entry = {
      .prepared = prepared, .step = step, .wait_count = wait_count, .signal_count = signal_count};
  if (prepared) entry.run = run_entry;
  return tfc_queue_submit(&plain_of(device)->compute, &entry, waits, signals);
}

static tfc_status copy(struct tfc_device *device, const struct tfc_copy *record, struct tfc_step *step,
                       const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                       uint32_t signal_count) {
  const struct tfc_queue_entry entry = {
      .run = copy_entry, .copy = *record, .step = step, .wait_count = wait_count, .signal_count = signal_count};
  return tfc_queue_submit(&plain_of(device)->copies, &entry, waits, signals);
}

static tfc_status post(struct tfc_device *device, struct tfc_task *task) {
  return tfc_queue_post(&plain_of(device)->compute, task);
}

static tfc_status launch(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                         struct tfc_kernel_ctx *ctx) {
  return tfc_runner_launch(&plain_of(device)->runner, prepared, index, ctx);
}

static tfc_status synchronize(struct tfc_device *device) {
  tfc_queue_drain(&plain_of(device)->compute);
  tfc_queue_drain(&plain_of(device)->copies);
  return NULL;
}

static bool supports(struct tfc_device *device, const struct tfc_op_def *def, tfc_dtype type, const char **out_reason) {
  return tfc_runner_supports(&plain_of(device)->runner, def, type, out_reason);
}

const struct tfc_device_driver tfc_driver_plain = {
    .kind = "plain",
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
    .read = tfc_host_read,
    .write = tfc_host_write,
    .synchronize = synchronize,
    .supports = supports,
};
