// Writes and reads the lines that tfc and a measuring program exchange (docs/guide.md, "Measuring elsewhere"). Unknown
// keys are ignored.
#ifndef TFC_PLACER_MEASURE_COMMAND_WIRE_H
#define TFC_PLACER_MEASURE_COMMAND_WIRE_H

#include "placer/measure/command.h"

struct tfc_command_ready {
  tfc_label label;
  bool operations;
};

TFC_MUST_USE tfc_status tfc_command_write_hello(const struct tfc_command_options *options, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_command_write_request(uint64_t id, const struct tfc_placement *placement, const char *file,
                                                  uint32_t warmup, uint32_t steps, struct tfc_text *out);
// INVALID_ARGUMENT: the line is anything other than {"ready": true, ...}.
TFC_MUST_USE tfc_status tfc_command_read_ready(tfc_str line, struct tfc_command_ready *out);
// Fills the answer's state, message and times. INVALID_ARGUMENT: the line is no answer, or has a number that is not
// finite; OUT_OF_RANGE: it answers another request, whose id is *out_id.
TFC_MUST_USE tfc_status tfc_command_read_answer(tfc_str line, uint64_t id, struct tfc_command_answer *answer,
                                                uint64_t *out_id);
void tfc_command_answer_deinit(struct tfc_command_answer *answer);

#endif
