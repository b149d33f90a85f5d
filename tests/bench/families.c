#include "tests/bench/families.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/base/random.h"

struct maker {
  struct tfc_cost_builder *b;
  struct tfc_random r;
  uint32_t acc, old, cpu, count;
  uint64_t memory;
  tfc_status s;
};

static double unit(struct maker *m) {
  return tfc_random_unit(&m->r);
}
static uint32_t below(struct maker *m, uint32_t n) {
  return (uint32_t)tfc_random_below(&m->r, n ? n : 1);
}

static uint32_t node(struct maker *m, const char *name, double us, uint64_t memory, const char *group) {
  uint32_t id = 0;
  if (m->s) return 0;
  m->s = tfc_cost_builder_node(m->b, tfc_str_from(name), &id);
  if (!m->s) m->s = tfc_cost_builder_time(m->b, id, m->acc, us);
  if (!m->s) m->s = tfc_cost_builder_time(m->b, id, m->old, 2 * us);
  if (!m->s) m->s = tfc_cost_builder_time(m->b, id, m->cpu, 10 * us);
  if (!m->s && group) m->s = tfc_cost_builder_group(m->b, id, tfc_str_from(group));
  if (!m->s) tfc_cost_builder_memory(m->b, id, memory);
  m->memory += memory;
  m->count++;
  return id;
}
static void edge(struct maker *m, uint32_t from, uint32_t to, uint64_t bytes) {
  // Edges of different sizes from one operation carry different outputs.
  if (!m->s) m->s = tfc_cost_builder_edge(m->b, from, (int32_t)(bytes % 1000003), to, bytes, TFC_LIVE_ABSENT);
}

static void make_layered(struct maker *m, uint32_t nodes) {
  uint32_t width = 4 + (uint32_t)sqrt((double)nodes) / 3, layer_begin = 0, before = 0;
  char name[48];
  for (uint32_t n = 0; n < nodes; n++) {
    if (n - layer_begin >= width) before = layer_begin, layer_begin = n;
    snprintf(name, sizeof name, "op%u", n);
    uint32_t id = node(m, name, exp(unit(m) * 5), (uint64_t)(unit(m) * 1e6), NULL);
    if (layer_begin == 0) continue;
    uint32_t inputs = 1 + below(m, 3);
    for (uint32_t k = 0; k < inputs; k++) {
      uint32_t from = below(m, 8) ? before + below(m, layer_begin - before) : below(m, layer_begin);
      uint64_t state = from, bytes = 1000 + tfc_splitmix64(&state) % 400000;
      edge(m, from, id, bytes);
    }
  }
}

// Makes a grid of layers x steps cells of 100 us; each cell feeds the next step and the next layer. With as many
// devices as layers and transfers of 1 us, each layer belongs on a device (a wavefront). If layers <= devices, the
// optimum is the critical path of that placement, which the caller computes: (layers + steps - 1) * 100 us plus (layers
// - 1) transfers.
static void make_grid(struct maker *m, uint32_t nodes, uint32_t layers) {
  uint32_t steps = nodes / layers;
  char name[48];
  uint32_t *row = calloc(steps + 1u, sizeof *row);
  for (uint32_t l = 0; l < layers; l++)
    for (uint32_t t = 0; t < steps; t++) {
      snprintf(name, sizeof name, "layer%u/step%u", l, t);
      uint32_t id = node(m, name, 100, 1000, NULL);
      if (t) edge(m, row[t - 1], id, 12000);
      if (l) edge(m, row[t], id, 12000);
      row[t] = id;
    }
  free(row);
}

static void make_towers(struct maker *m, uint32_t nodes, uint32_t towers) {
  uint32_t length = (nodes - 2) / towers;
  char name[48];
  uint32_t source = node(m, "input", 1, 0, NULL), *ends = calloc(towers, sizeof *ends);
  for (uint32_t k = 0; k < towers; k++) {
    ends[k] = source;
    for (uint32_t i = 0; i < length; i++) {
      snprintf(name, sizeof name, "tower%u/op%u", k, i);
      uint32_t id = node(m, name, 50, 1000, NULL);
      edge(m, ends[k], id, 40000);
      ends[k] = id;
    }
  }
  uint32_t concat = node(m, "concat", 20, 0, NULL);
  for (uint32_t k = 0; k < towers; k++) edge(m, ends[k], concat, 40000);
  free(ends);
}

// An unrolled LSTM encoder and decoder of 2 layers with attention; each step has a projection and a softmax in shards;
// then come the backward operations in reverse order and an update for each weight. Sizes are those of batch 64 and
// hidden size 1024 on a fast GPU.
struct step_nodes {
  uint32_t cell[2][4], attention[3], softmax[4], loss;
};
static void make_seq2seq(struct maker *m, uint32_t nodes) {
  // Each time step has about 60 nodes: the encoder 2 x 4, the decoder 2 x 4 + 3 + 4 + 1, twice as many for the backward
  // pass, and the sums of gradients.
  uint32_t steps = nodes / 60;
  if (steps < 2) steps = 2;
  static const double cell_us[4] = {90, 12, 10, 8}; // of a product, the gates, the state, the output
  char name[64];
  struct step_nodes *enc = calloc(steps, sizeof *enc), *dec = calloc(steps, sizeof *dec);
  struct step_nodes *enc_back = calloc(steps, sizeof *enc_back), *dec_back = calloc(steps, sizeof *dec_back);
  uint32_t embedding = node(m, "embedding", 5, 64000000, NULL), weights[8];
  for (int k = 0; k < 8; k++) {
    snprintf(name, sizeof name, "weights%d", k);
    weights[k] = node(m, name, 1, 33000000, NULL);
  }
  for (int side = 0; side < 2; side++)
    for (uint32_t t = 0; t < steps; t++) {
      struct step_nodes *now = side ? &dec[t] : &enc[t];
      struct step_nodes *before = t ? (side ? &dec[t - 1] : &enc[t - 1]) : side ? &enc[steps - 1] : NULL;
      snprintf(name, sizeof name, "%s/embed%u", side ? "dec" : "enc", t);
      uint32_t below_ = node(m, name, 4, 0, NULL);
      edge(m, embedding, below_, 262144);
      for (int l = 0; l < 2; l++)
        for (int k = 0; k < 4; k++) {
          snprintf(name, sizeof name, "%s/l%d/t%u/%d", side ? "dec" : "enc", l, t, k);
          now->cell[l][k] = node(m, name, cell_us[k] * (0.9 + 0.2 * unit(m)), 0, NULL);
          if (k) edge(m, now->cell[l][k - 1], now->cell[l][k], 1048576);
          if (k == 0) {
            edge(m, l ? now->cell[0][3] : below_, now->cell[l][0], 262144);
            edge(m, weights[2 * side + l], now->cell[l][0], 16777216);
            if (before) edge(m, before->cell[l][3], now->cell[l][0], 262144);
          }
          if (k == 2 && before) edge(m, before->cell[l][2], now->cell[l][2], 1048576);
        }
      if (!side) continue;
      for (int k = 0; k < 3; k++) {
        snprintf(name, sizeof name, "attention%u/%d", t, k);
        now->attention[k] = node(m, name, 25, 0, NULL);
        edge(m, k ? now->attention[k - 1] : now->cell[1][3], now->attention[k], 262144);
        if (k == 0)
          for (uint32_t e = 0; e < steps; e += 1 + steps / 8) edge(m, enc[e].cell[1][3], now->attention[0], 262144);
      }
      snprintf(name, sizeof name, "loss%u", t);
      now->loss = node(m, name, 10, 0, NULL);
      for (int k = 0; k < 4; k++) {
        snprintf(name, sizeof name, "softmax%u/%d", t, k);
        now->softmax[k] = node(m, name, 60, 0, NULL);
        edge(m, now->attention[2], now->softmax[k], 262144);
        edge(m, weights[4 + k], now->softmax[k], 33554432);
        edge(m, now->softmax[k], now->loss, 65536);
      }
    }
  // A backward operation takes twice the time of its forward operation.
  uint32_t sums[8] = {0};
  for (int side = 1; side >= 0; side--)
    for (uint32_t t = steps; t-- > 0;) {
      struct step_nodes *forward = side ? &dec[t] : &enc[t], *now = side ? &dec_back[t] : &enc_back[t];
      struct step_nodes *after = t + 1 < steps ? (side ? &dec_back[t + 1] : &enc_back[t + 1])
                                 : side        ? NULL
                                               : &dec_back[0];
      uint32_t above = 0;
      if (side) {
        for (int k = 0; k < 4; k++) {
          snprintf(name, sizeof name, "back/softmax%u/%d", t, k);
          now->softmax[k] = node(m, name, 120, 0, NULL);
          edge(m, forward->loss, now->softmax[k], 65536);
          edge(m, forward->softmax[k], now->softmax[k], 65536);
          snprintf(name, sizeof name, "back/softmax%u/sum%d", t, k);
          uint32_t sum = node(m, name, 15, 0, NULL);
          edge(m, now->softmax[k], sum, 33554432);
          if (sums[4 + k]) edge(m, sums[4 + k], sum, 33554432);
          sums[4 + k] = sum;
        }
        for (int k = 0; k < 3; k++) {
          snprintf(name, sizeof name, "back/attention%u/%d", t, k);
          now->attention[k] = node(m, name, 50, 0, NULL);
          if (k)
            edge(m, now->attention[k - 1], now->attention[k], 262144);
          else
            for (int q = 0; q < 4; q++) edge(m, now->softmax[q], now->attention[0], 262144);
        }
        above = now->attention[2];
      }
      for (int l = 1; l >= 0; l--)
        for (int k = 0; k < 4; k++) {
          snprintf(name, sizeof name, "back/%s/l%d/t%u/%d", side ? "dec" : "enc", l, t, k);
          now->cell[l][k] = node(m, name, 2 * cell_us[3 - k], 0, NULL);
          edge(m, forward->cell[l][3 - k], now->cell[l][k], 1048576);
          if (k) edge(m, now->cell[l][k - 1], now->cell[l][k], 1048576);
          if (k == 0 && l == 1 && side) edge(m, above, now->cell[1][0], 262144);
          if (k == 0 && l == 0) edge(m, now->cell[1][3], now->cell[0][0], 262144);
          if (k == 0 && after) edge(m, after->cell[l][3], now->cell[l][0], 262144);
          if (k == 3) {
            snprintf(name, sizeof name, "back/%s/l%d/t%u/sum", side ? "dec" : "enc", l, t);
            uint32_t sum = node(m, name, 12, 0, NULL);
            edge(m, now->cell[l][3], sum, 16777216);
            if (sums[2 * side + l]) edge(m, sums[2 * side + l], sum, 16777216);
            sums[2 * side + l] = sum;
          }
        }
    }
  for (int k = 0; k < 8; k++) {
    snprintf(name, sizeof name, "update%d", k);
    uint32_t update = node(m, name, 40, 66000000, NULL);
    edge(m, sums[k], update, 16777216);
  }
  free(enc), free(dec), free(enc_back), free(dec_back);
}

// A training step of a stack of recurrent layers, as language models have them, unrolled. Cells have a few operations;
// all cells of a layer read its weight; every step has shards of an output layer; backward operations come in reverse
// order, with a running sum for each weight's gradient; each weight has an update, which is in one group with it in
// half of the cases. Sizes are random.
static void make_recurrent(struct maker *m, uint32_t nodes) {
  enum { LAYERS = 4, CELL = 4, SHARDS = 4 };
  const uint32_t layers = 1 + below(m, LAYERS), cell = 2 + below(m, CELL - 1), shards = below(m, SHARDS + 1);
  const uint32_t each = 2 * (layers * cell + shards + 1) + layers + shards, steps = nodes / each > 2 ? nodes / each : 2;
  const double product = 20 + 200 * unit(m), small = product * (0.02 + 0.3 * unit(m)), out = product * (0.3 + unit(m));
  const uint64_t state = 32768u << below(m, 6), weight = state * (1 + below(m, 256)), gates = state * (1 + below(m, 4));
  const uint64_t out_weight = state * (1 + below(m, 512));
  const bool grouped = below(m, 2);
  uint32_t weights[LAYERS + SHARDS] = {0}, sums[LAYERS + SHARDS] = {0};
  uint32_t *cells = calloc((size_t)steps * layers * cell, sizeof *cells);
  uint32_t *outs = calloc((size_t)steps * (shards + 1u), sizeof *outs), *losses = calloc(steps, sizeof *losses);
  uint32_t *before = calloc(layers, sizeof *before);
  char name[64], group[64];
#define CELL_AT(t, l, k) cells[((size_t)(t)*layers + (l)) * cell + (k)]
  for (uint32_t k = 0; k < layers + shards; k++) {
    snprintf(name, sizeof name, "weight%u", k), snprintf(group, sizeof group, "variable%u", k);
    weights[k] = node(m, name, 1, k < layers ? weight : out_weight, grouped ? group : NULL);
  }
  for (uint32_t t = 0; t < steps; t++) {
    snprintf(name, sizeof name, "input%u", t);
    uint32_t below_ = node(m, name, 2, 0, NULL);
    for (uint32_t l = 0; l < layers; l++) {
      for (uint32_t k = 0; k < cell; k++) {
        snprintf(name, sizeof name, "layer%u/step%u/%u", l, t, k);
        CELL_AT(t, l, k) = node(m, name, (k ? small : product) * (0.9 + 0.2 * unit(m)), 0, NULL);
        if (k) edge(m, CELL_AT(t, l, k - 1), CELL_AT(t, l, k), gates);
      }
      edge(m, below_, CELL_AT(t, l, 0), state);
      edge(m, weights[l], CELL_AT(t, l, 0), weight);
      if (t) edge(m, CELL_AT(t - 1, l, cell - 1), CELL_AT(t, l, 0), state);
      below_ = CELL_AT(t, l, cell - 1);
    }
    snprintf(name, sizeof name, "loss%u", t);
    losses[t] = node(m, name, small, 0, NULL);
    for (uint32_t k = 0; k < shards; k++) {
      snprintf(name, sizeof name, "output%u/%u", t, k);
      outs[t * shards + k] = node(m, name, out, 0, NULL);
      edge(m, below_, outs[t * shards + k], state);
      edge(m, weights[layers + k], outs[t * shards + k], out_weight);
      edge(m, outs[t * shards + k], losses[t], state / 4);
    }
    if (!shards) edge(m, below_, losses[t], state);
  }
  for (uint32_t t = steps; t-- > 0;) {
    snprintf(name, sizeof name, "back/loss%u", t);
    uint32_t above = node(m, name, small, 0, NULL);
    edge(m, losses[t], above, state / 4);
    for (uint32_t k = 0; k < shards + layers; k++) {
      const bool output = k < shards;
      const uint32_t l = output ? 0 : layers - 1 - (k - shards), w = output ? layers + k : l;
      uint32_t last = above;
      if (output) {
        snprintf(name, sizeof name, "back/output%u/%u", t, k);
        last = node(m, name, 2 * out, 0, NULL);
        edge(m, above, last, state / 4);
        edge(m, outs[t * shards + k], last, state / 4);
        edge(m, weights[w], last, out_weight);
      }
      for (uint32_t i = 0; !output && i < cell; i++) {
        snprintf(name, sizeof name, "back/layer%u/step%u/%u", l, t, i);
        last = node(m, name, 2 * (i + 1 == cell ? product : small), 0, NULL);
        edge(m, CELL_AT(t, l, cell - 1 - i), last, gates);
        edge(m, above, last, i ? gates : state);
        if (i == 0 && t + 1 < steps) edge(m, before[l], last, state);
        if (i + 1 == cell) edge(m, weights[w], last, weight);
        above = last;
      }
      if (!output) before[l] = last;
      snprintf(name, sizeof name, "back/sum%u/%u", t, k);
      const uint32_t sum = node(m, name, small, 0, NULL);
      edge(m, last, sum, output ? out_weight : weight);
      if (t + 1 < steps) edge(m, sums[w], sum, output ? out_weight : weight);
      sums[w] = sum;
      if (output && k + 1 == shards) above = last;
    }
  }
#undef CELL_AT
  for (uint32_t k = 0; k < layers + shards; k++) {
    snprintf(name, sizeof name, "update%u", k), snprintf(group, sizeof group, "variable%u", k);
    const uint32_t update = node(m, name, small, 0, grouped ? group : NULL);
    edge(m, sums[k], update, k < layers ? weight : out_weight);
  }
  free(cells), free(outs), free(losses), free(before);
}

// A training step of blocks, as Transformer encoders have them, for several parts of the batch side by side: products
// with weights, heads of attention, backward operations in reverse order, gradients summed over the parts, updates.
// Sizes are random.
static void make_blocks(struct maker *m, uint32_t nodes) {
  enum { HEADS = 8, MOST = 64 };
  const uint32_t parts = 1 + below(m, 4), heads = 1 + below(m, HEADS);
  uint32_t blocks = nodes / (parts * 2 * (3 + heads + 3 + 2) + 12);
  if (blocks < 1) blocks = 1;
  if (blocks > MOST) blocks = MOST;
  const double product = 30 + 200 * unit(m), small = product * (0.05 + 0.3 * unit(m));
  const uint64_t state = 65536u << below(m, 6), weight = state * (1 + below(m, 128));
  const bool grouped = below(m, 2);
  const uint32_t per = 3 + heads + 3; // q, k, v; the heads; joined, inner, outer
  uint32_t *all = calloc((size_t)parts * blocks * per, sizeof *all), *weights = calloc(blocks * 6u, sizeof *weights);
  uint32_t *grads = calloc((size_t)parts * blocks * 6u, sizeof *grads);
  char name[64], group[64];
#define AT(part, b, i) all[((size_t)(part)*blocks + (b)) * per + (i)]
  for (uint32_t k = 0; k < blocks * 6; k++) {
    snprintf(name, sizeof name, "weight%u", k), snprintf(group, sizeof group, "variable%u", k);
    weights[k] = node(m, name, 1, weight, grouped ? group : NULL);
  }
  for (uint32_t part = 0; part < parts; part++) {
    snprintf(name, sizeof name, "part%u/input", part);
    uint32_t last = node(m, name, small, 0, NULL);
    const uint32_t input = last;
    for (uint32_t b = 0; b < blocks; b++)
      for (uint32_t i = 0; i < per; i++) {
        const bool has_weight = i < 3 || i >= 3 + heads;
        snprintf(name, sizeof name, "part%u/block%u/%u", part, b, i);
        const uint32_t n = AT(part, b, i) =
            node(m, name, (has_weight ? product : small) * (0.9 + 0.2 * unit(m)), 0, NULL);
        if (has_weight) edge(m, weights[b * 6 + (i < 3 ? i : i - heads)], n, weight);
        if (i < 3) edge(m, b ? AT(part, b - 1, per - 1) : input, n, state);
        if (i >= 3 && i < 3 + heads)
          for (uint32_t k = 0; k < 3; k++) edge(m, AT(part, b, k), n, state / heads);
        if (i == 3 + heads)
          for (uint32_t h = 0; h < heads; h++) edge(m, AT(part, b, 3 + h), n, state / heads);
        if (i > 3 + heads) edge(m, AT(part, b, i - 1), n, state);
        last = n;
      }
    snprintf(name, sizeof name, "part%u/loss", part);
    const uint32_t loss = node(m, name, small, 0, NULL);
    edge(m, last, loss, state);
    uint32_t above = loss;
    for (uint32_t b = blocks; b-- > 0;) {
      uint32_t back[HEADS] = {0};
      for (uint32_t i = per; i-- > 0;) {
        const bool has_weight = i < 3 || i >= 3 + heads;
        snprintf(name, sizeof name, "part%u/back%u/%u", part, b, i);
        const uint32_t n = node(m, name, 2 * (has_weight ? product : small), 0, NULL);
        edge(m, AT(part, b, i), n, state);
        if (has_weight) grads[(size_t)part * blocks * 6 + b * 6 + (i < 3 ? i : i - heads)] = n;
        if (i < 3)
          for (uint32_t h = 0; h < heads; h++) edge(m, back[h], n, state / heads);
        else
          edge(m, above, n, state);
        if (i >= 3 && i < 3 + heads)
          back[i - 3] = n;
        else if (i >= 3 || i == 0)
          above = n;
      }
    }
  }
#undef AT
  for (uint32_t k = 0; k < blocks * 6; k++) {
    snprintf(name, sizeof name, "update%u", k), snprintf(group, sizeof group, "variable%u", k);
    const uint32_t update = node(m, name, small, 0, grouped ? group : NULL);
    for (uint32_t part = 0; part < parts; part++) edge(m, grads[(size_t)part * blocks * 6 + k], update, weight);
  }
  free(all), free(weights), free(grads);
}

static void make_series(struct maker *m, uint32_t nodes) {
  char name[48];
  uint32_t tip = node(m, "op0", 20, 0, NULL);
  while (m->count < nodes && !m->s) {
    uint32_t branches = 1 + below(m, 5), ends[8];
    for (uint32_t b = 0; b < branches; b++) {
      uint32_t length = 1 + below(m, 6);
      ends[b] = tip;
      for (uint32_t i = 0; i < length; i++) {
        snprintf(name, sizeof name, "op%u", m->count);
        uint32_t id = node(m, name, 5 + 100 * unit(m), (uint64_t)(unit(m) * 1e6), NULL);
        edge(m, ends[b], id, 100000 * (1 + ends[b] % 4));
        ends[b] = id;
      }
    }
    snprintf(name, sizeof name, "op%u", m->count);
    tip = node(m, name, 10 + 20 * unit(m), 0, NULL);
    for (uint32_t b = 0; b < branches; b++) edge(m, ends[b], tip, 100000 * (1 + ends[b] % 4));
  }
}

// Makes blocks of branches; each node is in one group with its backward node, and backward edges are reversed.
// `branches` 1: a chain with skips.
static void make_training(struct maker *m, uint32_t nodes, uint32_t branches) {
  uint32_t forward = nodes / 2, *id = calloc(forward + 1u, sizeof *id), *back = calloc(forward + 1u, sizeof *back);
  TFC_ARRAY(uint32_t) from = {0}, to = {0};
  TFC_ARRAY(uint64_t) bytes = {0};
  char name[48], group[48];
  uint32_t n = 0, joint = 0;
  double *us = calloc(forward + 1u, sizeof *us);
#define LINK(a, b, size)                                                                                               \
  do {                                                                                                                 \
    if (!tfc_array_push(&from, (a)) || !tfc_array_push(&to, (b)) || !tfc_array_push(&bytes, (uint64_t)(size)))         \
      m->s = tfc_status_no_memory(NULL);                                                                               \
  } while (0)
  us[n++] = 100;
  while (n < forward) {
    uint32_t wide = branches > 1 ? 1 + below(m, branches) : 1, ends[16], count = 0;
    for (uint32_t b = 0; b < wide && n < forward; b++) {
      uint32_t length = branches > 1 ? 1 + below(m, 5) : 1, tip = joint;
      for (uint32_t i = 0; i < length && n < forward; i++) {
        us[n] = 50 * exp(1.5 * unit(m));
        LINK(tip, n, 200000 + 100000 * (tip % 7));
        tip = n++;
      }
      ends[count++] = tip;
    }
    if (branches == 1 && n > 4 && below(m, 3) == 0) LINK(n - 4, n - 1, 200000 + 100000 * ((n - 4) % 7));
    if (count > 1 && n < forward) {
      us[n] = 20;
      for (uint32_t b = 0; b < count; b++) LINK(ends[b], n, 200000 + 100000 * (ends[b] % 7));
      joint = n++;
    } else {
      joint = ends[count - 1];
    }
  }
  for (n = 0; n < forward; n++) {
    snprintf(name, sizeof name, "forward%u", n), snprintf(group, sizeof group, "layer%u", n);
    id[n] = node(m, name, us[n], 1000000 + below(m, 4000000), group);
  }
  for (n = forward; n-- > 0;) {
    snprintf(name, sizeof name, "backward%u", n), snprintf(group, sizeof group, "layer%u", n);
    back[n] = node(m, name, 2 * us[n], 500000, group);
    edge(m, id[n], back[n], 400000);
  }
  for (size_t i = 0; i < from.count; i++) {
    edge(m, id[from.data[i]], id[to.data[i]], bytes.data[i]);
    edge(m, back[to.data[i]], back[from.data[i]], 200000 + 100000 * (to.data[i] % 7));
  }
  tfc_array_free(&from);
  tfc_array_free(&to);
  tfc_array_free(&bytes);
  free(id), free(back), free(us);
}

static tfc_status make_machine(const struct family_request *q, uint64_t memory, struct tfc_machine **out) {
  tfc_status s = NULL;
  struct tfc_machine *m = NULL;
  char name[32];
  TFC_TRY(s, tfc_machine_create(&m));
  for (uint32_t d = 0; d < q->devices + q->cpus; d++) {
    bool cpu = d >= q->devices;
    snprintf(name, sizeof name, "%s:%u", cpu ? "cpu" : "acc", cpu ? d - q->devices : d);
    struct tfc_machine_device x = {.name = tfc_str_from(name), .label = TFC_LABEL_MODELLED, .memory = TFC_NO_LIMIT};
    x.kind = cpu ? TFC_STR("cpu") : q->mixed && d % 2 ? TFC_STR("old") : TFC_STR("acc");
    if (!cpu && q->tightness > 0) x.memory = (uint64_t)((double)memory * q->tightness / q->devices);
    TFC_TRY(s, tfc_machine_add_device(m, &x));
  }
  struct tfc_link link = tfc_link_default();
  bool exact = strcmp(q->family, "grid") == 0 || strcmp(q->family, "towers") == 0;
  link.latency_us = exact ? 1 : 10, link.bandwidth = 12e9;
  if (exact) link.bandwidth = INFINITY;
  if (q->objective == TFC_OBJECTIVE_THROUGHPUT) link.occupies = TFC_OCCUPIES_BOTH, link.latency_us = 0;
  TFC_TRY(s, tfc_machine_add_link(m, &link));
  *out = m, m = NULL;
out:
  tfc_machine_free(m);
  return s;
}

tfc_status family_make(const struct family_request *q, struct family_problem *out) {
  tfc_status s = NULL;
  struct maker m = {0};
  struct family_problem made = {0};
  tfc_random_init(&m.r, q->seed * 7919 + q->nodes);
  TFC_TRY(s, tfc_cost_builder_create(&m.b));
  TFC_TRY(s, tfc_cost_builder_kind(m.b, TFC_STR("acc"), &m.acc));
  TFC_TRY(s, tfc_cost_builder_kind(m.b, TFC_STR("old"), &m.old));
  TFC_TRY(s, tfc_cost_builder_kind(m.b, TFC_STR("cpu"), &m.cpu));
  if (strcmp(q->family, "layered") == 0) {
    make_layered(&m, q->nodes);
  } else if (strcmp(q->family, "grid") == 0) {
    make_grid(&m, q->nodes, q->devices);
    // The wavefront waits for one transfer per layer; after that no device waits.
    made.optimum = ((int64_t)(q->devices + q->nodes / q->devices - 1) * 100 + (q->devices - 1)) * 1000000;
  } else if (strcmp(q->family, "towers") == 0) {
    make_towers(&m, q->nodes, 2 * q->devices);
    // Each device computes two towers, one after the other. The input and the concat are on different devices, so most
    // devices need a transfer: of the input, or of their towers' results. If there are more than two devices, one of
    // them needs both.
    const int64_t links = q->devices > 2 ? 2 : q->devices - 1;
    made.optimum = ((int64_t)((q->nodes - 2) / (2 * q->devices)) * 2 * 50 + 21 + links) * 1000000;
  } else if (strcmp(q->family, "seq2seq") == 0) {
    make_seq2seq(&m, q->nodes);
  } else if (strcmp(q->family, "series") == 0) {
    make_series(&m, q->nodes);
  } else if (strcmp(q->family, "recurrent") == 0) {
    make_recurrent(&m, q->nodes);
  } else if (strcmp(q->family, "blocks") == 0) {
    make_blocks(&m, q->nodes);
  } else if (strcmp(q->family, "layers") == 0) {
    make_training(&m, q->nodes, 1);
  } else if (strcmp(q->family, "operators") == 0) {
    make_training(&m, q->nodes, 6);
  } else {
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "there is no family '%s'", q->family);
  }
  if (m.s) TFC_FAIL(s, tfc_status_code(m.s), "%s", tfc_status_message(m.s));
  if (q->objective != TFC_OBJECTIVE_STEP || q->mixed || q->tightness > 0) made.optimum = 0;
  TFC_TRY(s, tfc_cost_builder_finish(m.b, &made.graph));
  TFC_TRY(s, make_machine(q, m.memory, &made.machine));
  TFC_TRY(s, tfc_problem_create(made.graph, made.machine, q->objective, &made.problem));
  *out = made;
  made = (struct family_problem){0};
out:
  tfc_status_free(m.s);
  tfc_cost_builder_free(m.b);
  family_free(&made);
  return s;
}

void family_free(struct family_problem *p) {
  tfc_problem_free(p->problem);
  tfc_cost_graph_free(p->graph);
  tfc_machine_free(p->machine);
  *p = (struct family_problem){0};
}
