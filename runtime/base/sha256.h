// SHA-256 (FIPS 180-4), which identifies files by their content.
#ifndef TFC_RUNTIME_BASE_SHA256_H
#define TFC_RUNTIME_BASE_SHA256_H

#include "runtime/base/str.h"

// Writes 64 hexadecimal digits and a terminating zero.
void tfc_sha256(tfc_str data, char out_hex[65]);

#endif
