// Several texts: the values of a flag that may be repeated.
#ifndef TFC_RUNTIME_BASE_TEXTS_H
#define TFC_RUNTIME_BASE_TEXTS_H

#include <stdint.h>

struct tfc_texts {
  const char **items; // [count] in the order of the command line
  uint32_t count;
};

#endif
