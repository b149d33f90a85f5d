// The cases of tests/pass/golden/control_gradients.
#ifndef TFC_TESTS_COMMON_CONTROL_CASE_H
#define TFC_TESTS_COMMON_CONTROL_CASE_H

#include <jansson.h>

#include "tests/common/part.h"

const char *control_case_text(const json_t *item, const char *key); // "" where there is none

// The part of the graph that the case needs, and in it what is differentiated, its weight, and by what: `xs` has room
// for all of the case's.
tfc_status control_case_load(const struct whole *whole, const json_t *item, struct tfc_graph **out,
                             struct tfc_output *y, struct tfc_output *weight, struct tfc_output *xs);

#endif
