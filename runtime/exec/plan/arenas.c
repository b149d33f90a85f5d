// Arenas: the memory of a session's static plans, or of one plan whose steps overlap with others. All static plans of a
// session share one arena per device. It grows when a step needs more, and is freed when steps run in ready order.
#include "runtime/exec/plan/arenas.h"
#include "runtime/exec/plan/arrange.h"
#include "runtime/exec/plan/plan_internal.h"

// Allocates an arena of at least this size; with `exact` of exactly this size.
static tfc_status fit_arena(const struct tfc_session *session, struct tfc_session_arena *arena, uint32_t location,
                            uint64_t size, bool exact) {
  if (exact ? arena->size == size : arena->size >= size) return NULL;
  tfc_buffer_release(arena->buffer);
  arena->buffer = NULL;
  arena->size = 0;
  arena->generation++;
  if (size == 0) return NULL;
  if (location == session->device_count) {
    TFC_RETURN_IF_ERROR(tfc_buffer_create_host(size, &arena->buffer));
  } else {
    struct tfc_device *d = session->devices[location];
    TFC_RETURN_IF_ERROR(d->driver->allocate(d, size, &arena->buffer));
  }
  arena->size = size;
  return NULL;
}

void tfc_session_note_dynamic(struct tfc_session *session) {
  enum { ENOUGH = 2 }; // a session that alternates between both kinds of steps keeps its arenas
  if (session->dynamic_steps < ENOUGH && ++session->dynamic_steps == ENOUGH)
    for (uint32_t l = 0; l <= session->device_count; l++)
      tfc_status_free(fit_arena(session, &session->arenas[l], l, 0, true)); // freeing cannot fail
}

// Makes an error that names the operation whose output is the largest tensor that did not fit.
static tfc_status blame(const struct tfc_plan *plan, uint32_t location, tfc_status s) {
  const struct tfc_ir_value *most = NULL;
  char text[TFC_SHAPE_TEXT];
  for (size_t i = 0; i < plan->ir.values.count; i++) {
    const struct tfc_ir_value *v = &plan->ir.values.data[i];
    if (v->planned && v->op != TFC_NONE && tfc_value_location(&plan->ir, v) == location &&
        (!most || v->bytes > most->bytes))
      most = v;
  }
  if (!s || !most || most->origin.node >= plan->ir.graph->node_count) return s;
  const struct tfc_node *n = &plan->ir.graph->nodes[most->origin.node];
  return tfc_status_annotate(s, "the step's results, the largest of them %s%s of node '%.*s' (%.*s)",
                             tfc_dtype_name(most->dtype), tfc_shape_show(&most->shape, text), TFC_STR_ARG(n->name),
                             TFC_STR_ARG(n->op));
}

tfc_status tfc_plan_settle(struct tfc_plan *plan) {
  struct tfc_session *session = plan->session;
  struct tfc_session_arena *arenas = plan->own_arenas ? plan->own_arenas : session->arenas;
  bool moved = false;
  if (!plan->own_arenas) session->dynamic_steps = 0;
  for (uint32_t l = 0; l <= session->device_count; l++) {
    struct tfc_session_arena *arena = &arenas[l];
    bool exact = plan->refit;
    // If the arena is larger than this plan needs, and variables need that memory, the arena shrinks to the exact size.
    if (l < session->device_count && !exact) {
      uint64_t limit = session->devices[l]->info.memory, variables = plan->info.peak_bytes[l] - plan->arena_size[l];
      exact = limit != UINT64_MAX && arena->size > plan->arena_size[l] && arena->size + variables > limit;
    }
    tfc_status s = fit_arena(session, arena, l, plan->arena_size[l], exact);
    if (s) return blame(plan, l, s);
    moved |= plan->arena_generation[l] != arena->generation + 1;
    plan->arena_generation[l] = arena->generation + 1; // 0: addresses were never set
  }
  plan->refit = false;
  if (!moved) return NULL;
  for (uint32_t i = 0; i < plan->place_count; i++) {
    const struct tfc_place *p = &plan->places[i];
    const struct tfc_buffer *buffer = arenas[p->location].buffer;
    *p->slot = (struct tfc_tensor){
        .dtype = p->dtype, .shape = *p->shape, .size = p->size, .data = (char *)buffer->data + p->offset};
  }
  return NULL;
}
