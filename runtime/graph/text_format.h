// Converts protobuf messages as text to bytes and back.
#ifndef TFC_RUNTIME_GRAPH_TEXT_FORMAT_H
#define TFC_RUNTIME_GRAPH_TEXT_FORMAT_H

#include "runtime/base/status.h"
#include "runtime/base/str.h"

// `message`: "GraphDef", "MetaGraphDef" or "SavedModel". INVALID_ARGUMENT names the line, or the field.
TFC_MUST_USE tfc_status tfc_text_to_wire(tfc_str text, const char *message, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_wire_to_text(tfc_str bytes, const char *message, struct tfc_text *out);

#endif
