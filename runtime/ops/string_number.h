// Reads numbers from strings, for StringToNumber and DecodeCSV: spaces may be around a number, and nothing else.
#ifndef TFC_RUNTIME_OPS_STRING_NUMBER_H
#define TFC_RUNTIME_OPS_STRING_NUMBER_H

#include <stdbool.h>

#include "runtime/base/str.h"
#include "runtime/graph/dtype.h"

// Writes the number in `text` to `out`, as a float, double, int32 or int64; false: it is no number, or out of range.
bool tfc_string_number(tfc_str text, tfc_dtype type, void *out);

#endif
