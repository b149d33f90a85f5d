// A fake libtfc_cupti.so, built in the folder of the fake libtfc_cuda.so (fake_plugin.c), so that the profiling of GPUs
// can be tested without a GPU.
#include "tests/common/fake_watcher.h"

const struct tfc_cuda_fake_watcher tfc_fake_watcher = {fake_launched, fake_ran}; // fake_plugin.c looks for it

const struct tfc_gpu_profiler tfc_gpu_profiler = {.name = "a fake profiler",
                                                  .start = fake_start,
                                                  .push = fake_push,
                                                  .pop = fake_pop,
                                                  .flush = fake_deliver,
                                                  .record = fake_record};
