// The same samples through the plug-in's own calls of cuBLASLt and cuDNN, on fakes of both: layouts, strides, padding,
// alignment, and which algorithms are taken.
#define TFC_ONLY_LIBRARY 1
#include "tests/cuda_kernels/samples_test.c" // NOLINT: the same test, linked with other objects
