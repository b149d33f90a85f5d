// Runs the samples of samples_thread_test.c through the plug-in's own code that calls cuBLASLt and cuDNN, on fakes of
// both libraries: checks layouts, strides, padding, alignment, and which algorithms are chosen.
#define TFC_ONLY_LIBRARY 1
#include "tests/cuda_kernels/samples_thread_test.c" // NOLINT: the same test, linked with other objects
