#include "placer/search/course.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/map.h"

#define VERSION 2u // of the format of the kept state; a change of what is written raises it

static void mix(uint64_t *hash, const void *data, size_t size) {
  *hash ^= size ? tfc_hash_bytes(data, size) : 0;
  *hash = tfc_splitmix64(hash);
}
#define MIX(hash, data, count) mix(hash, data, sizeof *(data) * (count))

// Returns a hash of everything that the value of a placement depends on.
static uint64_t digest(const struct tfc_problem *p) {
  const uint32_t sizes[] = {p->objective,    p->node_count,  p->tensor_count, p->unit_count,
                            p->device_count, p->class_count, p->wire_count,   p->graph->consumer_count};
  uint64_t hash = VERSION;
  MIX(&hash, sizes, sizeof sizes / sizeof *sizes);
  MIX(&hash, p->unit, p->node_count);
  MIX(&hash, p->time, (size_t)p->class_count * p->node_count);
  MIX(&hash, p->rank, p->node_count);
  MIX(&hash, p->unit_memory, p->unit_count);
  MIX(&hash, p->unit_pin, p->unit_count);
  MIX(&hash, p->device_class, p->device_count);
  MIX(&hash, p->limit, p->device_count);
  MIX(&hash, p->graph->bytes, p->tensor_count);
  MIX(&hash, p->graph->consumer, p->graph->consumer_count);
  for (uint32_t i = 0; i < p->device_count * p->device_count; i++) {
    const struct tfc_pair *pair = &p->pair[i];
    const uint32_t small[] = {pair->wire, pair->linked, pair->occupies};
    MIX(&hash, small, 3);
    MIX(&hash, &pair->latency, 1);
    MIX(&hash, &pair->bandwidth, 1);
  }
  return hash;
}

static void archive_name(struct tfc_archive *a, const struct tfc_course_names *names, const char **name) {
  char *text = (char *)(uintptr_t)*name;
  tfc_archive_text(a, &text);
  if (a->out) return;
  *name = text ? names->find(names->user, tfc_str_from(text)) : NULL;
  a->broken |= text && !*name;
  free(text);
}

#define BYTES(x) tfc_archive_bytes(a, &(x), sizeof(x))

static void archive_entries(struct tfc_archive *a, const struct tfc_problem *p, const struct tfc_course_names *names,
                            struct tfc_search_outcome *o) {
  uint32_t count = o->entry_count;
  if (!tfc_archive_count(a, &count, 10000)) return;
  if (!a->out && !(o->entries = calloc(count + 1u, sizeof *o->entries))) a->broken = true;
  for (uint32_t i = 0; i < count && !a->broken; i++) {
    struct tfc_search_entry *e = &o->entries[i];
    o->entry_count = i + 1;
    archive_name(a, names, &e->algorithm);
    a->broken |= !e->algorithm;
    BYTES(e->value), BYTES(e->excess), BYTES(e->evaluations), BYTES(e->seconds);
    tfc_archive_solution(a, p, &e->solution);
    tfc_archive_text(a, &e->note);
  }
}

static void archive_turns(struct tfc_archive *a, struct tfc_search_turns *t) {
  BYTES(t->count), BYTES(t->wins), BYTES(t->evaluations), BYTES(t->seconds), BYTES(t->gained);
}

static void archive_outcome(struct tfc_archive *a, const struct tfc_problem *p, const struct tfc_course_names *names,
                            struct tfc_search_outcome *o) {
  struct tfc_guide_samples *samples = &o->learned.samples;
  tfc_archive_solution(a, p, &o->best);
  BYTES(o->value), BYTES(o->excess), BYTES(o->evaluations), BYTES(o->bound.value), BYTES(o->bound.each);
  uint8_t optimal = o->optimal;
  uint32_t kind = o->bound.kind;
  BYTES(optimal);
  tfc_archive_count(a, &kind, TFC_BOUND_COUNT - 1);
  o->optimal = optimal == 1, o->bound.kind = (tfc_bound_kind)kind;
  archive_name(a, names, &o->algorithm);
  archive_entries(a, p, names, o);
  BYTES(samples->count), BYTES(samples->invalid_share), BYTES(samples->entropy);
  BYTES(o->learned.before), BYTES(o->learned.after);
  archive_turns(a, &o->learned.moves);
  archive_turns(a, &o->learned.others);
}

static void archive_course(struct tfc_archive *a, const struct tfc_problem *p, struct tfc_search_course *c) {
  tfc_archive_count(a, &c->stage, TFC_STAGE_COUNT - 1);
  tfc_archive_count(a, &c->named, 10000);
  BYTES(c->seconds), BYTES(c->best.excess), BYTES(c->best.value);
  tfc_archive_elite(a, p, &c->elite);
  tfc_archive_elite(a, p, &c->hall);
  BYTES(c->random.state);
  for (int i = 0; i < TFC_METHOD_COUNT; i++) BYTES(c->credits.of[i].gain), BYTES(c->credits.of[i].effort);
  BYTES(c->credits.peak), BYTES(c->temperature), BYTES(c->slice), BYTES(c->total_left), BYTES(c->cooling);
  BYTES(c->turn), BYTES(c->better_turn), BYTES(c->last_better), BYTES(c->idle_rounds), BYTES(c->idle_here);
  BYTES(c->round), BYTES(c->complete), BYTES(c->together), BYTES(c->left_one);
}

tfc_status tfc_course_archive(struct tfc_archive *a, const struct tfc_problem *p, const struct tfc_search_options *o,
                              const struct tfc_course_names *names, struct tfc_search_course *course,
                              struct tfc_search_outcome *outcome) {
  char *algorithms = (char *)(uintptr_t)(o->settings.algorithms ? o->settings.algorithms : "auto"), *asked = algorithms;
  const uint64_t now[] = {
      VERSION, digest(p), o->seed, o->evaluations, o->seconds > 0, o->settings.guide != NULL, o->start != NULL};
  uint64_t then[sizeof now / sizeof *now];
  memcpy(then, now, sizeof now);
  BYTES(then);
  tfc_archive_text(a, &algorithms);
  const bool alike = memcmp(now, then, sizeof now) == 0 && algorithms && strcmp(algorithms, asked) == 0;
  if (!a->out) free(algorithms);
  if (!alike && !a->broken)
    return then[0] != VERSION
               ? tfc_status_make(TFC_INVALID_ARGUMENT,
                                 "it was kept by another version of tfc, in format %llu instead of %u; the search has "
                                 "to begin anew",
                                 (unsigned long long)then[0], VERSION)
               : tfc_status_make(TFC_INVALID_ARGUMENT,
                                 then[1] != now[1]
                                     ? "it was a search on another problem (graph, machine, or constraints)"
                                     : "it was a search with other settings (seed, budget, algorithms, or policy)");
  archive_course(a, p, course);
  archive_outcome(a, p, names, outcome);
  if (!a->broken) return NULL;
  return a->out ? tfc_status_no_memory("the state of a search")
                : tfc_status_make(TFC_INVALID_ARGUMENT, "it is damaged");
}
