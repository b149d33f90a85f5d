// Saves the measured choices of plans, so that later processes need not measure again: in the `tuning` text of the
// profile database. Each plan has a line with its kind, the model of the device, a hash of the plan's key and of the
// library's version, and the choice.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_LIBRARY_CHOICES_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_LIBRARY_CHOICES_H

#include "runtime/device/cuda/kernels/library/plans.h"

enum { TFC_CUDA_CHOICE_VALUES = 4 };
struct tfc_cuda_choice {
  char model[64]; // of the device that the choice was measured on
  uint64_t hash[2];
  int values[TFC_CUDA_CHOICE_VALUES];
};
struct tfc_cuda_choices {
  const char *kind;
  // Returns the version of the library that is loaded, which may differ from the headers' version. Another version may
  // have other algorithms.
  size_t (*version)(void);
  int value_count;
  void (*of)(const void *plan, const char **out_model, int *out_values);
  TFC_ARRAY(struct tfc_cuda_choice) read; // the choices that were read from the text; guarded by `making` of the plans
};

void tfc_cuda_choice_model(const struct tfc_cuda_library *library, char out[64]);
// Returns the lines of all plans, which the caller frees. NULL: there are none, or memory ran out.
char *tfc_cuda_choices_write(const struct tfc_cuda_choices *choices, struct tfc_cuda_plans *plans);
// Lines of other kinds and damaged lines are ignored.
void tfc_cuda_choices_read(struct tfc_cuda_choices *choices, struct tfc_cuda_plans *plans, const char *lines);
// Returns the values that the text has for a key, those read last if there are several; NULL: it has none. For
// `make` of the plans.
const int *tfc_cuda_choices_find(const struct tfc_cuda_choices *choices, const char *model, const void *key,
                                 size_t key_size);

#endif
