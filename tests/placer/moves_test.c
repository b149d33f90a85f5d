// Tests the moves of annealing: how often each neighbour of a unit is drawn, to which other devices units move,
// connected regions that move together, and exchanges. Then tests its temperatures and prices of excess memory, and
// that it finds the optimum of small problems from any start.
#include "tests/common/test.h"

#include <stdio.h>

#include "placer/search/anneal.c"
#include "placer/search/anneal.h"
#include "tests/placer/instances.h"

static bool beside(const struct tfc_problem *p, uint32_t u, uint32_t v) {
  for (uint32_t net = 0; net < p->net_count; net++) {
    const uint32_t from = p->unit[p->graph->producer[p->net_tensor[net]]];
    for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++)
      if ((from == u && p->net_unit[k] == v) || (from == v && p->net_unit[k] == u)) return true;
  }
  return false;
}

struct rig {
  struct instance instance;
  struct annealer a;
  struct tfc_anneal_options o;
  tfc_device_id device[64];
  uint32_t mark[64];
  struct tfc_move moves[64];
};
static void rig_make(struct rig *r, uint64_t seed, uint32_t nodes, uint32_t devices, uint32_t rich) {
  struct tfc_random random;
  *r = (struct rig){0};
  tfc_random_init(&random, seed);
  do { // draws again until there are as many nets as nodes
    instance_free(&r->instance);
    r->instance = random_instance(&random, nodes, devices, rich, TFC_OBJECTIVE_STEP);
  } while (r->instance.problem->net_count < nodes);
  random_devices(&random, r->instance.problem, r->device);
  r->a =
      (struct annealer){.p = r->instance.problem, .o = &r->o, .device = r->device, .mark = r->mark, .moves = r->moves};
  tfc_random_init(&r->a.random, seed);
}

// The probability with which each unit is drawn as a neighbour of `u`.
static void chances(const struct tfc_problem *p, uint32_t u, double *out) {
  double nets = 0;
  for (uint32_t v = 0; v < p->unit_count; v++) out[v] = 0;
  for (uint32_t net = 0; net < p->net_count; net++) {
    const uint32_t from = p->unit[p->graph->producer[p->net_tensor[net]]],
                   fan = p->net_first[net + 1] - p->net_first[net];
    if (from == u) nets++;
    for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++) {
      if (from == u) out[p->net_unit[k]] += 1.0 / fan;
      if (p->net_unit[k] == u) out[from]++, nets++;
    }
  }
  if (!(nets > 0)) out[u] = nets = 1;
  for (uint32_t v = 0; v < p->unit_count; v++) out[v] /= nets;
}

// Expects that an event of this probability came in `came` of `rounds` rounds, within five standard deviations.
static void assert_often(uint32_t came, uint32_t rounds, double probability) {
  const double wanted = probability * rounds, off = 5 * sqrt(wanted * (1 - probability)) + 1;
  if (!(fabs(came - wanted) <= off)) fail_msg("%u of %u, not %.0f +- %.0f", came, rounds, wanted, off);
}

// A neighbour of a unit is drawn in two steps: first one of the nets that the unit reads or makes, all with equal
// probability; then the producer of that net or, if the unit itself makes it, one of its readers.
static void neighbours(void **state) {
  (void)state;
  struct rig r;
  enum { rounds = 6000 };
  for (uint64_t seed = 1; seed <= 3; seed++) {
    rig_make(&r, seed, 24, 3, 0);
    const struct tfc_problem *p = r.a.p;
    for (uint32_t u = 0; u < p->unit_count; u += 5) {
      double expected[64], often[64] = {0};
      chances(p, u, expected);
      for (int k = 0; k < rounds; k++) often[neighbour(&r.a, u)] += 1.0 / rounds;
      for (uint32_t v = 0; v < p->unit_count; v++) assert_true(fabs(often[v] - expected[v]) < 0.04);
    }
    instance_free(&r.instance);
  }
}

// With probability 0.6, up to three random neighbours are tried, and the unit moves to the device of the first one that
// is on another device. Otherwise, or if all three are on the unit's own device, any other device is drawn.
static void devices(void **state) {
  (void)state;
  struct rig r;
  enum { rounds = 20000 };
  rig_make(&r, 5, 30, 4, 0);
  const struct tfc_problem *p = r.a.p;
  for (uint32_t u = 0; u < p->unit_count; u += 7) {
    double there[4] = {0}, often[4] = {0};
    for (int k = 0; k < rounds; k++) there[r.device[neighbour(&r.a, u)]] += 1.0 / rounds;
    for (int k = 0; k < rounds; k++) {
      const tfc_device_id d = other_device(&r.a, u);
      assert_true(d != r.device[u] && d < 4);
      often[d] += 1.0 / rounds;
    }
    const double own = there[r.device[u]], looks = 1 + own + own * own, missed = own * own * own;
    for (uint32_t d = 0; d < 4; d++)
      if (d != r.device[u]) assert_true(fabs(often[d] - (0.6 * looks * there[d] + (0.4 + 0.6 * missed) / 3)) < 0.03);
  }
  instance_free(&r.instance);
  rig_make(&r, 5, 10, 1, 0);
  assert_int_equal(other_device(&r.a, 3), 0);
  instance_free(&r.instance);
}

static void regions(void **state) {
  (void)state;
  struct rig r;
  uint32_t largest = 0, single = 0;
  rig_make(&r, 9, 60, 2, 0);
  const struct tfc_problem *p = r.a.p;
  for (int k = 0; k < 3000; k++) {
    const uint32_t u = (uint32_t)(k % (int)p->unit_count);
    r.a.move_count = 0;
    move_region(&r.a, u);
    bool reached[64] = {0};
    reached[u] = true;
    // marks the units that can be reached from u over units that move
    for (uint32_t pass = 0; pass < r.a.move_count; pass++)
      for (uint32_t i = 0; i < r.a.move_count; i++)
        for (uint32_t j = 0; j < r.a.move_count; j++)
          if (reached[r.moves[i].unit] && beside(p, r.moves[i].unit, r.moves[j].unit)) reached[r.moves[j].unit] = true;
    bool own = false;
    for (uint32_t i = 0; i < r.a.move_count; i++) {
      assert_int_equal(r.device[r.moves[i].unit], r.device[u]); // all units that move are on one device
      assert_int_equal(r.moves[i].device, r.moves[0].device);   // all units move to the same device
      assert_true(r.moves[i].device != r.device[u]);
      assert_true(reached[r.moves[i].unit]);
      own = own || r.moves[i].unit == u;
      for (uint32_t j = 0; j < i; j++) assert_true(r.moves[i].unit != r.moves[j].unit);
    }
    assert_true(own && r.a.move_count <= REGION);
    if (r.a.move_count > largest) largest = r.a.move_count;
    single += r.a.move_count == 1;
  }
  assert_true(largest > 8 && largest <= 33 && single < 2500);
  instance_free(&r.instance);
}

static void proposals(void **state) {
  (void)state;
  struct rig r;
  uint32_t swaps = 0, exchanges = 0, singles = 0, many = 0;
  rig_make(&r, 13, 40, 3, 0);
  const struct tfc_problem *p = r.a.p;
  r.o.orders = true;
  for (int k = 0; k < 8000; k++) {
    propose(&r.a);
    for (uint32_t i = 0; i < r.a.move_count; i++) {
      assert_true(r.moves[i].unit < p->unit_count && r.moves[i].device < 3);
      assert_true(r.moves[i].device != r.device[r.moves[i].unit]);
    }
    if (r.a.swap_count) {
      assert_true(!r.a.move_count && r.a.swaps[0] != r.a.swaps[1]);
      assert_int_equal(r.device[p->unit[r.a.swaps[0]]], r.device[p->unit[r.a.swaps[1]]]);
      swaps++;
    } else if (r.a.move_count == 2 && r.moves[0].device == r.device[r.moves[1].unit] &&
               r.moves[1].device == r.device[r.moves[0].unit]) {
      exchanges++;
    } else {
      singles += r.a.move_count == 1, many += r.a.move_count > 1;
    }
  }
  // Of 16 proposals, on average 1 exchanges precedences, 3 move a region, 3 exchange two units, and 9 move one unit.
  assert_true(swaps > 150 && swaps <= 600);
  assert_true(exchanges > 900 && exchanges < 1700);
  assert_true(singles > 4000 && many > 300 && many < 1700);
  r.o.orders = false;
  for (int k = 0; k < 2000; k++) {
    propose(&r.a);
    assert_int_equal(r.a.swap_count, 0);
  }
  // All units of a cluster move together; sometimes two clusters change places.
  uint32_t cluster[64], first[64] = {0}, members[64], whole = 0, two = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) cluster[u] = u % 8, r.device[u] = (tfc_device_id)(u % 8 % 3);
  for (uint32_t c = 0, at = 0; c < 8; c++) {
    first[c] = at;
    for (uint32_t u = c; u < p->unit_count; u += 8) members[at++] = u;
    first[c + 1] = at;
  }
  r.o.cluster = cluster, r.o.cluster_count = 8;
  r.a.first = first, r.a.members = members;
  for (int k = 0; k < 4000; k++) {
    uint32_t moved[8] = {0}, clusters = 0;
    propose(&r.a);
    for (uint32_t i = 0; i < r.a.move_count; i++) moved[cluster[r.moves[i].unit]]++;
    for (uint32_t c = 0; c < 8; c++) {
      assert_true(moved[c] == 0 || moved[c] == first[c + 1] - first[c]);
      clusters += moved[c] > 0;
    }
    assert_true(clusters <= 2);
    whole += clusters == 1, two += clusters == 2;
    if (clusters == 2) {
      const struct tfc_move *a = &r.moves[0], *b = &r.moves[r.a.move_count - 1];
      assert_true(a->device == r.device[b->unit] && b->device == r.device[a->unit]);
    }
  }
  assert_true(whole > 3000);
  // One of five proposals exchanges a cluster with the cluster of a neighbour of its first unit; if the neighbour is in
  // the same cluster, with any cluster. Two clusters on one device cannot be exchanged.
  double exchanged = 0;
  for (uint32_t c = 0; c < 8; c++) {
    double near[64], with[8] = {0};
    chances(p, c, near);
    for (uint32_t v = 0; v < p->unit_count; v++) with[cluster[v]] += near[v];
    for (uint32_t e = 0; e < 8; e++)
      if (e % 3 != c % 3) exchanged += (with[e] + with[c] / 8) / 8 / 5;
  }
  assert_often(two, 4000, exchanged);
  instance_free(&r.instance);
}

// Of 16 proposals, `regions` move a region and 2 exchange two units; if `regions` is 0, 3 move a region and 3 exchange
// units. Without orders, one more moves a region. The partner of an exchange is a neighbour of the unit in one half of
// the cases and any unit in the other; a partner on the unit's own device is replaced once by any unit.
static void how_often_units_change_places(void **state) {
  (void)state;
  struct rig r;
  enum { rounds = 200000 };
  for (uint32_t regions = 0; regions <= 7; regions += 7)
    for (int orders = 0; orders < 2; orders++) {
      static uint32_t times[64][64];
      rig_make(&r, 21, 30, 3, 0);
      const struct tfc_problem *p = r.a.p;
      const uint32_t n = p->unit_count;
      memset(times, 0, sizeof times);
      r.o.regions = regions, r.o.orders = orders;
      for (uint32_t k = 0; k < rounds; k++) {
        propose(&r.a);
        if (r.a.move_count == 2 && r.moves[0].device == r.device[r.moves[1].unit] &&
            r.moves[1].device == r.device[r.moves[0].unit])
          times[r.moves[0].unit][r.moves[1].unit]++;
      }
      // the stamp counts the regions
      assert_often(r.a.stamp, rounds, ((regions ? regions : 3) + !orders) / 16.0);
      for (uint32_t u = 0; u < n; u++) {
        double near[64], same = 0, beside_it = 0, elsewhere = 0;
        uint32_t came_beside = 0, came_elsewhere = 0;
        chances(p, u, near);
        for (uint32_t v = 0; v < n; v++)
          if (r.device[v] == r.device[u]) same += 0.5 * near[v] + 0.5 / n;
        for (uint32_t v = 0; v < n; v++) {
          if (r.device[v] == r.device[u]) continue;
          const double chance = (regions ? 2 : 3) / 16.0 / n * (0.5 * near[v] + 0.5 / n + same / n);
          *(near[v] > 0 ? &beside_it : &elsewhere) += chance;
          *(near[v] > 0 ? &came_beside : &came_elsewhere) += times[u][v];
        }
        assert_often(came_beside, rounds, beside_it), assert_often(came_elsewhere, rounds, elsewhere);
      }
      instance_free(&r.instance);
    }
}

// One of 16 proposals exchanges the precedences of two operations of one device. The second operation is a neighbour of
// a neighbour of the first one in one half of the cases and any operation in the other; until one is on the device of
// the first one, it is drawn up to four times.
static void how_often_precedences_change(void **state) {
  (void)state;
  struct rig r;
  enum { rounds = 400000 };
  static uint32_t times[64][64];
  static double near[64][64];
  rig_make(&r, 23, 20, 2, 0);
  const struct tfc_problem *p = r.a.p;
  const uint32_t n = p->unit_count;
  assert_int_equal(n, p->node_count);
  r.o.orders = true;
  for (uint32_t k = 0; k < rounds; k++) {
    propose(&r.a);
    if (r.a.swap_count) times[p->unit[r.a.swaps[0]]][p->unit[r.a.swaps[1]]]++;
  }
  for (uint32_t u = 0; u < n; u++) chances(p, u, near[u]);
  for (uint32_t u = 0; u < n; u++) {
    double draw[64], fails = 1, all = 0, beside_it = 0;
    uint32_t came = 0, came_beside = 0;
    for (uint32_t v = 0; v < n; v++) {
      draw[v] = 0.5 / n;
      for (uint32_t w = 0; w < n; w++) draw[v] += 0.5 * near[u][w] * near[w][v];
      if (v != u && r.device[v] == r.device[u]) fails -= draw[v];
    }
    for (uint32_t v = 0; v < n; v++) {
      if (v == u || r.device[v] != r.device[u]) continue;
      const double chance = draw[v] * (1 + fails + fails * fails + fails * fails * fails) / 16 / n;
      all += chance, came += times[u][v];
      if (draw[v] > 0.51 / n) beside_it += chance, came_beside += times[u][v];
    }
    assert_often(came, rounds, all), assert_often(came_beside, rounds, beside_it);
  }
  instance_free(&r.instance);
}

// With the probability `critical`, a proposal begins at a critical operation; all of these are equally likely. One of
// 16 proposals puts the critical operation ahead of an operation that runs before it on its device: of the last one, or
// of an earlier one that began only after the critical operation's inputs had come. Each of these has half the
// probability of the one that runs after it.
static void critical_operations(void **state) {
  (void)state;
  struct rig r;
  enum { rounds = 200000, CHAIN = 6 };
  rig_make(&r, 31, 20, 3, 0);
  const struct tfc_problem *p = r.a.p;
  uint32_t critical[4] = {2, 5, 7, 11}, before[64], node, times[64] = {0}, none = 0;
  int64_t start[64] = {0}, arrival[64] = {0};
  r.a.slack = (struct tfc_slack){.critical = critical, .count = 4, .before = before};
  r.a.start = start, r.a.arrival = arrival;
  r.o.critical = 0.3, r.o.orders = true;
  for (uint32_t k = 0; k < rounds; k++) {
    const uint32_t u = any_unit(&r.a, &node);
    if (node == TFC_NONE)
      none++;
    else
      assert_int_equal(u, p->unit[node]), times[node]++;
  }
  assert_often(none, rounds, 0.7);
  for (int k = 0; k < 4; k++) assert_often(times[critical[k]], rounds, 0.3 / 4);
  // Node k of the chain runs from 10 k to 10 k + 10, and the last one is critical.
  for (uint32_t k = 0; k < p->node_count; k++) before[k] = TFC_NONE;
  for (uint32_t k = 0; k < CHAIN; k++) start[k] = 10 * k, before[k] = k ? k - 1 : TFC_NONE;
  critical[0] = CHAIN - 1, r.a.slack.count = 1, r.o.critical = 1;
  static const struct {
    int64_t arrival;
    double chance[CHAIN];                 // [k] of putting the critical operation ahead of node k
  } cases[] = {{50, {0, 0, 0, 0, 1}},     // the critical operation began when its inputs came
               {31, {0, 0, 0, 0, 1}},     // it waited for node 4 and a part of node 3
               {30, {0, 0, 0, 0.5, 0.5}}, // for nodes 3 and 4
               {11, {0, 0, 0.25, 0.25, 0.5}},
               {0, {0.0625, 0.0625, 0.125, 0.25, 0.5}}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    uint32_t ahead[64] = {0};
    arrival[CHAIN - 1] = cases[k].arrival;
    for (uint32_t round = 0; round < rounds / 4; round++) {
      propose(&r.a);
      if (r.a.swap_count) {
        assert_true(r.a.swap_count == 1 && r.a.swaps[0] == CHAIN - 1 && !r.a.move_count);
        ahead[r.a.swaps[1]]++;
      } else { // any other proposal that moves units moves the critical one, too
        bool own = false;
        for (uint32_t i = 0; i < r.a.move_count; i++) own = own || r.moves[i].unit == p->unit[CHAIN - 1];
        assert_true(own || !r.a.move_count);
      }
    }
    for (uint32_t m = 0; m < p->node_count; m++)
      assert_often(ahead[m], rounds / 4, m < CHAIN ? cases[k].chance[m] / 16 : 0);
  }
  critical[0] = 0; // nothing runs before it
  for (uint32_t round = 0; round < rounds / 4; round++) {
    propose(&r.a);
    assert_int_equal(r.a.swap_count, 0);
  }
  instance_free(&r.instance);
}

// Units of one kind move together: from a range around a unit in the list of its kind, all units that are on that
// unit's device. The range is as often longer before the unit as after it. Its length is drawn evenly on a logarithmic
// scale.
static void kinds_move(void **state) {
  (void)state;
  struct rig r;
  enum { rounds = 20000, UNITS = 63, OTHERS = 4, MIDDLE = 33 };
  rig_make(&r, 37, UNITS, 3, 0);
  assert_int_equal(r.a.p->unit_count, UNITS);
  // The first four units are a kind of their own, the others, from the last to the first, another one.
  uint32_t of[UNITS], first[] = {0, OTHERS, UNITS}, unit[UNITS], at[UNITS];
  for (uint32_t k = 0; k < UNITS; k++) {
    unit[k] = k < OTHERS ? k : UNITS - 1 - (k - OTHERS);
    of[unit[k]] = k >= OTHERS, at[unit[k]] = k;
  }
  r.a.kinds = (struct tfc_kinds){2, of, first, unit, at};
  uint32_t earlier = 0, later = 0, few = 0, whole = 0, came[UNITS] = {0};
  for (int split = 0; split < 2; split++) {
    for (uint32_t u = 0; u < UNITS; u++) r.device[u] = (tfc_device_id)(split ? u % 2 : 0);
    for (uint32_t k = 0; k < rounds; k++) {
      const uint32_t u = unit[MIDDLE];
      uint32_t least = UNITS, most = 0;
      r.a.move_count = 0;
      move_kind(&r.a, u);
      assert_true(r.a.move_count > 0);
      for (uint32_t m = 0; m < r.a.move_count; m++) {
        const uint32_t v = r.moves[m].unit, here = at[v];
        assert_true(of[v] == 1 && r.device[v] == r.device[u]);
        assert_true(r.moves[m].device == r.moves[0].device && r.moves[m].device != r.device[u]);
        assert_true(!m || here > at[r.moves[m - 1].unit]);
        least = here < least ? here : least, most = here > most ? here : most;
        if (!split) came[here]++;
      }
      assert_true(least <= MIDDLE && most >= MIDDLE);
      assert_int_equal(r.a.move_count, (most - least) / (split ? 2 : 1) + 1); // all of the device in between
      if (split) continue;
      // 29 units of the kind come before this one and 29 after it; a range ends where the kind ends
      if (least > OTHERS && most < UNITS - 1)
        earlier += MIDDLE - least > most - MIDDLE, later += MIDDLE - least < most - MIDDLE;
      few += r.a.move_count <= 10, whole += r.a.move_count == UNITS - OTHERS;
    }
  }
  assert_often(earlier, earlier + later, 0.5);
  // A number drawn evenly on a logarithmic scale from 2 to 118 is at most 10 with this probability.
  assert_often(few, rounds, log(11 / 2.0) / log(59));
  assert_true(whole > 0);
  for (uint32_t k = 0; k < UNITS; k++) assert_true(k < OTHERS ? came[k] == 0 : came[k] > 0);
  // If there are kinds, four of 16 proposals move units of one kind.
  uint32_t kinds = 0;
  for (uint32_t u = 0; u < UNITS; u++)
    r.device[u] = 0, of[u] = 0; // all units are of the first kind, whose list has four
  for (uint32_t k = 0; k < UNITS; k++) at[k] = 0;
  for (uint32_t k = 0; k < rounds; k++) {
    const uint32_t stamp = r.a.stamp;
    propose(&r.a);
    bool listed = r.a.stamp == stamp && r.a.move_count > 0; // no region, and all that move are among the four
    for (uint32_t m = 0; m < r.a.move_count; m++) listed = listed && r.moves[m].unit < OTHERS;
    kinds += listed;
  }
  // 5 of the other 12 proposals move one unit, which may be one of the four
  assert_often(kinds, rounds, (4 + 5.0 * OTHERS / UNITS) / 16);
  instance_free(&r.instance);
}

static void temperatures(void **state) {
  (void)state;
  struct tfc_anneal_options o = {.hot = 0.08, .cold = 0.0002, .price = 0.5};
  const struct annealer a = {.o = &o, .room = 4000};
  assert_true(fabs(temperature(&o, 0) - 0.08) < 1e-12 && fabs(temperature(&o, 1) - 0.0002) < 1e-12);
  assert_true(fabs(temperature(&o, 0.5) - 0.004) < 1e-9); // the geometric mean
  assert_true(fabs(price_of(&a, 0) - 0.5 / 4000) < 1e-15);
  assert_true(fabs(price_of(&a, 0.5) - 5.0 / 4000) < 1e-12 && fabs(price_of(&a, 1) - 50.0 / 4000) < 1e-12);
  // At the end of the budget, 10 bytes above the limit cost as much as 12.5 % of the value.
  const struct tfc_score none = TFC_SCORE_NONE, fits = {0, 1000}, above = {10, 880}, far = {10, 890};
  assert_true(is_better(&a, above, fits) && !is_better(&a, fits, above));
  assert_true(is_better(&a, fits, far) && !is_better(&a, far, fits) && !is_better(&a, fits, fits));
  assert_true(is_better(&a, fits, none) && !is_better(&a, none, fits));
  o.price = 0, o.hot = 0;
  assert_true(!is_better(&a, above, fits) && is_better(&a, fits, above));
  assert_true(temperature(&o, 0) <= 0 && temperature(&o, 0.5) <= 0 && price_of(&a, 0.5) <= 0);
  assert_true(fabs(raised(3, 0) - 3) < 1e-12 && fabs(raised(3, 2) - 81) < 1e-9);
}

// From a random start, with either objective and with or without clusters, annealing mostly finds the optimum; the
// score that it returns is the simulator's.
static void small_optima(void **state) {
  (void)state;
  uint32_t tried = 0, found = 0;
  for (uint64_t seed = 1; seed <= 24; seed++) {
    const tfc_objective objective = seed % 2 ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT;
    struct tfc_random random;
    tfc_random_init(&random, seed);
    struct instance i = random_instance(&random, 7, 3, seed % 3 ? RICH_KINDS | RICH_LIMITS | RICH_PINS : 0, objective);
    const struct tfc_problem *p = i.problem;
    struct tfc_simulator *sim = NULL;
    struct tfc_solution solution = {0};
    struct tfc_score best = TFC_SCORE_NONE, score;
    uint64_t used = 0;
    tfc_device_id device[16] = {0};
    assert_ok(tfc_simulator_create(p, &sim));
    assert_ok(tfc_solution_init(&solution, p));
    for (bool more = true; more;) {
      bool may = true;
      for (uint32_t u = 0; u < p->unit_count; u++) may = may && tfc_problem_allows(p, u, device[u]);
      struct tfc_verdict v = {0};
      if (may) tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
      if (may && tfc_score_better(tfc_score_of(&v), best)) best = tfc_score_of(&v);
      uint32_t u = 0;
      while (u < p->unit_count && ++device[u] == p->device_count) device[u++] = 0;
      more = u < p->unit_count;
    }
    random_devices(&random, p, solution.device);
    const struct tfc_budget budget = {.evaluations = 3000, .seed = seed, .threads = 1};
    const struct tfc_anneal_options o = {.hot = 0.2, .cold = 0.002};
    assert_ok(tfc_local_anneal(p, &budget, &o, &solution, &score, &used));
    assert_true(used <= 3000 && used > 0);
    struct tfc_verdict v = {0};
    assert_ok(tfc_solution_check(p, solution.device));
    tfc_simulate(sim, solution.device, solution.rank, TFC_TIME_MAX, &v);
    assert_int_equal(tfc_score_of(&v).value, score.value);
    assert_int_equal(tfc_score_of(&v).excess, score.excess);
    assert_false(tfc_score_better(score, best));
    tried++, found += !tfc_score_better(best, score);
    tfc_solution_deinit(&solution);
    tfc_simulator_free(sim);
    instance_free(&i);
  }
  print_message("%u of %u optima\n", found, tried);
  assert_true(found + 1 >= tried);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(neighbours),
                                     cmocka_unit_test(devices),
                                     cmocka_unit_test(regions),
                                     cmocka_unit_test(proposals),
                                     cmocka_unit_test(how_often_units_change_places),
                                     cmocka_unit_test(how_often_precedences_change),
                                     cmocka_unit_test(critical_operations),
                                     cmocka_unit_test(kinds_move),
                                     cmocka_unit_test(temperatures),
                                     cmocka_unit_test(small_optima)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
