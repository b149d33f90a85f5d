// Converts the values of feeds to the types that the graph declares.
//
// TensorFlow converts arrays that are fed, so that NumPy's int64 and float64 may go into int32 and float32. This does
// the same: integers and booleans are converted to any number type that can represent all of them, floats to any float
// type (rounded). INVALID_ARGUMENT names a number that does not fit, and both types. The session reports any other
// difference.
#ifndef TFC_CLI_FEED_CAST_H
#define TFC_CLI_FEED_CAST_H

#include "runtime/graph/tensor.h"

TFC_MUST_USE tfc_status tfc_feed_cast(tfc_dtype want, struct tfc_tensor *t); // replaces *t; host memory

#endif
