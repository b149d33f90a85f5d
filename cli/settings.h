// Settings files: flags by name, in YAML. configs/ has examples.
#ifndef TFC_CLI_SETTINGS_H
#define TFC_CLI_SETTINGS_H

#include <stdbool.h>

#include "runtime/base/status.h"

// Calls `fn` for each value in order: once for `key: value`, once for each item of a list, and with "name=value" for
// each entry of a mapping. Stops early if `fn` returns false (that is not an error). INVALID_ARGUMENT names the file
// and the line.
TFC_MUST_USE tfc_status tfc_settings_read(const char *path, bool (*fn)(void *user, const char *key, const char *value),
                                          void *user);

#endif
