#include "runtime/base/pages.h"

#include <stdint.h>
#include <sys/mman.h>

enum { LARGE_PAGE = 2 << 20, WORTH = 2 * LARGE_PAGE };

void tfc_pages_advise(void *memory, size_t bytes) {
  if (bytes < WORTH) return;
  uintptr_t begin = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1);
  uintptr_t end = ((uintptr_t)memory + bytes) & ~(uintptr_t)(LARGE_PAGE - 1);
  if (end > begin) (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}
