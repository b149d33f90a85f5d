// Finds missing records: an operation whose record was lost would seem to take no time. Launches are therefore counted
// where they are made (struct tfc_device_driver, `launches`; nodes of captured graphs), and each operation and each
// transfer must have at least as many records. More records are fine: libraries launch kernels that are not counted. An
// operation that launched nothing (a view, an empty tensor) counts 0 and takes no time.
#include <stdio.h>
#include <stdlib.h>

#include "profiler/collector_launches.h"
#include "runtime/device/driver.h"
#include "runtime/exec/session.h"

static int by_uid(const void *a, const void *b) {
  const struct tfc_activity_work *x = a, *y = b;
  if (x->device != y->device) return x->device < y->device ? -1 : 1;
  return (x->uid > y->uid) - (x->uid < y->uid);
}

// Returns the number of works of a node or a transfer; works are sorted by uid.
static uint64_t count(const struct tfc_activity_result *r, uint32_t device, uint32_t uid) {
  size_t low = 0, high = r->works.count, n = 0;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const struct tfc_activity_work *w = &r->works.data[middle];
    if (w->device < device || (w->device == device && w->uid < uid))
      low = middle + 1;
    else
      high = middle;
  }
  while (low + n < r->works.count && r->works.data[low + n].device == device && r->works.data[low + n].uid == uid) n++;
  return n;
}

static tfc_status missing(const struct tfc_collector *c, const struct tfc_collector_names *names, uint32_t node,
                          bool transfer, uint32_t device, uint64_t launched, uint64_t recorded) {
  const struct tfc_graph *g = names ? names->graph : NULL;
  char what[256];
  if (g && node < g->node_count)
    snprintf(what, sizeof what, "%s '%.*s' (%.*s)", transfer ? "the transfer of node" : "node",
             (int)(g->nodes[node].name.size < 160 ? g->nodes[node].name.size : 160), g->nodes[node].name.data,
             TFC_STR_ARG(g->nodes[node].op));
  else
    snprintf(what, sizeof what, "%s %u", transfer ? "transfer" : "operation", node);
  return tfc_status_make(TFC_ABORTED,
                         "GPU trace: %s %s %s launched %llu piece%s of work, %llu of them %s recorded: no measurement",
                         what, transfer ? "to" : "on", c->set->devices[device]->info.name, (unsigned long long)launched,
                         launched == 1 ? "" : "s", (unsigned long long)recorded, recorded == 1 ? "was" : "were");
}

tfc_status tfc_collector_check_launches(struct tfc_collector *c, const struct tfc_collector_names *names,
                                        const struct tfc_step_profile *p, struct tfc_activity_result *r) {
  if (r->works.count) qsort(r->works.data, r->works.count, sizeof *r->works.data, by_uid);
  if (c->dispatches.count)
    qsort(c->dispatches.data, c->dispatches.count, sizeof *c->dispatches.data, tfc_collector_by_node);
  for (size_t i = 0, next; i < c->dispatches.count; i = next) { // a node may be dispatched several times (loops)
    const struct tfc_profile_op *op = &c->dispatches.data[i].op;
    uint64_t launched = 0;
    for (next = i; next < c->dispatches.count; next++) {
      const struct tfc_dispatch *d = &c->dispatches.data[next];
      if (d->op.device != op->device || d->op.node != op->node) break;
      launched += d->launches;
    }
    const uint64_t recorded = launched ? count(r, op->device, op->node) : 0;
    if (recorded < launched) return missing(c, names, op->node, false, op->device, launched, recorded);
  }
  for (size_t i = 0, next; i < p->transfers.count; i = next) { // transfers of a loop share a number
    const struct tfc_profile_transfer *t = &p->transfers.data[i];
    const uint64_t launched = tfc_collector_same_transfer(p, i, &next);
    if (!c->own[t->device] || launched == 0) continue;
    const uint64_t recorded = count(r, t->device, t->id | TFC_TRACE_UID_TRANSFER);
    if (recorded >= launched) continue;
    const struct tfc_plan_info *plan = names ? names->plan : NULL;
    struct tfc_collector_names none = {0};
    bool known = plan && t->id < plan->transfer_count;
    return missing(c, known ? names : &none, known ? plan->transfers[t->id].tensor.node : t->id, true, t->device,
                   launched, recorded);
  }
  return NULL;
}
