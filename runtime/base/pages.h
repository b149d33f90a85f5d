// Asks the system for large pages. A graph of 50,000 nodes has tens of megabytes that are written once: taking them
// from the system 4 KB at a time costs as much as filling them.
#ifndef TFC_RUNTIME_BASE_PAGES_H
#define TFC_RUNTIME_BASE_PAGES_H

#include <stddef.h>

// Asks for large pages in memory that was just allocated and not touched yet. Does nothing for small memory, and on
// systems without large pages.
void tfc_pages_advise(void *memory, size_t bytes);

#endif
