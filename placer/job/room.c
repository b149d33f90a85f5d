// Checks before the first step whether memory can suffice. Variables stay on a device for the whole session, and all
// variables of a unit are on the same device, so they must fit under every placement. Tensors are not counted: how many
// exist at the same time depends on the placement.
#include "placer/job/room.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/units.h"

static uint64_t limit_of(const struct tfc_job_model *m, uint32_t device) {
  return m->bare->devices[device].memory;
}

static tfc_status check_all(const struct tfc_job_model *m) {
  uint64_t need = 0, room = 0;
  char a[32], b[32], c[32];
  for (uint32_t i = 0; i < m->info->variable_count; i++) need += m->info->variables[i].bytes;
  for (uint32_t d = 0; d < m->bare->device_count; d++) {
    if (limit_of(m, d) >= need) return NULL; // a device without a limit has room, too
    room += limit_of(m, d);
  }
  if (need <= room) return NULL;
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED,
                         "nothing can fit: the %u variables of the step alone take %s, all devices together may hold "
                         "%s, which is %s too little already",
                         m->info->variable_count, tfc_show_bytes(a, (double)need), tfc_show_bytes(b, (double)room),
                         tfc_show_bytes(c, (double)(need - room)));
}

tfc_status tfc_job_check_room(const struct tfc_job_model *m) {
  tfc_status s = check_all(m);
  if (s) return s;
  const struct tfc_problem *p = m->problem;
  uint64_t *need = calloc(p->unit_count + 1u, sizeof *need);
  uint32_t *largest = calloc(p->unit_count + 1u, sizeof *largest), *count = calloc(p->unit_count + 1u, sizeof *count);
  if (!need || !largest || !count) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < m->info->variable_count; i++) {
    const struct tfc_plan_variable *v = &m->info->variables[i];
    uint32_t anchor = v->node < m->o->graph->node_count ? m->subject->anchor[v->node] : TFC_NONE;
    if (anchor == TFC_NONE) continue;
    uint32_t u = p->unit[anchor];
    if (count[u]++ == 0 || v->bytes > m->info->variables[largest[u]].bytes) largest[u] = i;
    need[u] += v->bytes;
  }
  for (uint32_t u = 0; u < p->unit_count; u++) {
    uint32_t widest = TFC_NONE;
    for (uint32_t d = 0; d < p->device_count; d++)
      if (tfc_problem_allows(p, u, d) && (widest == TFC_NONE || limit_of(m, d) > limit_of(m, widest))) widest = d;
    // Units that no device may run are reported elsewhere.
    if (widest == TFC_NONE || need[u] <= limit_of(m, widest)) continue;
    char a[32], b[32], c[32], others[64] = "";
    tfc_str name = m->o->graph->nodes[m->info->variables[largest[u]].node].name;
    if (count[u] > 1) snprintf(others, sizeof others, " and %u more that must be on one device with it", count[u] - 1);
    TFC_FAIL(
        s, TFC_RESOURCE_EXHAUSTED,
        "nothing can fit: variable '%.*s'%s: %s, and %.*s, which has the most room of those that it may be on, may "
        "hold %s: %s are missing",
        TFC_STR_ARG(name), others, tfc_show_bytes(a, (double)need[u]), TFC_STR_ARG(m->bare->devices[widest].name),
        tfc_show_bytes(b, (double)limit_of(m, widest)), tfc_show_bytes(c, (double)(need[u] - limit_of(m, widest))));
  }
out:
  free(need);
  free(largest);
  free(count);
  return s;
}
