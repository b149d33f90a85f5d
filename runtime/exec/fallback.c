// Lists the operations of a plan that run on the host because their device has no kernel for them, or that run on the
// device without the library that should have run them. The drivers that prepared the operations provide the list.
#include "runtime/exec/dynamic/dynamic.h"
#include "runtime/exec/session_internal.h"

struct list {
  struct tfc_plan_fallback *out;
  uint32_t capacity, count;
};

static void add(struct list *l, const struct tfc_device *d, const struct tfc_segment *segment,
                const struct tfc_prepared *prepared) {
  for (uint32_t i = 0; prepared && d->driver->fallback && i < segment->op_count; i++) {
    const char *reason = d->driver->fallback(prepared, i);
    const bool on_device = !reason && d->driver->declined;
    if (on_device) reason = d->driver->declined(prepared, i);
    if (!reason) continue;
    if (l->count < l->capacity)
      l->out[l->count] = (struct tfc_plan_fallback){segment->ops[i].node, d->index, on_device, reason};
    l->count++;
  }
}

uint32_t tfc_plan_fallbacks(const struct tfc_plan *plan, struct tfc_plan_fallback *out, uint32_t capacity) {
  struct list l = {.out = out, .capacity = capacity};
  for (uint32_t i = 0, k = 0; i < plan->submission_count; i++) {
    const struct tfc_submission *sub = &plan->submissions[i];
    if (!sub->copy.source) add(&l, sub->device, &plan->segments[k++], sub->prepared);
  }
  for (uint32_t k = 0; plan->dynamic && k < plan->ir.device_count; k++)
    add(&l, plan->ir.devices[k], &plan->dynamic->segments[k], plan->dynamic->prepared[k]);
  return l.count;
}
