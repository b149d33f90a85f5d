// Keeps outputs away from databases: SQLite would take a file that a program wrote beside a database under the name of
// its journal for that journal, and play it back into the database.
#ifndef TFC_CLI_OUTPUTS_H
#define TFC_CLI_OUTPUTS_H

#include "cli/flags.h"

// Looks at every flag of the parsed options whose value is a file that is written. Returns NULL, or an error that the
// caller frees: the file is a database, or its name is that of a journal, a shared index or a lock of one, whether the
// database is there already or only named by a flag.
char *tfc_outputs_refused(const struct tfc_program *program, const void *options);

#endif
