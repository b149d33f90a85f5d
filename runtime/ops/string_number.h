// Numbers out of strings, as StringToNumber and DecodeCSV read them: spaces around them, nothing else.
#ifndef TFC_RUNTIME_OPS_STRING_NUMBER_H
#define TFC_RUNTIME_OPS_STRING_NUMBER_H

#include <stdbool.h>

#include "runtime/base/str.h"
#include "runtime/graph/dtype.h"

// The number in `text` to `out`, of type float, double, int32 or int64; false: it is none, or too large.
bool tfc_string_number(tfc_str text, tfc_dtype type, void *out);

#endif
