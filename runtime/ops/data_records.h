// What readers find in files: lines, records of a fixed length, TFRecords, or whole files; or they return the file
// names themselves.
#ifndef TFC_RUNTIME_OPS_DATA_RECORDS_H
#define TFC_RUNTIME_OPS_DATA_RECORDS_H

#include "runtime/base/file.h"
#include "runtime/base/str.h"

enum tfc_records_kind { TFC_RECORDS_LINES, TFC_RECORDS_FIXED, TFC_RECORDS_TF, TFC_RECORDS_FILE, TFC_RECORDS_NAME };
enum { TFC_RECORDS_PLAIN, TFC_RECORDS_ZLIB, TFC_RECORDS_GZIP };
struct tfc_records_format {
  enum tfc_records_kind kind;
  int compression;                     // for TFRecords and records of a fixed length
  int64_t skip;                        // LINES: how many lines at the beginning to skip
  int64_t header, record, footer, hop; // FIXED: sizes in bytes; hop 0: the same as `record`
};
struct tfc_records { // an open file
  struct tfc_file file;
  char *name, *inflated; // inflated: the unpacked content, used instead of the file's own bytes
  const char *data;
  size_t size, at;
  int64_t number; // number of the next line or record
  bool ended;     // all records have been read
};
// Opens a file; tfc_records_close releases it. NOT_FOUND, DATA_LOSS: the message names the file.
TFC_MUST_USE tfc_status tfc_records_open(const struct tfc_records_format *format, tfc_str name,
                                         struct tfc_records *out);
void tfc_records_close(struct tfc_records *r); // may be zeroed
// Unpacks data that was compressed as TFC_RECORDS_ZLIB or _GZIP; the caller frees the result. DATA_LOSS: the message
// has `name`.
TFC_MUST_USE tfc_status tfc_records_inflate(const char *name, tfc_str packed, int compression, char **out,
                                            size_t *out_size);
// Reads the next record: `key` is emptied and gets the record's key, `value` points into the file. *found false: there
// is none left. DATA_LOSS: a record is damaged.
TFC_MUST_USE tfc_status tfc_records_next(const struct tfc_records_format *format, struct tfc_records *r,
                                         struct tfc_text *key, tfc_str *value, bool *found);

#endif
