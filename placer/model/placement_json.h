// Placements as JSON files.
#ifndef TFC_PLACER_MODEL_PLACEMENT_JSON_H
#define TFC_PLACER_MODEL_PLACEMENT_JSON_H

#include "placer/model/placement.h"

// `path` only names the document in messages.
TFC_MUST_USE tfc_status tfc_placement_parse(tfc_str json, const char *path, struct tfc_placement **out);
TFC_MUST_USE tfc_status tfc_placement_read(const char *path, struct tfc_placement **out);
TFC_MUST_USE tfc_status tfc_placement_format(const struct tfc_placement *placement, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_placement_write(const struct tfc_placement *placement, const char *path);

#endif
