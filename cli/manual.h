// A program's manual page and completions for shells, from its table of flags: what --help says, for other readers.
#ifndef TFC_CLI_MANUAL_H
#define TFC_CLI_MANUAL_H

#include "cli/flags.h"

// "man", "bash", "zsh" or "fish" on stdout; false: there is no such kind. The build calls it to make the files that are
// installed ("PROGRAM --generate KIND").
bool tfc_manual_print(const struct tfc_program *program, const char *kind);

#endif
