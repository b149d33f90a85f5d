// hidden_machine: a machine whose truth differs from its description, for `tfc-place --measure-with`. It reads the same
// cost graph and machine file as tfc-place, and simulates steps on a machine that has, by its seed:
//
//   - one device that is a third to a half slower than it says;
//   - families of operations (the last part of a name, without its number) that take 0.6 to 1.8 times what they should;
//   - devices in pairs: what goes from pair to pair goes through one switch, slow, one tensor at a time;
//   - a cost for each tensor that arrives, paid by the operation that needs it first;
//   - a cache for weights (tensors of nodes that hold memory and take no time) on each device: least recently read,
//     first out; what is not in it is read from memory first;
//   - drift over readings, noise of operations and steps, and a few steps that stall.
//
//   tfc-place --graph costs.json --machine m.yaml --measure-with 'hidden_machine --seed 1'
//   hidden_machine --seed 1 --graph costs.json --machine m.yaml --truth placement.json    the step without noise, in us
//
// --steps-only: answers have no times of operations. --label LABEL: what the ready line says (default modelled).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/model/cost_graph_json.h"
#include "placer/model/json.h"
#include "placer/model/machine_yaml.h"
#include "placer/model/placement.h"
#include "placer/model/placement_json.h"
#include "placer/model/problem.h"
#include "runtime/base/random.h"

struct truth {
  const struct tfc_problem *problem;
  double *device;            // [device] factor of the device's times
  double *family;            // [node] factor of the times of the node's family
  uint32_t *pair;            // [device] number of the pair that the device is in
  double slow_switch;        // factor of transfers from pair to pair
  double arrival_us;         // time for each tensor that arrives
  double cache, memory_rate; // bytes; bytes per us
  uint64_t seed, readings;
};

struct operation {
  uint32_t device;
  double start, time;
};
struct transfer {
  uint32_t tensor, from, to;
  double ready, start, time;
};
struct step {
  const uint32_t *device; // [node]
  const uint32_t *rank;   // [node]
  struct operation *operation;
  struct transfer *transfer;
  size_t transfer_count, transfer_capacity;
  double us;
};

static void *must(void *memory) {
  if (memory) return memory;
  fprintf(stderr, "hidden_machine: out of memory\n");
  exit(1);
}

static void stop(tfc_status s) {
  if (!s) return;
  fprintf(stderr, "hidden_machine: %s\n", tfc_status_message(s));
  exit(3);
}

// --- The truth -------------------------------------------------------------------------------------------------------
static tfc_str family_of(tfc_str name) {
  const size_t slash = tfc_str_rfind(name, '/');
  if (slash != SIZE_MAX) name = tfc_str_sub(name, slash + 1, name.size);
  size_t end = name.size;
  while (end > 0 && name.data[end - 1] >= '0' && name.data[end - 1] <= '9') end--;
  if (end > 0 && name.data[end - 1] == '_') end--;
  return end ? tfc_str_sub(name, 0, end) : name;
}

static void make_truth(struct truth *t, const struct tfc_problem *p, uint64_t seed) {
  struct tfc_random r;
  const uint32_t devices = p->device_count;
  double weights = 0;
  tfc_random_init(&r, 1000003 * seed + 17);
  t->problem = p, t->seed = seed;
  t->device = must(calloc(devices, sizeof *t->device));
  t->pair = must(calloc(devices, sizeof *t->pair));
  t->family = must(calloc(p->node_count + 1u, sizeof *t->family));
  uint32_t *order = must(calloc(devices, sizeof *order));
  for (uint32_t d = 0; d < devices; d++) t->device[d] = 1 + 0.04 * (tfc_random_unit(&r) - 0.5), order[d] = d;
  t->device[tfc_random_below(&r, devices)] = 1.34 + 0.16 * tfc_random_unit(&r);
  for (uint32_t d = devices; d-- > 1;) {
    const uint32_t e = (uint32_t)tfc_random_below(&r, d + 1u), held = order[d];
    order[d] = order[e], order[e] = held;
  }
  for (uint32_t d = 0; d < devices; d++) t->pair[order[d]] = d / 2;
  t->slow_switch = 3 + 3 * tfc_random_unit(&r);
  t->arrival_us = 10 + 30 * tfc_random_unit(&r);
  for (uint32_t n = 0; n < p->node_count; n++) {
    const tfc_str name = family_of(p->graph->names[n]);
    uint64_t hash = 0xcbf29ce484222325u ^ (seed * 0x9e3779b97f4a7c15u);
    for (size_t i = 0; i < name.size; i++) hash = (hash ^ (unsigned char)name.data[i]) * 0x100000001b3u;
    struct tfc_random own;
    tfc_random_init(&own, hash);
    t->family[n] = fmin(1.8, fmax(0.6, exp(0.3 * tfc_random_normal(&own))));
    weights += (double)p->graph->memory[n];
  }
  t->cache = (0.3 + 0.3 * tfc_random_unit(&r)) * weights;
  t->memory_rate = 8e3 + 8e3 * tfc_random_unit(&r);
  free(order);
}

// --- One step --------------------------------------------------------------------------------------------------------
// A heap of events or ready operations: the least key first, then the least item.
struct entry {
  double key;
  uint64_t item;
};
struct heap {
  struct entry *data;
  size_t count, capacity;
};
static bool before(struct entry a, struct entry b) {
  return a.key < b.key || (a.key == b.key && a.item < b.item);
}
static void push(struct heap *h, double key, uint64_t item) {
  if (h->count == h->capacity)
    h->data = must(realloc(h->data, (h->capacity = h->capacity ? 2 * h->capacity : 64) * sizeof *h->data));
  size_t i = h->count++;
  const struct entry e = {key, item};
  for (; i > 0 && before(e, h->data[(i - 1) / 2]); i = (i - 1) / 2) h->data[i] = h->data[(i - 1) / 2];
  h->data[i] = e;
}
static struct entry pop(struct heap *h) {
  const struct entry top = h->data[0], last = h->data[--h->count];
  size_t i = 0;
  for (size_t c; (c = 2 * i + 1) < h->count; i = c) {
    if (c + 1 < h->count && before(h->data[c + 1], h->data[c])) c++;
    if (!before(h->data[c], last)) break;
    h->data[i] = h->data[c];
  }
  if (h->count) h->data[i] = last;
  return top;
}

struct run {
  const struct truth *t;
  struct step *step;
  struct tfc_random *noise; // NULL: none
  uint32_t *waits;          // [node] number of inputs that have not arrived
  uint32_t *arrivals;       // [node] number of tensors that arrived for the node and whose time was not counted yet
  double *read_at;          // [device * tensor_count + tensor] when a weight was read last, 0: not in the cache
  double *held;             // [device] bytes in the cache
  bool *busy;               // [device]
  double *wire_free;        // [wire]
  struct heap *ready;       // [device]
  struct heap events;       // item < node_count: a node ends; else a transfer
  double clock;             // number of reads so far
};

static bool is_weight(const struct tfc_problem *p, uint32_t tensor) {
  const uint32_t n = p->graph->producer[tensor];
  return p->graph->memory[n] > 0 && p->graph->output[tensor] >= 0 && p->graph->bytes[tensor] > 0;
}

// Returns the time that it takes to read a weight: 0 if the weight is in the cache.
static double read_weight(struct run *r, uint32_t device, uint32_t tensor) {
  const struct tfc_problem *p = r->t->problem;
  double *at = r->read_at + (size_t)device * p->tensor_count;
  const double bytes = (double)p->graph->bytes[tensor];
  const bool is_there = at[tensor] > 0;
  at[tensor] = ++r->clock;
  if (is_there) return 0;
  r->held[device] += bytes;
  while (r->held[device] > r->t->cache) {
    uint32_t oldest = TFC_NONE;
    for (uint32_t x = 0; x < p->tensor_count; x++)
      if (at[x] > 0 && (oldest == TFC_NONE || at[x] < at[oldest])) oldest = x;
    if (oldest == TFC_NONE) break;
    at[oldest] = 0, r->held[device] -= (double)p->graph->bytes[oldest];
  }
  return bytes / r->t->memory_rate;
}

static void start_next(struct run *r, uint32_t device, double now) {
  const struct tfc_problem *p = r->t->problem;
  const struct tfc_cost_graph *g = p->graph;
  if (r->busy[device] || r->ready[device].count == 0) return;
  const uint32_t n = (uint32_t)pop(&r->ready[device]).item;
  double us = 1e-6 * (double)tfc_problem_time(p, n, device) * r->t->device[device] * r->t->family[n];
  if (r->noise) us *= exp(0.03 * tfc_random_normal(r->noise));
  us += r->arrivals[n] * r->t->arrival_us;
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++)
    if (is_weight(p, g->input[i])) us += read_weight(r, device, g->input[i]);
  r->step->operation[n] = (struct operation){device, now, us};
  r->busy[device] = true;
  push(&r->events, now + us, n);
}

static void input_came(struct run *r, uint32_t node) {
  if (--r->waits[node] == 0) push(&r->ready[r->step->device[node]], r->step->rank[node], node);
}

static void send(struct run *r, uint32_t tensor, uint32_t to, double now) {
  const struct tfc_problem *p = r->t->problem;
  struct step *s = r->step;
  const uint32_t from = s->device[p->graph->producer[tensor]];
  const struct tfc_pair *pair = tfc_problem_pair(p, from, to);
  const bool through = r->t->pair[from] != r->t->pair[to];
  double us = 1e-6 * (double)tfc_problem_wire_time(p, tensor, pair), start = now;
  uint32_t wire = pair->wire;
  if (through) us *= r->t->slow_switch, wire = p->wire_count;
  if (r->noise) us *= exp(0.03 * tfc_random_normal(r->noise));
  if (wire != TFC_NONE) {
    start = fmax(now, r->wire_free[wire]);
    r->wire_free[wire] = start + us;
  }
  if (s->transfer_count == s->transfer_capacity)
    s->transfer =
        must(realloc(s->transfer, (s->transfer_capacity = 2 * s->transfer_capacity + 64) * sizeof *s->transfer));
  s->transfer[s->transfer_count] = (struct transfer){tensor, from, to, now, start, us};
  push(&r->events, start + us, p->node_count + s->transfer_count++);
}

static void ended(struct run *r, uint32_t n, double now) {
  const struct tfc_problem *p = r->t->problem;
  const struct tfc_cost_graph *g = p->graph;
  const uint32_t device = r->step->device[n];
  r->busy[device] = false;
  for (uint32_t x = g->first_tensor[n]; x < g->first_tensor[n + 1]; x++)
    for (uint32_t to = 0; to < p->device_count; to++) {
      bool wanted = false;
      for (uint32_t c = g->first_consumer[x]; c < g->first_consumer[x + 1]; c++)
        if (r->step->device[g->consumer[c]] == to) {
          wanted = true;
          if (to == device) input_came(r, g->consumer[c]);
        }
      if (wanted && to != device) send(r, x, to, now);
    }
}

static void arrived(struct run *r, const struct transfer *x) {
  const struct tfc_cost_graph *g = r->t->problem->graph;
  bool first = true;
  for (uint32_t c = g->first_consumer[x->tensor]; c < g->first_consumer[x->tensor + 1]; c++) {
    const uint32_t n = g->consumer[c];
    if (r->step->device[n] != x->to) continue;
    if (first) r->arrivals[n]++;
    first = false;
    input_came(r, n);
  }
}

static void run_step(const struct truth *t, struct step *s, struct tfc_random *noise) {
  const struct tfc_problem *p = t->problem;
  const struct tfc_cost_graph *g = p->graph;
  const size_t cells = (size_t)p->device_count * p->tensor_count + 1;
  struct run r = {.t = t, .step = s, .noise = noise};
  r.waits = must(calloc(p->node_count + 1u, sizeof *r.waits));
  r.arrivals = must(calloc(p->node_count + 1u, sizeof *r.arrivals));
  r.read_at = must(calloc(cells, sizeof *r.read_at));
  r.held = must(calloc(p->device_count, sizeof *r.held));
  r.busy = must(calloc(p->device_count, sizeof *r.busy));
  r.wire_free = must(calloc(p->wire_count + 1u, sizeof *r.wire_free));
  r.ready = must(calloc(p->device_count, sizeof *r.ready));
  s->transfer_count = 0, s->us = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    r.waits[n] = g->first_input[n + 1] - g->first_input[n];
    if (r.waits[n] == 0) push(&r.ready[s->device[n]], s->rank[n], n);
  }
  for (uint32_t d = 0; d < p->device_count; d++) start_next(&r, d, 0);
  while (r.events.count) {
    const double now = r.events.data[0].key;
    while (r.events.count && r.events.data[0].key == now) { // handles everything that ends at this time
      const uint64_t item = pop(&r.events).item;
      if (item < p->node_count)
        ended(&r, (uint32_t)item, now);
      else
        arrived(&r, &s->transfer[item - p->node_count]);
    }
    for (uint32_t d = 0; d < p->device_count; d++) start_next(&r, d, now);
    s->us = now;
  }
  for (uint32_t d = 0; d < p->device_count; d++) free(r.ready[d].data);
  free(r.waits), free(r.arrivals), free(r.read_at), free(r.held), free(r.busy), free(r.wire_free), free(r.ready);
  free(r.events.data);
}

// --- Placements ------------------------------------------------------------------------------------------------------
static void take(struct step *s, const struct tfc_problem *p, const struct tfc_solution *solution) {
  uint32_t *device = must(calloc(p->node_count + 1u, sizeof *device));
  for (uint32_t n = 0; n < p->node_count; n++) device[n] = solution->device[p->unit[n]];
  s->device = device, s->rank = solution->rank ? solution->rank : p->rank;
  s->operation = must(calloc(p->node_count + 1u, sizeof *s->operation));
}
static void drop(struct step *s) {
  free((void *)(uintptr_t)s->device), free(s->operation), free(s->transfer);
  *s = (struct step){0};
}

static bool fits(const struct tfc_problem *p, const struct tfc_solution *solution) {
  bool fine = true;
  for (uint32_t d = 0; d < p->device_count; d++) {
    uint64_t bytes = 0;
    for (uint32_t u = 0; u < p->unit_count; u++)
      if (solution->device[u] == d) bytes += p->unit_memory[u];
    fine &= bytes <= p->limit[d];
  }
  return fine;
}

// --- Talking ---------------------------------------------------------------------------------------------------------
static void put(tfc_str text) {
  struct tfc_text t = {0};
  tfc_json_add_string(&t, text);
  fwrite(must(t.data), 1, t.size, stdout);
  tfc_text_deinit(&t);
}

static void answer_operations(const struct tfc_problem *p, const struct step *s, double stretch) {
  printf(", \"operations\": [");
  for (uint32_t n = 0; n < p->node_count; n++) {
    printf("%s{\"node\": ", n ? ", " : "");
    put(p->graph->names[n]);
    printf(", \"device\": ");
    put(p->machine->devices[s->operation[n].device].name);
    printf(", \"start_us\": %.4f, \"time_us\": %.4f}", stretch * s->operation[n].start, stretch * s->operation[n].time);
  }
  printf("], \"transfers\": [");
  for (size_t i = 0; i < s->transfer_count; i++) {
    const struct transfer *x = &s->transfer[i];
    printf("%s{\"node\": ", i ? ", " : "");
    put(p->graph->names[p->graph->producer[x->tensor]]);
    printf(", \"output\": %d, \"from\": ", p->graph->output[x->tensor]);
    put(p->machine->devices[x->from].name);
    printf(", \"to\": ");
    put(p->machine->devices[x->to].name);
    printf(", \"start_us\": %.4f, \"time_us\": %.4f}", stretch * x->start, stretch * x->time);
  }
  printf("]");
}

static tfc_status answer(struct truth *t, tfc_str line, bool steps_only) {
  tfc_status s = NULL;
  const struct tfc_problem *p = t->problem;
  struct tfc_placement *placement = NULL;
  struct tfc_solution solution = {0};
  struct tfc_text text = {0};
  struct step step = {0};
  struct tfc_random noise;
  uint64_t id = 0, steps = 5, warmup = 0;
  json_error_t error;
  json_t *request = json_loadb(line.data, line.size, 0, &error), *document = NULL;
  if (!request) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "not JSON: %s", error.text);
  TFC_TRY(s, tfc_json_whole(request, "id", &id));
  TFC_TRY(s, tfc_json_whole(request, "steps", &steps));
  TFC_TRY(s, tfc_json_whole(request, "warmup", &warmup));
  document = json_pack("{s:s, s:i, s:O, s:O}", "format", "tfc-placement", "version", 1, "placement",
                       json_object_get(request, "placement"), "order", json_object_get(request, "order"));
  char *dumped = document ? json_dumps(document, 0) : NULL;
  if (!dumped) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "a request without placement and order");
  s = tfc_placement_parse(tfc_str_from(dumped), "request", &placement);
  free(dumped);
  if (!s) s = tfc_placement_resolve(placement, p, &solution);
  if (s) {
    printf("{\"id\": %llu, \"error\": ", (unsigned long long)id);
    put(tfc_str_from(tfc_status_message(s)));
    printf("}\n");
    tfc_status_free(s);
    s = NULL;
    goto out;
  }
  if (!fits(p, &solution)) {
    printf("{\"id\": %llu, \"fits\": false}\n", (unsigned long long)id);
    goto out;
  }
  take(&step, p, &solution);
  tfc_random_init(&noise, 77777 * t->seed + ++t->readings);
  const double phase = 6.2831853 * (double)t->readings;
  const double drift = exp(0.06 * sin(phase / 170) + 0.02 * sin(phase / 23));
  printf("{\"id\": %llu, \"step_us\": [", (unsigned long long)id);
  double stretch = 1;
  for (uint64_t i = 0; i < (steps ? steps : 1); i++) {
    run_step(t, &step, &noise);
    stretch = drift * exp(0.02 * tfc_random_normal(&noise));
    double us = step.us * stretch;
    if (tfc_random_unit(&noise) < 0.03) us *= 1.2 + tfc_random_unit(&noise);
    printf("%s%.4f", i ? ", " : "", us);
  }
  printf("]");
  if (!steps_only) answer_operations(p, &step, stretch);
  printf("}\n");
out:
  drop(&step);
  tfc_solution_deinit(&solution);
  tfc_placement_free(placement);
  tfc_text_deinit(&text);
  json_decref(document);
  json_decref(request);
  return s;
}

struct world {
  struct tfc_cost_graph *graph;
  struct tfc_machine *machine;
  struct tfc_problem *problem;
};

static void load(struct world *w, const char *graph, const char *machine, const char *devices) {
  stop(tfc_cost_graph_read(graph, &w->graph));
  stop(tfc_machine_read(machine, &w->machine));
  if (devices && devices[0]) stop(tfc_machine_select(w->machine, tfc_str_from(devices)));
  stop(tfc_problem_create(w->graph, w->machine, TFC_OBJECTIVE_STEP, &w->problem));
}

static void talk(struct truth *t, struct world *w, uint64_t seed, bool steps_only, const char *label) {
  char *line = NULL;
  size_t capacity = 0;
  ssize_t size = getline(&line, &capacity, stdin);
  json_error_t error;
  json_t *hello = size > 0 ? json_loadb(line, (size_t)size, 0, &error) : NULL;
  const char *graph = json_string_value(json_object_get(hello, "graph"));
  const char *machine = json_string_value(json_object_get(hello, "machine"));
  struct tfc_text devices = {0};
  for (size_t i = 0; i < json_array_size(json_object_get(hello, "devices")); i++)
    tfc_text_printf(&devices, "%s%s", i ? "," : "",
                    json_string_value(json_array_get(json_object_get(hello, "devices"), i)));
  if (!graph || !machine) stop(tfc_status_make(TFC_INVALID_ARGUMENT, "no graph or no machine in the first line"));
  load(w, graph, machine, devices.data);
  make_truth(t, w->problem, seed);
  printf("{\"ready\": true, \"label\": \"%s\", \"operations\": %s}\n", label, steps_only ? "false" : "true");
  fflush(stdout);
  while ((size = getline(&line, &capacity, stdin)) > 0) {
    stop(answer(t, (tfc_str){line, (size_t)size}, steps_only));
    fflush(stdout);
  }
  free(line);
  tfc_text_deinit(&devices);
  json_decref(hello);
}

static void tell_truth(struct truth *t, struct world *w, uint64_t seed, const char *path) {
  struct tfc_placement *placement = NULL;
  struct tfc_solution solution = {0};
  struct step step = {0};
  make_truth(t, w->problem, seed);
  stop(tfc_placement_read(path, &placement));
  stop(tfc_placement_resolve(placement, w->problem, &solution));
  take(&step, w->problem, &solution);
  run_step(t, &step, NULL);
  printf("%.6f\n", step.us);
  drop(&step);
  tfc_solution_deinit(&solution);
  tfc_placement_free(placement);
}

int main(int argc, char **argv) {
  const char *graph = NULL, *machine = NULL, *devices = NULL, *truth = NULL, *label = "modelled", *seed = "1";
  bool steps_only = false;
  const struct {
    const char *name;
    const char **value;
  } options[] = {{"--graph", &graph}, {"--machine", &machine}, {"--devices", &devices},
                 {"--truth", &truth}, {"--label", &label},     {"--seed", &seed}};
  for (int i = 1; i < argc; i++) {
    bool known = strcmp(argv[i], "--steps-only") == 0;
    steps_only |= known;
    for (size_t k = 0; !known && k < sizeof options / sizeof *options && i + 1 < argc; k++)
      if (strcmp(argv[i], options[k].name) == 0) *options[k].value = argv[++i], known = true;
    if (known) continue;
    fprintf(stderr,
            "hidden_machine: %s? usage: hidden_machine --seed N [--steps-only] [--label LABEL]\n"
            "       hidden_machine --seed N --graph COSTS.json --machine M.yaml [--devices LIST] --truth FILE\n",
            argv[i]);
    return 2;
  }
  struct truth t = {0};
  struct world w = {0};
  const uint64_t number = strtoull(seed, NULL, 10);
  if (truth && graph && machine) {
    load(&w, graph, machine, devices);
    tell_truth(&t, &w, number, truth);
  } else if (truth) {
    fprintf(stderr, "hidden_machine: --truth needs --graph and --machine\n");
    return 2;
  } else {
    talk(&t, &w, number, steps_only, label);
  }
  free(t.device), free(t.pair), free(t.family);
  tfc_problem_free(w.problem);
  tfc_machine_free(w.machine);
  tfc_cost_graph_free(w.graph);
  return 0;
}
