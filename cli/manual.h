// A program's manual page and shell completions, made from its table of flags, like --help.
#ifndef TFC_CLI_MANUAL_H
#define TFC_CLI_MANUAL_H

#include "cli/flags.h"

// Prints the "man" page or the "bash", "zsh" or "fish" completion on stdout; false: unknown kind. The build calls
// "PROGRAM --generate KIND" to make the files that are installed.
bool tfc_manual_print(const struct tfc_program *program, const char *kind);

#endif
