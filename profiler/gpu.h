// Times the GPU's work in a trace: by a profiler plug-in (libtfc_cupti.so) or, if there is none, by the driver's own
// events.
//
// The collector uses it for asynchronous devices; reports say which of the two timed a run, and why.
#ifndef TFC_PROFILER_GPU_H
#define TFC_PROFILER_GPU_H

#include "profiler/activity.h"

// The interface of the plug-in, in its symbol `tfc_gpu_profiler`. A process has one session. Any thread may call these
// functions, but only the thread that collects may call start and flush.
struct tfc_gpu_profiler {
  const char *name; // "CUPTI 13.0"
  // UNAVAILABLE, with the reason: another profiler is attached, permission is missing, a device cannot be traced.
  // Records go to `activity`, which must exist until the process's last flush.
  tfc_status (*start)(struct tfc_activity *activity);
  void (*push)(uint64_t external); // called by the launching thread, before and after its launches
  void (*pop)(void);
  tfc_status (*flush)(void); // hands over everything that the devices have finished
  // optional; switches recording off, so that untraced steps take no extra time. After `start` it is on.
  tfc_status (*record)(bool on);
};

// Returns the plug-in in the folder of this library, which is started once per process. UNAVAILABLE, with the reason;
// later calls return the same.
TFC_MUST_USE tfc_status tfc_gpu_profiler_get(const struct tfc_gpu_profiler **out, struct tfc_activity **out_activity);
// Starts the plug-in early if the devices may run operations on their own (GPUs: runtime/device/list_kinds.h), because
// CUPTI must start before CUDA loads its modules. tfc_gpu_profiler_get reports a failure later.
void tfc_gpu_profiler_prepare(const char *devices);
// Switches recording on or off in the whole process, between steps. Several collectors (the devices, the undivided
// machine) share the session, so each of them must call it as it needs.
TFC_MUST_USE tfc_status tfc_gpu_profiler_record(bool on);
// Replaces the plug-in, for tests. NULL: there is none, with this reason.
void tfc_gpu_profiler_set(const struct tfc_gpu_profiler *profiler, const char *reason);

#endif
