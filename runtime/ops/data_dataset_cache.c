// Datasets that are kept in memory once an iterator has walked over all of them.
#include "runtime/ops/data_dataset.h"

struct cache { // shared by all iterators: the dataset's lock guards it until it is complete; then it never changes
  bool complete;
  struct tfc_dataset_elements elements;
};
struct walk {
  bool reads; // this walk reads the cache, which was complete when it began
  size_t at;
  struct tfc_dataset_elements own; // the elements that this walk has read so far
  bool over;
};

static void forget(void *shared) {
  tfc_dataset_elements_free(&((struct cache *)shared)->elements);
}
static void end(struct tfc_dataset_iterator *it) {
  tfc_dataset_elements_free(&((struct walk *)tfc_dataset_state(it))->own);
}
static bool is_complete(struct tfc_dataset *d) {
  pthread_mutex_lock(&d->lock);
  const bool complete = ((const struct cache *)tfc_dataset_shared(d))->complete;
  pthread_mutex_unlock(&d->lock);
  return complete;
}
static tfc_status begin(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it) {
  struct walk *w = tfc_dataset_state(it);
  w->reads = is_complete(it->dataset);
  return w->reads ? NULL : tfc_dataset_open(ctx, it->dataset->inputs[0], &it->inputs[0]);
}
static tfc_status cache_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                             bool *ended) {
  struct walk *w = tfc_dataset_state(it);
  struct tfc_dataset *d = it->dataset;
  struct cache *c = tfc_dataset_shared(d);
  const struct tfc_dataset_elements *from = w->reads ? &c->elements : &w->own;
  *ended = w->reads && w->at == c->elements.items.count;
  if (*ended || w->over) {
    *ended = true;
    return NULL;
  }
  if (!w->reads) {
    TFC_RETURN_IF_ERROR(tfc_dataset_gather(ctx, it->inputs[0], &w->own, ended));
    if (*ended) {
      w->over = true;
      pthread_mutex_lock(&d->lock);
      if (!c->complete) {
        c->elements = w->own;
        w->own = (struct tfc_dataset_elements){0};
        c->complete = true;
      }
      pthread_mutex_unlock(&d->lock);
      return NULL;
    }
  }
  for (uint32_t i = 0; i < d->parts; i++) tfc_tensor_share(&from->items.data[w->at++], &parts[i]);
  return NULL;
}
static const struct tfc_dataset_kind kind = {.name = "Cache",
                                             .state = sizeof(struct walk),
                                             .shared = sizeof(struct cache),
                                             .opens = true,
                                             .begin = begin,
                                             .next = cache_next,
                                             .end = end,
                                             .forget = forget};

static tfc_status cache(struct tfc_kernel_ctx *ctx) {
  struct tfc_dataset *d = NULL;
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[1]) == 1, "filename must be a scalar");
  if (tfc_tensor_get_string(ctx->inputs[1], 0).size)
    return tfc_status_make(TFC_UNIMPLEMENTED,
                           "a dataset that is cached in a file: without a name it is kept in memory");
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &kind, 1, 0, 0, &d));
  if (d->parts == d->inputs[0]->parts) return tfc_dataset_output(ctx, d);
  tfc_object_release(&d->object);
  return tfc_status_make(TFC_INVALID_ARGUMENT, "elements have as many components as those that are read");
}

static const struct tfc_op_def data_dataset_cache_rows[] = {
    TFC_DATASET_ROW("CacheDataset", "input_dataset: variant, filename: string", TFC_DATASET_KINDS TFC_DATASET_MORE,
                    cache),
    TFC_DATASET_ROW("CacheDatasetV2", "input_dataset: variant, filename: string, cache: resource",
                    TFC_DATASET_KINDS TFC_DATASET_MORE, cache),
};
TFC_REGISTER_OPS(data_dataset_cache_rows);
