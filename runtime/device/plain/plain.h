// The plain device: one thread that runs only the reference kernels, in the host's memory. Nothing is fused, packed,
// split or vectorised by hand. Use it to check a value that another device computes in another way:
//
//   tfc-run --graph g.pb --devices plain:0 --fetch loss:0=plain.npy
#ifndef TFC_RUNTIME_DEVICE_PLAIN_PLAIN_H
#define TFC_RUNTIME_DEVICE_PLAIN_PLAIN_H

#include "runtime/device/driver.h"

extern const struct tfc_device_driver tfc_driver_plain;

#endif
