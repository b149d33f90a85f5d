// Events files, as TensorBoard reads them: records with masked checksums of length and content.
//
//   struct tfc_events *events = NULL;
//   TFC_TRY(s, tfc_events_create("logs", &events)); // logs/events.out.tfevents.<time>.<host>
//   TFC_TRY(s, tfc_events_scalar(events, step, TFC_STR("loss"), 0.5));
//   TFC_TRY(s, tfc_events_close(events));
//
// DATA_LOSS names the file. Only one thread at a time may write to it.
#ifndef TFC_RUNTIME_IO_EVENTS_H
#define TFC_RUNTIME_IO_EVENTS_H

#include "runtime/base/status.h"
#include "runtime/base/str.h"

struct tfc_events;
TFC_MUST_USE tfc_status tfc_events_create(const char *directory, struct tfc_events **out); // makes the directory
// As tfc_events_create, with `suffix` appended to the file's name.
TFC_MUST_USE tfc_status tfc_events_create_named(const char *directory, const char *suffix, struct tfc_events **out);
TFC_MUST_USE tfc_status tfc_events_scalar(struct tfc_events *events, int64_t step, tfc_str tag, float value);
// Each of these functions writes one serialized message: a Summary, an Event (unchanged), or a GraphDef.
TFC_MUST_USE tfc_status tfc_events_summary(struct tfc_events *events, int64_t step, tfc_str summary);
TFC_MUST_USE tfc_status tfc_events_event(struct tfc_events *events, tfc_str event);
TFC_MUST_USE tfc_status tfc_events_graph(struct tfc_events *events, int64_t step, tfc_str graph);
TFC_MUST_USE tfc_status tfc_events_close(struct tfc_events *events); // frees it in any case; NULL is fine

#endif
