// NumPy's .npy files, versions 1.0 to 3.0, read and written.
//
// It reads all that NumPy writes for plain arrays: bool, (u)int8–64, float16–64, complex64/128 of either byte order, in
// C or Fortran order, byte strings ("|S5", trailing zeros dropped) and texts ("<U5", as UTF-8). Objects and records are
// errors. Nothing in a file is trusted. It writes in C order, little-endian. bfloat16 becomes float32, strings become
// "|S<longest>", and quantised integers become plain integers.
//
//   TFC_TRY(s, tfc_npy_read("x.npy", &tensor)); // release it
//   TFC_TRY(s, tfc_npy_write("loss.npy", &tensor));
//
// INVALID_ARGUMENT and NOT_FOUND name the file and what is wrong with it; DATA_LOSS: it could not be written.
#ifndef TFC_RUNTIME_IO_NPY_H
#define TFC_RUNTIME_IO_NPY_H

#include "runtime/graph/tensor.h"

TFC_MUST_USE tfc_status tfc_npy_read(const char *path, struct tfc_tensor *out);
TFC_MUST_USE tfc_status tfc_npy_parse(tfc_str bytes, const char *path, struct tfc_tensor *out); // bytes are copied
TFC_MUST_USE tfc_status tfc_npy_write(const char *path, const struct tfc_tensor *tensor);       // host memory
TFC_MUST_USE tfc_status tfc_npy_format(const struct tfc_tensor *tensor, struct tfc_text *out);

#endif
