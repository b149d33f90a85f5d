// libtfc_cupti.so beside fake_plugin.c's libtfc_cuda.so.
#include "tests/common/fake_watcher.h"

const struct tfc_cuda_fake_watcher tfc_fake_watcher = {fake_launched, fake_ran}; // fake_plugin.c looks for it

const struct tfc_gpu_profiler tfc_gpu_profiler = {.name = "a fake profiler",
                                                  .start = fake_start,
                                                  .push = fake_push,
                                                  .pop = fake_pop,
                                                  .flush = fake_deliver,
                                                  .record = fake_record};
