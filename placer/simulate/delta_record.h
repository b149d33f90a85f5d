// Records of the incumbent and of trials that become it.
#ifndef TFC_PLACER_SIMULATE_DELTA_RECORD_H
#define TFC_PLACER_SIMULATE_DELTA_RECORD_H

#include "placer/simulate/delta_private.h"

TFC_MUST_USE tfc_status tfc_delta_init_records(struct tfc_delta *delta);
void tfc_delta_deinit_records(struct tfc_delta *delta);
// Simulates the placement in the engine from the start, and records times and saved states. False: it is not legal.
bool tfc_delta_record(struct tfc_delta *delta, struct tfc_verdict *out);
// Makes the records those of the trial, which is legal and whose moves were made. Where trial and incumbent differ, the
// trial is simulated again; the rest of the records is copied and shifted in time.
void tfc_delta_record_trial(struct tfc_delta *delta, struct tfc_verdict *out);
// Returns the index of the last saved state at `time` or before in which more than `ended` operations have ended, or
// TFC_NONE.
uint32_t tfc_delta_save_before(const struct tfc_delta *delta, int64_t time, uint32_t ended);
// Returns how many operations have ended before an instant of the incumbent.
uint32_t tfc_delta_ended_before(const struct tfc_delta *delta, int64_t time);
// Returns how many operations of the incumbent have ended when all those that the trial moves or swaps have ended.
uint32_t tfc_delta_ended_with_all(const struct tfc_delta *delta);

#endif
