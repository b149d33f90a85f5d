// Runs the engine: the loop for any problem, which hands lean ones and those with inboxes to loops of their own.
#ifndef TFC_PLACER_SIMULATE_ENGINE_H
#define TFC_PLACER_SIMULATE_ENGINE_H

#include "placer/simulate/engine_state.h"

typedef enum tfc_engine_stop {
  TFC_ENGINE_ENDED,
  TFC_ENGINE_CUT,     // the value cannot be below the cutoff, so the run was stopped
  TFC_ENGINE_NO_LINK, // a tensor needs a link that the machine lacks
  // `pause` operations have ended, or `end_position` requires a pause; all events of this instant were handled
  TFC_ENGINE_PAUSED
} tfc_engine_stop;
tfc_engine_stop tfc_engine_run(struct tfc_engine *engine, int64_t cutoff, uint32_t pause);
// For the engine*.c files only. Runs one round as for any plain problem. The lean loop calls it at the beginning, and
// if several items end at one instant.
bool tfc_engine_round(struct tfc_engine *engine, int64_t now, bool first, int64_t cutoff, tfc_engine_stop *stop);

#endif
