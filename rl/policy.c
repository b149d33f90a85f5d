#include "rl/policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "runtime/pass/pass.h"

enum { max_parameters = 12 };

// Weights that all actors share move all of them at once, each in its own noise: they learn more slowly than the table.
static const double shared_rate = 0.03;

struct parameter {
  char name[24];
  struct tfc_shape shape;
  double scale; // of the initial normal distribution
  double rate;  // of the learning rate
  struct tfc_output node;
};

struct tfc_policy {
  const struct tfc_actors *actors;
  struct tfc_graph *graph;
  struct tfc_device_set devices;
  struct tfc_session *session;
  struct tfc_plan *evaluate, *update;
  struct parameter parameters[max_parameters];
  uint32_t parameter_count;
  double learning_rate;
  int64_t updates;
};

struct network { // while the graph is being built
  struct tfc_builder *b;
  struct tfc_policy *policy;
  struct tfc_output log_p, weight, bonus, rate, beta1_power, beta2_power;
};

static struct tfc_output constant(struct network *n, const char *name, const float *data, int64_t rows, int64_t cols) {
  size_t bytes = (size_t)(rows * cols) * sizeof *data;
  return tfc_add_const(n->b, name,
                       &(struct tfc_tensor){TFC_FLOAT, TFC_SHAPE(rows, cols), (void *)(uintptr_t)data, bytes, NULL});
}

static struct tfc_output parameter(struct network *n, const char *name, int64_t rows, int64_t cols, double scale) {
  struct tfc_policy *p = n->policy;
  struct parameter *q = &p->parameters[p->parameter_count++];
  snprintf(q->name, sizeof q->name, "%s", name);
  q->shape = TFC_SHAPE(rows, cols);
  q->scale = scale;
  q->rate = scale > 0 ? shared_rate : 1;
  struct tfc_attr attrs[] = {tfc_attr_type("dtype", TFC_FLOAT), tfc_attr_shape("shape", &q->shape)};
  q->node = tfc_add(n->b, "VariableV2", name, NULL, 0, attrs, 2);
  return tfc_add1(n->b, "Identity", q->node);
}

static struct tfc_output scalar(struct network *n, const char *name) {
  return tfc_add_placeholder(n->b, name, TFC_FLOAT, &TFC_SHAPE_SCALAR);
}

// tanh(h Ws + (I h) Wi + (O h) Wo)
static struct tfc_output pass_messages(struct network *n, int layer, struct tfc_output h, struct tfc_output incoming,
                                       struct tfc_output outgoing, int64_t width) {
  const char *const kinds[] = {"self", "in", "out"};
  struct tfc_output sum = TFC_NO_OUTPUT;
  for (int k = 0; k < 3; k++) {
    char name[24];
    snprintf(name, sizeof name, "layer%d/%s", layer, kinds[k]);
    struct tfc_output w = parameter(n, name, width, width, sqrt(1.0 / (3.0 * (double)width)));
    struct tfc_output x = k == 0 ? h : tfc_add2(n->b, "MatMul", k == 1 ? incoming : outgoing, h);
    struct tfc_output y = tfc_add2(n->b, "MatMul", x, w);
    sum = k == 0 ? y : tfc_add2(n->b, "AddV2", sum, y);
  }
  return tfc_add1(n->b, "Tanh", sum);
}

static void build_forward(struct network *n, int64_t width) {
  const struct tfc_actors *a = n->policy->actors;
  int64_t units = a->unit_count, actors = a->actor_count, devices = a->device_count, features = a->feature_count;
  struct tfc_output x = constant(n, "features", a->features, units, features);
  struct tfc_output incoming = constant(n, "incoming", a->incoming, units, units);
  struct tfc_output outgoing = constant(n, "outgoing", a->outgoing, units, units);
  struct tfc_output pool = constant(n, "pool", a->pool, actors, units);
  struct tfc_output forbidden = constant(n, "forbidden", a->forbidden, actors, devices);
  struct tfc_output w0 = parameter(n, "embed", features, width, sqrt(1.0 / (double)features));
  struct tfc_output h = tfc_add1(n->b, "Tanh", tfc_add2(n->b, "MatMul", x, w0));
  for (int layer = 1; layer <= 2; layer++) h = pass_messages(n, layer, h, incoming, outgoing, width);
  struct tfc_output pooled = tfc_add2(n->b, "MatMul", pool, h);
  struct tfc_output logits = tfc_add2(n->b, "MatMul", pooled, parameter(n, "device", width, devices, 0.01));
  logits = tfc_add2(n->b, "AddV2", logits, parameter(n, "table", actors, devices, 0));
  logits = tfc_add2(n->b, "AddV2", logits, forbidden);
  n->log_p = tfc_add1(n->b, "LogSoftmax", logits);
}

static struct tfc_output sum_all(struct network *n, struct tfc_output x) {
  return tfc_add2(n->b, "Sum", x, tfc_add_i32_vector(n->b, (int32_t[]){0, 1}, 2));
}

// loss = -sum(weight * log p) - bonus * sum of entropies
static struct tfc_output build_loss(struct network *n) {
  const struct tfc_actors *a = n->policy->actors;
  n->weight = tfc_add_placeholder(n->b, "weight", TFC_FLOAT, &TFC_SHAPE(a->actor_count, a->device_count));
  n->bonus = scalar(n, "bonus");
  struct tfc_output gain = sum_all(n, tfc_add2(n->b, "Mul", n->weight, n->log_p));
  struct tfc_output p = tfc_add1(n->b, "Exp", n->log_p);
  struct tfc_output negative_entropy = sum_all(n, tfc_add2(n->b, "Mul", p, n->log_p));
  return tfc_add2(n->b, "Sub", tfc_add2(n->b, "Mul", n->bonus, negative_entropy), gain);
}

// One ApplyAdam for each parameter; their ids go to `out_updates`.
static tfc_status build_update(struct network *n, struct tfc_output loss, uint32_t *out_updates) {
  struct tfc_policy *p = n->policy;
  struct tfc_output xs[max_parameters], grads[max_parameters];
  for (uint32_t i = 0; i < p->parameter_count; i++) xs[i] = p->parameters[i].node;
  TFC_RETURN_IF_ERROR(tfc_builder_gradients(n->b, &loss, 1, xs, p->parameter_count, NULL, grads));
  n->rate = scalar(n, "rate");
  n->beta1_power = scalar(n, "beta1_power");
  n->beta2_power = scalar(n, "beta2_power");
  struct tfc_output beta1 = tfc_add_scalar(n->b, TFC_FLOAT, 0.9), beta2 = tfc_add_scalar(n->b, TFC_FLOAT, 0.99);
  struct tfc_output epsilon = tfc_add_scalar(n->b, TFC_FLOAT, 1e-8);
  for (uint32_t i = 0; i < p->parameter_count; i++) {
    struct tfc_output slots[2];
    for (int k = 0; k < 2; k++) {
      char name[32];
      snprintf(name, sizeof name, "%s/%s", p->parameters[i].name, k ? "v" : "m");
      struct tfc_attr attrs[] = {tfc_attr_type("dtype", TFC_FLOAT), tfc_attr_shape("shape", &p->parameters[i].shape)};
      slots[k] = tfc_add(n->b, "VariableV2", name, NULL, 0, attrs, 2);
    }
    struct tfc_output rate = tfc_add2(n->b, "Mul", n->rate, tfc_add_scalar(n->b, TFC_FLOAT, p->parameters[i].rate));
    struct tfc_output inputs[] = {xs[i], slots[0], slots[1], n->beta1_power, n->beta2_power,
                                  rate,  beta1,    beta2,    epsilon,        grads[i]};
    out_updates[i] = tfc_add(n->b, "ApplyAdam", "", inputs, 10, NULL, 0).node;
  }
  return NULL;
}

static tfc_status set_variable(struct tfc_policy *p, const char *name, const struct tfc_shape *shape, double scale,
                               struct tfc_random *random) {
  struct tfc_tensor value = {0};
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_FLOAT, shape, &value));
  float *data = value.data;
  for (int64_t i = 0, count = tfc_tensor_elements(&value); i < count; i++)
    data[i] = scale > 0 ? (float)(scale * tfc_random_normal(random)) : 0;
  tfc_status s = tfc_session_set_variable(p->session, tfc_str_from(name), &value);
  tfc_tensor_release(&value);
  return s;
}

static tfc_status initialize(struct tfc_policy *p, uint64_t seed) {
  struct tfc_random random;
  tfc_random_init(&random, seed);
  for (uint32_t i = 0; i < p->parameter_count; i++) {
    const struct parameter *q = &p->parameters[i];
    TFC_RETURN_IF_ERROR(set_variable(p, q->name, &q->shape, q->scale, &random));
    for (int k = 0; k < 2; k++) {
      char name[32];
      snprintf(name, sizeof name, "%s/%s", q->name, k ? "v" : "m");
      TFC_RETURN_IF_ERROR(set_variable(p, name, &q->shape, 0, &random));
    }
  }
  return NULL;
}

tfc_status tfc_policy_create(const struct tfc_actors *actors, const struct tfc_policy_options *options,
                             struct tfc_policy **out) {
  tfc_status s = NULL;
  struct tfc_policy *p = calloc(1, sizeof *p);
  struct network n = {.policy = p};
  uint32_t updates[max_parameters];
  if (!p) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  p->actors = actors;
  p->learning_rate = options->learning_rate > 0 ? options->learning_rate : 0.05;
  TFC_TRY(s, tfc_builder_create(NULL, &n.b));
  build_forward(&n, options->hidden ? options->hidden : 32);
  struct tfc_output loss = build_loss(&n);
  TFC_TRY(s, build_update(&n, loss, updates));
  TFC_TRY(s, tfc_builder_finish(n.b, &p->graph));
  TFC_TRY(s, tfc_devices_open("cpu:0", NULL, 0, &p->devices));
  TFC_TRY(s, tfc_session_create(p->graph, &(struct tfc_session_options){.devices = &p->devices}, &p->session));
  TFC_TRY(s, initialize(p, options->seed));
  TFC_TRY(s, tfc_plan_create(p->session, &(struct tfc_run_spec){.fetches = &n.log_p, .fetch_count = 1}, &p->evaluate));
  struct tfc_output feeds[] = {n.weight, n.bonus, n.rate, n.beta1_power, n.beta2_power};
  TFC_TRY(s,
          tfc_plan_create(p->session,
                          &(struct tfc_run_spec){
                              .feeds = feeds, .feed_count = 5, .targets = updates, .target_count = p->parameter_count},
                          &p->update));
  *out = p, p = NULL;
out:
  tfc_builder_free(n.b);
  tfc_policy_free(p);
  return tfc_status_annotate(s, "policy network");
}

void tfc_policy_free(struct tfc_policy *policy) {
  if (!policy) return;
  tfc_plan_free(policy->evaluate);
  tfc_plan_free(policy->update);
  tfc_session_free(policy->session);
  tfc_devices_close(&policy->devices);
  tfc_graph_release(policy->graph);
  free(policy);
}

tfc_status tfc_policy_evaluate(struct tfc_policy *p, float *out_log_p) {
  struct tfc_tensor log_p = {0};
  TFC_RETURN_IF_ERROR(tfc_plan_run(p->evaluate, NULL, &log_p, NULL));
  memcpy(out_log_p, log_p.data, log_p.size);
  tfc_tensor_release(&log_p);
  return NULL;
}

static struct tfc_tensor borrow(float *value, struct tfc_shape shape) {
  size_t size = (size_t)tfc_shape_elements(&shape) * sizeof *value;
  return (struct tfc_tensor){TFC_FLOAT, shape, value, size, NULL};
}

tfc_status tfc_policy_update(struct tfc_policy *p, const float *weight, double entropy_bonus) {
  const struct tfc_actors *a = p->actors;
  p->updates++;
  float bonus = (float)entropy_bonus, rate = (float)p->learning_rate;
  float beta1_power = (float)pow(0.9, (double)p->updates), beta2_power = (float)pow(0.99, (double)p->updates);
  struct tfc_tensor feeds[] = {
      borrow((float *)(uintptr_t)weight, TFC_SHAPE(a->actor_count, a->device_count)),
      borrow(&bonus, TFC_SHAPE_SCALAR),
      borrow(&rate, TFC_SHAPE_SCALAR),
      borrow(&beta1_power, TFC_SHAPE_SCALAR),
      borrow(&beta2_power, TFC_SHAPE_SCALAR),
  };
  return tfc_plan_run(p->update, feeds, NULL, NULL);
}
