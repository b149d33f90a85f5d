// The loop for problems in which a device receives one tensor at a time (struct tfc_engine). If the engine has
// the lists `rides` and `ends`, the loop records when transfers joined a wire and ended, and the order in which
// operations ended.
#ifndef TFC_PLACER_SIMULATE_ENGINE_INBOX_H
#define TFC_PLACER_SIMULATE_ENGINE_INBOX_H

#include "placer/simulate/engine.h"

tfc_engine_stop tfc_engine_run_inbox(struct tfc_engine *engine, int64_t cutoff, uint32_t pause);

#endif
