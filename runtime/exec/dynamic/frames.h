// How values move through the frames of a run and their iterations.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_FRAMES_H
#define TFC_RUNTIME_EXEC_DYNAMIC_FRAMES_H

#include "runtime/exec/dynamic/run.h"

struct tfc_run_frame *tfc_run_frame_create(struct tfc_run *r, uint32_t index, struct tfc_run_frame *parent,
                                           struct tfc_run_iteration *from);
void tfc_run_frame_free(struct tfc_run *r, struct tfc_run_frame *f);
void tfc_run_propagate(struct tfc_run *r, const struct tfc_run_item *item, struct tfc_run_value *outs);

#endif
