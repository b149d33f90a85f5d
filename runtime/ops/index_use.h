// How an op uses an integer input, which decides the valid values.
#ifndef TFC_RUNTIME_OPS_INDEX_USE_H
#define TFC_RUNTIME_OPS_INDEX_USE_H

#include "runtime/base/str.h"

typedef enum tfc_index_use {
  TFC_INDEX_NONE,
  TFC_INDEX_ROWS,           // input 1: rows of input 0
  TFC_INDEX_ROWS_OF_HANDLE, // the same for a variable
  TFC_INDEX_CLASSES,        // input 1: columns of input 0
  TFC_INDEX_TOP,            // the same, for a matrix
  TFC_INDEX_ONE_HOT,        // input 0: below input 1
  TFC_INDEX_SEGMENTS,       // input 1: below input 2
  TFC_INDEX_PARTITIONS,     // input 1: below num_partitions
  TFC_INDEX_LENGTHS,        // input 1: at most the size of axis seq_dim of input 0
  TFC_INDEX_COMPARED,       // compared with the other input
  TFC_INDEX_IN_PIECES,      // input 0: divided by input 1 it is the row within a partitioned table
  TFC_INDEX_MOVED,          // passed on: as the reader of the output uses it
} tfc_index_use;
tfc_index_use tfc_op_index_use(tfc_str op);

#endif
