// Copies directly if one side is in the host's address space, otherwise through a host buffer.
#include "runtime/device/copy.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/no_memory.h"
#include "runtime/device/runner.h"

static bool on_host(const struct tfc_device *d) {
  return !d || d->info.address_space == 0;
}

static tfc_status move(const struct tfc_copy *copy) {
  const struct tfc_tensor *from = copy->source;
  struct tfc_tensor *to = copy->target;
  if (from->size == 0) return NULL;
  bool source_host = on_host(copy->source_device);
  bool target_host = on_host(copy->target_device);
  if (source_host && target_host) {
    memcpy(to->data, from->data, from->size);
    return NULL;
  }
  if (source_host) return copy->target_device->driver->write(copy->target_device, from->data, to);
  if (target_host) return copy->source_device->driver->read(copy->source_device, from, to->data);
  void *staging = malloc(from->size);
  if (!staging) return tfc_status_no_memory_for("staging a copy of %zu bytes", from->size);
  tfc_status s = copy->source_device->driver->read(copy->source_device, from, staging);
  if (!s) s = copy->target_device->driver->write(copy->target_device, staging, to);
  free(staging);
  return s;
}

tfc_status tfc_runner_copy(const struct tfc_copy *copy) {
  const struct tfc_tensor *from = copy->source;
  struct tfc_tensor *to = copy->target;
  if (!tfc_dtype_is_plain(from->dtype)) { // strings and handles are always in host memory
    tfc_tensor_release(to);
    tfc_tensor_share(from, to);
    return NULL;
  }
  if (to->data && !to->buffer) {
    if (to->size < from->size)
      return tfc_status_make(TFC_INTERNAL, "a copy of %zu bytes to a place of %zu", from->size, to->size);
    to->shape = from->shape;
    to->dtype = from->dtype;
    to->size = from->size;
    return move(copy);
  }
  struct tfc_tensor fresh = *from;
  fresh.buffer = NULL;
  if (copy->target_device)
    TFC_RETURN_IF_ERROR(copy->target_device->driver->allocate(copy->target_device, from->size, &fresh.buffer));
  else
    TFC_RETURN_IF_ERROR(tfc_buffer_create_host(from->size, &fresh.buffer));
  fresh.data = fresh.buffer->data;
  tfc_tensor_release(to);
  *to = fresh;
  tfc_status s = move(copy);
  if (s) tfc_tensor_release(to); // it has no valid content
  return s;
}

void tfc_runner_copy_step(struct tfc_device *device, const struct tfc_copy *copy, struct tfc_step *step) {
  if (tfc_step_stopped(step)) return;
  uint64_t begin = tfc_ticks();
  tfc_status s = NULL;
  if (copy->variable && !copy->variable->initialized)
    s = tfc_variable_check(copy->variable);
  else
    s = tfc_runner_copy(copy);
  if (s) {
    tfc_step_fail(step, tfc_status_annotate(s, "a transfer to %s", device->info.name));
    return;
  }
  if (step->trace && step->trace->copies && copy->id != TFC_COPY_UNTRACED)
    tfc_trace_add(&step->trace->copies[device->index], TFC_TRACE_TRANSFER, copy->id, device->index, begin, tfc_ticks(),
                  copy->source->size);
}

tfc_status tfc_host_read(struct tfc_device *device, const struct tfc_tensor *source, void *target) {
  (void)device;
  if (source->size) memcpy(target, source->data, source->size);
  return NULL;
}

tfc_status tfc_host_write(struct tfc_device *device, const void *source, struct tfc_tensor *target) {
  (void)device;
  if (target->size) memcpy(target->data, source, target->size);
  return NULL;
}
