// The CPU driver. A device is a group of cores. It has a queue with a thread, and a team of workers that are pinned to
// its cores. If there are more devices than cores, each device has one thread, which is not pinned and does not spin.
// All devices share the host's address space.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/no_memory.h"
#include "runtime/device/copy.h"
#include "runtime/device/cpu/lanes.h"
#include "runtime/device/cpu/team.h"
#include "runtime/device/cpu/topology.h"
#include "runtime/device/queue.h"
#include "runtime/device/runner.h"

enum { SPIN_NS = 500000, WAIT_SPIN_NS = 20000000, COPY_SPIN_NS = 0 };

struct cpu_device {
  struct tfc_device base;
  struct tfc_memory memory;
  struct tfc_team team;
  struct tfc_queue compute, copies;
  pthread_mutex_t copies_lock; // guards starting the copy thread on first use
  bool copies_started;
  struct tfc_runner runner;
};

static struct cpu_device *cpu_of(struct tfc_device *d) {
  return (struct cpu_device *)(void *)d;
}

static tfc_status discover(const struct tfc_driver_options *options, struct tfc_device_info **out,
                           uint32_t *out_count) {
  struct tfc_topology t;
  TFC_RETURN_IF_ERROR(tfc_topology_read(&t));
  uint32_t cores = (uint32_t)t.core_count, count = options->whole ? 1 : options->count ? options->count : cores;
  if (count > 4096) return tfc_status_make(TFC_UNAVAILABLE, "%u CPU devices: at most 4096", count);
  struct tfc_device_info *infos = calloc(count, sizeof *infos);
  if (!infos) return tfc_status_no_memory("listing devices");
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_device_info *info = &infos[i];
    snprintf(info->name, sizeof info->name, "cpu:%u", i);
    snprintf(info->kind, sizeof info->kind, "cpu");
    snprintf(info->tensorflow, sizeof info->tensorflow, "/job:localhost/replica:0/task:0/device:CPU:%u", i);
    snprintf(info->model, sizeof info->model, "%s", t.model);
    snprintf(info->label, sizeof info->label, "%s", count > cores ? "oversubscribed" : "measured");
    info->memory = options->memory ? options->memory[i] : UINT64_MAX;
    info->cores = count > cores ? 1 : cores / count;
  }
  *out = infos;
  *out_count = count;
  return NULL;
}

static tfc_status env_allocate(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out) {
  return tfc_memory_allocate(&cpu_of(env->device)->memory, bytes, out);
}

static void env_parallel_for(struct tfc_kernel_env *env, int64_t total, int64_t grain,
                             void (*fn)(void *arg, int64_t begin, int64_t end), void *arg) {
  tfc_team_for(&cpu_of(env->device)->team, total, grain, fn, arg);
}

static void environment(struct tfc_device *device, struct tfc_kernel_env *env) {
  env->allocate = env_allocate;
  env->parallel_for = env_parallel_for;
  env->threads = (int)device->info.cores;
  env->device = device;
  env->device_cores = device->info.cores;
}

static void close_device(struct tfc_device *device) {
  if (!device) return;
  struct cpu_device *d = cpu_of(device);
  tfc_queue_deinit(&d->compute);
  tfc_queue_deinit(&d->copies);
  tfc_team_deinit(&d->team);
  tfc_memory_deinit(&d->memory);
  pthread_mutex_destroy(&d->copies_lock);
  free(d);
}

static tfc_status open_device(const struct tfc_device_info *info, struct tfc_device **out) {
  struct tfc_topology t;
  TFC_RETURN_IF_ERROR(tfc_topology_read(&t));
  const char *colon = strchr(info->name, ':');
  uint32_t index = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0, cores = info->cores ? info->cores : 1;
  bool bound = strcmp(info->label, "oversubscribed") != 0 && (uint64_t)(index + 1) * cores <= (uint64_t)t.core_count;
  struct cpu_device *d = calloc(1, sizeof *d);
  if (!d) return tfc_status_no_memory_for("opening %s", info->name);
  tfc_status s = NULL;
  d->base.driver = &tfc_driver_cpu;
  d->base.info = *info;
  pthread_mutex_init(&d->copies_lock, NULL);
  TFC_TRY(s, tfc_memory_init(&d->memory, d->base.info.name, info->memory, 0));
  d->runner =
      (struct tfc_runner){.device = &d->base, .memory = &d->memory, .fast_kernels = true, .times = &d->team.times};
  environment(&d->base, &d->runner.env);
  d->runner.env.cancelled = tfc_env_step_stopped;
  const int *cpus = t.cpus + index * cores;
  // On the only core, a thread that looks for work keeps those from it that would bring the work.
  const bool spins = bound && t.core_count > 1;
  TFC_TRY(s, tfc_team_init(&d->team, bound ? (int)cores : 1, cpus, spins ? SPIN_NS : 0));
  struct tfc_queue_options options = {.name = info->name,
                                      .cpus = bound ? cpus : NULL,
                                      .cpu_count = bound ? 1 : 0,
                                      .spin_ns = spins ? SPIN_NS : 0,
                                      .wait_spin_ns = spins ? WAIT_SPIN_NS : 0};
  TFC_TRY(s, tfc_queue_init(&d->compute, &d->base, &options));
  *out = &d->base, d = NULL;
out:
  close_device(d ? &d->base : NULL);
  return s;
}

static tfc_status allocate(struct tfc_device *device, size_t bytes, struct tfc_buffer **out) {
  return tfc_memory_allocate(&cpu_of(device)->memory, bytes, out);
}

static uint64_t in_use(struct tfc_device *device) {
  return tfc_memory_held(&cpu_of(device)->memory);
}

static uint64_t peak(struct tfc_device *device, bool restart) {
  return tfc_memory_peak(&cpu_of(device)->memory, restart);
}

static tfc_status prepare(struct tfc_device *device, const struct tfc_segment *segment, struct tfc_prepared **out) {
  struct tfc_runner *r = &cpu_of(device)->runner;
  struct tfc_prepared *p = NULL;
  TFC_RETURN_IF_ERROR(tfc_runner_prepare(r, segment, &p));
  tfc_status s = segment->lanes ? tfc_cpu_lanes_create(r, p) : NULL;
  if (s)
    tfc_runner_release(p);
  else
    *out = p;
  return s;
}

static void release(struct tfc_device *device, struct tfc_prepared *prepared) {
  (void)device;
  tfc_runner_release(prepared);
}

static void run_entry(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  struct cpu_device *d = cpu_of(device);
  const struct tfc_segment *segment = tfc_runner_segment(e->prepared);
  if (segment->lanes) {
    tfc_cpu_lanes_run(&d->runner, &d->team, e->prepared, e->step);
    return;
  }
  tfc_runner_run(&d->runner, e->prepared, e->step, NULL, from, to);
}

static tfc_status submit(struct tfc_device *device, struct tfc_prepared *prepared, struct tfc_step *step,
                         const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                         uint32_t signal_count) {
  return tfc_queue_submit(&cpu_of(device)->compute,
                          &(struct tfc_queue_entry){.run = prepared ? run_entry : NULL,
                                                    .prepared = prepared,
                                                    .step = step,
                                                    .wait_count = wait_count,
                                                    .signal_count = signal_count},
                          waits, signals);
}

static void copy_entry(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  (void)from, (void)to;
  tfc_runner_copy_step(device, &e->copy, e->step);
}

static tfc_status copy(struct tfc_device *device, const struct tfc_copy *record, struct tfc_step *step,
                       const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                       uint32_t signal_count) {
  struct cpu_device *d = cpu_of(device);
  pthread_mutex_lock(&d->copies_lock);
  tfc_status s = NULL;
  if (!d->copies_started) {
    s = tfc_queue_init(&d->copies, device, &(struct tfc_queue_options){.name = "tfc-copy", .spin_ns = COPY_SPIN_NS});
    d->copies_started = !s;
  }
  pthread_mutex_unlock(&d->copies_lock);
  if (s) return s;
  return tfc_queue_submit(
      &d->copies,
      &(struct tfc_queue_entry){
          .run = copy_entry, .copy = *record, .step = step, .wait_count = wait_count, .signal_count = signal_count},
      waits, signals);
}

static tfc_status post(struct tfc_device *device, struct tfc_task *task) {
  return tfc_queue_post(&cpu_of(device)->compute, task);
}

static tfc_status launch(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                         struct tfc_kernel_ctx *ctx) {
  return tfc_runner_launch(&cpu_of(device)->runner, prepared, index, ctx);
}

static tfc_status synchronize(struct tfc_device *device) {
  struct cpu_device *d = cpu_of(device);
  tfc_queue_drain(&d->compute);
  pthread_mutex_lock(&d->copies_lock);
  bool copies = d->copies_started;
  pthread_mutex_unlock(&d->copies_lock);
  if (copies) tfc_queue_drain(&d->copies);
  return NULL;
}

static bool supports(struct tfc_device *device, const struct tfc_op_def *def, tfc_dtype type, const char **out_reason) {
  return tfc_runner_supports(&cpu_of(device)->runner, def, type, out_reason);
}

const struct tfc_device_driver tfc_driver_cpu = {
    .kind = "cpu",
    .has_lanes = true,
    .host_kernels = TFC_HOST_KERNELS_IN_PLACE,
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
