// How searches use a policy: the placer's guide (placer/algo/guide.h). Internal to rl; a policy's `guide` is it.
#ifndef TFC_RL_GUIDANCE_H
#define TFC_RL_GUIDANCE_H

#include "placer/algo/guide.h"

extern const struct tfc_guide tfc_guidance_guide;

#endif
