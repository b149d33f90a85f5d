#include "placer/search/archive.h"

#include <stdlib.h>
#include <string.h>

void tfc_archive_bytes(struct tfc_archive *a, void *data, size_t size) {
  if (a->out) {
    tfc_text_add(a->out, (tfc_str){data, size});
    a->broken |= a->out->failed;
    return;
  }
  if (a->broken || size > a->rest.size) {
    a->broken = true;
    memset(data, 0, size);
    return;
  }
  memcpy(data, a->rest.data, size);
  a->rest = tfc_str_sub(a->rest, size, a->rest.size);
}

bool tfc_archive_count(struct tfc_archive *a, uint32_t *count, uint32_t most) {
  tfc_archive_bytes(a, count, sizeof *count);
  if (*count > most) a->broken = true;
  if (a->broken) *count = 0;
  return !a->broken;
}

void tfc_archive_devices(struct tfc_archive *a, const struct tfc_problem *p, tfc_device_id *device) {
  tfc_archive_bytes(a, device, sizeof *device * p->unit_count);
  for (uint32_t u = 0; !a->out && !a->broken && u < p->unit_count; u++) a->broken = device[u] >= p->device_count;
}

// Writes or reads ranks, and checks what it reads: ranks are a permutation of the nodes.
static void archive_ranks(struct tfc_archive *a, const struct tfc_problem *p, uint32_t *rank) {
  tfc_archive_bytes(a, rank, sizeof *rank * p->node_count);
  if (a->out) return;
  bool *seen = calloc(p->node_count + 1u, sizeof *seen);
  a->broken |= !seen;
  for (uint32_t n = 0; !a->broken && n < p->node_count; n++) {
    a->broken = rank[n] >= p->node_count || seen[rank[n]];
    if (!a->broken) seen[rank[n]] = true;
  }
  free(seen);
}

void tfc_archive_solution(struct tfc_archive *a, const struct tfc_problem *p, struct tfc_solution *solution) {
  uint32_t parts = a->out ? (solution->device ? 1u : 0u) + (solution->device && solution->rank ? 1u : 0u) : 0;
  tfc_archive_count(a, &parts, 2);
  if (!a->out) {
    tfc_solution_deinit(solution);
    *solution = (struct tfc_solution){0};
    if (parts) solution->device = malloc(sizeof *solution->device * (p->unit_count + 1u));
    if (parts > 1) solution->rank = malloc(sizeof *solution->rank * (p->node_count + 1u));
    if ((parts && !solution->device) || (parts > 1 && !solution->rank)) {
      a->broken = true;
      return;
    }
  }
  if (parts) tfc_archive_devices(a, p, solution->device);
  if (parts > 1) archive_ranks(a, p, solution->rank);
}

void tfc_archive_elite(struct tfc_archive *a, const struct tfc_problem *p, struct tfc_elite *elite) {
  uint32_t count = elite->count;
  if (!tfc_archive_count(a, &count, TFC_ELITE)) return;
  if (!a->out) tfc_elite_clear(elite);
  for (uint32_t i = 0; i < count && !a->broken; i++) {
    tfc_archive_solution(a, p, &elite->solution[i]);
    tfc_archive_bytes(a, &elite->score[i], sizeof elite->score[i]);
    a->broken |= !elite->solution[i].device;
    elite->count = i + 1;
  }
}

void tfc_archive_text(struct tfc_archive *a, char **text) {
  uint32_t size = a->out && *text ? (uint32_t)strlen(*text) + 1 : 0; // 0: NULL
  if (!a->out) *text = NULL;
  if (!tfc_archive_count(a, &size, a->out ? UINT32_MAX : (uint32_t)(a->rest.size < 1u << 20 ? a->rest.size : 1u << 20)))
    return;
  if (!size) return;
  if (!a->out && !(*text = malloc(size))) {
    a->broken = true;
    return;
  }
  tfc_archive_bytes(a, *text, size);
  if (!a->out) (*text)[size - 1] = 0;
}
