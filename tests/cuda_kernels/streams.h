// Runs the CUDA driver with its own kernels on the fake of the CUDA calls.
#ifndef TFC_TESTS_CUDA_KERNELS_STREAMS_H
#define TFC_TESTS_CUDA_KERNELS_STREAMS_H

#include "tests/common/cuda_fake.h"

void cuda_streams_install(const struct tfc_cuda_fake_options *options); // instead of tfc_cuda_fake_install

#endif
