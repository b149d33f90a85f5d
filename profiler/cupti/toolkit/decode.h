// CUPTI's activity records as what profiler/activity.h knows.
#ifndef TFC_PROFILER_CUPTI_DECODE_H
#define TFC_PROFILER_CUPTI_DECODE_H

#include <cupti.h>

#include "profiler/activity.h"

// Hands one record on. Kinds that nobody asked for are left alone.
void tfc_cupti_decode(struct tfc_activity *activity, const CUpti_Activity *record);
// Every record of a full buffer, as CUPTI gave it back (records lie behind each other; CUPTI steps through them).
void tfc_cupti_decode_buffer(struct tfc_activity *activity, uint8_t *buffer, size_t valid_bytes);

#endif
