// The loop for lean problems: plain, and with few devices (struct tfc_engine).
#ifndef TFC_PLACER_SIMULATE_ENGINE_LEAN_H
#define TFC_PLACER_SIMULATE_ENGINE_LEAN_H

#include "placer/simulate/engine.h"

tfc_engine_stop tfc_engine_run_lean(struct tfc_engine *engine, int64_t cutoff, uint32_t pause);

#endif
