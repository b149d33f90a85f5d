// What readers find in files: lines, records of a fixed length, TFRecords, whole files, or the names themselves.
#ifndef TFC_RUNTIME_OPS_DATA_RECORDS_H
#define TFC_RUNTIME_OPS_DATA_RECORDS_H

#include "runtime/base/file.h"
#include "runtime/base/str.h"

enum tfc_records_kind { TFC_RECORDS_LINES, TFC_RECORDS_FIXED, TFC_RECORDS_TF, TFC_RECORDS_FILE, TFC_RECORDS_NAME };
enum { TFC_RECORDS_PLAIN, TFC_RECORDS_ZLIB, TFC_RECORDS_GZIP };
struct tfc_records_format {
  enum tfc_records_kind kind;
  int compression;                     // of TF and FIXED
  int64_t skip;                        // LINES: of them at the head
  int64_t header, record, footer, hop; // FIXED: bytes; hop 0: as `record`
};
struct tfc_records { // an open file
  struct tfc_file file;
  char *name, *inflated; // inflated: instead of the file's own bytes
  const char *data;
  size_t size, at;
  int64_t number; // of the next line or record
  bool ended;     // there is no more
};
// NOT_FOUND, DATA_LOSS: name the file. Released with tfc_records_close.
TFC_MUST_USE tfc_status tfc_records_open(const struct tfc_records_format *format, tfc_str name,
                                         struct tfc_records *out);
void tfc_records_close(struct tfc_records *r); // zeroed is fine
// What TFC_RECORDS_ZLIB or _GZIP packed; freed by the caller. DATA_LOSS: names `name`.
TFC_MUST_USE tfc_status tfc_records_inflate(const char *name, tfc_str packed, int compression, char **out,
                                            size_t *out_size);
// The next record: its key is written to `key` (which is emptied), `value` points into the file. *found false: there is
// none left. DATA_LOSS: a record is damaged.
TFC_MUST_USE tfc_status tfc_records_next(const struct tfc_records_format *format, struct tfc_records *r,
                                         struct tfc_text *key, tfc_str *value, bool *found);

#endif
