// Data parallelism: makes a graph of N towers from the training graph of one device. Each tower computes the gradients
// of its own part of the fed batch. The towers' gradients are averaged, in the order of the towers, and applied once:
// the loss has to be a mean over the batch; then a step does what the given graph does with the whole batch.
//
// Names in the new graph: tower 0 and everything that is there only once have the names of the given graph; the copy of
// node NAME in tower k is "replica_k/NAME"; what fetch i has become is "replicas/fetch_i" where the towers differ in it
// (the mean of scalars, the concatenation of others).
//
// Gradients are the outputs of the scopes in which TensorFlow puts them, "gradients" and "gradient_tape". What comes
// after them (clipping, decay, the update) sees the averages.
#ifndef TFC_RUNTIME_PASS_REPLICAS_H
#define TFC_RUNTIME_PASS_REPLICAS_H

#include "runtime/pass/step.h"

struct tfc_replicas_request {
  uint32_t count;
  const char *const *towers; // [count] their devices
  // Devices that hold the variables and apply the updates; 0 of them: each tower has variables of its own, and applies
  // the averages itself.
  const char *const *stores;
  uint32_t store_count;
  const struct tfc_step_spec *step; // of the given graph; the shapes of feeds are those of one tower
  const bool *split;                // [step->feed_count] each tower gets its own part of the feed
};
// UNIMPLEMENTED: towers would not do what one device does; the message names the operation.
TFC_MUST_USE tfc_status tfc_replicas_make(const struct tfc_graph *g, const struct tfc_replicas_request *request,
                                          struct tfc_graph **out);
// For asynchronous replicas: devices for the nodes of the given graph, which every replica runs for itself, with its
// variables on the stores. Before anybody else has the graph.
TFC_MUST_USE tfc_status tfc_replicas_place(struct tfc_graph *g, const char *tower, const char *const *stores,
                                           uint32_t store_count);

#endif
