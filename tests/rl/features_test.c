// Compares the inputs of policies with those that a plain implementation computes. Of a scene: gates, kinds and orders.
// Of a rollout, for every choice: the devices that a unit may go to, all features of each, scores, and the schedule
// that gives them.
#include "tests/rl/shared.h"

#include <math.h>

#include "tests/placer/instances.h"

static void equal(double x, double y, const char *what) {
  if (!(fabs(x - y) <= 2e-4 * fmax(1, fabs(y)))) fail_msg("%s: %.9g, not %.9g", what, x, y);
}

static double unit_time(const struct tfc_problem *p, uint32_t u, uint32_t d) {
  double sum = 0;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (p->unit[n] == u) sum += (double)tfc_problem_time(p, n, d);
  return sum;
}
static uint32_t producer(const struct tfc_problem *p, uint32_t net) {
  return p->unit[p->graph->producer[p->net_tensor[net]]];
}
static uint32_t fan(const struct tfc_problem *p, uint32_t net) {
  return p->net_first[net + 1] - p->net_first[net];
}
static bool reads(const struct tfc_problem *p, uint32_t u, uint32_t net) {
  for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++)
    if (p->net_unit[k] == u) return true;
  return false;
}
static double wire(const struct tfc_problem *p, uint32_t tensor, uint32_t from, uint32_t to) {
  const struct tfc_pair *pair = tfc_problem_pair(p, from, to);
  return from == to || !pair->linked ? 0 : (double)tfc_problem_wire_time(p, tensor, pair);
}
// The mean over pairs of linked devices.
static double weight_of(const struct tfc_problem *p, uint32_t net) {
  double sum = 0, pairs = 0;
  for (uint32_t a = 0; a < p->device_count; a++)
    for (uint32_t b = 0; b < p->device_count; b++)
      if (a != b && tfc_problem_pair(p, a, b)->linked) sum += wire(p, p->net_tensor[net], a, b), pairs++;
  return pairs > 0 ? sum / pairs : 0;
}
static bool consumes(const struct tfc_problem *p, uint32_t n, uint32_t producer_node) {
  const struct tfc_cost_graph *g = p->graph;
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++)
    if (g->producer[g->input[i]] == producer_node) return true;
  return false;
}

// Returns the next random problem in which every operation takes time (operations of no duration have no determined
// order).
static struct instance next_instance(struct tfc_random *r, uint32_t nodes, uint32_t devices, uint32_t rich) {
  for (;;) {
    struct instance i = random_instance(r, nodes, devices, rich, TFC_OBJECTIVE_STEP);
    bool good = true;
    for (uint32_t n = 0; n < i.problem->node_count; n++)
      for (uint32_t d = 0; d < i.problem->device_count; d++)
        good = good && (!tfc_problem_allows(i.problem, i.problem->unit[n], d) || tfc_problem_time(i.problem, n, d) > 0);
    if (good) return i;
    instance_free(&i);
  }
}

// --- Scenes ----------------------------------------------------------------------------------------------------------

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}
// Returns the parts, sorted, as "(a b c)", and frees them.
static char *set_of(char **parts, uint32_t count) {
  struct tfc_text t = {0};
  qsort(parts, count, sizeof *parts, by_text);
  tfc_text_printf(&t, "(");
  for (uint32_t i = 0; i < count; i++) tfc_text_printf(&t, "%s ", parts[i]), free(parts[i]);
  tfc_text_printf(&t, ")");
  return t.data;
}

static char *looks(const struct tfc_problem *p, uint32_t u) {
  char *parts[16];
  for (uint32_t d = 0; d < p->device_count; d++)
    parts[d] = tfc_format("%llu%s", (unsigned long long)p->limit[d], tfc_problem_allows(p, u, d) ? "" : "!");
  char *devices = set_of(parts, p->device_count);
  char *text = tfc_format("[%llu %u %s]", (unsigned long long)p->unit_memory[u],
                          p->first_member[u + 1] - p->first_member[u], devices);
  free(devices);
  return text;
}
// Returns a text that is equal for units of the same kind: it has their operations, the tensors that they read and
// make, and the units at the other ends of those.
static char *kind_text(const struct tfc_problem *p, uint32_t u) {
  char *in[256], *out[256], *readers[64];
  uint32_t ins = 0, outs = 0;
  for (uint32_t net = 0; net < p->net_count; net++) {
    const unsigned long long bytes = p->graph->bytes[p->net_tensor[net]];
    if (reads(p, u, net)) {
      char *source = looks(p, producer(p, net));
      in[ins++] = tfc_format("%s:%llu", source, bytes);
      free(source);
    }
    if (producer(p, net) != u) continue;
    for (uint32_t k = 0; k < fan(p, net); k++) readers[k] = looks(p, p->net_unit[p->net_first[net] + k]);
    char *all = set_of(readers, fan(p, net));
    out[outs++] = tfc_format("%s:%llu", all, bytes);
    free(all);
  }
  char *a = looks(p, u), *b = set_of(in, ins), *c = set_of(out, outs), *text = tfc_format("%s %s %s", a, b, c);
  free(a), free(b), free(c);
  return text;
}

static uint32_t check_scene(const struct tfc_problem *p) { // how many pairs are of one kind
  const struct tfc_cost_graph *g = p->graph;
  uint32_t alike = 0;
  struct tfc_scene *v = NULL;
  double depth[64] = {0}, work = 0, path = 0, wires = 0;
  uint32_t level[64] = {0}, place[64];
  bool pins = false;
  assert_ok(tfc_scene_create(p, &v));
  for (uint32_t pass = 0; pass < p->node_count; pass++) // longest paths, by relaxing
    for (uint32_t n = 0; n < p->node_count; n++) {
      for (uint32_t m = 0; m < p->node_count; m++) {
        if (!consumes(p, m, n)) continue;
        double behind = 0;
        for (uint32_t k = 0; k < p->node_count; k++)
          if (consumes(p, k, n)) behind = fmax(behind, (double)p->remaining[k]);
        depth[m] = fmax(depth[m], depth[n] + (double)p->remaining[n] - behind);
        if (level[m] < level[n] + 1) level[m] = level[n] + 1;
      }
      path = fmax(path, (double)p->remaining[n]);
    }
  double own[64] = {0}, least[64], need[64] = {0}, sent[64] = {0};
  for (uint32_t u = 0; u < p->unit_count; u++) {
    uint32_t count = 0;
    least[u] = INFINITY;
    pins |= p->unit_pin[u] != TFC_NONE;
    for (uint32_t d = 0; d < p->device_count; d++)
      if (tfc_problem_allows(p, u, d))
        own[u] += unit_time(p, u, d), count++, least[u] = fmin(least[u], unit_time(p, u, d));
    own[u] /= count, work += own[u];
    equal(v->own[u], own[u], "mean time");
    equal(v->fastest[u], least[u], "least time");
  }
  for (uint32_t net = 0; net < p->net_count; net++) {
    const double w = weight_of(p, net);
    equal((double)v->net_weight[net], w, "weight of a net");
    assert_int_equal(v->source[net], producer(p, net));
    wires += w, sent[producer(p, net)] += w;
    for (uint32_t u = 0; u < p->unit_count; u++) need[u] += reads(p, u, net) ? w : 0;
  }
  assert_true(v->has_pins == pins);
  equal(v->work, work, "work"), equal(v->path, path, "path");
  equal(v->span, fmax(path, work / p->device_count) + 1, "span");
  for (uint32_t u = 0; u < p->unit_count; u++) {
    double through = 0, remaining = 0, fans = 1;
    for (uint32_t n = 0; n < p->node_count; n++)
      if (p->unit[n] == u)
        through = fmax(through, depth[n] + (double)p->remaining[n]),
        remaining = fmax(remaining, (double)p->remaining[n]);
    for (uint32_t net = 0; net < p->net_count; net++)
      if (reads(p, u, net)) fans = fmax(fans, fan(p, net));
    const float *gate = v->gate + (size_t)u * TFC_GATE_COUNT;
    const double talk = need[u] + sent[u];
    equal((double)gate[TFC_GATE_ALWAYS], 1, "always");
    equal((double)gate[TFC_GATE_CRITICAL], fmax(0, 2 * through / (path + 1) - 1), "critical");
    equal((double)gate[TFC_GATE_TALKATIVE], talk / (talk + own[u] + 1), "talkative");
    equal((double)gate[TFC_GATE_LONG], own[u] / (own[u] + work / p->unit_count + 1), "long");
    equal((double)gate[TFC_GATE_SHARED], 1 - 1 / fans, "shared");
    equal((double)gate[TFC_GATE_EARLY], remaining / (path + 1), "early");
    equal((double)gate[TFC_GATE_WIRED], wires / (wires + work + 1), "wired");
    equal((double)gate[TFC_GATE_WIDE], fmin(1, work / ((path + 1) * p->device_count)), "wide");
    equal(v->need_weight[u], need[u], "weight of what is read");
    char *kind = kind_text(p, u);
    for (uint32_t w = 0; w < u; w++) {
      char *other = kind_text(p, w);
      if ((strcmp(kind, other) == 0) != (v->kind[u] == v->kind[w])) fail_msg("%s and %s", kind, other);
      alike += v->kind[u] == v->kind[w];
      free(other);
    }
    assert_true(v->kind[u] < v->kind_count);
    free(kind);
  }
  for (uint32_t k = 0; k < p->node_count; k++) place[v->order[k]] = k;
  for (uint32_t n = 0; n < p->node_count; n++) {
    for (uint32_t e = g->first_input[n]; e < g->first_input[n + 1]; e++)
      assert_true(place[g->producer[g->input[e]]] < place[n]);
    for (uint32_t m = 0; m < p->node_count; m++)
      if (p->remaining[m] > p->remaining[n] || (p->remaining[m] == p->remaining[n] && level[m] < level[n]))
        assert_true(place[m] < place[n]);
  }
  for (uint32_t k = 0; k + 1 < p->device_count; k++) { // devices by speed, then by memory, then by links
    double key[2][4] = {{0}};
    for (int side = 0; side < 2; side++) {
      const uint32_t d = v->device[k + (uint32_t)side];
      for (uint32_t u = 0; u < p->unit_count; u++)
        key[side][0] += tfc_problem_allows(p, u, d) ? unit_time(p, u, d) : 2 * own[u] + 1;
      key[side][1] = -(double)p->limit[d];
      for (uint32_t e = 0; e < p->device_count; e++) {
        const struct tfc_pair *to = tfc_problem_pair(p, d, e), *from = tfc_problem_pair(p, e, d);
        if (e == d) continue;
        key[side][2] += to->linked ? (double)tfc_problem_wire_time_of(to, 1 << 20) : 1e18;
        key[side][3] += from->linked ? (double)tfc_problem_wire_time_of(from, 1 << 20) : 1e18;
      }
    }
    int c = 0;
    for (int j = 0; j < 4 && !c; j++) c = (key[0][j] > key[1][j]) - (key[0][j] < key[1][j]);
    assert_true(c < 0 || (c == 0 && v->device[k] < v->device[k + 1]));
  }
  tfc_scene_free(v);
  return alike;
}

static void scenes(void **state) {
  (void)state;
  struct tfc_random r;
  struct grid g = {0};
  tfc_random_init(&r, 11);
  for (uint32_t number = 0; number < 24; number++) {
    struct instance i = next_instance(&r, 4 + number, 1 + number % 4, number % 3 ? RICH_ALL & ~RICH_ORDER : 0);
    check_scene(i.problem);
    instance_free(&i);
  }
  grid_make(4, 6, 7, FOUR_ALIKE, "cell", 1, &g);
  assert_true(check_scene(g.problem) > 20);
  grid_free(&g);
}

// --- Rollouts --------------------------------------------------------------------------------------------------------

enum { NODES = 24, DEVICES = 9 }; // up to more than two vectors of devices
struct seen {                     // a choice
  uint32_t unit, device;
  bool may[DEVICES];
  double feature[TFC_FEATURE_COUNT][DEVICES], score[DEVICES];
};
struct watched {
  uint32_t count;
  struct seen choice[NODES];
};
static void watch(void *user, const struct tfc_choice *c) {
  struct watched *w = user;
  struct seen *s = &w->choice[w->count++];
  s->unit = c->unit, s->device = c->device;
  for (uint32_t d = 0; d < c->device_count; d++) {
    s->may[d] = c->may[d];
    for (uint32_t f = 0; f < TFC_FEATURE_COUNT; f++)
      s->feature[f][d] = c->may[d] ? (double)c->feature[f * c->device_count + d] : 0;
    s->score[d] = c->may[d] ? (double)c->score[d] : 0;
  }
}

struct gap {
  double begin, end;
};
struct plain { // the state after the units that are placed
  const struct tfc_problem *p;
  const struct tfc_scene *v;
  uint32_t device[NODES], last, last_of_kind[NODES]; // by unit and by kind; TFC_NONE: none
  double finish[NODES], arrival[256][DEVICES];       // < 0: not sent
  double free_at[DEVICES], load[DEVICES];
  uint64_t memory[DEVICES];
  uint32_t units[DEVICES], gap_count[DEVICES];
  struct gap gap[DEVICES][4 * NODES];
};

static double soonest(const struct plain *x, uint32_t d, double ready, double time) {
  double best = fmax(ready, x->free_at[d]);
  for (uint32_t k = 0; k < x->gap_count[d]; k++) {
    const struct gap *g = &x->gap[d][k];
    if (fmax(g->begin, ready) + time <= g->end) best = fmin(best, fmax(g->begin, ready));
  }
  return best;
}
static void add_gap(struct plain *x, uint32_t d, double begin, double end) {
  if (end > begin) x->gap[d][x->gap_count[d]++] = (struct gap){begin, end};
}
static void take(struct plain *x, uint32_t d, double start, double end) {
  if (start >= x->free_at[d]) {
    add_gap(x, d, x->free_at[d], start);
    x->free_at[d] = end;
    return;
  }
  for (uint32_t k = 0; k < x->gap_count[d]; k++) {
    const struct gap g = x->gap[d][k];
    if (start < g.begin || end > g.end) continue;
    x->gap[d][k] = x->gap[d][--x->gap_count[d]];
    add_gap(x, d, g.begin, start), add_gap(x, d, end, g.end);
    return;
  }
  x->free_at[d] = fmax(x->free_at[d], end);
}
static double pace(const struct plain *x, uint32_t d) {
  const struct tfc_machine_device *m = &x->p->machine->devices[d];
  uint32_t busy = 0;
  for (uint32_t e = 0; e < x->p->device_count; e++) busy += x->units[e] > 0 || e == d;
  return !m->slowdown_count ? 1 : m->slowdown[busy > m->slowdown_count ? m->slowdown_count - 1 : busy - 1];
}
static double there_at(const struct plain *x, uint32_t tensor, uint32_t d) {
  const uint32_t from = x->device[x->p->unit[x->p->graph->producer[tensor]]];
  const double made = x->finish[x->p->graph->producer[tensor]];
  if (from == d) return made;
  return x->arrival[tensor][d] >= 0 ? x->arrival[tensor][d] : made + wire(x->p, tensor, from, d);
}
static double total_load(const struct plain *x) {
  double sum = 0;
  for (uint32_t d = 0; d < x->p->device_count; d++) sum += x->load[d];
  return sum;
}

static void schedule(struct plain *x, uint32_t n, uint32_t d) {
  const struct tfc_problem *p = x->p;
  double ready = 0, stands = 0;
  for (uint32_t i = p->graph->first_input[n]; i < p->graph->first_input[n + 1]; i++) {
    const uint32_t tensor = p->graph->input[i], from = x->device[p->unit[p->graph->producer[tensor]]];
    ready = fmax(ready, there_at(x, tensor, d));
    if (from == d || x->arrival[tensor][d] >= 0) continue;
    x->arrival[tensor][d] = there_at(x, tensor, d);
    const double time = wire(p, tensor, from, d);
    if (tfc_problem_pair(p, from, d)->occupies & TFC_OCCUPIES_RECEIVER) stands += time;
    if (tfc_problem_pair(p, from, d)->occupies & TFC_OCCUPIES_SENDER) x->load[from] += time, x->free_at[from] += time;
  }
  const double time = stands + (double)tfc_problem_time(p, n, d) * pace(x, d);
  const double start = soonest(x, d, fmax(0, ready - stands), time);
  take(x, d, start, start + time);
  x->finish[n] = start + time, x->load[d] += stands;
}

static uint32_t where(const struct plain *x, uint32_t u, bool *may) {
  const struct tfc_problem *p = x->p;
  uint32_t count = 0, roomiest = TFC_NONE;
  double room = -INFINITY;
  for (uint32_t k = 0; k < p->device_count; k++) {
    const uint32_t d = x->v->device[k];
    bool fine = may[d] = false;
    if (!tfc_problem_allows(p, u, d)) continue;
    if ((double)p->limit[d] - (double)x->memory[d] > room)
      room = (double)p->limit[d] - (double)x->memory[d], roomiest = d;
    fine = x->memory[d] + p->unit_memory[u] <= p->limit[d];
    for (uint32_t j = 0; j < k; j++) // of several equal devices that are unused, only the first may be chosen
      if (!x->v->has_pins && !x->units[d] && !x->units[x->v->device[j]] && p->twin[x->v->device[j]] == p->twin[d])
        fine = false;
    for (uint32_t net = 0; net < p->net_count; net++) {
      const uint32_t from = x->device[producer(p, net)];
      if (reads(p, u, net) && from != TFC_NONE && from != d && !tfc_problem_pair(p, from, d)->linked) fine = false;
      for (uint32_t e = p->net_first[net]; producer(p, net) == u && e < p->net_first[net + 1]; e++) {
        const uint32_t to = x->device[p->net_unit[e]];
        if (to != TFC_NONE && to != d && !tfc_problem_pair(p, d, to)->linked) fine = false;
      }
    }
    may[d] = fine, count += fine;
  }
  if (!count) may[roomiest] = true, count = 1;
  return count;
}

static void features(const struct plain *x, uint32_t u, uint32_t n, const struct seen *s) {
  const struct tfc_problem *p = x->p;
  const struct tfc_scene *v = x->v;
  const struct tfc_cost_graph *g = p->graph;
  double start[DEVICES], end[DEVICES], fetch[DEVICES] = {0}, occupied[DEVICES] = {0}, inputs[DEVICES] = {0},
                                       siblings[DEVICES] = {0}, readers[DEVICES] = {0}, ready[DEVICES] = {0};
  double first_start = INFINITY, first_end = INFINITY, most = 0, needed = 0, made = 0, latest_at = -1, longest = -1;
  uint32_t latest = TFC_NONE, chain = TFC_NONE, kin = 0;
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++) {
    const uint32_t before = g->producer[g->input[i]], from = x->device[p->unit[before]];
    if (x->finish[before] > latest_at) latest_at = x->finish[before], latest = from;
    if ((double)p->remaining[before] > longest) longest = (double)p->remaining[before], chain = from;
  }
  for (uint32_t net = 0; net < p->net_count; net++) {
    const uint32_t from = x->device[producer(p, net)];
    const double w = weight_of(p, net);
    if (reads(p, u, net)) needed += w;
    if (producer(p, net) == u) made += w;
    for (uint32_t d = 0; d < p->device_count; d++) {
      double here = 0;
      for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++) here += x->device[p->net_unit[k]] == d;
      if (producer(p, net) == u) readers[d] += w * here / fan(p, net);
      if (!reads(p, u, net)) continue;
      siblings[d] += w * here / fan(p, net);
      if (from == TFC_NONE) continue;
      inputs[d] += from == d ? w : here > 0 ? w / 2 : 0;
      if (from == d || here > 0) continue;
      fetch[d] += wire(p, p->net_tensor[net], from, d);
      if (tfc_problem_pair(p, from, d)->occupies & TFC_OCCUPIES_RECEIVER)
        occupied[d] += wire(p, p->net_tensor[net], from, d);
    }
  }
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (!s->may[d]) continue;
    for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++)
      ready[d] = fmax(ready[d], there_at(x, g->input[i], d));
    const double time = (double)tfc_problem_time(p, n, d) * pace(x, d) + occupied[d];
    start[d] = soonest(x, d, fmax(0, ready[d] - occupied[d]), time), end[d] = start[d] + time;
    first_start = fmin(first_start, start[d]), first_end = fmin(first_end, end[d]), most = fmax(most, fetch[d]);
  }
  const double size = v->own[u] + needed + 1e-4 * v->span, share = v->work / p->device_count + 1;
  for (uint32_t w = 0; w < p->unit_count; w++) kin += x->device[w] != TFC_NONE && v->kind[w] == v->kind[u];
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (!s->may[d]) continue;
    double alike = 0;
    for (uint32_t w = 0; w < p->unit_count; w++) alike += x->device[w] == d && v->kind[w] == v->kind[u];
    const double balance = x->load[d] / (total_load(x) / p->device_count + 1e-4 * share) - 1;
    const double late = 64 * (end[d] - first_end) / v->span;
    const double idle = fmax(0, start[d] - x->free_at[d]), wait = fmax(0, start[d] - ready[d]);
    const struct {
      int feature;
      double value;
      const char *name;
    } expected[] = {
        {TFC_FEATURE_START, (start[d] - first_start) / (start[d] - first_start + size), "START"},
        {TFC_FEATURE_FINISH, (end[d] - first_end) / (end[d] - first_end + size), "FINISH"},
        {TFC_FEATURE_DELAY, late / (late + 1), "DELAY"},
        {TFC_FEATURE_FETCH, fetch[d] / (fetch[d] + v->own[u] + 1e-6 * v->span), "FETCH"},
        {TFC_FEATURE_MISSING, most > 0 ? fetch[d] / most : 0, "MISSING"},
        {TFC_FEATURE_INPUTS, needed > 0 ? inputs[d] / needed : 0, "INPUTS"},
        {TFC_FEATURE_LATEST, latest == d, "LATEST"},
        {TFC_FEATURE_CHAIN, chain == d, "CHAIN"},
        {TFC_FEATURE_SIBLINGS, needed > 0 ? siblings[d] / needed : 0, "SIBLINGS"},
        {TFC_FEATURE_READERS, made > 0 ? readers[d] / made : 0, "READERS"},
        {TFC_FEATURE_LOAD, x->load[d] / share, "LOAD"},
        {TFC_FEATURE_BALANCE, balance / (2 + fabs(balance)), "BALANCE"},
        {TFC_FEATURE_IDLE, idle / (idle + size), "IDLE"},
        {TFC_FEATURE_WAIT, wait / (wait + size), "WAIT"},
        {TFC_FEATURE_MEMORY,
         p->limit[d] == TFC_NO_LIMIT ? 0 : (double)(x->memory[d] + p->unit_memory[u]) / ((double)p->limit[d] + 1),
         "MEMORY"},
        {TFC_FEATURE_SPEED, log((unit_time(p, u, d) * pace(x, d) + 1) / (v->fastest[u] + 1)), "SPEED"},
        {TFC_FEATURE_UNUSED, x->units[d] == 0, "UNUSED"},
        {TFC_FEATURE_KIND, kin ? alike / kin : 0, "KIND"},
        {TFC_FEATURE_KIN, x->last_of_kind[v->kind[u]] == d, "KIN"},
        {TFC_FEATURE_LAST, x->last == d, "LAST"},
        {TFC_FEATURE_OCCUPY, occupied[d] / (occupied[d] + v->own[u] + 1e-6 * v->span), "OCCUPY"},
    };
    assert_int_equal(sizeof expected / sizeof *expected, TFC_FEATURE_COUNT);
    for (int f = 0; f < TFC_FEATURE_COUNT; f++)
      equal(s->feature[expected[f].feature][d], expected[f].value, expected[f].name);
  }
}

static void rollouts(void **state) {
  (void)state;
  struct tfc_random r;
  uint32_t choices = 0;
  tfc_random_init(&r, 23);
  for (uint32_t number = 0; number < 60; number++) {
    static const uint32_t riches[] = {0,
                                      RICH_KINDS | RICH_PINS,
                                      RICH_OCCUPIES,
                                      RICH_CALIBRATION | RICH_GROUPS,
                                      RICH_LIMITS,
                                      RICH_MISSING | RICH_GROUPS,
                                      RICH_ALL & ~(RICH_LIVE | RICH_ORDER)};
    struct instance i = next_instance(&r, 3 + number % (NODES - 3), 2 + number % (DEVICES - 1), riches[number % 7]);
    const struct tfc_problem *p = i.problem;
    struct tfc_scene *scene = NULL;
    struct tfc_rollout *rollout = NULL;
    static struct plain x;
    static struct watched w;
    tfc_device_id device[NODES];
    float weights[TFC_WEIGHTS];
    assert_ok(tfc_scene_create(p, &scene));
    assert_ok(tfc_rollout_create(scene, &rollout));
    for (int k = 0; k < TFC_WEIGHTS; k++) weights[k] = (float)tfc_random_normal(&r);
    w.count = 0;
    const struct tfc_rollout_options o = {.random = &r, .watch = watch, .user = &w};
    tfc_rollout_run(rollout, weights, &o, device);
    memset(&x, 0, sizeof x);
    x.p = p, x.v = scene, x.last = TFC_NONE;
    for (uint32_t u = 0; u < NODES; u++) x.device[u] = x.last_of_kind[u] = TFC_NONE;
    assert_true(p->tensor_count <= 256);
    for (uint32_t t = 0; t < 256; t++)
      for (uint32_t d = 0; d < DEVICES; d++) x.arrival[t][d] = -1;
    uint32_t next = 0;
    for (uint32_t k = 0; k < p->node_count; k++) {
      const uint32_t n = scene->order[k], u = p->unit[n];
      if (x.device[u] == TFC_NONE) {
        bool may[DEVICES];
        uint32_t to = TFC_NONE;
        if (where(&x, u, may) == 1) {
          for (uint32_t d = 0; d < p->device_count; d++)
            if (may[d]) to = d;
        } else {
          const struct seen *s = &w.choice[next++];
          assert_true(next <= w.count);
          assert_int_equal(s->unit, u);
          assert_memory_equal(s->may, may, p->device_count * sizeof *may);
          features(&x, u, n, s);
          for (uint32_t d = 0; d < p->device_count; d++) {
            double score = 0;
            for (uint32_t a = 0; a < TFC_GATE_COUNT; a++)
              for (uint32_t f = 0; f < TFC_FEATURE_COUNT; f++)
                score += (double)scene->gate[u * TFC_GATE_COUNT + a] * (double)weights[a * TFC_FEATURE_COUNT + f] *
                         s->feature[f][d];
            if (may[d]) equal(s->score[d], score, "score");
            if (may[d]) assert_true(s->score[s->device] >= s->score[d]);
          }
          to = s->device;
          choices++;
        }
        x.device[u] = to, x.last = to, x.last_of_kind[scene->kind[u]] = to;
        x.units[to]++, x.memory[to] += p->unit_memory[u], x.load[to] += unit_time(p, u, to);
      }
      schedule(&x, n, x.device[u]);
    }
    assert_int_equal(next, w.count);
    bool broken = p->has_missing_links; // such placements are repaired at the end
    for (uint32_t d = 0; d < p->device_count; d++) broken = broken || x.memory[d] > p->limit[d];
    for (uint32_t u = 0; u < p->unit_count && !broken; u++) assert_int_equal(device[u], x.device[u]);
    tfc_rollout_free(rollout);
    tfc_scene_free(scene);
    instance_free(&i);
  }
  print_message("%u choices\n", choices);
  assert_true(choices > 200);
}

// With a temperature, the frequencies of devices agree with the softmax of their scores.
static void draws(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 31);
  struct instance i = next_instance(&r, 8, 3, RICH_KINDS);
  const struct tfc_problem *p = i.problem;
  struct tfc_scene *scene = NULL;
  struct tfc_rollout *rollout = NULL;
  tfc_device_id device[NODES];
  float weights[TFC_WEIGHTS];
  enum { rounds = 4000 };
  const double heat = 6;
  double expected[DEVICES] = {0}, often[DEVICES] = {0};
  assert_ok(tfc_scene_create(p, &scene));
  assert_ok(tfc_rollout_create(scene, &rollout));
  for (int k = 0; k < TFC_WEIGHTS; k++) weights[k] = (float)tfc_random_normal(&r);
  for (int k = 0; k < rounds; k++) {
    static struct watched w;
    w.count = 0;
    tfc_rollout_run(rollout, weights, &(struct tfc_rollout_options){heat, &r, NULL, watch, &w}, device);
    assert_true(w.count > 0);
    const struct seen *s = &w.choice[0]; // the first choice, so that no earlier draw has influence
    double sum = 0;
    for (uint32_t d = 0; d < p->device_count; d++) sum += s->may[d] ? exp(s->score[d] / heat) : 0;
    for (uint32_t d = 0; d < p->device_count; d++)
      expected[d] += s->may[d] ? exp(s->score[d] / heat) / sum / rounds : 0;
    often[s->device] += 1.0 / rounds;
  }
  uint32_t likely = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    assert_true(fabs(often[d] - expected[d]) < 0.035);
    likely += expected[d] > 0.1;
  }
  assert_true(likely > 1);
  // With all weights 0, all devices have the same score.
  double evenly[DEVICES] = {0};
  uint32_t unit = TFC_NONE;
  for (uint32_t k = 0; k < p->node_count && unit == TFC_NONE; k++) {
    uint32_t allowed = 0;
    for (uint32_t d = 0; d < p->device_count; d++) allowed += tfc_problem_allows(p, p->unit[scene->order[k]], d);
    if (allowed == p->device_count && k >= 4) unit = p->unit[scene->order[k]];
  }
  assert_true(unit != TFC_NONE);
  for (int k = 0; k < rounds; k++) {
    tfc_rollout_run(rollout, NULL, &(struct tfc_rollout_options){.random = &r}, device);
    evenly[device[unit]] += 1.0 / rounds;
  }
  for (uint32_t d = 0; d < p->device_count; d++) assert_true(evenly[d] > 0.2);
  tfc_rollout_free(rollout);
  tfc_scene_free(scene);
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scenes), cmocka_unit_test(rollouts), cmocka_unit_test(draws)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
