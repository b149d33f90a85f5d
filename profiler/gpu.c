// Manages the one GPU profiler of the process. CUPTI allows only one session with correct correlations, which must
// exist before CUDA loads its modules. So it is started once and never stopped; if it cannot start, every caller gets
// the reason. The plug-in is loaded from the folder of this library and not linked, so that the same programs run
// without it.
#include "profiler/gpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"
#include "runtime/device/list_kinds.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool tried;
static const struct tfc_gpu_profiler *profiler;
static struct tfc_activity *activity;
static bool recording = true; // the plug-in starts with recording on
static char *refusal;

static tfc_status load(const struct tfc_gpu_profiler **out) {
  char *beside = NULL;
  Dl_info where;
  if (dladdr((const void *)&tfc_gpu_profiler_get, &where) && where.dli_fname) {
    const char *slash = strrchr(where.dli_fname, '/');
    if (slash) beside = tfc_format("%.*s/libtfc_cupti.so", (int)(slash - where.dli_fname), where.dli_fname);
  }
  // RTLD_GLOBAL, so that the CUDA plug-in finds CUPTI's functions for names of graph nodes.
  void *library = beside ? dlopen(beside, RTLD_NOW | RTLD_GLOBAL) : NULL;
  free(beside);
  if (!library) library = dlopen("libtfc_cupti.so", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return tfc_status_make(TFC_UNAVAILABLE, "CUPTI cannot be used: %s", dlerror());
  *out = dlsym(library, "tfc_gpu_profiler");
  return *out ? NULL : tfc_status_make(TFC_UNAVAILABLE, "CUPTI cannot be used: its plug-in has no tfc_gpu_profiler");
}

static tfc_status begin(const struct tfc_gpu_profiler *p) {
  if (!activity) TFC_RETURN_IF_ERROR(tfc_activity_create(&activity));
  if (!p) TFC_RETURN_IF_ERROR(load(&p));
  TFC_RETURN_IF_ERROR(p->start(activity));
  profiler = p;
  // Another collector may have switched recording off.
  if (!recording && p->record) TFC_RETURN_IF_ERROR(p->record(true));
  recording = true;
  return NULL;
}

static void keep_refusal(tfc_status s) {
  free(refusal);
  refusal = tfc_format("%s", tfc_status_message(s));
  tfc_status_free(s);
}

tfc_status tfc_gpu_profiler_get(const struct tfc_gpu_profiler **out, struct tfc_activity **out_activity) {
  tfc_status s = NULL;
  pthread_mutex_lock(&lock);
  if (!tried) {
    tried = true;
    if ((s = begin(NULL))) keep_refusal(s);
    s = NULL;
  }
  if (profiler) {
    *out = profiler;
    *out_activity = activity;
  } else {
    s = tfc_status_make(TFC_UNAVAILABLE, "%s", refusal ? refusal : "there is no GPU profiler");
  }
  pthread_mutex_unlock(&lock);
  return s;
}

tfc_status tfc_gpu_profiler_record(bool on) {
  tfc_status s = NULL;
  pthread_mutex_lock(&lock);
  if (profiler && profiler->record && recording != on) s = profiler->record(on);
  if (!s) recording = on;
  pthread_mutex_unlock(&lock);
  return s;
}

void tfc_gpu_profiler_prepare(const char *devices) {
  const struct tfc_gpu_profiler *p = NULL;
  struct tfc_activity *a = NULL;
  if (tfc_device_list_may_run_on_its_own(devices)) tfc_status_free(tfc_gpu_profiler_get(&p, &a));
}

void tfc_gpu_profiler_set(const struct tfc_gpu_profiler *p, const char *reason) {
  pthread_mutex_lock(&lock);
  tried = true;
  profiler = NULL;
  free(refusal);
  refusal = reason ? tfc_format("%s", reason) : NULL;
  tfc_status s = p ? begin(p) : NULL;
  if (s) keep_refusal(s);
  pthread_mutex_unlock(&lock);
}
