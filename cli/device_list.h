// Checks the syntax of --devices before any file is read. Whether the devices exist is checked later, with another exit
// code.
#ifndef TFC_CLI_DEVICE_LIST_H
#define TFC_CLI_DEVICE_LIST_H

#include <stdbool.h>

// Returns NULL for a well-formed list ("4", "cpu:0-3,gpu:0"), otherwise a text that says what is wrong with it, which
// the caller frees. `described`: the names are those of a machine file, so they can be any names.
char *cli_device_list_error(const char *text, bool described);

#endif
