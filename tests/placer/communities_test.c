// Communities of a few units, compared with every division of them; pieces, compared with what can be reached; and when
// memory is tight.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>

#include "placer/search/communities.h"
#include "tests/placer/instances.h"

enum { FEW = 7 };
struct weights { // as the header says, computed from the nets
  double between[FEW][FEW], degree[FEW], sum, resolution;
};
static struct weights weights_of(const struct tfc_problem *p, const struct tfc_community_options *o) {
  struct weights w = {.resolution = o->resolution};
  const struct tfc_pair *pair = NULL;
  for (uint32_t i = 0; i < p->device_count * p->device_count && !pair; i++)
    if (p->pair[i].linked) pair = &p->pair[i];
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t net = p->first_net[u]; net < p->first_net[u + 1]; net++) {
      const uint32_t readers = p->net_first[net + 1] - p->net_first[net];
      const double ps = pair ? (double)tfc_problem_wire_time(p, p->net_tensor[net], pair) + 1 : 1;
      for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++) {
        const uint32_t v = p->net_unit[k];
        const double weight = pow(ps, o->power) / pow(readers, o->fan);
        w.between[u][v] += weight, w.between[v][u] += weight;
        w.degree[u] += weight, w.degree[v] += weight;
        w.sum += 2 * weight;
      }
    }
  return w;
}
// Modularity times the sum of all weights.
static double modularity(const struct weights *w, const uint32_t *of, uint32_t units) {
  double q = 0;
  for (uint32_t u = 0; u < units; u++)
    for (uint32_t v = 0; v < units; v++)
      if (of[u] == of[v]) q += w->between[u][v] - w->resolution * w->degree[u] * w->degree[v] / w->sum;
  return q;
}
static bool together(const struct tfc_problem *p, uint32_t u, uint32_t v) { // whether both may be on the same devices
  for (uint32_t d = 0; d < p->device_count; d++)
    if (tfc_problem_allows(p, u, d) != tfc_problem_allows(p, v, d)) return false;
  return true;
}
// The best of all divisions that keep the rules; `of` has the communities of the units before u.
static double best_modularity(const struct tfc_problem *p, const struct weights *w, uint64_t most, uint32_t *of,
                              uint32_t u, uint32_t count) {
  double best = -INFINITY;
  if (u == p->unit_count) return modularity(w, of, u);
  for (uint32_t c = 0; c <= count; c++) {
    uint64_t memory = p->unit_memory[u];
    bool fine = true;
    for (uint32_t v = 0; v < u; v++)
      if (of[v] == c) memory += p->unit_memory[v], fine = fine && together(p, u, v);
    if (!fine || (memory > most && c < count)) continue; // alone it may be too large
    of[u] = c;
    best = fmax(best, best_modularity(p, w, most, of, u + 1, count + (c == count)));
  }
  return best;
}

// Communities keep the rules, joining two of them is never better, and mostly no other division is better.
static void test_every_division(void **state) {
  (void)state;
  uint32_t divided = 0, best_found = 0, merged = 0;
  for (uint64_t number = 0; number < 300; number++) {
    struct tfc_random r;
    uint32_t of[FEW], first[FEW], tried[FEW];
    tfc_random_init(&r, 400 + number);
    const uint32_t rich = number % 2 ? RICH_KINDS | RICH_PINS | RICH_LIMITS | RICH_GROUPS : RICH_LIMITS;
    struct instance i = random_instance(&r, FEW, 3, rich, TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    const struct tfc_community_options o = {.resolution = number % 5 == 0   ? 0.3
                                                          : number % 5 == 1 ? 2
                                                                            : 1,
                                            .power = 0.5 * (double)(number % 3),
                                            .fan = 0.5 * (double)(number / 3 % 3)};
    const struct weights w = weights_of(p, &o);
    uint64_t most = 0, memory[FEW] = {0};
    for (uint32_t d = 0; d < p->device_count; d++)
      if (p->limit[d] > most) most = p->limit[d];
    const uint32_t count = tfc_communities_find(p, &r, &o, of);
    uint32_t next = 0;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      assert_true(of[u] <= next); // numbered in the order of their first units
      if (of[u] == next) first[next++] = u;
      memory[of[u]] += p->unit_memory[u];
      assert_true(together(p, u, first[of[u]]));
      if (u != first[of[u]]) assert_true(memory[of[u]] <= most);
    }
    assert_int_equal(count, next);
    if (w.sum > 0) {
      const double found = modularity(&w, of, p->unit_count);
      for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < a; b++) {
          uint32_t one[FEW];
          for (uint32_t u = 0; u < p->unit_count; u++) one[u] = of[u] == a ? b : of[u];
          if (memory[a] <= most && memory[b] <= most && memory[a] + memory[b] <= most &&
              together(p, first[a], first[b]) && modularity(&w, one, p->unit_count) > found + 1e-5 * w.sum)
            fail_msg("case %llu: %u and %u are better as one", (unsigned long long)number, a, b);
        }
      const double best = best_modularity(p, &w, most, tried, 0, 0);
      assert_true(found <= best + 1e-5 * w.sum);
      divided++, best_found += found >= best - 1e-5 * w.sum, merged += count < p->unit_count;
    }
    instance_free(&i);
  }
  print_message("%u of %u divisions are the best; %u with fewer communities than units\n", best_found, divided, merged);
  assert_true(divided > 200 && merged * 2 > divided && best_found * 100 >= divided * 90);
}

// Pieces are what can be reached over nets without leaving the device.
static void test_pieces(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 200; number++) {
    enum { UNITS = 16 };
    struct tfc_random r;
    uint32_t piece[UNITS], wanted[UNITS], next = 0;
    tfc_device_id device[UNITS];
    tfc_random_init(&r, 800 + number);
    struct instance i = random_instance(&r, UNITS, 3, RICH_GROUPS, TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    random_devices(&r, p, device);
    const bool whole = number % 3 == 0;
    for (uint32_t u = 0; u < p->unit_count; u++) wanted[u] = TFC_NONE;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      if (wanted[u] != TFC_NONE) continue;
      wanted[u] = next;
      for (bool more = true; more;) {
        more = false;
        for (uint32_t v = 0; v < p->unit_count; v++)
          for (uint32_t k = p->net_first[p->first_net[v]]; k < p->net_first[p->first_net[v + 1]]; k++) {
            const uint32_t x = p->net_unit[k];
            if ((!whole && device[v] != device[x]) || (wanted[v] == next) == (wanted[x] == next)) continue;
            wanted[v] = wanted[x] = next, more = true;
          }
      }
      next++;
    }
    assert_int_equal(tfc_communities_pieces(p, whole ? NULL : device, piece), next);
    assert_memory_equal(piece, wanted, p->unit_count * sizeof *piece);
    instance_free(&i);
  }
}

// Memory is tight if the operations need more than seven tenths of the memory of all devices, of which there are
// several.
static void test_tight(void **state) {
  (void)state;
  for (int more = 0; more < 2; more++)
    for (uint32_t devices = 1; devices < 3; devices++) {
      char machine[300], graph[300];
      snprintf(graph, sizeof graph,
               "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": [{\"name\": \"a\", "
               "\"time_us\": {\"acc\": 1}, \"memory\": 60}, {\"name\": \"b\", \"time_us\": {\"acc\": 1}, \"memory\": "
               "%d}], \"edges\": []}",
               80 + more);
      snprintf(machine, sizeof machine,
               "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, memory: %d, count: %u}\n",
               200 / (int)devices, devices);
      struct instance i = parsed(graph, machine);
      assert_true(tfc_communities_tight(i.problem) == (devices == 2 && more));
      instance_free(&i);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_division), cmocka_unit_test(test_pieces),
                                     cmocka_unit_test(test_tight)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
