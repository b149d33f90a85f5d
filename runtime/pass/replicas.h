// Data parallelism: makes a graph of N towers from the training graph of one device. Each tower computes the gradients
// of its own part of the fed batch. The towers' gradients are averaged, in the order of the towers, and applied once:
// If the loss is a mean over the batch, a step does the same as a step of the given graph with the whole batch.
//
// Names in the new graph: the nodes of tower 0, and nodes that exist only once, have the names of the given graph. The
// copy of node NAME in tower k is "replica_k/NAME". If the towers have different values of fetch i, the new fetch is
// "replicas/fetch_i": the mean of scalars, the concatenation of other tensors.
//
// With backups, a step is several runs of the new graph, so that no tower waits for a slow one. For the mean, and for
// each fetch in which towers differ, there are nodes whose names begin with the name of the joined value, such as
// "replicas/mean_3":
//   .../give_k    puts what tower k has computed into a queue of this tower
//   .../take_k    takes it out again: alone, it drops it
//   .../accept_k  moves it to the values of which the update is made
// The joined value takes as many of those as there are towers without the backups. "replicas/after_k" are the nodes of
// tower k that an update waits for besides its values; it is missing if there are none.
//
// Gradients are the outputs of the scopes in which TensorFlow puts them, "gradients" and "gradient_tape". Operations
// behind them (clipping, decay, the update) read the averages.
#ifndef TFC_RUNTIME_PASS_REPLICAS_H
#define TFC_RUNTIME_PASS_REPLICAS_H

#include "runtime/pass/step.h"

struct tfc_replicas_request {
  uint32_t count;
  uint32_t backups;          // so many towers may be late in each step; needs stores
  const char *const *towers; // [count] their devices
  // Devices that hold the variables and apply the updates. If there are none, each tower has its own variables and
  // applies the averages itself.
  const char *const *stores;
  uint32_t store_count;
  const struct tfc_step_spec *step; // of the given graph; the shapes of feeds are those of one tower
  const bool *split;                // [step->feed_count] true: each tower gets its own part of the feed
};
// UNIMPLEMENTED: the towers would not compute the same as one device; the message names the operation.
TFC_MUST_USE tfc_status tfc_replicas_make(const struct tfc_graph *g, const struct tfc_replicas_request *request,
                                          struct tfc_graph **out);
// For asynchronous replicas: assigns devices to the nodes of the given graph, which every replica runs by itself; the
// variables are put on the stores. Call it before the graph is passed to other code.
TFC_MUST_USE tfc_status tfc_replicas_place(struct tfc_graph *g, const char *tower, const char *const *stores,
                                           uint32_t store_count);

#endif
