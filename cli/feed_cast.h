// Values of feeds in the type that the graph wants.
//
// As TensorFlow takes arrays for its feeds, NumPy's int64 and float64 go into int32 and float32 as well: whole numbers
// and booleans into any number type that holds each of them, floats into any float type (rounded). INVALID_ARGUMENT
// names the number that does not fit, and both types. What else differs stays as it is: who runs the step says so.
#ifndef TFC_CLI_FEED_CAST_H
#define TFC_CLI_FEED_CAST_H

#include "runtime/graph/tensor.h"

TFC_MUST_USE tfc_status tfc_feed_cast(tfc_dtype want, struct tfc_tensor *t); // replaces *t; host memory

#endif
