// Reads fields of JSON objects for the file formats of this folder; error messages name the field. An integer may be
// written 3 or 3.0. A null field counts as absent.
#ifndef TFC_PLACER_MODEL_JSON_H
#define TFC_PLACER_MODEL_JSON_H

#include <jansson.h>

#include "runtime/base/status.h"
#include "runtime/base/str.h"

bool tfc_json_has_mark(tfc_str text); // whether it begins with a byte order mark
// Parses the whole document. It must be an object whose "format" is `format` and whose "version" is 1; duplicate keys
// are errors. `path` names the document in messages.
TFC_MUST_USE tfc_status tfc_json_document(tfc_str text, const char *path, const char *format, json_t **out);
// Returns the field; NULL: it is absent or null.
json_t *tfc_json_field(const json_t *object, const char *name);
// Gets the field's value; *out stays as it was if the field is absent. INVALID_ARGUMENT: the field has another type.
TFC_MUST_USE tfc_status tfc_json_string(const json_t *object, const char *name, tfc_str *out);
TFC_MUST_USE tfc_status tfc_json_number(const json_t *object, const char *name, double *out);  // finite
TFC_MUST_USE tfc_status tfc_json_whole(const json_t *object, const char *name, uint64_t *out); // 0 … 2^63 - 1
TFC_MUST_USE tfc_status tfc_json_i64(const json_t *object, const char *name, int64_t *out);
TFC_MUST_USE tfc_status tfc_json_bool(const json_t *object, const char *name, bool *out);

// Both functions append to a text: a string with quotes and escapes, and a number in a form that is read back as the
// same double.
void tfc_json_add_string(struct tfc_text *text, tfc_str value);
void tfc_json_add_number(struct tfc_text *text, double value);
// Appends picoseconds as microseconds with six decimals, exactly; zeros at the end are left out.
void tfc_json_add_ps(struct tfc_text *text, int64_t picoseconds);

#endif
