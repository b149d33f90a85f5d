// Memory of the fake's GPUs, and pinned memory of the host. The caller holds the fake's lock, except for `fill` and
// `copy`. An address in device memory cannot be read by host code (runtime/device/runner.h) unless
// tfc_fake_memory_readable says so.
#ifndef TFC_TESTS_COMMON_CUDA_FAKE_MEMORY_H
#define TFC_TESTS_COMMON_CUDA_FAKE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void tfc_fake_memory_readable(bool readable); // whether host code can read the addresses of device memory
// Allocates a block, filled with garbage. False: out of memory.
bool tfc_fake_memory_allocate(void **out, size_t bytes, bool pinned, int device);
// Frees a block, and overwrites it before, so that a use after free gives wrong results. False: there is no such block.
bool tfc_fake_memory_free(void *p);
uint64_t tfc_fake_memory_bytes(void);         // of all blocks that are not pinned
uint64_t tfc_fake_memory_held_by(int device); // the same, of one device
// Whether these bytes may be used: an address in device memory must be within a block; any other is host memory.
bool tfc_fake_memory_is_valid(const void *p, size_t bytes);
bool tfc_fake_memory_is_on(int device, const void *p); // false: the address is in memory of another device
bool tfc_fake_memory_is_pageable(const void *p);       // it is host memory that is not pinned
// These take addresses that the host can read.
void tfc_fake_memory_fill(char *to, int value, size_t size);
void tfc_fake_memory_copy(char *to, const char *from, size_t size); // the ranges may overlap

#endif
