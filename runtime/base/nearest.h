// Compares names, for messages that ask "did you mean ...?".
#ifndef TFC_RUNTIME_BASE_NEAREST_H
#define TFC_RUNTIME_BASE_NEAREST_H

#include "runtime/base/str.h"

enum { TFC_NEAREST_MOST = 120 }; // longer names are similar to nothing

// Finds the most similar of several candidates, if one is similar enough.
//
//   struct tfc_nearest near = {.text = typed};
//   for (...) tfc_nearest_try(&near, candidate);
//   if (near.best.data) ...
struct tfc_nearest {
  tfc_str text, best; // best.data NULL: none
  size_t distance;
};
void tfc_nearest_try(struct tfc_nearest *nearest, tfc_str candidate);

#endif
