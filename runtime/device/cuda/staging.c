// Pieces of pinned host memory. The device keeps a piece after a copy, for the next copy that needs one of its size.
#include <stdlib.h>

#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/staging.h"

static const size_t smallest_piece = (size_t)64 << 10, largest_piece = (size_t)64 << 20;

static int pin(struct tfc_cuda_device *d, struct tfc_cuda_staging *piece) {
  tfc_cuda_memory_enter();
  int error = d->api->allocate_host(&piece->data, piece->size);
  tfc_cuda_memory_leave();
  return error;
}

tfc_status tfc_cuda_staging_take(struct tfc_cuda_device *d, size_t bytes, struct tfc_cuda_staging **out) {
  size_t size = smallest_piece;
  while (size < bytes) size *= 2;
  pthread_mutex_lock(&d->staging_lock);
  struct tfc_cuda_staging **at = &d->staging, *piece = NULL;
  while (*at && (*at)->size != size) at = &(*at)->next;
  if (*at) {
    piece = *at;
    *at = piece->next;
    piece->next = NULL;
  }
  pthread_mutex_unlock(&d->staging_lock);
  if (!piece) {
    if (!(piece = calloc(1, sizeof *piece))) return tfc_status_no_memory("a copy");
    piece->size = size;
    int error = pin(d, piece);
    if (error == TFC_CUDA_OUT_OF_MEMORY) { // CUDA may lack the memory that cached pieces of other sizes occupy
      (void)d->api->last_error();
      tfc_cuda_staging_free(d);
      error = pin(d, piece);
    }
    if (error) {
      free(piece);
      return tfc_cuda_error(d, error, "pinning host memory");
    }
  }
  *out = piece;
  return NULL;
}

tfc_status tfc_cuda_staging_take_pieces(struct tfc_cuda_device *d, size_t bytes, struct tfc_cuda_staging **out) {
  size_t last = bytes % largest_piece ? bytes % largest_piece : largest_piece;
  for (size_t part = last; bytes; bytes -= part, part = largest_piece) {
    struct tfc_cuda_staging *piece = NULL;
    TFC_RETURN_IF_ERROR(tfc_cuda_staging_take(d, part, &piece));
    piece->next = *out;
    piece->bytes = part;
    *out = piece;
  }
  return NULL;
}

void tfc_cuda_staging_give(struct tfc_cuda_device *d, struct tfc_cuda_staging *pieces) {
  struct tfc_cuda_staging **end = &pieces;
  if (!pieces) return;
  while (*end) end = &(*end)->next;
  pthread_mutex_lock(&d->staging_lock);
  *end = d->staging;
  d->staging = pieces;
  pthread_mutex_unlock(&d->staging_lock);
}

void tfc_cuda_staging_free(struct tfc_cuda_device *d) {
  pthread_mutex_lock(&d->staging_lock);
  struct tfc_cuda_staging *all = d->staging;
  d->staging = NULL;
  pthread_mutex_unlock(&d->staging_lock);
  while (all) {
    struct tfc_cuda_staging *piece = all;
    all = piece->next;
    tfc_cuda_memory_enter();
    (void)d->api->release_host(piece->data);
    tfc_cuda_memory_leave();
    free(piece);
  }
}
