// Execution: the options that decide how a run computes. One record is passed from the command line through a job and
// its measuring worker to every session, so a new option needs only a row here and the code that uses it. (A number,
// like the seed, needs a member, its text in execution.c, and a row in the flags of each program.)
//
//   struct tfc_execution how = {.rewrites = TFC_REWRITES_ALL, .seed = 1};
//   TFC_TRY(s, tfc_session_create(graph, &(struct tfc_session_options){.devices = &set, .execution = how}, &session));
//
// Its text form is command-line flags ("--rewrites all --seed 1"; flags with their default value are left out). A job
// sends it to its worker in this form; a run's row in the database and a placement file store it in this form.
#ifndef TFC_RUNTIME_EXEC_EXECUTION_H
#define TFC_RUNTIME_EXEC_EXECUTION_H

#include "runtime/device/driver.h"

// member, flag, its values (the numbers count from 0, which is the default), help
#define TFC_EXECUTION_CHOICES(X)                                                                                       \
  X(rewrites, "rewrites", "exact|all",                                                                                 \
    "graph rewrites that keep every bit (default), or also those that change rounding")                                \
  X(captures, "cuda-graphs", "auto|off|branches",                                                                      \
    "GPUs replay captured segments (default), launch operation by operation, or replay segments in which independent " \
    "operations run side by side")                                                                                     \
  X(gpu_math, "gpu-math", "default|float32|tf32|float16|bfloat16",                                                     \
    "what GPUs compute products and convolutions of float32 tensors in (default: as a placement that is run says, "    \
    "else float32, with --rewrites all tf32); convolutions have no bfloat16: tf32 there")                              \
  X(cpu, "cpu", "native|avx2|avx512", "which vector instructions CPU kernels may use (default native: all there are)")

struct tfc_execution {
#define TFC_EXECUTION_MEMBER(member, flag, values, help) int member;
  TFC_EXECUTION_CHOICES(TFC_EXECUTION_MEMBER)
#undef TFC_EXECUTION_MEMBER
  int64_t seed;    // seed of all random choices
  int64_t threads; // number of a search's threads, or of a device's cores; 0: all that exist
  const struct tfc_memory_limit *limits;
  uint32_t limit_count;
};
enum { TFC_REWRITES_EXACT, TFC_REWRITES_ALL }; // values of `rewrites`
// The values of `captures`. (Those of gpu_math are in tfc_math, those of cpu in tfc_instructions.)
enum { TFC_CAPTURES_AUTO, TFC_CAPTURES_OFF, TFC_CAPTURES_BRANCHES };

// Sets the devices' options, before anything is prepared on them. Sessions do so when they are created.
TFC_MUST_USE tfc_status tfc_execution_apply(const struct tfc_execution *execution,
                                            const struct tfc_device_set *devices);

void tfc_execution_format(const struct tfc_execution *execution, struct tfc_text *out);
// INVALID_ARGUMENT names an unknown flag or value. The result owns its limits.
TFC_MUST_USE tfc_status tfc_execution_parse(tfc_str text, struct tfc_execution *out);
void tfc_execution_deinit(struct tfc_execution *execution); // frees what a parsed one owns
// Whether two executions give the same step times: compares all but the seed, the threads and the limits.
bool tfc_execution_alike(const struct tfc_execution *a, const struct tfc_execution *b);

#endif
