#include "placer/measure/worker_side.h"

#include <stdlib.h>

#include "profiler/collector_gpu.h"
#include "runtime/exec/model.h"
#include "runtime/exec/model_checkpoint.h"
#include "runtime/exec/queue_threads.h"

tfc_status tfc_worker_beat(struct tfc_worker *w, uint32_t entry) {
  struct tfc_pack p = {0};
  tfc_pack_u32(&p, entry);
  tfc_status s = tfc_wire_send(w->fd, TFC_WIRE_BEAT, &p);
  tfc_wire_free(&p.bytes);
  return s;
}

void tfc_worker_pack_fused(const struct tfc_worker *w, const struct tfc_plan_info *info, struct tfc_pack *p) {
  bool any = false;
  for (uint32_t i = 0; info && info->runs_in && i < w->graph->node_count && !any; i++) any = info->runs_in[i] != i;
  tfc_pack_u64(p, any ? w->graph->node_count : 0);
  for (uint32_t i = 0; any && i < w->graph->node_count; i++) tfc_pack_u32(p, tfc_plan_done_by(info, i));
}

tfc_status tfc_worker_side_open(struct tfc_worker *w, int number) {
  struct tfc_worker_side *side = &w->sides[number];
  if (side->ready) return NULL;
  if (number == 2) side->set = w->sides[0].set;
  TFC_RETURN_IF_ERROR(tfc_session_create(
      w->graph,
      &(struct tfc_session_options){
          .devices = &side->set, .execution = w->execution, .no_rewrites = number == 2, .callers = 1},
      &side->session));
  TFC_RETURN_IF_ERROR(tfc_session_fill_queues(side->session, NULL));
  if (w->init.target_count) TFC_RETURN_IF_ERROR(tfc_session_run(side->session, &w->init, NULL, NULL, NULL));
  struct tfc_restored restored;
  if (*w->checkpoint)
    TFC_RETURN_IF_ERROR(tfc_session_load_checkpoint(side->session, w->graph, w->checkpoint, &restored));
  TFC_RETURN_IF_ERROR(tfc_session_load_model(side->session, w->graph, NULL, !*w->checkpoint));
  TFC_RETURN_IF_ERROR(tfc_session_snapshot(side->session, &side->snapshot));
  TFC_RETURN_IF_ERROR(tfc_collector_create(side->set.count, 4 * (size_t)w->graph->node_count + 1024, &side->collector));
  TFC_RETURN_IF_ERROR(tfc_collector_watch(side->collector, &side->set));
  side->ready = true;
  return NULL;
}
