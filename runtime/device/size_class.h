// Size classes of caching allocators: four classes for each power of two. So at most a fifth of a block is unused,
// except in small blocks, whose capacity is rounded up to the unit.
#ifndef TFC_RUNTIME_DEVICE_SIZE_CLASS_H
#define TFC_RUNTIME_DEVICE_SIZE_CLASS_H

#include <stddef.h>
#include <stdint.h>

enum { TFC_SIZE_CLASSES = 256 }; // number of classes; as a class: the block is too large to be cached

struct tfc_size_classes {
  size_t smallest, largest; // bytes, powers of two; larger blocks are not cached
  size_t unit;              // bytes, a power of two; every capacity is a multiple of it
};

// Returns the class of a block for `bytes`, and its capacity. All blocks of a class are interchangeable.
static inline uint16_t tfc_size_class(const struct tfc_size_classes *c, size_t bytes, size_t *out_capacity) {
  if (bytes > c->largest) {
    *out_capacity = (bytes + c->unit - 1) & ~(c->unit - 1);
    return TFC_SIZE_CLASSES;
  }
  if (bytes <= c->smallest) {
    *out_capacity = c->smallest;
    return 0;
  }
  int power = 63 - __builtin_clzll(bytes - 1); // 2^power < bytes <= 2^(power + 1)
  size_t step = ((size_t)1 << power) / 4;
  size_t quarter = (bytes - ((size_t)1 << power) + step - 1) / step; // 1..4
  *out_capacity = (((size_t)1 << power) + quarter * step + c->unit - 1) & ~(c->unit - 1);
  return (uint16_t)((power - __builtin_ctzll(c->smallest)) * 4 + (int)quarter);
}

#endif
