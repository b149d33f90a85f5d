// HDP (Mirhoseini et al. 2018, A Hierarchical Model for Device Placement): a grouper, feed-forward with a hidden layer
// of 64, draws a group for each unit; a placer, a sequence-to-sequence LSTM with attention over the groups, draws a
// device for each group, fed with the one before (section 2). Both learn by REINFORCE from minus the square root of the
// time, against a moving average with decay 0.9, by Adam with gradients of norm 1 at most (section 2 and TensorFlow's
// own hierarchical_controller: grouping_hidden_size, reward_function, bl_dec, grad_bound, tanh_constant).
//
// Differences from the paper: there are 32 groups and an LSTM of 32 instead of 256 and 512, so that 200 evaluations of
// 4,000 units take seconds; a cost graph has no op types, so units are described by their time, the bytes that they
// send, receive and hold, and their position in the graph; the learning rate is 0.01 instead of 0.1, with which all
// samples soon become equal.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rl/rival.h"
#include "rl/rival_network.h"

enum { GROUPS = 32, HIDDEN = 64, WIDTH = 32, BATCH = 4, SHAPE = 6, FEATURES = SHAPE + GROUPS };
#define RATE 0.01
#define STEEPEST 5.0 // logits are STEEPEST tanh(x)

struct hdp {
  struct tfc_rival r;
  struct tfc_rival_network net;
  struct tfc_plan *group, *place;
  bool learns;
  uint32_t units, devices;
  float *facts;          // [unit, TFC_RIVAL_FACTS]
  uint32_t *groups;      // [BATCH, unit]
  tfc_device_id *choice; // [BATCH, GROUPS]
  float *described;      // [GROUPS, BATCH, FEATURES]
  float *noise, *forced; // [GROUPS, BATCH, device]
  float *unit_weight;    // [unit, GROUPS]
  float *group_weight;   // [GROUPS, BATCH, device]
  double baseline;
};

struct lstm {
  struct tfc_output w, bias, h, c;
};

static struct tfc_output row(struct hdp *l, struct tfc_output x, int32_t axis, int64_t parts) { // output 0 of a Split
  struct tfc_output inputs[] = {tfc_add_i32(l->net.b, axis), x};
  struct tfc_attr attr = tfc_attr_int("num_split", parts);
  return tfc_add(l->net.b, "Split", "", inputs, 2, &attr, 1);
}

static void step(struct hdp *l, struct lstm *m, struct tfc_output x) {
  struct tfc_builder *b = l->net.b;
  struct tfc_output both[] = {x, m->h};
  struct tfc_output gates =
      tfc_add2(b, "AddV2", tfc_add2(b, "MatMul", tfc_rival_concat(&l->net, both, 2, 1), m->w), m->bias);
  const uint32_t node = row(l, gates, 1, 4).node;
  struct tfc_output in = tfc_add1(b, "Sigmoid", (struct tfc_output){node, 0});
  struct tfc_output forget =
      tfc_add1(b, "Sigmoid", tfc_add2(b, "AddV2", (struct tfc_output){node, 1}, tfc_add_scalar(b, TFC_FLOAT, 1)));
  struct tfc_output out = tfc_add1(b, "Sigmoid", (struct tfc_output){node, 2});
  struct tfc_output fresh = tfc_add1(b, "Tanh", (struct tfc_output){node, 3});
  m->c = tfc_add2(b, "AddV2", tfc_add2(b, "Mul", m->c, forget), tfc_add2(b, "Mul", in, fresh));
  m->h = tfc_add2(b, "Mul", out, tfc_add1(b, "Tanh", m->c));
}

struct placer { // state that both decoders share, the one for drawing and the one for learning
  struct tfc_output embedded, encoded, keys, query, energy, head, head_bias; // embedded: output 0 of a Split by group
  struct lstm decoder;
};

// Computes the logits of one group, from the decoder's state and its attention.
static struct tfc_output attend(struct hdp *l, const struct placer *p, struct tfc_output h) {
  struct tfc_builder *b = l->net.b;
  const int32_t flat[] = {GROUPS * BATCH, WIDTH}, cube[] = {GROUPS, BATCH, 1};
  struct tfc_output active = tfc_add1(b, "Tanh", tfc_add2(b, "AddV2", p->keys, tfc_add2(b, "MatMul", h, p->query)));
  struct tfc_output score = tfc_add2(b, "MatMul", tfc_rival_reshape(&l->net, active, flat, 2), p->energy);
  struct tfc_output share = tfc_rival_reshape(&l->net, tfc_add1(b, "Exp", score), cube, 3);
  struct tfc_output sum = tfc_rival_sum(&l->net, share, (int32_t[]){0}, 1);
  struct tfc_output seen = tfc_rival_sum(&l->net, tfc_add2(b, "Mul", share, p->encoded), (int32_t[]){0}, 1);
  struct tfc_output both[] = {h, tfc_add2(b, "RealDiv", seen, sum)};
  struct tfc_output x =
      tfc_add2(b, "AddV2", tfc_add2(b, "MatMul", tfc_rival_concat(&l->net, both, 2, 1), p->head), p->head_bias);
  return tfc_add2(b, "Mul", tfc_add1(b, "Tanh", x), tfc_add_scalar(b, TFC_FLOAT, STEEPEST));
}

// Makes one pass over the groups. `given` [GROUPS * BATCH, device] has either the chosen devices (then the output is
// log p), or noise that turns the largest logit into a random draw, the Gumbel-max trick (then the output is the
// choices).
static struct tfc_output decode(struct hdp *l, const struct placer *p, struct tfc_output given, bool draws) {
  struct tfc_builder *b = l->net.b;
  struct tfc_output rows[GROUPS + 1];
  const uint32_t parts = row(l, given, 0, GROUPS).node;
  float *zeros = calloc((size_t)BATCH * l->devices, sizeof *zeros);
  if (!zeros) {
    tfc_builder_fail(b, tfc_status_no_memory(NULL));
    return TFC_NO_OUTPUT;
  }
  struct tfc_output before = tfc_rival_constant(&l->net, zeros, BATCH, l->devices);
  struct lstm m = p->decoder;
  for (int32_t g = 0; g < GROUPS; g++) {
    struct tfc_output now[] = {{p->embedded.node, g}, before}, part = {parts, g};
    step(l, &m, tfc_rival_concat(&l->net, now, 2, 1));
    struct tfc_output logits = attend(l, p, m.h);
    if (draws) {
      rows[g] = tfc_add2(b, "ArgMax", tfc_add2(b, "AddV2", logits, part), tfc_add_i32(b, 1));
      struct tfc_output inputs[] = {rows[g], tfc_add_i32(b, (int32_t)l->devices), tfc_add_scalar(b, TFC_FLOAT, 1),
                                    tfc_add_scalar(b, TFC_FLOAT, 0)};
      before = tfc_add(b, "OneHot", "", inputs, 4, NULL, 0);
    } else {
      rows[g] = tfc_add1(b, "LogSoftmax", logits);
      before = part;
    }
  }
  free(zeros);
  rows[GROUPS] = tfc_add_i32(b, 0);
  return tfc_add(b, "ConcatV2", "", rows, GROUPS + 1, NULL, 0);
}

static tfc_status build(struct hdp *l) {
  tfc_status s = NULL;
  struct tfc_rival_network *n = &l->net;
  static const float zeros[BATCH * WIDTH];
  const int64_t units = l->units, devices = l->devices, all = GROUPS * BATCH;
  const int32_t both[] = {0, 1}, cube[] = {GROUPS, BATCH, WIDTH};
  TFC_TRY(s, tfc_rival_network_begin(n));
  struct tfc_output x = tfc_rival_constant(n, l->facts, units, TFC_RIVAL_FACTS);
  struct tfc_output hidden = tfc_add1(n->b, "Relu", tfc_rival_dense(n, "grouper", x, TFC_RIVAL_FACTS, HIDDEN));
  struct tfc_output group_log_p = tfc_add1(n->b, "LogSoftmax", tfc_rival_dense(n, "group", hidden, HIDDEN, GROUPS));
  struct tfc_output described = tfc_rival_placeholder(n, "described", TFC_SHAPE(all, FEATURES));
  struct tfc_output embedded = tfc_add1(n->b, "Tanh", tfc_rival_dense(n, "embed", described, FEATURES, WIDTH));
  struct tfc_output nothing = tfc_rival_constant(n, zeros, BATCH, WIDTH), states[GROUPS + 1];
  struct placer p = {.embedded = row(l, embedded, 0, GROUPS)};
  struct lstm encoder = {.h = nothing, .c = nothing};
  encoder.w = tfc_rival_weight(n, "encoder", 2 * WIDTH, 4 * WIDTH, sqrt(0.5 / WIDTH));
  encoder.bias = tfc_rival_weight(n, "encoder_bias", 1, 4 * WIDTH, 0);
  for (int32_t g = 0; g < GROUPS; g++) {
    step(l, &encoder, (struct tfc_output){p.embedded.node, g});
    states[g] = encoder.h;
  }
  states[GROUPS] = tfc_add_i32(n->b, 0);
  struct tfc_output encoded = tfc_add(n->b, "ConcatV2", "", states, GROUPS + 1, NULL, 0);
  p.encoded = tfc_rival_reshape(n, encoded, cube, 3);
  struct tfc_output key = tfc_rival_weight(n, "key", WIDTH, WIDTH, sqrt(1.0 / WIDTH));
  p.keys = tfc_rival_reshape(n, tfc_add2(n->b, "MatMul", encoded, key), cube, 3);
  p.query = tfc_rival_weight(n, "query", WIDTH, WIDTH, sqrt(1.0 / WIDTH));
  p.energy = tfc_rival_weight(n, "energy", WIDTH, 1, sqrt(1.0 / WIDTH));
  p.head = tfc_rival_weight(n, "head", 2 * WIDTH, devices, sqrt(0.01 / WIDTH));
  p.head_bias = tfc_rival_weight(n, "head_bias", 1, devices, 0);
  p.decoder = (struct lstm){.h = encoder.h, .c = encoder.c};
  p.decoder.w = tfc_rival_weight(n, "decoder", 2 * WIDTH + devices, 4 * WIDTH, sqrt(0.5 / WIDTH));
  p.decoder.bias = tfc_rival_weight(n, "decoder_bias", 1, 4 * WIDTH, 0);
  struct tfc_output noise = tfc_rival_placeholder(n, "noise", TFC_SHAPE(all, devices));
  struct tfc_output forced = tfc_rival_placeholder(n, "forced", TFC_SHAPE(all, devices));
  struct tfc_output unit_weight = tfc_rival_placeholder(n, "unit_weight", TFC_SHAPE(units, GROUPS));
  struct tfc_output group_weight = tfc_rival_placeholder(n, "group_weight", TFC_SHAPE(all, devices));
  struct tfc_output choices = decode(l, &p, noise, true), log_p = decode(l, &p, forced, false);
  struct tfc_output gain =
      tfc_add2(n->b, "AddV2", tfc_rival_sum(n, tfc_add2(n->b, "Mul", unit_weight, group_log_p), both, 2),
               tfc_rival_sum(n, tfc_add2(n->b, "Mul", group_weight, log_p), both, 2));
  struct tfc_output feeds[] = {described, forced, unit_weight, group_weight}, drawn[] = {described, noise};
  TFC_TRY(s, tfc_rival_network_finish(n, tfc_add1(n->b, "Neg", gain), feeds, 4, l->r.budget->seed));
  TFC_TRY(s, tfc_rival_network_plan(n, NULL, 0, &group_log_p, 1, &l->group));
  TFC_TRY(s, tfc_rival_network_plan(n, drawn, 2, &choices, 1, &l->place));
out:
  return s;
}

static tfc_status prepare(struct hdp *l) {
  const struct tfc_problem *p = l->r.problem;
  const size_t n = l->units = p->unit_count, m = l->devices = p->device_count;
  l->facts = calloc(n * TFC_RIVAL_FACTS, sizeof *l->facts);
  l->groups = calloc(n * BATCH, sizeof *l->groups);
  l->choice = calloc(BATCH * GROUPS, sizeof *l->choice);
  l->described = calloc((size_t)GROUPS * BATCH * FEATURES, sizeof *l->described);
  l->noise = calloc(GROUPS * BATCH * m, sizeof *l->noise), l->forced = calloc(GROUPS * BATCH * m, sizeof *l->forced);
  l->unit_weight = calloc(n * GROUPS, sizeof *l->unit_weight);
  l->group_weight = calloc(GROUPS * BATCH * m, sizeof *l->group_weight);
  if (!l->facts || !l->groups || !l->choice || !l->described || !l->noise || !l->forced || !l->unit_weight ||
      !l->group_weight)
    return tfc_status_no_memory(NULL);
  tfc_rival_facts(p, l->facts);
  return NULL;
}

// Fills the placer's features of the groups of sample i.
static void describe(struct hdp *l, uint32_t i) {
  const struct tfc_problem *p = l->r.problem;
  const uint32_t *group = l->groups + (size_t)i * l->units;
  float exchanged[GROUPS] = {0};
  for (uint32_t g = 0; g < GROUPS; g++)
    memset(l->described + ((size_t)g * BATCH + i) * FEATURES, 0, FEATURES * sizeof *l->described);
  for (uint32_t u = 0; u < l->units; u++) {
    float *f = l->described + ((size_t)group[u] * BATCH + i) * FEATURES;
    const float *fact = l->facts + (size_t)u * TFC_RIVAL_FACTS, scale = (float)GROUPS / (float)l->units;
    f[0] += scale;
    f[1] += (float)((double)tfc_rival_fastest(p, u) / fmax(1, (double)p->total_fastest) * GROUPS);
    for (int k = 0; k < 4; k++) f[2 + k] += scale * fact[k < 2 ? 1 + k : 2 + k]; // sent, needed, path, rank
    for (uint32_t net = p->first_net[u]; net < p->first_net[u + 1]; net++)
      for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++) {
        const float bytes = (float)(1 + p->graph->bytes[p->net_tensor[net]]);
        f[SHAPE + group[p->net_unit[k]]] += bytes, exchanged[group[u]] += bytes;
      }
  }
  for (uint32_t g = 0; g < GROUPS; g++)
    for (uint32_t k = 0; k < GROUPS && exchanged[g] > 0; k++)
      l->described[((size_t)g * BATCH + i) * FEATURES + SHAPE + k] /= exchanged[g];
}

static tfc_status draw(struct hdp *l) {
  const struct tfc_problem *p = l->r.problem;
  const size_t m = l->devices;
  tfc_status s = NULL;
  struct tfc_tensor log_p = {0}, choices = {0};
  if (l->learns) TFC_TRY(s, tfc_plan_run(l->group, NULL, &log_p, NULL));
  for (uint32_t i = 0; i < BATCH; i++) {
    for (uint32_t u = 0; u < l->units; u++)
      l->groups[(size_t)i * l->units + u] =
          l->learns ? tfc_rival_draw(&l->r.random, (const float *)log_p.data + (size_t)u * GROUPS, GROUPS)
                    : (uint32_t)tfc_random_below(&l->r.random, GROUPS);
    if (l->learns) describe(l, i);
  }
  if (l->learns) {
    for (size_t k = 0; k < GROUPS * BATCH * m; k++)
      l->noise[k] = (float)-log(1e-12 - log(tfc_random_unit(&l->r.random) + 1e-300));
    const struct tfc_tensor feeds[] = {tfc_rival_view(l->described, TFC_SHAPE(GROUPS * BATCH, FEATURES)),
                                       tfc_rival_view(l->noise, TFC_SHAPE(GROUPS * BATCH, (int64_t)m))};
    TFC_TRY(s, tfc_plan_run(l->place, feeds, &choices, NULL));
  }
  for (uint32_t i = 0; i < BATCH; i++) {
    for (uint32_t g = 0; g < GROUPS; g++)
      l->choice[i * GROUPS + g] = (tfc_device_id)(l->learns ? (uint64_t)((const int64_t *)choices.data)[g * BATCH + i]
                                                            : tfc_random_below(&l->r.random, m));
    for (uint32_t u = 0; u < l->units; u++)
      l->r.samples[i].device[u] = tfc_rival_allowed(p, u, l->choice[i * GROUPS + l->groups[(size_t)i * l->units + u]]);
  }
out:
  tfc_tensor_release(&log_p);
  tfc_tensor_release(&choices);
  return s;
}

static tfc_status learn(struct hdp *l, uint32_t count, bool first) {
  const size_t n = l->units, m = l->devices;
  double mean = 0;
  memset(l->unit_weight, 0, n * GROUPS * sizeof *l->unit_weight);
  memset(l->group_weight, 0, GROUPS * BATCH * m * sizeof *l->group_weight);
  memset(l->forced, 0, GROUPS * BATCH * m * sizeof *l->forced);
  for (uint32_t i = 0; i < count; i++) mean -= sqrt(l->r.cost[i]) / count;
  if (first) l->baseline = mean;
  for (uint32_t i = 0; i < count; i++) {
    const float advantage = (float)((-sqrt(l->r.cost[i]) - l->baseline) / count);
    for (size_t u = 0; u < n; u++) l->unit_weight[u * GROUPS + l->groups[i * n + u]] += advantage;
    for (size_t g = 0; g < GROUPS; g++) {
      const size_t at = (g * BATCH + i) * m + l->choice[i * GROUPS + g];
      l->forced[at] = 1, l->group_weight[at] = advantage;
    }
  }
  l->baseline = 0.9 * l->baseline + 0.1 * mean;
  const struct tfc_tensor feeds[] = {tfc_rival_view(l->described, TFC_SHAPE(GROUPS * BATCH, FEATURES)),
                                     tfc_rival_view(l->forced, TFC_SHAPE(GROUPS * BATCH, (int64_t)m)),
                                     tfc_rival_view(l->unit_weight, TFC_SHAPE((int64_t)n, GROUPS)),
                                     tfc_rival_view(l->group_weight, TFC_SHAPE(GROUPS * BATCH, (int64_t)m))};
  return tfc_rival_network_update(&l->net, feeds, RATE);
}

static void release(struct hdp *l) {
  tfc_plan_free(l->group), tfc_plan_free(l->place);
  tfc_rival_network_deinit(&l->net);
  tfc_rival_deinit(&l->r);
  free(l->facts), free(l->groups), free(l->choice), free(l->described), free(l->noise), free(l->forced);
  free(l->unit_weight), free(l->group_weight);
}

static tfc_status run(const char *name, bool learns, const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                      const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct hdp l = {.learns = learns};
  uint32_t count;
  TFC_TRY(s, tfc_rival_init(&l.r, problem, evaluator, budget, BATCH, out));
  TFC_TRY(s, prepare(&l));
  if (learns) TFC_TRY(s, build(&l));
  while ((count = tfc_rival_room(&l.r)) > 0) {
    const bool first = l.r.used == 0;
    TFC_TRY(s, draw(&l));
    TFC_TRY(s, tfc_rival_evaluate(&l.r, count));
    if (learns) TFC_TRY(s, learn(&l, count, first));
  }
  TFC_TRY(s, tfc_rival_end(&l.r, name, out_evaluations));
out:
  release(&l);
  return s;
}

static tfc_status propose(const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                          const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  return run("hdp", true, problem, evaluator, budget, out, out_evaluations);
}

static tfc_status propose_random(const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                                 const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  return run("hdp-random", false, problem, evaluator, budget, out, out_evaluations);
}

const struct tfc_algo tfc_algo_hdp = {
    .name = "hdp",
    .help = "learned rival: a network groups the operations, a sequence-to-sequence one places the groups",
    .paper = "Mirhoseini et al. 2018, A Hierarchical Model for Device Placement, section 2",
    .needs = TFC_NEEDS_EVALUATOR | TFC_NEEDS_BUDGET | TFC_NEEDS_NAME,
    .propose = propose,
};

const struct tfc_algo tfc_algo_hdp_random = {
    .name = "hdp-random",
    .help = "control of hdp: groups and their devices drawn at random",
    .paper = "Mirhoseini et al. 2018, A Hierarchical Model for Device Placement, section 2",
    .needs = TFC_NEEDS_EVALUATOR | TFC_NEEDS_BUDGET | TFC_NEEDS_NAME,
    .propose = propose_random,
};
