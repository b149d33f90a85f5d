// Sizes, rates and times as users write them: "16GiB", "12GB/s", "10us". B kB MB GB TB are powers of 1000, KiB MiB GiB
// TiB powers of 1024. Times end with ns, us, ms, s, m or h. A number without a unit is in bytes, bytes per second or
// microseconds.
#ifndef TFC_RUNTIME_BASE_UNITS_H
#define TFC_RUNTIME_BASE_UNITS_H

#include "runtime/base/status.h"
#include "runtime/base/str.h"

TFC_MUST_USE tfc_status tfc_parse_bytes(tfc_str text, uint64_t *out_bytes); // rounded to a byte; bytes must be whole
TFC_MUST_USE tfc_status tfc_parse_bandwidth(tfc_str text, double *out_bytes_per_s); // > 0
TFC_MUST_USE tfc_status tfc_parse_time_us(tfc_str text, double *out_us);            // >= 0; 90s, 10m, 1h too
// reads the whole text, which must be a finite number
TFC_MUST_USE tfc_status tfc_parse_double(tfc_str text, double *out);
TFC_MUST_USE tfc_status tfc_parse_i64(tfc_str text, int64_t *out); // the whole text

// These write "1.2 GB" or "3.4 ms", for people to read. `buffer` has at least 32 bytes and is returned.
const char *tfc_show_bytes(char *buffer, double bytes);
const char *tfc_show_us(char *buffer, double us);

#endif
