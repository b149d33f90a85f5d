#include "rl/rival_network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/random.h"

static const double beta1 = 0.9, beta2 = 0.99, largest_norm = 1;

tfc_status tfc_rival_network_begin(struct tfc_rival_network *n) {
  *n = (struct tfc_rival_network){0};
  return tfc_builder_create(NULL, &n->b);
}

void tfc_rival_network_deinit(struct tfc_rival_network *n) {
  tfc_builder_free(n->b);
  tfc_plan_free(n->update);
  tfc_session_free(n->session);
  tfc_devices_close(&n->devices);
  tfc_graph_release(n->graph);
  *n = (struct tfc_rival_network){0};
}

struct tfc_tensor tfc_rival_view(const float *data, struct tfc_shape shape) {
  size_t size = (size_t)tfc_shape_elements(&shape) * sizeof *data;
  return (struct tfc_tensor){TFC_FLOAT, shape, (void *)(uintptr_t)data, size, NULL};
}

struct tfc_output tfc_rival_weight(struct tfc_rival_network *n, const char *name, int64_t rows, int64_t columns,
                                   double scale) {
  if (n->weight_count == TFC_RIVAL_WEIGHTS) {
    tfc_builder_fail(n->b, tfc_status_make(TFC_INTERNAL, "a network has more than %d weights", TFC_RIVAL_WEIGHTS));
    return TFC_NO_OUTPUT;
  }
  struct tfc_rival_weight *w = &n->weights[n->weight_count++];
  snprintf(w->name, sizeof w->name, "%s", name);
  w->shape = TFC_SHAPE(rows, columns);
  w->scale = scale;
  struct tfc_attr attrs[] = {tfc_attr_type("dtype", TFC_FLOAT), tfc_attr_shape("shape", &w->shape)};
  w->node = tfc_add(n->b, "VariableV2", name, NULL, 0, attrs, 2);
  return tfc_add1(n->b, "Identity", w->node);
}

struct tfc_output tfc_rival_dense(struct tfc_rival_network *n, const char *name, struct tfc_output x, int64_t rows,
                                  int64_t columns) {
  char bias[32];
  snprintf(bias, sizeof bias, "%s/bias", name);
  struct tfc_output w = tfc_rival_weight(n, name, rows, columns, sqrt(1.0 / (double)rows));
  return tfc_add2(n->b, "AddV2", tfc_add2(n->b, "MatMul", x, w), tfc_rival_weight(n, bias, 1, columns, 0));
}

struct tfc_output tfc_rival_constant(struct tfc_rival_network *n, const float *data, int64_t rows, int64_t columns) {
  struct tfc_tensor value = tfc_rival_view(data, TFC_SHAPE(rows, columns));
  return tfc_add_const(n->b, "", &value);
}

struct tfc_output tfc_rival_placeholder(struct tfc_rival_network *n, const char *name, struct tfc_shape shape) {
  return tfc_add_placeholder(n->b, name, TFC_FLOAT, &shape);
}

struct tfc_output tfc_rival_reshape(struct tfc_rival_network *n, struct tfc_output x, const int32_t *sizes,
                                    uint32_t rank) {
  return tfc_add2(n->b, "Reshape", x, tfc_add_i32_vector(n->b, sizes, rank));
}

struct tfc_output tfc_rival_sum(struct tfc_rival_network *n, struct tfc_output x, const int32_t *axes, uint32_t count) {
  return tfc_add2(n->b, "Sum", x, tfc_add_i32_vector(n->b, axes, count));
}

struct tfc_output tfc_rival_concat(struct tfc_rival_network *n, const struct tfc_output *parts, uint32_t count,
                                   int32_t axis) {
  struct tfc_output inputs[16];
  if (count > 15) {
    tfc_builder_fail(n->b, tfc_status_make(TFC_INTERNAL, "more than 15 parts"));
    return TFC_NO_OUTPUT;
  }
  memcpy(inputs, parts, count * sizeof *parts);
  inputs[count] = tfc_add_i32(n->b, axis);
  return tfc_add(n->b, "ConcatV2", "", inputs, count + 1, NULL, 0);
}

// Makes the factor that limits the norm of all gradients: min(1, largest norm / their norm).
static struct tfc_output clipping(struct tfc_rival_network *n, const struct tfc_output *grads) {
  struct tfc_output sum = TFC_NO_OUTPUT;
  for (uint32_t i = 0; i < n->weight_count; i++) {
    struct tfc_output square = tfc_rival_sum(n, tfc_add1(n->b, "Square", grads[i]), (int32_t[]){0, 1}, 2);
    sum = i ? tfc_add2(n->b, "AddV2", sum, square) : square;
  }
  struct tfc_output limit = tfc_add_scalar(n->b, TFC_FLOAT, largest_norm);
  return tfc_add2(n->b, "RealDiv", limit, tfc_add2(n->b, "Maximum", tfc_add1(n->b, "Sqrt", sum), limit));
}

static void slot_name(const struct tfc_rival_weight *w, int k, char *out, size_t size) {
  snprintf(out, size, "%s/%s", w->name, k ? "adam_v" : "adam_m");
}

static tfc_status set_variable(struct tfc_rival_network *n, const char *name, const struct tfc_shape *shape,
                               double scale, struct tfc_random *random) {
  struct tfc_tensor value = {0};
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_FLOAT, shape, &value));
  float *data = value.data;
  for (int64_t i = 0, count = tfc_tensor_elements(&value); i < count; i++)
    data[i] = scale > 0 ? (float)(scale * tfc_random_normal(random)) : 0;
  tfc_status s = tfc_session_set_variable(n->session, tfc_str_from(name), &value);
  tfc_tensor_release(&value);
  return s;
}

tfc_status tfc_rival_network_finish(struct tfc_rival_network *n, struct tfc_output loss, const struct tfc_output *feeds,
                                    uint32_t feed_count, uint64_t seed) {
  tfc_status s = NULL;
  struct tfc_output xs[TFC_RIVAL_WEIGHTS], grads[TFC_RIVAL_WEIGHTS], all[TFC_RIVAL_FEEDS];
  uint32_t updates[TFC_RIVAL_WEIGHTS];
  struct tfc_random random;
  if (feed_count + 3 > TFC_RIVAL_FEEDS) return tfc_status_make(TFC_INTERNAL, "a network has too many feeds");
  for (uint32_t i = 0; i < n->weight_count; i++) xs[i] = n->weights[i].node;
  TFC_TRY(s, tfc_builder_gradients(n->b, &loss, 1, xs, n->weight_count, NULL, grads));
  struct tfc_output scale = clipping(n, grads);
  memcpy(all, feeds, feed_count * sizeof *feeds);
  struct tfc_output rate = all[feed_count] = tfc_rival_placeholder(n, "rate", TFC_SHAPE_SCALAR);
  struct tfc_output power1 = all[feed_count + 1] = tfc_rival_placeholder(n, "power1", TFC_SHAPE_SCALAR);
  struct tfc_output power2 = all[feed_count + 2] = tfc_rival_placeholder(n, "power2", TFC_SHAPE_SCALAR);
  struct tfc_output b1 = tfc_add_scalar(n->b, TFC_FLOAT, beta1), b2 = tfc_add_scalar(n->b, TFC_FLOAT, beta2);
  struct tfc_output epsilon = tfc_add_scalar(n->b, TFC_FLOAT, 1e-8);
  for (uint32_t i = 0; i < n->weight_count; i++) {
    struct tfc_output slots[2];
    for (int k = 0; k < 2; k++) {
      char name[48];
      slot_name(&n->weights[i], k, name, sizeof name);
      struct tfc_attr attrs[] = {tfc_attr_type("dtype", TFC_FLOAT), tfc_attr_shape("shape", &n->weights[i].shape)};
      slots[k] = tfc_add(n->b, "VariableV2", name, NULL, 0, attrs, 2);
    }
    struct tfc_output inputs[] = {xs[i], slots[0], slots[1], power1,  power2,
                                  rate,  b1,       b2,       epsilon, tfc_add2(n->b, "Mul", grads[i], scale)};
    updates[i] = tfc_add(n->b, "ApplyAdam", "", inputs, 10, NULL, 0).node;
  }
  TFC_TRY(s, tfc_builder_finish(n->b, &n->graph));
  TFC_TRY(s, tfc_devices_open("cpu:0", NULL, 0, &n->devices));
  TFC_TRY(s, tfc_session_create(n->graph, &(struct tfc_session_options){.devices = &n->devices}, &n->session));
  tfc_random_init(&random, seed);
  for (uint32_t i = 0; i < n->weight_count; i++) {
    const struct tfc_rival_weight *w = &n->weights[i];
    TFC_TRY(s, set_variable(n, w->name, &w->shape, w->scale, &random));
    for (int k = 0; k < 2; k++) {
      char name[48];
      slot_name(w, k, name, sizeof name);
      TFC_TRY(s, set_variable(n, name, &w->shape, 0, &random));
    }
  }
  n->feed_count = feed_count;
  TFC_TRY(s, tfc_plan_create(
                 n->session,
                 &(struct tfc_run_spec){
                     .feeds = all, .feed_count = feed_count + 3, .targets = updates, .target_count = n->weight_count},
                 &n->update));
out:
  return s;
}

tfc_status tfc_rival_network_plan(struct tfc_rival_network *n, const struct tfc_output *feeds, uint32_t feed_count,
                                  const struct tfc_output *fetches, uint32_t fetch_count, struct tfc_plan **out) {
  return tfc_plan_create(
      n->session,
      &(struct tfc_run_spec){.feeds = feeds, .feed_count = feed_count, .fetches = fetches, .fetch_count = fetch_count},
      out);
}

tfc_status tfc_rival_network_update(struct tfc_rival_network *n, const struct tfc_tensor *feeds, double rate) {
  struct tfc_tensor all[TFC_RIVAL_FEEDS];
  n->updates++;
  const float values[] = {(float)rate, (float)pow(beta1, (double)n->updates), (float)pow(beta2, (double)n->updates)};
  memcpy(all, feeds, n->feed_count * sizeof *feeds);
  for (uint32_t k = 0; k < 3; k++) all[n->feed_count + k] = tfc_rival_view(&values[k], TFC_SHAPE_SCALAR);
  return tfc_plan_run(n->update, all, NULL, NULL);
}
