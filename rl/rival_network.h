// The network of a rival policy: a builder for its graph, its weights, an update by Adam (Kingma and Ba 2015, algorithm
// 1) with gradients from tfc_gradients, and a session on one CPU device.
//
//   TFC_TRY(s, tfc_rival_network_begin(&n));
//   struct tfc_output x = tfc_rival_placeholder(&n, "x", TFC_SHAPE(4, 8)), y = tfc_rival_dense(&n, "y", x, 8, 2);
//   TFC_TRY(s, tfc_rival_network_finish(&n, loss, feeds, feed_count, seed));
//   TFC_TRY(s, tfc_rival_network_plan(&n, &x, 1, &y, 1, &plan));
//   TFC_TRY(s, tfc_rival_network_update(&n, values, 0.01)); // of `feeds`, in that order
//
// Only one thread at a time may use a network.
#ifndef TFC_RL_RIVAL_NETWORK_H
#define TFC_RL_RIVAL_NETWORK_H

#include "runtime/exec/session.h"
#include "runtime/pass/pass.h"

enum { TFC_RIVAL_WEIGHTS = 40, TFC_RIVAL_FEEDS = 16 };

struct tfc_rival_weight {
  char name[32];
  struct tfc_shape shape;
  double scale; // standard deviation of the initial values
  struct tfc_output node;
};

struct tfc_rival_network { // zeroed at first
  struct tfc_builder *b;
  struct tfc_graph *graph;
  struct tfc_device_set devices;
  struct tfc_session *session;
  struct tfc_plan *update;
  struct tfc_rival_weight weights[TFC_RIVAL_WEIGHTS];
  uint32_t weight_count, feed_count;
  uint64_t updates;
};

TFC_MUST_USE tfc_status tfc_rival_network_begin(struct tfc_rival_network *n);
void tfc_rival_network_deinit(struct tfc_rival_network *n);

// For use while the graph is being built: makes a weight [rows, columns], whose initial values are normally distributed
// with standard deviation `scale` (0: zeros).
struct tfc_output tfc_rival_weight(struct tfc_rival_network *n, const char *name, int64_t rows, int64_t columns,
                                   double scale);
struct tfc_output tfc_rival_dense(struct tfc_rival_network *n, const char *name, struct tfc_output x, int64_t rows,
                                  int64_t columns); // x W + b, with W [rows, columns] of scale 1 / sqrt(rows), and b 0
struct tfc_output tfc_rival_constant(struct tfc_rival_network *n, const float *data, int64_t rows, int64_t columns);
struct tfc_output tfc_rival_placeholder(struct tfc_rival_network *n, const char *name, struct tfc_shape shape);
struct tfc_output tfc_rival_reshape(struct tfc_rival_network *n, struct tfc_output x, const int32_t *sizes,
                                    uint32_t rank);
struct tfc_output tfc_rival_sum(struct tfc_rival_network *n, struct tfc_output x, const int32_t *axes, uint32_t count);
struct tfc_output tfc_rival_concat(struct tfc_rival_network *n, const struct tfc_output *parts, uint32_t count,
                                   int32_t axis);

// Adds the update, which scales gradients down if their norm is above 1, and opens the session. `loss` is a scalar that
// depends on every weight.
TFC_MUST_USE tfc_status tfc_rival_network_finish(struct tfc_rival_network *n, struct tfc_output loss,
                                                 const struct tfc_output *feeds, uint32_t feed_count, uint64_t seed);
TFC_MUST_USE tfc_status tfc_rival_network_plan(struct tfc_rival_network *n, const struct tfc_output *feeds,
                                               uint32_t feed_count, const struct tfc_output *fetches,
                                               uint32_t fetch_count, struct tfc_plan **out);
TFC_MUST_USE tfc_status tfc_rival_network_update(struct tfc_rival_network *n, const struct tfc_tensor *feeds,
                                                 double rate);

// Makes a tensor that is a view of these numbers, to be fed.
struct tfc_tensor tfc_rival_view(const float *data, struct tfc_shape shape);

#endif
