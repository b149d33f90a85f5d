// The sample inputs of op rows (tfc_op_def.samples), read and made into graphs:
//   "float[3,4], int32[2]=[0,1] {keep_dims=true}; float[5], int32[]=0"
// Samples are separated by ';', inputs by ','. An input is a type and a shape, and, where its values matter, '=' and
// its elements (one number, or a list in brackets); other inputs get random elements. Attributes are in braces, in the
// notation of TensorFlow's op definitions.
#ifndef TFC_TESTS_COMMON_SAMPLE_H
#define TFC_TESTS_COMMON_SAMPLE_H

#include "runtime/graph/op_def.h"

int sample_count(const char *samples);
enum { SAMPLE_MOST = 16 };
struct sample {
  struct tfc_tensor inputs[SAMPLE_MOST];
  bool given[SAMPLE_MOST]; // the values of the input matter, and are given
  struct tfc_attr attrs[SAMPLE_MOST];
  uint32_t input_count, attr_count;
  void *store; // memory to which the attributes point
};
TFC_MUST_USE tfc_status sample_read(const struct tfc_op_def *def, const char *samples, int index, uint64_t seed,
                                    struct sample *out);
void sample_deinit(struct sample *sample);
// Makes a graph of Const nodes (first) and one node of the op, whose id is *out_node. `samples`: def->samples, or
// others.
TFC_MUST_USE tfc_status sample_graph(const struct tfc_op_def *def, const char *samples, int index, uint64_t seed,
                                     struct tfc_graph **out, uint32_t *out_node);

#endif
