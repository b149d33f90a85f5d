// The GPU's side of a trace: from a profiler plug-in (libtfc_cupti.so) where there is one, else from the driver's own
// events.
//
// The collector asks for it when a device works on its own; reports say which of the two timed a run, and why.
#ifndef TFC_PROFILER_GPU_H
#define TFC_PROFILER_GPU_H

#include "profiler/activity.h"

// What the plug-in offers: its symbol `tfc_gpu_profiler`. One session per process; every call from any thread but start
// and flush, which come from the one that collects.
struct tfc_gpu_profiler {
  const char *name; // "CUPTI 13.0"
  // UNAVAILABLE: another profiler is attached, no permission, a device that cannot be traced: in words. Records go to
  // `activity`, which must outlive the process's last flush.
  tfc_status (*start)(struct tfc_activity *activity);
  void (*push)(uint64_t external); // on the launching thread, around its launches
  void (*pop)(void);
  tfc_status (*flush)(void);     // hands over everything that the devices have finished
  tfc_status (*record)(bool on); // optional: steps that are not traced should not pay. On after start.
};

// The plug-in beside this library, started once per process. UNAVAILABLE with the reason; asked again it says the same.
TFC_MUST_USE tfc_status tfc_gpu_profiler_get(const struct tfc_gpu_profiler **out, struct tfc_activity **out_activity);
// Starts it early where the devices' names say that there will be a GPU: CUPTI wants to be there before CUDA loads its
// modules. A refusal is told later, by tfc_gpu_profiler_get.
void tfc_gpu_profiler_prepare(const char *devices);
// Recording on or off, in the whole process: several collectors (the devices, the undivided machine) share the session,
// and one that traces a step must not find it as another left it. Between steps.
TFC_MUST_USE tfc_status tfc_gpu_profiler_record(bool on);
// Another one in its place (tests). NULL: none, with this reason.
void tfc_gpu_profiler_set(const struct tfc_gpu_profiler *profiler, const char *reason);

#endif
