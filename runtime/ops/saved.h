// The text in which checkpoints keep what named objects hold (queues, readers, accumulators, ...): a line of words,
// each with a tab before it. An object's type has two functions for it (tfc_object_type in runtime/graph/tensor.h):
//
//   static tfc_status save(struct tfc_object *self, struct tfc_text *out) {
//     tfc_saved_add_number(out, count);
//     tfc_saved_add_tensor(out, &sum);
//     return NULL;
//   }
//   static tfc_status load(struct tfc_object *self, tfc_str words) {
//     struct tfc_saved in = {words};
//     int64_t n = tfc_saved_number(&in, 0, INT64_MAX);
//     tfc_saved_tensor(&in, TFC_FLOAT, &tensor);
//     tfc_status s = tfc_saved_end(&in); // the first error of all of them
//     ...
//   }
#ifndef TFC_RUNTIME_OPS_SAVED_H
#define TFC_RUNTIME_OPS_SAVED_H

#include "runtime/graph/tensor.h"

void tfc_saved_add_number(struct tfc_text *out, int64_t value);
void tfc_saved_add_bytes(struct tfc_text *out, tfc_str bytes);
// Tensors of plain types and of strings have a text; those of objects (tfc_saved_has_text: false) do not.
bool tfc_saved_has_text(tfc_dtype dtype);
void tfc_saved_add_tensor(struct tfc_text *out, const struct tfc_tensor *t);

struct tfc_saved { // words that are being read; after an error, all further ones are errors
  tfc_str words;   // those that are left
  tfc_status failure;
};
// An integer in [least, most]; `least` after an error.
int64_t tfc_saved_number(struct tfc_saved *in, int64_t least, int64_t most);
// The caller frees it; NULL after an error. A zero byte follows.
char *tfc_saved_bytes(struct tfc_saved *in, size_t *out_size);
// A tensor of this type; empty after an error.
void tfc_saved_tensor(struct tfc_saved *in, tfc_dtype dtype, struct tfc_tensor *out);
// Returns the first error; that words are left is one, too.
TFC_MUST_USE tfc_status tfc_saved_end(struct tfc_saved *in);

#endif
