// FarmHash's 64-bit fingerprint (Geoff Pike, 2014; the variant "na"). It is the same on every machine and in every
// version, so it agrees with TensorFlow's hash buckets and checkpoint fingerprints.
#ifndef TFC_RUNTIME_OPS_STRING_HASH_H
#define TFC_RUNTIME_OPS_STRING_HASH_H

#include <stdint.h>

#include "runtime/base/str.h"

uint64_t tfc_fingerprint64(tfc_str text);
// Computes SipHash-2-4 with a secret key of two words.
uint64_t tfc_keyed_hash64(tfc_str text, const uint64_t *key);

#endif
