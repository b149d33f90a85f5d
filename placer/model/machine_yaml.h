// Machines as YAML files.
#ifndef TFC_PLACER_MODEL_MACHINE_YAML_H
#define TFC_PLACER_MODEL_MACHINE_YAML_H

#include "placer/model/machine.h"

// `path` only names the document in messages.
TFC_MUST_USE tfc_status tfc_machine_parse(tfc_str yaml, const char *path, struct tfc_machine **out);
TFC_MUST_USE tfc_status tfc_machine_read(const char *path, struct tfc_machine **out);
TFC_MUST_USE tfc_status tfc_machine_format(const struct tfc_machine *machine, struct tfc_text *out); // YAML
TFC_MUST_USE tfc_status tfc_machine_write(const struct tfc_machine *machine, const char *path);

#endif
