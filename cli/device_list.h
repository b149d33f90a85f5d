// The grammar of --devices, checked before any file is read. Whether the devices exist is checked later, with another
// exit code.
#ifndef TFC_CLI_DEVICE_LIST_H
#define TFC_CLI_DEVICE_LIST_H

#include <stdbool.h>

// NULL: "4", "cpu:0-3,gpu:0" and the like. Otherwise what is wrong with it; free() it. `described`: names of a machine
// file, which may hold anything.
char *cli_device_list_error(const char *text, bool described);

#endif
