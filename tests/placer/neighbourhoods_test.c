// Tests single parts of local search: which units are in a large neighbourhood and how it is searched, the elite,
// spreading parts of a graph over devices, repairs, meters, and the choice of an order.
#include "tests/common/test.h"

#include <stdio.h>

#include "placer/search/elite.h"
#include "placer/search/lns.c"
#include "placer/search/local.c"
#include "placer/search/parts.h"
#include "tests/placer/instances.h"

static bool beside(const struct tfc_problem *p, uint32_t u, uint32_t v) {
  for (uint32_t net = 0; net < p->net_count; net++) {
    const uint32_t from = p->unit[p->graph->producer[p->net_tensor[net]]];
    for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++)
      if ((from == u && p->net_unit[k] == v) || (from == v && p->net_unit[k] == u)) return true;
  }
  return false;
}
static struct instance connected(uint64_t seed, uint32_t nodes, uint32_t devices, uint32_t rich, tfc_objective o) {
  struct tfc_random random;
  tfc_random_init(&random, seed);
  for (;;) {
    struct instance i = random_instance(&random, nodes, devices, rich, o);
    if (i.problem->net_count >= nodes / 2) return i;
    instance_free(&i);
  }
}

static void chosen_units(void **state) {
  (void)state;
  struct instance i = connected(3, 50, 3, 0, TFC_OBJECTIVE_STEP);
  const struct tfc_problem *p = i.problem;
  struct search q = {.p = p, .mark = calloc(p->unit_count + 1u, sizeof *q.mark)};
  struct tfc_verdict v = {0};
  tfc_device_id device[64] = {0};
  uint32_t out[LARGEST], full = 0, spans = 0;
  tfc_random_init(&q.random, 1);
  random_devices(&q.random, p, device);
  assert_ok(tfc_delta_create(p, &q.delta));
  tfc_delta_reset(q.delta, device, NULL, &v);
  for (int round = 0; round < 400; round++) {
    const uint32_t want = 2 + (uint32_t)round % 20, count = around(&q, want, out);
    assert_in_range(count, 1, want);
    full += count == want;
    for (uint32_t a = 0; a < count; a++) { // each unit is a neighbour of one that comes before it
      bool near = a == 0;
      for (uint32_t b = 0; b < a; b++) {
        assert_true(out[a] != out[b]);
        near = near || beside(p, out[a], out[b]);
      }
      assert_true(near);
    }
  }
  assert_true(full > 100);
  const int64_t *start = tfc_delta_start(q.delta), *end = tfc_delta_end(q.delta);
  for (int round = 0; round < 400; round++) {
    const uint32_t want = 2 + (uint32_t)round % 20, count = at_a_time(&q, want, out);
    assert_true(count <= want);
    // There is an interval in which all these units run, at least in part: its length is at most the time of one
    // operation plus 10.5 % of the step before and after it.
    int64_t latest = 0, earliest = INT64_MAX, longest = 0;
    for (uint32_t n = 0; n < p->node_count; n++) longest = end[n] - start[n] > longest ? end[n] - start[n] : longest;
    for (uint32_t a = 0; a < count; a++) {
      for (uint32_t b = 0; b < a; b++) assert_true(out[a] != out[b]);
      const uint32_t n = p->member[p->first_member[out[a]]];
      latest = start[n] > latest ? start[n] : latest, earliest = end[n] < earliest ? end[n] : earliest;
    }
    if (count) assert_true((double)(latest - earliest) <= (double)longest + 0.211 * (double)v.value);
    spans += count == want;
  }
  assert_true(spans > 20);
  tfc_delta_free(q.delta);
  free(q.mark);
  instance_free(&i);
}

// The result is not worse than the start, has the value that the simulator gives, and is mostly the optimum of small
// problems.
static void large_neighbourhoods(void **state) {
  (void)state;
  uint32_t found = 0;
  for (uint64_t seed = 1; seed <= 16; seed++) {
    const tfc_objective objective = seed % 2 ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT;
    struct instance i = connected(seed, 7, 3, seed % 3 ? RICH_KINDS | RICH_LIMITS : 0, objective);
    const struct tfc_problem *p = i.problem;
    struct tfc_simulator *sim = NULL;
    struct tfc_solution solution = {0};
    struct tfc_score best = TFC_SCORE_NONE, score;
    struct tfc_verdict v = {0};
    struct tfc_random random;
    tfc_device_id device[16] = {0};
    uint64_t used = 0;
    tfc_random_init(&random, seed);
    assert_ok(tfc_simulator_create(p, &sim));
    assert_ok(tfc_solution_init(&solution, p));
    for (bool more = true; more;) {
      bool may = true;
      for (uint32_t u = 0; u < p->unit_count; u++) may = may && tfc_problem_allows(p, u, device[u]);
      if (may) {
        tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
        if (tfc_score_better(tfc_score_of(&v), best)) best = tfc_score_of(&v);
      }
      uint32_t u = 0;
      while (u < p->unit_count && ++device[u] == p->device_count) device[u++] = 0;
      more = u < p->unit_count;
    }
    random_devices(&random, p, solution.device);
    tfc_simulate(sim, solution.device, NULL, TFC_TIME_MAX, &v);
    const struct tfc_score first = tfc_score_of(&v);
    const struct tfc_budget budget = {.evaluations = 4000, .seed = seed, .threads = 1};
    assert_ok(tfc_local_lns(p, &budget, &solution, &score, &used));
    assert_true(used == 4000);
    assert_ok(tfc_solution_check(p, solution.device));
    tfc_simulate(sim, solution.device, solution.rank, TFC_TIME_MAX, &v);
    assert_int_equal(tfc_score_of(&v).value, score.value);
    assert_int_equal(tfc_score_of(&v).excess, score.excess);
    assert_false(tfc_score_better(first, score));
    found += !tfc_score_better(best, score);
    tfc_solution_deinit(&solution);
    tfc_simulator_free(sim);
    instance_free(&i);
  }
  print_message("%u of 16 optima\n", found);
  assert_true(found >= 15);
}

// Compares the elite with a sorted list of all solutions that joined it: the elite has the eight best scores, and of
// several solutions with the same score the one that joined first.
static void elites(void **state) {
  (void)state;
  struct instance i = connected(5, 8, 2, 0, TFC_OBJECTIVE_STEP);
  const struct tfc_problem *p = i.problem;
  struct tfc_random r;
  tfc_random_init(&r, 2);
  for (int round = 0; round < 50; round++) {
    struct tfc_elite one = {0}, two = {0};
    struct tfc_score all[40];
    uint32_t count = 0;
    for (int k = 0; k < 40; k++) {
      tfc_device_id device[8];
      for (uint32_t u = 0; u < p->unit_count; u++) device[u] = (tfc_device_id)(k >> u & 1);
      const struct tfc_solution s = {.device = device};
      const struct tfc_score score =
          pick(&r, 12) ? (struct tfc_score){pick(&r, 2) * 10, (int64_t)pick(&r, 20)} : TFC_SCORE_NONE;
      assert_ok(tfc_elite_join(k % 2 ? &one : &two, p, &s, score));
      bool known = score.value == TFC_TIME_MAX;
      for (uint32_t m = 0; m < count; m++) known = known || memcmp(&all[m], &score, sizeof score) == 0;
      if (known) continue;
      uint32_t at = count++;
      for (; at > 0 && tfc_score_better(score, all[at - 1]); at--) all[at] = all[at - 1];
      all[at] = score;
    }
    assert_ok(tfc_elite_join_all(&one, &two, p));
    // A solution without a score joins only an empty elite, and all others are better: if one is there, it is the last.
    if (one.count && one.score[one.count - 1].value == TFC_TIME_MAX) one.count--;
    assert_int_equal(one.count, count < TFC_ELITE ? count : TFC_ELITE);
    for (uint32_t k = 0; k < one.count; k++) assert_memory_equal(&one.score[k], &all[k], sizeof *all);
    tfc_elite_clear(&one), tfc_elite_clear(&two);
    assert_int_equal(one.count, 0);
  }
  instance_free(&i);
}

// Compares a varied elite with the same rule applied to a list: a solution does not join if a better one differs from
// it in less than a fiftieth of the units, and when it joins, worse ones that do so leave.
static void varied_elites(void **state) {
  (void)state;
  enum { MANY = 60 };
  struct instance i = connected(5, 200, 2, 0, TFC_OBJECTIVE_STEP);
  const struct tfc_problem *p = i.problem;
  struct tfc_random r;
  tfc_random_init(&r, 3);
  uint32_t left_out = 0, left = 0;
  assert_true(p->unit_count == 200);
  for (int round = 0; round < 20; round++) {
    struct tfc_elite elite = {.varied = true};
    static tfc_device_id device[MANY][200], listed[TFC_ELITE + 1][200];
    int64_t value[TFC_ELITE + 1];
    uint32_t count = 0;
    for (int k = 0; k < MANY; k++) { // most are like an earlier one but for a few units
      if (k % 4 == 0)
        for (uint32_t u = 0; u < 200; u++) device[k][u] = (tfc_device_id)pick(&r, 2);
      else
        memcpy(device[k], device[pick(&r, (uint64_t)k)], sizeof device[k]);
      for (uint32_t n = (uint32_t)pick(&r, 7); k % 4 && n > 0; n--) device[k][pick(&r, 200)] ^= 1;
      const struct tfc_score score = {0, 10000 - 100 * k / 2 + (int64_t)pick(&r, 1000)};
      assert_ok(tfc_elite_join(&elite, p, &(struct tfc_solution){.device = device[k]}, score));
      uint32_t at = 0, to = 0;
      bool joins = true;
      while (at < count && value[at] < score.value) at++;
      if (at == TFC_ELITE || (at < count && value[at] == score.value)) continue;
      for (uint32_t m = 0; m < count; m++) {
        uint32_t differ = 0;
        for (uint32_t u = 0; u < 200; u++) differ += listed[m][u] != device[k][u];
        if (differ < 4 && m < at) joins = false;
      }
      left_out += !joins;
      for (uint32_t m = 0; joins && m < count; m++) {
        uint32_t differ = 0;
        for (uint32_t u = 0; u < 200; u++) differ += listed[m][u] != device[k][u];
        if (differ < 4 && m >= at) continue;
        memmove(listed[to], listed[m], sizeof *listed);
        value[to++] = value[m];
      }
      if (!joins) continue;
      left += count - to;
      if (to == TFC_ELITE) to--;
      memmove(listed[at + 1], listed[at], (to - at) * sizeof *listed);
      memmove(&value[at + 1], &value[at], (to - at) * sizeof *value);
      memcpy(listed[at], device[k], sizeof *listed);
      value[at] = score.value, count = to + 1;
    }
    assert_int_equal(elite.count, count);
    for (uint32_t m = 0; m < count; m++) {
      assert_int_equal(elite.score[m].value, value[m]);
      assert_memory_equal(elite.solution[m].device, listed[m], sizeof *listed);
    }
    tfc_elite_clear(&elite);
  }
  assert_true(left_out > 50 && left > 50);
  instance_free(&i);
}

// Parts are placed in order, each on the device with the least work among those that have room.
static void spreading(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    struct instance i = connected(seed, 30, 4, seed % 2 ? RICH_KINDS | RICH_LIMITS : RICH_LIMITS, TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    enum { PARTS = 7 };
    uint32_t of[64], order[PARTS];
    uint64_t memory[PARTS] = {0}, held[4] = {0};
    double time[PARTS][4] = {{0}}, least[PARTS], load[4] = {0};
    bool may[PARTS][4], any = true;
    struct tfc_parts q;
    struct tfc_random r;
    tfc_device_id home[PARTS];
    tfc_random_init(&r, seed);
    for (uint32_t u = 0; u < p->unit_count; u++) of[u] = u % PARTS;
    for (uint32_t k = 0; k < PARTS; k++) {
      bool one = false;
      least[k] = INFINITY;
      for (uint32_t d = 0; d < p->device_count; d++) {
        may[k][d] = true;
        for (uint32_t u = k; u < p->unit_count; u += PARTS) {
          may[k][d] = may[k][d] && tfc_problem_allows(p, u, d);
          time[k][d] += (double)tfc_problem_unit_time(p, u, d);
        }
        if (may[k][d]) least[k] = fmin(least[k], time[k][d]), one = true;
      }
      for (uint32_t u = k; u < p->unit_count; u += PARTS) memory[k] += p->unit_memory[u];
      any = any && one;
    }
    assert_ok(tfc_parts_init(&q, p, of, PARTS));
    assert_true(q.any == any);
    for (uint32_t k = 0; k < PARTS; k++) {
      assert_int_equal(q.memory[k], memory[k]);
      for (uint32_t d = 0; d < p->device_count; d++) assert_true(q.may[k * p->device_count + d] == may[k][d]);
    }
    for (int by_work = 0; any && by_work < 2; by_work++) {
      for (uint32_t k = 0; k < PARTS; k++) order[k] = k;
      for (uint32_t a = 1; a < PARTS; a++)
        for (uint32_t b = a; b > 0; b--) {
          const uint32_t x = order[b], y = order[b - 1];
          const bool before = by_work && (least[x] > least[y] || least[x] < least[y]) ? least[x] > least[y]
                              : memory[x] != memory[y]                                ? memory[x] > memory[y]
                                                                                      : x < y;
          if (before) order[b] = y, order[b - 1] = x;
        }
      memset(held, 0, sizeof held), memset(load, 0, sizeof load);
      tfc_parts_spread(&q, &r, by_work ? TFC_PARTS_BY_WORK : TFC_PARTS_BY_MEMORY, home);
      for (uint32_t a = 0; a < PARTS; a++) {
        const uint32_t k = order[a];
        uint32_t best = TFC_NONE, roomiest = TFC_NONE;
        for (uint32_t d = 0; d < p->device_count; d++) {
          if (!may[k][d]) continue;
          const uint64_t room = p->limit[d] > held[d] ? p->limit[d] - held[d] : 0;
          if (room >= memory[k] && (best == TFC_NONE || load[d] + time[k][d] < load[best] + time[k][best])) best = d;
          if (roomiest == TFC_NONE ||
              room > (p->limit[roomiest] > held[roomiest] ? p->limit[roomiest] - held[roomiest] : 0))
            roomiest = d;
        }
        if (best == TFC_NONE) best = roomiest;
        assert_int_equal(home[k], best);
        held[best] += memory[k], load[best] += time[k][best];
      }
    }
    if (any) {
      tfc_parts_spread(&q, &r, TFC_PARTS_ANYHOW, home);
      for (uint32_t k = 0; k < PARTS; k++) assert_true(may[k][home[k]]);
      memset(held, 0, sizeof held);
      const bool packed = tfc_parts_pack(&q, &r, false, home);
      bool fits = true;
      for (uint32_t k = 0; k < PARTS; k++) held[home[k]] += memory[k];
      for (uint32_t d = 0; d < p->device_count; d++) fits = fits && held[d] <= p->limit[d];
      assert_true(packed == fits);
    }
    tfc_parts_deinit(&q);
    instance_free(&i);
  }
}

static void meters(void **state) {
  (void)state;
  struct tfc_meter m;
  struct tfc_budget budget = {.evaluations = 5};
  tfc_meter_init(&m, &budget);
  for (int k = 1; k < 5; k++) {
    assert_true(tfc_meter_spend(&m, 1000));
    assert_true(fabs(tfc_meter_share(&m) - k / 5.0) < 1e-12);
  }
  assert_false(tfc_meter_spend(&m, 1000));
  assert_false(tfc_meter_spend(&m, 1000));
  assert_true(m.over && m.used == 5 && tfc_meter_share(&m) >= 1);
  atomic_bool cancel = false;
  budget = (struct tfc_budget){.cancel = &cancel};
  tfc_meter_init(&m, &budget);
  assert_true(tfc_meter_spend(&m, 3) && tfc_meter_share(&m) <= 0);
  atomic_store(&cancel, true);
  for (int k = 0; k < 3; k++) assert_true(tfc_meter_spend(&m, 3)); // the clock is read in every fourth call
  assert_false(tfc_meter_spend(&m, 3));
  const double now = tfc_now_s();
  budget = (struct tfc_budget){.deadline = now + 1000};
  assert_false(tfc_budget_over(&budget));
  tfc_meter_init(&m, &budget);
  m.begin = now - 3000;
  assert_true(fabs(tfc_meter_share(&m) - 0.75) < 0.01);
  budget.evaluations = 10, m.used = 9;
  // of the two limits, time and evaluations, the one that is nearer counts
  assert_true(fabs(tfc_meter_share(&m) - 0.9) < 0.01);
  budget.deadline = now - 1;
  assert_true(tfc_budget_over(&budget));
  m.countdown = 0, m.used = 0;
  assert_false(tfc_meter_spend(&m, 3));
}

// A solution gets the best of three orders: its own, none, or the longest remaining path first.
static void settling(void **state) {
  (void)state;
  uint32_t kept = 0, dropped = 0, made = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    const tfc_objective objective = seed % 6 ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT;
    struct instance i = connected(seed, 14, 3, RICH_ORDER | RICH_KINDS, objective);
    const struct tfc_problem *p = i.problem;
    struct tfc_simulator *sim = NULL;
    struct tfc_solution s = {0};
    struct tfc_random r;
    struct tfc_verdict plain = {0}, own = {0}, longest = {0}, v = {0};
    struct tfc_score score;
    uint64_t used = 0;
    uint32_t rank[32], path[32];
    tfc_random_init(&r, seed);
    assert_ok(tfc_simulator_create(p, &sim));
    assert_ok(tfc_solution_init(&s, p));
    random_devices(&r, p, s.device);
    for (uint32_t n = 0; n < p->node_count; n++) rank[n] = n;
    for (uint32_t n = p->node_count; n > 1; n--) {
      const uint32_t k = (uint32_t)pick(&r, n), x = rank[n - 1];
      rank[n - 1] = rank[k], rank[k] = x;
    }
    const bool with = seed % 3 != 0;
    if (with) {
      s.rank = malloc(sizeof *s.rank * p->node_count);
      memcpy(s.rank, rank, sizeof *rank * p->node_count);
    }
    assert_ok(tfc_local_rerank(p, s.device, NULL, path));
    tfc_simulate(sim, s.device, NULL, TFC_TIME_MAX, &plain);
    tfc_simulate(sim, s.device, with ? rank : NULL, TFC_TIME_MAX, &own);
    tfc_simulate(sim, s.device, path, TFC_TIME_MAX, &longest);
    assert_ok(tfc_local_settle(p, sim, &s, &score, &used));
    struct tfc_score best = tfc_score_of(&plain);
    if (objective == TFC_OBJECTIVE_STEP) {
      if (tfc_score_better(tfc_score_of(&own), best)) best = tfc_score_of(&own);
      if (tfc_score_better(tfc_score_of(&longest), best)) best = tfc_score_of(&longest);
    }
    assert_int_equal(used, objective == TFC_OBJECTIVE_STEP ? 2 + with : 1);
    assert_true(score.value == best.value && score.excess == best.excess);
    tfc_simulate(sim, s.device, s.rank, TFC_TIME_MAX, &v);
    assert_int_equal(v.value, best.value);
    if (objective == TFC_OBJECTIVE_THROUGHPUT || plain.value == best.value) assert_null(s.rank);
    if (!s.rank)
      dropped += with;
    else if (with && memcmp(s.rank, rank, sizeof *rank * p->node_count) == 0)
      kept++;
    else
      made++;
    tfc_solution_deinit(&s);
    tfc_simulator_free(sim);
    instance_free(&i);
  }
  assert_true(kept > 0 && dropped > 0 && made > 0);
}

// A repair returns true if and only if its result is legal and fits; it never moves the units that must be kept. If
// some random placement fits, tfc_local_any finds one that fits.
static void repairs(void **state) {
  (void)state;
  uint32_t repaired = 0, tried = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct instance i =
        connected(seed, 12, 3, RICH_LIMITS | (seed % 2 ? RICH_MISSING : RICH_KINDS), TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    struct tfc_simulator *sim = NULL;
    struct tfc_random r;
    tfc_device_id device[16], before[16];
    bool kept[16] = {0};
    tfc_random_init(&r, seed);
    assert_ok(tfc_simulator_create(p, &sim));
    for (int round = 0; round < 4; round++) {
      random_devices(&r, p, device);
      memcpy(before, device, sizeof before);
      for (uint32_t u = 0; u < p->unit_count; u++) kept[u] = round % 2 && pick(&r, 3) == 0;
      const bool fine = tfc_local_repair(p, &r, device, round % 2 ? kept : NULL);
      struct tfc_verdict v = {0};
      for (uint32_t u = 0; u < p->unit_count; u++) assert_true(tfc_problem_allows(p, u, device[u]));
      tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
      assert_true(fine == (v.legal && v.feasible));
      for (uint32_t u = 0; u < p->unit_count; u++) assert_true(!kept[u] || device[u] == before[u]);
      if (round % 2 == 0) {
        bool one = false; // some random placement fits
        for (int k = 0; k < 3000 && !one; k++) {
          tfc_device_id other[16];
          random_devices(&r, p, other);
          tfc_simulate(sim, other, NULL, TFC_TIME_MAX, &v);
          one = v.legal && v.feasible;
        }
        tried += one, repaired += one && fine;
        const bool any = tfc_local_any(p, &r, device);
        tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
        assert_true(any == (v.legal && v.feasible));
        if (one) assert_true(any);
      }
    }
    tfc_simulator_free(sim);
    instance_free(&i);
  }
  print_message("%u of %u repaired\n", repaired, tried);
  assert_true(tried > 20 && repaired * 10 >= tried * 9);
}

// If nothing but memory is exceeded, a repair draws a unit until the unit is on a device that holds more than its
// limit, at most nine times. So it gets a unit of another device, like one that holds just its limit, only if all nine
// draws were units of other devices.
static void drawing_heavy_units(void **state) {
  (void)state;
  enum { ROUNDS = 100000 };
  struct instance i =
      parsed("{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"a\"], \"nodes\": ["
             "{\"name\": \"n0\", \"time_us\": {\"a\": 1}, \"memory\": 10}, {\"name\": \"n1\", \"time_us\": {\"a\": 1}},"
             "{\"name\": \"n2\", \"time_us\": {\"a\": 1}, \"memory\": 10},"
             "{\"name\": \"n3\", \"time_us\": {\"a\": 1}, \"memory\": 10},"
             "{\"name\": \"n4\", \"time_us\": {\"a\": 1}, \"memory\": 10}], \"edges\": []}",
             "format: tfc-machine\nversion: 1\ndevices:\n  - {name: 'a:0', kind: a, memory: 20}\n"
             "  - {name: 'a:1', kind: a, memory: 15}\nlinks:\n  - {from: '*', to: '*'}\n");
  const uint32_t heavy[] = {0, 2, 3, 4};
  const tfc_device_id device[] = {0, 0, 1, 0, 1};
  uint32_t full = 0, second = 0;
  struct tfc_loads l;
  struct tfc_random r;
  tfc_random_init(&r, 8);
  assert_ok(tfc_loads_init(&l, i.problem));
  tfc_loads_reset(&l, device);
  for (int k = 0; k < ROUNDS; k++) {
    const uint32_t u = draw_heavy(&l, &r, heavy, 4);
    assert_true(u < 5 && u != 1);
    full += device[u] == 0, second += u == 2;
  }
  assert_in_range(full, 130, 260);       // 195 of 100,000 are one in 2^9; five standard deviations of 14
  assert_in_range(second, 49000, 50800); // half of the others: n2 and n4 are equally likely
  tfc_loads_deinit(&l);
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(chosen_units),
                                     cmocka_unit_test(large_neighbourhoods),
                                     cmocka_unit_test(elites),
                                     cmocka_unit_test(varied_elites),
                                     cmocka_unit_test(spreading),
                                     cmocka_unit_test(meters),
                                     cmocka_unit_test(settling),
                                     cmocka_unit_test(repairs),
                                     cmocka_unit_test(drawing_heavy_units)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
