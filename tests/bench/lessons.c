#include "tests/bench/lessons.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/model/cost_graph_json.h"
#include "placer/model/machine_yaml.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/base/sha256.h"
#include "tests/bench/families.h"

static const struct {
  const char *name, *family;
} frozen[] = {
    {"mlp", "convolution"}, {"alexnet", "convolution"},   {"resnet50", "convolution"}, {"inception_v3", "convolution"},
    {"rnnlm", "recurrent"}, {"rnnlm_large", "recurrent"}, {"lstm_grid", "recurrent"},  {"transformer", "transformer"},
    {"nmt", "seq2seq"},     {"nmt_while_v2", "seq2seq"},
};
static const char *const generated[] = {"layered",   "grid",   "towers",    "series",    "layers",
                                        "operators", "blocks", "recurrent", "recurrent", "recurrent",
                                        "recurrent", "blocks", "recurrent", "recurrent", "seq2seq"};
enum { MACHINES = 3, GRAPHS = 7 }; // MACHINES: random machines for a frozen graph; GRAPHS: graphs of a generated family

static double log_uniform(struct tfc_random *r, double low, double high) {
  return low * pow(high / low, tfc_random_unit(r));
}

// Makes a random machine for a graph. Its links are so fast that transferring an operation's results takes between a
// hundredth and thirty times the time of an operation. Every second machine has slower devices among its devices; one
// in four limits memory, one in four has one wire for all links, one in four has devices that slow each other down or
// cannot compute while they receive.
static tfc_status make_machine(const struct tfc_cost_graph *g, struct tfc_random *r, struct tfc_machine **out) {
  tfc_status s = NULL;
  struct tfc_machine *m = NULL;
  char name[32];
  double time = 0, bytes = 0, memory = 0, largest = 0;
  uint32_t nodes = 0, tensors = 0;
  for (uint32_t n = 0; n < g->node_count; n++) {
    const double us = g->time_us[(size_t)n * g->kind_count];
    if (us > 0) time += us, nodes++;
    memory += (double)g->memory[n];
    largest = fmax(largest, (double)g->memory[n]);
  }
  for (uint32_t t = 0; t < g->tensor_count; t++)
    if (g->bytes[t]) bytes += (double)g->bytes[t], tensors++;
  const double mean_us = time / (nodes + 1e-9), mean_bytes = bytes / (tensors + 1e-9) + 1;
  const uint32_t devices = 2 + (uint32_t)tfc_random_below(r, tfc_random_below(r, 2) ? 3 : 15);
  const bool unequal = tfc_random_below(r, 2), limited = !tfc_random_below(r, 4), shared = !tfc_random_below(r, 4);
  const uint32_t manner = (uint32_t)tfc_random_below(r, 8);
  const double room = memory * (1.3 + 2 * tfc_random_unit(r)) / devices + largest;
  TFC_TRY(s, tfc_machine_create(&m));
  for (uint32_t d = 0; d < devices; d++) {
    double slowdown[16];
    const double slow = unequal && tfc_random_below(r, 2) ? 1 + 1.5 * tfc_random_unit(r) : 1;
    snprintf(name, sizeof name, "cpu:%u", d);
    struct tfc_machine_device x = {.name = tfc_str_from(name),
                                   .kind = g->kind_names[0],
                                   .label = TFC_LABEL_MODELLED,
                                   .memory = limited ? (uint64_t)room : TFC_NO_LIMIT,
                                   .slowdown = slowdown};
    if (manner == 0)
      for (uint32_t k = 0; k < devices && k < 16; k++)
        slowdown[x.slowdown_count++] = slow * (1 + 0.8 * k / (devices > 1 ? devices - 1 : 1));
    else if (slow > 1)
      slowdown[x.slowdown_count++] = slow;
    TFC_TRY(s, tfc_machine_add_device(m, &x));
  }
  struct tfc_link link = tfc_link_default();
  const double transfer_us = mean_us * log_uniform(r, 0.01, 30), part = 0.05 + 0.5 * tfc_random_unit(r);
  link.latency_us = transfer_us * part;
  link.bandwidth = mean_bytes / (transfer_us * (1 - part)) * 1e6;
  if (shared) link.wire = TFC_STR("bus");
  if (manner == 1) link.occupies = TFC_OCCUPIES_RECEIVER;
  if (manner == 2) link.wire = TFC_STR("none");
  TFC_TRY(s, tfc_machine_add_link(m, &link));
  *out = m, m = NULL;
out:
  tfc_machine_free(m);
  return s;
}

static tfc_status add(struct lessons *l, struct tfc_cost_graph *owned, const struct tfc_cost_graph *graph,
                      struct tfc_machine *machine, uint32_t source) {
  tfc_status s = NULL;
  struct tfc_lesson *lessons = realloc(l->lessons, (l->count + 1u) * sizeof *lessons);
  if (lessons) l->lessons = lessons;
  struct lesson_parts *parts = realloc(l->parts, (l->count + 1u) * sizeof *parts);
  if (parts) l->parts = parts;
  if (!lessons || !parts) TFC_TRY(s, tfc_status_no_memory("lessons"));
  parts[l->count] = (struct lesson_parts){.graph = owned, .machine = machine};
  owned = NULL, machine = NULL;
  l->count++; // it is counted at once, so that it is freed after an error, too
  TFC_TRY(s, tfc_problem_create(graph, parts[l->count - 1].machine, TFC_OBJECTIVE_STEP, &parts[l->count - 1].problem));
  lessons[l->count - 1] = (struct tfc_lesson){parts[l->count - 1].problem, source};
out:
  tfc_cost_graph_free(owned);
  tfc_machine_free(machine);
  return s;
}

static tfc_status saw(struct lessons *l, const char *name, const char *sha256) {
  struct lesson_seen *seen = realloc(l->seen, (l->seen_count + 1u) * sizeof *seen);
  if (!seen) return tfc_status_no_memory("lessons");
  l->seen = seen;
  snprintf(seen[l->seen_count].name, sizeof seen->name, "%s", name);
  snprintf(seen[l->seen_count].sha256, sizeof seen->sha256, "%s", sha256);
  l->seen_count++;
  return NULL;
}

static tfc_status add_frozen(struct lessons *l, const char *folder, const char *name, struct tfc_random *r) {
  tfc_status s = NULL;
  char path[4096], hash[65];
  struct tfc_cost_graph *g = NULL;
  struct tfc_machine *m = NULL;
  struct tfc_file file = {0};
  const uint32_t source = l->seen_count;
  snprintf(path, sizeof path, "%s/%s.json", folder, name);
  TFC_TRY(s, tfc_file_map(path, &file));
  tfc_sha256((tfc_str){(const char *)file.data, file.size}, hash);
  tfc_file_unmap(&file);
  TFC_TRY(s, saw(l, name, hash));
  TFC_TRY(s, tfc_cost_graph_read(path, &g));
  snprintf(path, sizeof path, "%s/%s.machine.yaml", folder, name);
  TFC_TRY(s, tfc_machine_read(path, &m));
  const struct tfc_cost_graph *graph = g;
  TFC_TRY(s, add(l, g, graph, m, source));
  for (int i = 0; i < MACHINES; i++) {
    TFC_TRY(s, make_machine(graph, r, &m));
    TFC_TRY(s, add(l, NULL, graph, m, source));
  }
out:
  return s;
}

static tfc_status add_generated(struct lessons *l, const char *family, struct tfc_random *r) {
  tfc_status s = NULL;
  struct tfc_text all = {0};
  char hash[65], name[64];
  for (int i = 0; i < GRAPHS; i++) {
    struct family_problem f = {0};
    const struct family_request q = {.family = family,
                                     .nodes = (uint32_t)log_uniform(r, 60, 3000),
                                     .devices = 2 + (uint32_t)tfc_random_below(r, 7),
                                     .mixed = tfc_random_below(r, 2),
                                     .tightness = tfc_random_below(r, 4) ? 0 : 1.5 + tfc_random_unit(r),
                                     .seed = tfc_random_u64(r) >> 40};
    struct tfc_machine *m = NULL;
    struct tfc_text text = {0};
    TFC_TRY(s, family_make(&q, &f));
    TFC_TRY(s, tfc_cost_graph_format(f.graph, &text));
    char one[65];
    tfc_sha256((tfc_str){text.data, text.size}, one);
    tfc_text_printf(&all, "%s\n", one);
    tfc_text_deinit(&text);
    // Every second lesson is on a machine of the family: with accelerators of two speeds, and little memory.
    if (i % 2)
      s = make_machine(f.graph, r, &m);
    else
      m = f.machine, f.machine = NULL;
    struct tfc_cost_graph *graph = f.graph;
    f.graph = NULL;
    tfc_problem_free(f.problem);
    f.problem = NULL;
    family_free(&f);
    if (s) {
      tfc_cost_graph_free(graph);
      goto out;
    }
    TFC_TRY(s, add(l, graph, graph, m, 1000 + l->count));
  }
  tfc_sha256((tfc_str){all.data, all.size}, hash);
  snprintf(name, sizeof name, "generated:%s", family);
  s = saw(l, name, hash);
out:
  tfc_text_deinit(&all);
  return s;
}

tfc_status lessons_make(const char *folder, const char *without, uint64_t seed, struct lessons *out) {
  tfc_status s = NULL;
  struct lessons l = {0};
  struct tfc_random r;
  tfc_random_init(&r, seed ^ 0x6c6573736f6e73u);
  for (size_t i = 0; i < sizeof frozen / sizeof *frozen; i++)
    if (!without || strcmp(frozen[i].family, without) != 0) TFC_TRY(s, add_frozen(&l, folder, frozen[i].name, &r));
  for (size_t i = 0; i < sizeof generated / sizeof *generated; i++)
    if (!without || (strcmp(generated[i], without) != 0 && strcmp(without, "generated") != 0 &&
                     (strcmp(without, "transformer") != 0 || strcmp(generated[i], "blocks") != 0)))
      TFC_TRY(s, add_generated(&l, generated[i], &r));
  *out = l;
  l = (struct lessons){0};
out:
  lessons_free(&l);
  return s;
}

void lessons_free(struct lessons *l) {
  for (uint32_t i = 0; i < l->count; i++) tfc_problem_free(l->parts[i].problem), tfc_machine_free(l->parts[i].machine);
  for (uint32_t i = 0; i < l->count; i++) tfc_cost_graph_free(l->parts[i].graph);
  free(l->lessons), free(l->parts), free(l->seen);
  *l = (struct lessons){0};
}
