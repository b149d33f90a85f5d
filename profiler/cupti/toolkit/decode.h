// Converts CUPTI's activity records to the records of profiler/activity.h.
#ifndef TFC_PROFILER_CUPTI_DECODE_H
#define TFC_PROFILER_CUPTI_DECODE_H

#include <cupti.h>

#include "profiler/activity.h"

// Converts one record and adds it to `activity`. Records of other kinds are skipped.
void tfc_cupti_decode(struct tfc_activity *activity, const CUpti_Activity *record);
// Converts every record of a full buffer, as CUPTI gave it back (records lie behind each other; CUPTI steps through
// them).
void tfc_cupti_decode_buffer(struct tfc_activity *activity, uint8_t *buffer, size_t valid_bytes);

#endif
