// The floating-point mode of kernels, in which denormals are flushed to zero, for threads that the runtime did not
// create.
#ifndef TFC_RUNTIME_BASE_FLOAT_MODE_H
#define TFC_RUNTIME_BASE_FLOAT_MODE_H

#include <stdint.h>

uint32_t tfc_float_mode_enter(void); // returns the mode to restore
void tfc_float_mode_leave(uint32_t saved);

#endif
