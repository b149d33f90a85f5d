// Making Summary protos: what the summary ops and the summary writers share. Each call adds one Summary.value (field 1)
// to `out`; running out of memory shows in out->failed.
#ifndef TFC_RUNTIME_OPS_IO_SUMMARY_H
#define TFC_RUNTIME_OPS_IO_SUMMARY_H

#include "runtime/base/map.h"
#include "runtime/graph/wire.h"
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

TFC_MUST_USE tfc_status tfc_summary_scalar(struct tfc_text *out, tfc_str tag, double value);
// INVALID_ARGUMENT: a value is NaN or infinite; the message names `node`.
TFC_MUST_USE tfc_status tfc_summary_histogram(struct tfc_text *out, tfc_str tag, const struct tfc_tensor *values,
                                              tfc_str node);
// `node` may be empty; metadata.data == NULL: there is no metadata.
TFC_MUST_USE tfc_status tfc_summary_tensor(struct tfc_text *out, tfc_str tag, tfc_str node, const struct tfc_tensor *t,
                                           tfc_str metadata);

#endif
