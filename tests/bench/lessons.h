// Lessons: the problems on which policies are trained. They are frozen cost graphs of the examples, each on the machine
// on which it was measured and on random ones, and generated families on random machines: 2 to 16 devices, equal and
// unequal ones, links of all speeds, with and without memory limits. Everything follows from the seed.
#ifndef TFC_TESTS_BENCH_LESSONS_H
#define TFC_TESTS_BENCH_LESSONS_H

#include "rl/train.h"

struct lessons {
  struct tfc_lesson *lessons;
  struct lesson_parts {
    struct tfc_cost_graph *graph; // NULL: the graph belongs to another lesson
    struct tfc_machine *machine;
    struct tfc_problem *problem;
  } * parts;
  uint32_t count;
  struct lesson_seen {
    char name[64], sha256[65];
  } * seen;
  uint32_t seen_count;
};
// `folder`: the unpacked frozen graphs, NAME.json and NAME.machine.yaml. `without`: a family that is left out
// ("seq2seq", "recurrent", "convolution", "transformer", "generated"), or NULL.
TFC_MUST_USE tfc_status lessons_make(const char *folder, const char *without, uint64_t seed, struct lessons *out);
void lessons_free(struct lessons *lessons);

#endif
