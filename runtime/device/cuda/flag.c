#include "runtime/device/cuda/flag.h"

#include <string.h>

enum { APART = 64 }; // bytes: each flag has a cache line of its own

static int pin(struct tfc_cuda_device *d, size_t bytes) {
  tfc_cuda_memory_enter();
  int error = d->api->allocate_host(&d->flag_memory, bytes);
  tfc_cuda_memory_leave();
  return error;
}

void tfc_cuda_flags_open(struct tfc_cuda_device *d) {
  const size_t bytes = (TFC_CUDA_COPY_STREAMS + 1) * APART;
  if (!d->api->write_flag || pin(d, bytes)) {
    (void)d->api->last_error();
    d->flag_memory = NULL;
    return;
  }
  memset(d->flag_memory, 0, bytes);
  for (unsigned i = 0; i <= TFC_CUDA_COPY_STREAMS; i++)
    d->flags[i].at = (_Atomic uint32_t *)(void *)((char *)d->flag_memory + (size_t)i * APART);
  atomic_store(&d->flags_used, true);
}

void tfc_cuda_flags_close(struct tfc_cuda_device *d) {
  if (!d->flag_memory) return;
  tfc_cuda_memory_enter();
  (void)d->api->release_host(d->flag_memory);
  tfc_cuda_memory_leave();
}

void tfc_cuda_flag_after(struct tfc_cuda_device *d, unsigned which, struct tfc_cuda_mark *mark) {
  struct tfc_cuda_flag *f = &d->flags[which];
  if (!tfc_cuda_flags_used(d)) return;
  if (d->api->write_flag(mark->stream, (uint32_t *)(void *)f->at, f->last + 1)) {
    (void)d->api->last_error(); // if the device is lost, the mark's event says so
    tfc_cuda_flags_distrust(d);
    return;
  }
  mark->flag = f->at;
  mark->flag_value = ++f->last;
}

void tfc_cuda_flags_distrust(struct tfc_cuda_device *d) {
  atomic_store(&d->flags_used, false);
}
