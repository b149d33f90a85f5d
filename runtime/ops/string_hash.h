// The hashes of strings that TensorFlow's operations use. They are the same on every machine and in every version.
#ifndef TFC_RUNTIME_OPS_STRING_HASH_H
#define TFC_RUNTIME_OPS_STRING_HASH_H

#include <stdint.h>

#include "runtime/base/str.h"

// FarmHash's 64-bit fingerprint (Geoff Pike, 2014; the variant "na"), as in TensorFlow's hash buckets and checkpoint
// fingerprints.
uint64_t tfc_fingerprint64(tfc_str text);
// MurmurHash64A (Appleby 2008), with TensorFlow's seed. `unused`: it has no key.
uint64_t tfc_murmur_hash64(tfc_str text, const uint64_t *unused);
// SipHash-2-4 (Aumasson and Bernstein 2012), with a secret key of two words.
uint64_t tfc_keyed_hash64(tfc_str text, const uint64_t *key);

#endif
