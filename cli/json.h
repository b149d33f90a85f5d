// JSON documents of programs: built with Jansson, printed once, at the end.
#ifndef TFC_CLI_JSON_H
#define TFC_CLI_JSON_H

#include <jansson.h>

#include "reports/query.h"

json_t *cli_json_table(const struct tfc_table *table); // an array with an object for each row; returns a new reference
json_t *cli_json_number(double value);                 // null if it is not finite
json_t *cli_json_error(tfc_status status);             // {"code", "message"}; borrows the status
json_t *cli_json_string(const char *text);             // bytes that are not UTF-8 (in file names) become '?'
bool cli_json_printed(void);                           // was a document printed?
// Prints the document and a newline on stdout.
TFC_MUST_USE tfc_status cli_json_print(const json_t *document);

#endif
