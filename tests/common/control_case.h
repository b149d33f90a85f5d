// Reads the cases of tests/pass/golden/control_gradients, each of which asks for gradients through control flow.
#ifndef TFC_TESTS_COMMON_CONTROL_CASE_H
#define TFC_TESTS_COMMON_CONTROL_CASE_H

#include <jansson.h>

#include "tests/common/part.h"

const char *control_case_text(const json_t *item, const char *key); // "" if the case has no such text

// Makes a graph of only those nodes that the case needs. The case differentiates `y`, with `weight` as the gradient of
// `y`, by all of `xs`, which must have room for them.
tfc_status control_case_load(const struct whole *whole, const json_t *item, struct tfc_graph **out,
                             struct tfc_output *y, struct tfc_output *weight, struct tfc_output *xs);

#endif
