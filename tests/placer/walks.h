// Random walks by delta evaluation, each step of which is checked against full evaluation, and the instances that they
// need in addition to the random ones. The suite and the fuzz target use them.
#ifndef TFC_TESTS_PLACER_WALKS_H
#define TFC_TESTS_PLACER_WALKS_H

#include <string.h>

#include "tests/placer/instances.h"

#define DIFFER_UNLESS(condition, what, is, should)                                                                     \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      snprintf(message, sizeof message, "step %d, %s: %lld, full %lld", step, what, (long long)(is),                   \
               (long long)(should));                                                                                   \
      differs = message;                                                                                               \
      goto out;                                                                                                        \
    }                                                                                                                  \
  } while (0)

// Walks `steps` steps by delta evaluation from a random placement. It compares every trial and every commit with a full
// evaluation, and the record after a commit with a record from the start. Returns the first difference, or NULL.
static inline const char *walk(struct tfc_random *r, const struct instance *i, int steps) {
  static char message[160];
  const char *differs = NULL;
  const struct tfc_problem *p = i->problem;
  struct tfc_delta *delta = NULL, *fresh = NULL;
  struct tfc_simulator *sim = NULL;
  tfc_device_id *device = calloc(p->unit_count, sizeof *device), *other = calloc(p->unit_count, sizeof *other);
  uint32_t *rank = calloc(p->node_count, sizeof *rank), *other_rank = calloc(p->node_count, sizeof *rank);
  MUST(tfc_delta_create(p, &delta));
  MUST(tfc_delta_create(p, &fresh));
  MUST(tfc_simulator_create(p, &sim));
  struct tfc_verdict v = {0}, full = {0};
  bool legal = false;
  int step = -1;
  for (int tries = 0; tries < 50 && !legal; tries++) {
    random_devices(r, p, device);
    tfc_delta_reset(delta, device, NULL, &v);
    tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &full);
    DIFFER_UNLESS(v.legal == full.legal, "legal", v.legal, full.legal);
    legal = full.legal;
  }
  memcpy(rank, p->rank, sizeof *rank * p->node_count);
  for (step = 0; step < steps && legal; step++) {
    struct tfc_move moves[4];
    uint32_t swaps[4], move_count = (uint32_t)pick(r, 4),
                       swap_count = move_count && pick(r, 2) ? 0 : (uint32_t)pick(r, 3);
    memcpy(other, device, sizeof *other * p->unit_count);
    memcpy(other_rank, rank, sizeof *rank * p->node_count);
    for (uint32_t k = 0; k < move_count; k++) {
      bool again = false;
      moves[k] = (struct tfc_move){(uint32_t)pick(r, p->unit_count), (tfc_device_id)pick(r, p->device_count)};
      for (uint32_t j = 0; j < k; j++) again |= moves[j].unit == moves[k].unit;
      if (again || !tfc_problem_allows(p, moves[k].unit, moves[k].device)) {
        move_count = k;
        break;
      }
      other[moves[k].unit] = moves[k].device;
    }
    if (p->objective != TFC_OBJECTIVE_STEP) swap_count = 0;
    for (uint32_t k = 0; k < swap_count; k++) {
      swaps[2 * k] = (uint32_t)pick(r, p->node_count), swaps[2 * k + 1] = (uint32_t)pick(r, p->node_count);
      uint32_t x = other_rank[swaps[2 * k]];
      other_rank[swaps[2 * k]] = other_rank[swaps[2 * k + 1]], other_rank[swaps[2 * k + 1]] = x;
    }
    int64_t cutoff = pick(r, 3) ? TFC_TIME_MAX : tfc_delta_verdict(delta)->value + (int64_t)pick(r, 1000000);
    tfc_simulate(sim, other, other_rank, cutoff, &full);
    tfc_delta_try(delta, moves, move_count, swaps, swap_count, cutoff, &v);
    DIFFER_UNLESS(full.legal == v.legal || v.cut || full.cut, "trial's legality", v.legal, full.legal);
    DIFFER_UNLESS(v.value == full.value, "trial's value", v.value, full.value);
    // A trial does not change the placement.
    DIFFER_UNLESS(memcmp(tfc_delta_device(delta), device, sizeof *device * p->unit_count) == 0, "devices", step, step);
    if (!full.legal || full.cut) continue;
    DIFFER_UNLESS(v.excess == full.excess, "trial's excess", v.excess, full.excess);
    if (pick(r, 2)) continue;
    tfc_delta_commit(delta);
    memcpy(device, other, sizeof *other * p->unit_count);
    memcpy(rank, other_rank, sizeof *rank * p->node_count);
    const struct tfc_verdict *now = tfc_delta_verdict(delta);
    DIFFER_UNLESS(now->legal && !now->cut, "legal", now->legal, full.legal);
    DIFFER_UNLESS(now->value == full.value, "value", now->value, full.value);
    DIFFER_UNLESS(now->transfers == full.transfers, "transfers", now->transfers, full.transfers);
    DIFFER_UNLESS(now->transfer_bytes == full.transfer_bytes, "transfer_bytes", now->transfer_bytes,
                  full.transfer_bytes);
    DIFFER_UNLESS(now->excess == full.excess, "excess", now->excess, full.excess);
    DIFFER_UNLESS(memcmp(tfc_delta_device(delta), device, sizeof *device * p->unit_count) == 0, "devices", step, step);
    // The record after a commit equals a record from the start.
    tfc_delta_reset(fresh, device, rank, &v);
    DIFFER_UNLESS(memcmp(now->busy, tfc_delta_verdict(fresh)->busy, sizeof *now->busy * p->device_count) == 0, "busy",
                  step, step);
    DIFFER_UNLESS(memcmp(now->memory, tfc_delta_verdict(fresh)->memory, sizeof *now->memory * p->device_count) == 0,
                  "memory", step, step);
    if (!tfc_delta_start(delta)) continue;
    DIFFER_UNLESS(memcmp(tfc_delta_start(delta), tfc_delta_start(fresh), sizeof(int64_t) * p->node_count) == 0,
                  "starts", step, step);
    DIFFER_UNLESS(memcmp(tfc_delta_end(delta), tfc_delta_end(fresh), sizeof(int64_t) * p->node_count) == 0, "ends",
                  step, step);
    DIFFER_UNLESS(memcmp(tfc_delta_arrival(delta), tfc_delta_arrival(fresh), sizeof(int64_t) * p->node_count) == 0,
                  "arrivals", step, step);
  }
out:
  tfc_delta_free(delta);
  tfc_delta_free(fresh);
  tfc_simulator_free(sim);
  free(device), free(other), free(rank), free(other_rank);
  return differs;
}

// The chains have short cuts and run forwards and then backwards, and the two nodes of a unit are far apart. So the
// schedule of a trial equals that of the incumbent again and again, later or earlier in time, and delta evaluation
// skips what is between the differences.
static inline struct instance there_and_back(struct tfc_random *r, uint32_t length, uint32_t devices, uint32_t rich) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t acc, cpu, node;
  const bool fine = pick(r, 2), grouped = pick(r, 3);
  const uint64_t salt = tfc_random_u64(r);
  char name[32];
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  MUST(tfc_cost_builder_kind(b, TFC_STR("cpu"), &cpu));
  for (uint32_t n = 0; n < 2 * length; n++) {
    const uint32_t layer = n < length ? n : 2 * length - 1 - n;
    const double us = fine ? tfc_random_unit(r) * 20 : (double)pick(r, 5);
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, us));
    MUST(tfc_cost_builder_time(b, node, cpu, us * 3));
    snprintf(name, sizeof name, "g%u", layer);
    if (grouped && layer % 3) MUST(tfc_cost_builder_group(b, node, tfc_str_from(name)));
    for (uint32_t k = n && pick(r, 20) ? 1 + (uint32_t)pick(r, 2) : 0; k > 0; k--) {
      const uint32_t back = 1 + (uint32_t)pick(r, pick(r, 6) ? 3 : 30), from = n < back ? 0 : n - back;
      uint64_t state = salt + from;
      MUST(tfc_cost_builder_edge(b, from, 0, n, tfc_splitmix64(&state) % 20000, TFC_LIVE_ABSENT));
    }
    uint64_t state = salt + layer;
    if (n >= length && pick(r, 2))
      MUST(tfc_cost_builder_edge(b, layer, 0, n, tfc_splitmix64(&state) % 20000, TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  do {
    tfc_machine_free(i.machine);
    i.machine = random_machine(r, devices, rich, 0);
  } while (i.machine->links[0].bandwidth < 1e7); // with slower links, transfers would hide everything else
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  return i;
}

#endif
