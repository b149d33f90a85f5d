#include "profiler/warnings.h"
#include "profiler/store_rows.h"

#include <stdlib.h>
#include <string.h>

void tfc_warnings_add(struct tfc_warnings *w, const char *text) {
  pthread_mutex_lock(&w->lock);
  uint32_t i = 0;
  while (i < w->count && strcmp(w->texts[i], text) != 0) i++;
  if (i == w->count && i < TFC_WARNINGS_MOST && (w->texts[i] = strdup(text))) w->count++;
  pthread_mutex_unlock(&w->lock);
}

tfc_status tfc_warnings_store(struct tfc_warnings *w, struct tfc_store *store, int64_t run) {
  tfc_status s = NULL;
  if (!w) return NULL;
  pthread_mutex_lock(&w->lock);
  for (uint32_t i = 0; i < w->count && !s; i++) s = tfc_store_add_warning(store, run, w->texts[i]);
  pthread_mutex_unlock(&w->lock);
  return s;
}

void tfc_warnings_deinit(struct tfc_warnings *w) {
  for (uint32_t i = 0; i < w->count; i++) free(w->texts[i]);
  w->count = 0;
}
