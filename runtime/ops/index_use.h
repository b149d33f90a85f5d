// How an op uses an integer input. This decides which values are valid when inputs are made up.
#ifndef TFC_RUNTIME_OPS_INDEX_USE_H
#define TFC_RUNTIME_OPS_INDEX_USE_H

#include "runtime/base/str.h"

typedef enum tfc_index_use {
  TFC_INDEX_NONE,
  TFC_INDEX_ROWS,           // input 1 selects rows of input 0
  TFC_INDEX_ROWS_OF_HANDLE, // input 1 selects rows of the variable whose handle is input 0
  TFC_INDEX_CLASSES,        // input 1 selects columns of input 0, one for each row
  TFC_INDEX_TOP,            // the same, and input 0 is a matrix
  TFC_INDEX_ONE_HOT,        // input 0 is less than input 1
  TFC_INDEX_SEGMENTS,       // input 1 is less than input 2
  TFC_INDEX_PARTITIONS,     // input 1 is less than num_partitions
  TFC_INDEX_LENGTHS,        // input 1 is at most the size of input 0's axis seq_dim
  TFC_INDEX_COMPARED,       // the input is compared with the other one
  TFC_INDEX_IN_PIECES,      // input 0, divided by input 1, is a row within one part of a partitioned table
  TFC_INDEX_MOVED,          // the input is passed on: the reader of the output decides
} tfc_index_use;
tfc_index_use tfc_op_index_use(tfc_str op);

#endif
