// Opens a GPU, or a green context of one, as a device with its threads, streams, memory and libraries. The drivers
// "gpu" and "vgpu" are defined at the end of the file.
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/branches.h"
#include "runtime/device/cuda/copy.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/flag.h"
#include "runtime/device/cuda/libraries.h"
#include "runtime/device/cuda/segment.h"
#include "runtime/device/cuda/split.h"
#include "runtime/device/cuda/staging.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/no_memory.h"
#include "runtime/base/str.h"

enum { WORK_SPIN_NS = 50000, END_SPIN_NS = 50000 };

// --- Discovery ---------------------------------------------------------------------------------------------------
static tfc_status count_gpus(int *out) {
  const struct tfc_cuda_api *api = tfc_cuda_api;
  if (!api) return tfc_status_make(TFC_UNAVAILABLE, "no GPU: CUDA is not there");
  int error = api->device_count(out);
  if (!error && *out > 0) return NULL;
  if (!error) return tfc_status_make(TFC_UNAVAILABLE, "no GPU: CUDA sees none (is CUDA_VISIBLE_DEVICES set?)");
  if (error == TFC_CUDA_NO_DEVICE || error == TFC_CUDA_INSUFFICIENT_DRIVER)
    return tfc_status_make(
        TFC_UNAVAILABLE,
        "no GPU: there is no NVIDIA driver, or it is older than the CUDA toolkit of this build: %s (%s); "
        "'--devices cpu:0' and '--devices 4' use processors",
        api->error_text(error), api->error_name(error));
  return tfc_status_make(TFC_UNAVAILABLE, "no GPU can be used: %s (%s)", api->error_text(error),
                         api->error_name(error));
}

// Leaves part of the memory to CUDA itself, the libraries and their workspaces.
static uint64_t usable(uint64_t bytes) {
  return bytes - bytes / 16;
}

static tfc_status discover_gpu(const struct tfc_driver_options *options, struct tfc_device_info **out,
                               uint32_t *out_count) {
  int count = 0;
  TFC_RETURN_IF_ERROR(count_gpus(&count));
  if (options->whole) count = 1;
  struct tfc_device_info *infos = calloc((size_t)count, sizeof *infos);
  if (!infos) return tfc_status_no_memory("listing devices");
  char first[96] = "";
  for (int i = 0; i < count; i++) {
    struct tfc_cuda_properties p = {0};
    int error = tfc_cuda_api->properties(i, &p);
    if (error) {
      free(infos);
      return tfc_status_make(TFC_UNAVAILABLE, "gpu:%d cannot be used: %s (%s)", i, tfc_cuda_api->error_text(error),
                             tfc_cuda_api->error_name(error));
    }
    struct tfc_device_info *info = &infos[i];
    if (i == 0) snprintf(first, sizeof first, "%s", p.name);
    snprintf(info->name, sizeof info->name, "gpu:%d", i);
    // All devices of one kind must take equally long for an operation, so a GPU of another model is another kind.
    if (!strcmp(first, p.name))
      snprintf(info->kind, sizeof info->kind, "gpu");
    else
      snprintf(info->kind, sizeof info->kind, "gpu-%d", i);
    snprintf(info->tensorflow, sizeof info->tensorflow, "/job:localhost/replica:0/task:0/device:GPU:%d", i);
    snprintf(info->model, sizeof info->model, "%s", p.name);
    snprintf(info->label, sizeof info->label, "measured");
    info->memory = options->memory && (uint32_t)i < options->count ? options->memory[i] : usable(p.memory);
    info->cores = (uint32_t)p.sm_count;
    info->address_space = 1 + (uint32_t)i;
  }
  *out = infos;
  *out_count = (uint32_t)count;
  return NULL;
}

static tfc_status discover_vgpu(const struct tfc_driver_options *options, struct tfc_device_info **out,
                                uint32_t *out_count) {
  int count = 0, size = 0;
  uint32_t n = options->count ? options->count : 1;
  struct tfc_cuda_properties p = {0};
  TFC_RETURN_IF_ERROR(count_gpus(&count));
  int error = tfc_cuda_api->properties(0, &p);
  if (error)
    return tfc_status_make(TFC_UNAVAILABLE, "gpu:0 cannot be used: %s (%s)", tfc_cuda_api->error_text(error),
                           tfc_cuda_api->error_name(error));
  TFC_RETURN_IF_ERROR(tfc_cuda_split_plan(tfc_cuda_api, 0, n, &size));
  struct tfc_device_info *infos = calloc(n, sizeof *infos);
  if (!infos) return tfc_status_no_memory("listing devices");
  for (uint32_t i = 0; i < n; i++) {
    struct tfc_device_info *info = &infos[i];
    snprintf(info->name, sizeof info->name, "vgpu:%u", i);
    snprintf(info->kind, sizeof info->kind, "vgpu");
    snprintf(info->tensorflow, sizeof info->tensorflow, "/job:localhost/replica:0/task:0/device:GPU:%u", i);
    snprintf(info->model, sizeof info->model, "%d of %d multiprocessors of %.50s", size, p.sm_count, p.name);
    snprintf(info->label, sizeof info->label, "virtual");
    info->memory = options->memory ? options->memory[i] : usable(p.memory) / n;
    info->cores = (uint32_t)size;
    info->address_space = options->shared ? 1 : 1 + i;
  }
  *out = infos;
  *out_count = n;
  return NULL;
}

// --- Services ----------------------------------------------------------------------------------------------------
static tfc_status env_allocate(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out) {
  return tfc_cuda_memory_allocate(&tfc_cuda_device_of(env->device)->memory, bytes, out);
}

static void environment(struct tfc_device *device, struct tfc_kernel_env *env) {
  env->allocate = env_allocate;
  env->parallel_for = tfc_env_serial_for;
  env->threads = 1;
  env->device = device;
  env->device_cores = device->info.cores;
  env->stream = tfc_cuda_device_of(device)->compute;
}

// --- Open and close ----------------------------------------------------------------------------------------------
static void close_device(struct tfc_device *device) {
  if (!device) return;
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  const struct tfc_cuda_api *api = d->api;
  tfc_queue_deinit(&d->work);
  tfc_queue_deinit(&d->copy_queue);
  tfc_queue_deinit(&d->work_end);
  tfc_queue_deinit(&d->copy_end);
  (void)tfc_cuda_enter(api, d->ordinal);
  tfc_cuda_libraries_close(d);
  tfc_buffer_release(d->scratch);
  tfc_cuda_mark_release(d->clock.mark);
  tfc_cuda_staging_free(d);
  if (d->flag_memory) // a stream may write its flag a little later than its event is seen
    for (int k = -1; k < TFC_CUDA_COPY_STREAMS; k++) (void)api->stream_synchronize(k < 0 ? d->compute : d->copies[k]);
  tfc_cuda_flags_close(d);
  if (d->compute) (void)api->stream_destroy(d->compute);
  if (d->capture) (void)api->stream_destroy(d->capture);
  tfc_cuda_branches_close(d);
  for (int k = 0; k < TFC_CUDA_COPY_STREAMS; k++)
    if (d->copies[k]) (void)api->stream_destroy(d->copies[k]);
  tfc_cuda_pool_release(d->pool);
  tfc_cuda_pool_release(d->timed);
  tfc_cuda_memory_deinit(&d->memory);
  tfc_cuda_split_give(d->partition);
  pthread_mutex_destroy(&d->clock_lock);
  pthread_mutex_destroy(&d->launch_lock);
  pthread_mutex_destroy(&d->staging_lock);
  pthread_mutex_destroy(&d->green_lock);
  free(d);
}

static tfc_status start(struct tfc_cuda_device *d) {
  const struct tfc_cuda_api *api = d->api;
  const char *name = d->base.info.name;
  TFC_CUDA_TRY(d, tfc_cuda_enter(api, d->ordinal), "opening it");
  TFC_CUDA_TRY(d, api->stream_create(d->partition, &d->compute), "making a stream");
  TFC_CUDA_TRY(d, api->stream_create(d->partition, &d->capture), "making a stream");
  for (int k = 0; k < TFC_CUDA_COPY_STREAMS; k++)
    TFC_CUDA_TRY(d, api->stream_create(d->partition, &d->copies[k]), "making a stream");
  TFC_RETURN_IF_ERROR(tfc_cuda_events_open(d));
  tfc_cuda_flags_open(d);
  TFC_RETURN_IF_ERROR(tfc_cuda_pool_create(d, false, &d->pool));
  TFC_RETURN_IF_ERROR(tfc_cuda_pool_create(d, true, &d->timed));
  struct tfc_queue_options work = {.name = name, .spin_ns = WORK_SPIN_NS, .by_itself = true};
  struct tfc_queue_options copies = {.name = "tfc-gpu-copy", .by_itself = true};
  struct tfc_queue_options end = {.name = "tfc-gpu-end", .spin_ns = END_SPIN_NS};
  TFC_RETURN_IF_ERROR(tfc_queue_init(&d->work, &d->base, &work));
  TFC_RETURN_IF_ERROR(tfc_queue_init(&d->copy_queue, &d->base, &copies));
  TFC_RETURN_IF_ERROR(tfc_queue_init(&d->work_end, &d->base, &end));
  end.spin_ns = 0;
  return tfc_queue_init(&d->copy_end, &d->base, &end);
}

static tfc_status open_device(const struct tfc_device_driver *driver, const struct tfc_device_info *info,
                              struct tfc_device **out) {
  tfc_status s = NULL;
  const char *colon = strchr(info->name, ':');
  int index = colon ? atoi(colon + 1) : 0;
  bool is_virtual = driver == &tfc_driver_vgpu;
  if (!tfc_cuda_api) return tfc_status_make(TFC_UNAVAILABLE, "no GPU: CUDA is not there");
  struct tfc_cuda_device *d = calloc(1, sizeof *d);
  if (!d) return tfc_status_no_memory_for("opening %s", info->name);
  d->base.driver = driver;
  d->base.info = *info;
  d->api = tfc_cuda_api;
  d->ordinal = is_virtual ? 0 : index;
  d->graphs = true;
  pthread_mutex_init(&d->clock_lock, NULL);
  pthread_mutex_init(&d->launch_lock, NULL);
  pthread_mutex_init(&d->staging_lock, NULL);
  pthread_mutex_init(&d->green_lock, NULL);
  tfc_cuda_memory_init(&d->memory, d->api, d->base.info.name, d->ordinal, info->memory);
  int error = d->api->properties(d->ordinal, &d->properties);
  if (error) {
    s = tfc_cuda_error(d, error, "opening it");
    goto out;
  }
  if (is_virtual) TFC_TRY(s, tfc_cuda_split_take(d->api, d->ordinal, (uint32_t)index, &d->partition));
  d->library = (struct tfc_cuda_library){.device = &d->base,
                                         .blaslt = tfc_cuda_blaslt,
                                         .cudnn = tfc_cuda_cudnn,
                                         .event = tfc_cuda_library_event,
                                         .math = TFC_MATH_FLOAT32,
                                         .sm_count = is_virtual ? d->partition->sm_count : d->properties.sm_count,
                                         .capability = d->properties.capability,
                                         .shared_per_block = d->properties.shared_per_block,
                                         .l2_bytes = d->properties.l2_bytes,
                                         .is_virtual = is_virtual};
  TFC_TRY(s, start(d));
  environment(&d->base, &d->env);
  d->env.cancelled = tfc_env_step_stopped;
  *out = &d->base, d = NULL;
out:
  close_device(d ? &d->base : NULL);
  return s;
}

static tfc_status open_gpu(const struct tfc_device_info *info, struct tfc_device **out) {
  return open_device(&tfc_driver_gpu, info, out);
}
static tfc_status open_vgpu(const struct tfc_device_info *info, struct tfc_device **out) {
  return open_device(&tfc_driver_vgpu, info, out);
}

// --- Other functions of the vtable ---------------------------------------------------------------------------------
static tfc_status allocate(struct tfc_device *device, size_t bytes, struct tfc_buffer **out) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  TFC_RETURN_IF_ERROR(tfc_cuda_check_alive(d));
  return tfc_cuda_memory_allocate(&d->memory, bytes, out);
}

static uint64_t in_use(struct tfc_device *device) {
  return atomic_load_explicit(&tfc_cuda_device_of(device)->memory.held, memory_order_relaxed);
}

static void task_entry(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  (void)from, (void)to;
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  (void)tfc_cuda_enter(d->api, d->ordinal); // an error shows again at the first call
  e->task->run(e->task);
}

static tfc_status post(struct tfc_device *device, struct tfc_task *task) {
  return tfc_queue_submit(&tfc_cuda_device_of(device)->work, &(struct tfc_queue_entry){.run = task_entry, .task = task},
                          NULL, NULL);
}

static tfc_status synchronize(struct tfc_device *device) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  tfc_queue_drain(&d->work);
  tfc_queue_drain(&d->copy_queue);
  tfc_queue_drain(&d->work_end);
  tfc_queue_drain(&d->copy_end);
  TFC_RETURN_IF_ERROR(tfc_cuda_check_alive(d));
  TFC_CUDA_TRY(d, tfc_cuda_enter(d->api, d->ordinal), "synchronizing");
  TFC_CUDA_TRY(d, d->api->stream_synchronize(d->compute), "synchronizing"); // waits for single launches, too
  for (int k = 0; k < TFC_CUDA_COPY_STREAMS; k++)
    TFC_CUDA_TRY(d, d->api->stream_synchronize(d->copies[k]), "synchronizing");
  return NULL;
}

static void configure(struct tfc_device *device, const struct tfc_device_settings *settings) {
  tfc_cuda_device_of(device)->graphs = settings->capture;
  tfc_cuda_device_of(device)->library.math = settings->math;
  snprintf(device->info.math, sizeof device->info.math, "%s", tfc_math_name(settings->math));
}

static uint64_t fallbacks(struct tfc_device *device, uint64_t *out_bytes) {
  *out_bytes = atomic_load(&tfc_cuda_device_of(device)->host_call_bytes);
  return atomic_load(&tfc_cuda_device_of(device)->host_calls);
}

static char *tuning(void) {
  char *(*const tell[])(void) = {tfc_cuda_conv_tuning, tfc_cuda_dnn_tuning, tfc_cuda_product_tuning};
  char *all = NULL;
  for (size_t i = 0; i < sizeof tell / sizeof *tell; i++) {
    char *lines = tell[i] ? tell[i]() : NULL; // each line ends with a newline
    char *both = all && lines ? tfc_format("%s%s", all, lines) : NULL;
    if (both || !all)
      free(all), all = both ? (free(lines), both) : lines;
    else
      free(lines);
  }
  return all;
}
static void set_tuning(const char *lines) {
  if (tfc_cuda_conv_set_tuning) tfc_cuda_conv_set_tuning(lines);
  if (tfc_cuda_dnn_set_tuning) tfc_cuda_dnn_set_tuning(lines);
  if (tfc_cuda_product_set_tuning) tfc_cuda_product_set_tuning(lines);
}

static bool chains(const struct tfc_op_def *def) {
  return tfc_cuda_chains && tfc_cuda_chains(def);
}

#define VTABLE                                                                                                         \
  .on_its_own = true, .close = close_device, .allocate = allocate, .in_use = in_use,                                   \
  .prepare = tfc_cuda_prepare_segment, .release = tfc_cuda_release_segment, .submit = tfc_cuda_submit,                 \
  .copy = tfc_cuda_copy, .environment = environment, .post = post, .launch = tfc_cuda_launch_one,                      \
  .launch_timed = tfc_cuda_launch_timed, .await = tfc_cuda_await, .read = tfc_cuda_read_tensor,                        \
  .write = tfc_cuda_write_tensor, .synchronize = synchronize, .supports = tfc_cuda_supports, .fallbacks = fallbacks,   \
  .fallback = tfc_cuda_fallback, .declined = tfc_cuda_declined, .has_kernel = tfc_cuda_has_kernel,                     \
  .launches = tfc_cuda_launches, .tuning = tuning, .set_tuning = set_tuning, .configure = configure, .chains = chains, \
  .filter_form = tfc_cuda_filter_form, .channels_last_gain_us = tfc_cuda_channels_last_gain_us

const struct tfc_device_driver tfc_driver_gpu = {.kind = "gpu", .discover = discover_gpu, .open = open_gpu, VTABLE};
const struct tfc_device_driver tfc_driver_vgpu = {.kind = "vgpu", .discover = discover_vgpu, .open = open_vgpu, VTABLE};
