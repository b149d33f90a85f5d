// Finds in the trace what each operation waited for. It can wait for its inputs (the graph's edges, with the transfers
// that brought the tensors to its device) and for the previous operation on its device; what ended last is the cause.
// A node without an execution of its own, because it was fused into another operation or computed before the step, is
// passed over: its inputs count as inputs of its consumers. A transfer of a node without recorded edges (a variable, or
// a run that stored no edges) counts as an input of the next operation that starts on the target device.
//
// A transfer, too, waits for what ended last: for its producer, or for the previous operation or transfer of its
// target. CPU devices fetch their inputs themselves, so a tensor can be ready long before its transfer begins.
#include "reports/traced.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/interrupt.h"

// A step of a database may have many operations at the same time. Most of these functions then take quadratic time, so
// they ask whether they are interrupted.
static const char reading[] = "looking for causes in a traced step";

struct edge {
  uint32_t producer, consumer;
  int32_t output;
};
struct work {
  uint32_t node_count, device_count;
  struct edge *edges;   // sorted by consumer
  uint32_t *first_edge; // [node_count + 1]
  bool *has_consumer;   // [node_count]
  bool *executed;       // [node_count] at least one execution of it was recorded in this step
  uint32_t *seen;       // [node_count] the last operation (index + 1) for which this node was searched for inputs
  uint32_t *stack;      // [node_count] nodes without executions that are still to be searched
  // The same for the search for a transfer's producer: `searched` holds the number of the last search.
  uint32_t *searched, *sources, search;
  uint32_t *last_op;       // [node_count] the node's execution that started last so far
  uint32_t *first_arrival; // [node_count] head of a list of its transfers, linked by `next`
  uint32_t *next;          // [transfer_count]
  int64_t *latest_end;     // [transfer_count] the latest end of this transfer and of those before it
  uint32_t path_capacity;
};

// low: -1 where a time may be negative, otherwise 0.
static int64_t ns(const struct tfc_table *t, uint32_t row, uint32_t column, double low) {
  static const double high = (double)TFC_TRACED_LONGEST;
  const double x = tfc_table_cell(t, row, column)->real * 1e3;
  return x == x ? llround(fmin(fmax(x, low * high), high)) : 0;
}
static int64_t whole(const struct tfc_table *t, uint32_t row, uint32_t column, int64_t none) {
  const struct tfc_cell *c = tfc_table_cell(t, row, column);
  return c->kind == TFC_CELL_INTEGER ? c->integer : none;
}
static bool is_id(const struct tfc_table *t, uint32_t row, uint32_t column, int64_t count) {
  const int64_t id = whole(t, row, column, -1);
  return id >= 0 && id < count;
}
static tfc_status no_id(struct tfc_store *store, const struct tfc_query_args *args, const char *what) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: in run %lld, %s has the number of a node or device that is none",
                         tfc_store_path(store), (long long)args->run, what);
}
static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return most(low, least(x, high));
}

static int by_consumer(const void *a, const void *b) {
  const struct edge *x = a, *y = b;
  return (x->consumer > y->consumer) - (x->consumer < y->consumer);
}

static tfc_status load_rows(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_traced *t) {
  static const char ops[] =
      "SELECT node_id, device_id, start_us, duration_us, node, op, device FROM v_op WHERE run_id ="
      " :run AND placement_id = :placement AND step = :step ORDER BY start_us, position";
  static const char transfers[] =
      "SELECT node_id, output, source_id, target_id, bytes, start_us, duration_us, node, source, target FROM v_transfer"
      " WHERE run_id = :run AND placement_id = :placement AND step = :step ORDER BY start_us, position";
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(store, ops, args, &t->op_rows));
  TFC_TRY(s, tfc_table_query(store, transfers, args, &t->transfer_rows));
  t->op_count = t->op_rows.row_count, t->transfer_count = t->transfer_rows.row_count;
  if (!t->op_count)
    TFC_FAIL(s, TFC_NOT_FOUND,
             "%s: run %lld has no step whose operations were recorded (steps that were only simulated have none)",
             tfc_store_path(store), (long long)args->run);
  t->ops = TFC_ARENA_ARRAY(&t->arena, struct tfc_traced_op, t->op_count);
  t->transfers = TFC_ARENA_ARRAY(&t->arena, struct tfc_traced_transfer, (size_t)t->transfer_count + 1);
  if (!t->ops || !t->transfers) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < t->op_count; i++) {
    if (!is_id(&t->op_rows, i, 0, TFC_TRACED_NODES) || !is_id(&t->op_rows, i, 1, TFC_TRACED_DEVICES))
      TFC_TRY(s, no_id(store, args, "an operation"));
    const int64_t start = ns(&t->op_rows, i, 2, -1);
    t->ops[i] = (struct tfc_traced_op){.node = (uint32_t)whole(&t->op_rows, i, 0, 0),
                                       .device = (int32_t)whole(&t->op_rows, i, 1, 0),
                                       .start = start,
                                       .end = start + ns(&t->op_rows, i, 3, 0),
                                       .before = TFC_NONE,
                                       .producer = TFC_NONE,
                                       .transfer = TFC_NONE,
                                       .arrival = -1};
    t->end = most(t->end, t->ops[i].end);
  }
  for (uint32_t i = 0; i < t->transfer_count; i++) {
    if (!is_id(&t->transfer_rows, i, 0, TFC_TRACED_NODES) || !is_id(&t->transfer_rows, i, 2, TFC_TRACED_DEVICES) ||
        !is_id(&t->transfer_rows, i, 3, TFC_TRACED_DEVICES))
      TFC_TRY(s, no_id(store, args, "a transfer"));
    const int64_t start = ns(&t->transfer_rows, i, 5, -1);
    t->transfers[i] = (struct tfc_traced_transfer){.node = (uint32_t)whole(&t->transfer_rows, i, 0, 0),
                                                   .output = (int32_t)whole(&t->transfer_rows, i, 1, 0),
                                                   .source = (int32_t)whole(&t->transfer_rows, i, 2, -1),
                                                   .target = (int32_t)whole(&t->transfer_rows, i, 3, -1),
                                                   .bytes = whole(&t->transfer_rows, i, 4, 0),
                                                   .start = start,
                                                   .end = start + ns(&t->transfer_rows, i, 6, 0)};
  }
out:
  return s;
}

tfc_status tfc_traced_edges(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_table *out) {
  return tfc_table_query(
      store, "SELECT producer_id, consumer_id, output FROM v_edge WHERE run_id = :run ORDER BY edge_id", args, out);
}

static tfc_status load_edges(struct tfc_store *store, const struct tfc_query_args *args,
                             const struct tfc_table *edge_rows, struct tfc_traced *t, struct work *w) {
  const struct tfc_table rows = *edge_rows;
  tfc_status s = NULL;
  t->edge_count = rows.row_count;
  w->edges = TFC_ARENA_ARRAY(&t->arena, struct edge, (size_t)rows.row_count + 1);
  if (!w->edges) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < rows.row_count; i++) {
    struct edge *e = &w->edges[i];
    if (!is_id(&rows, i, 0, TFC_TRACED_NODES) || !is_id(&rows, i, 1, TFC_TRACED_NODES))
      TFC_TRY(s, no_id(store, args, "an edge"));
    *e =
        (struct edge){(uint32_t)whole(&rows, i, 0, 0), (uint32_t)whole(&rows, i, 1, 0), (int32_t)whole(&rows, i, 2, 0)};
    w->node_count = (uint32_t)most(w->node_count, most(e->producer, e->consumer) + 1);
  }
  for (uint32_t i = 0; i < t->op_count; i++) {
    w->node_count = (uint32_t)most(w->node_count, t->ops[i].node + 1);
    w->device_count = (uint32_t)most(w->device_count, t->ops[i].device + 1);
  }
  for (uint32_t i = 0; i < t->transfer_count; i++) {
    w->node_count = (uint32_t)most(w->node_count, t->transfers[i].node + 1);
    w->device_count = (uint32_t)most(w->device_count, t->transfers[i].target + 1);
  }
  qsort(w->edges, rows.row_count, sizeof *w->edges, by_consumer);
  w->first_edge = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)w->node_count + 1);
  w->has_consumer = TFC_ARENA_ARRAY(&t->arena, bool, (size_t)w->node_count + 1);
  w->executed = TFC_ARENA_ARRAY(&t->arena, bool, (size_t)w->node_count + 1);
  w->seen = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)w->node_count + 1);
  w->stack = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)w->node_count + 1);
  w->searched = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)w->node_count + 1);
  w->sources = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)w->node_count + 1);
  w->last_op = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)w->node_count + 1);
  w->first_arrival = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)w->node_count + 1);
  w->next = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)t->transfer_count + 1);
  w->latest_end = TFC_ARENA_ARRAY(&t->arena, int64_t, (size_t)t->transfer_count + 1);
  if (!w->first_edge || !w->has_consumer || !w->executed || !w->seen || !w->stack || !w->searched || !w->sources ||
      !w->last_op || !w->first_arrival || !w->next || !w->latest_end)
    TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t n = 0, e = 0; n <= w->node_count; n++) {
    while (e < rows.row_count && w->edges[e].consumer < n) e++;
    w->first_edge[n] = e;
    w->last_op[n] = w->first_arrival[n] = TFC_NONE;
    w->has_consumer[n] = w->executed[n] = false;
    w->seen[n] = w->searched[n] = 0;
  }
  for (uint32_t e = 0; e < rows.row_count; e++) w->has_consumer[w->edges[e].producer] = true;
  for (uint32_t i = 0; i < t->op_count; i++) w->executed[t->ops[i].node] = true;
  for (uint32_t i = 0; i < t->transfer_count; i++) { // each list begins with its latest transfer
    w->next[i] = w->first_arrival[t->transfers[i].node];
    w->first_arrival[t->transfers[i].node] = i;
    w->latest_end[i] = i ? most(w->latest_end[i - 1], t->transfers[i].end) : t->transfers[i].end;
  }
out:
  return s;
}

// Finds the transfer that brought the tensor to the operation's device: the last one that had begun, of this output if
// there is one, else of any output of the producer. TFC_NONE: the tensor did not cross.
static uint32_t arrival_of(const struct tfc_traced *t, const struct work *w, const struct edge *e,
                           const struct tfc_traced_op *o) {
  uint32_t other = TFC_NONE;
  for (uint32_t i = w->first_arrival[e->producer]; i != TFC_NONE; i = w->next[i]) {
    if (t->transfers[i].target != o->device || t->transfers[i].start > o->start) continue;
    if (t->transfers[i].output == e->output) return i;
    if (other == TFC_NONE) other = i;
  }
  return other;
}

static tfc_status add_input(struct tfc_traced *t, uint32_t op, uint32_t producer, uint32_t transfer) {
  struct tfc_traced_op *o = &t->ops[op];
  int64_t at = least(transfer != TFC_NONE ? t->transfers[transfer].end : t->ops[producer].end, o->start);
  if (t->link_count == t->link_capacity) {
    const uint32_t grown = 2 * t->link_capacity + 256;
    struct tfc_traced_link *links = TFC_ARENA_ARRAY(&t->arena, struct tfc_traced_link, grown);
    if (!links) return tfc_status_no_memory(NULL);
    if (t->link_count) memcpy(links, t->links, t->link_count * sizeof *links);
    t->links = links, t->link_capacity = grown;
  }
  t->links[t->link_count++] = (struct tfc_traced_link){producer, transfer, op};
  if (at < o->arrival || (at == o->arrival && (o->transfer != TFC_NONE || transfer == TFC_NONE))) return NULL;
  o->arrival = at, o->producer = producer, o->transfer = transfer;
  return NULL;
}

// Returns the execution that made what the transfer moved: the last one of the transfer's node on the source device
// that started before operation `op`. If the node has no executions: of the operations that it is computed from (see
// the head of this file), the last execution that had ended when the transfer began. It is an earlier one than `op`.
static uint32_t producer_of(const struct tfc_traced *t, struct work *w, uint32_t transfer, uint32_t op) {
  const struct tfc_traced_transfer *x = &t->transfers[transfer];
  for (uint32_t i = op; w->executed[x->node] && i-- > 0;)
    if (t->ops[i].node == x->node && t->ops[i].device == x->source) return i;
  if (w->executed[x->node]) return TFC_NONE;
  uint32_t found = TFC_NONE;
  uint32_t waiting = 0;
  w->search++;
  w->sources[waiting++] = x->node;
  w->searched[x->node] = w->search;
  while (waiting > 0) {
    const uint32_t node = w->sources[--waiting];
    for (uint32_t e = w->first_edge[node]; e < w->first_edge[node + 1]; e++) {
      const uint32_t producer = w->edges[e].producer;
      const uint32_t last = w->last_op[producer];
      if (w->searched[producer] == w->search) continue;
      w->searched[producer] = w->search;
      if (!w->executed[producer])
        w->sources[waiting++] = producer;
      else if (last != TFC_NONE && last < op && t->ops[last].end <= x->start &&
               (found == TFC_NONE || t->ops[last].end > t->ops[found].end))
        found = last;
    }
  }
  return found;
}

// Adds the inputs of operation `op`: for each edge its producer's last execution, with the transfer if the tensor came
// from another device. Producers without executions are replaced by their own inputs.
static tfc_status add_inputs(struct tfc_traced *t, struct work *w, uint32_t op) {
  const struct tfc_traced_op *o = &t->ops[op];
  uint32_t waiting = 0;
  w->stack[waiting++] = o->node;
  w->seen[o->node] = op + 1;
  while (waiting > 0) {
    const uint32_t node = w->stack[--waiting];
    for (uint32_t e = w->first_edge[node]; e < w->first_edge[node + 1]; e++) {
      const struct edge *edge = &w->edges[e];
      uint32_t producer = w->last_op[edge->producer];
      const bool crosses = edge->output >= 0 && (producer == TFC_NONE || t->ops[producer].device != o->device);
      const uint32_t transfer = crosses ? arrival_of(t, w, edge, o) : TFC_NONE;
      if (transfer != TFC_NONE && producer == TFC_NONE) producer = producer_of(t, w, transfer, op);
      if (producer != TFC_NONE || transfer != TFC_NONE) TFC_RETURN_IF_ERROR(add_input(t, op, producer, transfer));
      if (producer != TFC_NONE || w->executed[edge->producer] || w->seen[edge->producer] == op + 1) continue;
      w->seen[edge->producer] = op + 1;
      w->stack[waiting++] = edge->producer;
    }
  }
  return NULL;
}

static tfc_status find_causes(struct tfc_traced *t, struct work *w) {
  // For each device: the operation that ended last so far; the transfers without edges that no operation has been given
  // yet; and the operations that have started and not ended (lanes of one device run side by side).
  uint32_t *ended = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)w->device_count + 1);
  uint32_t *running = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)t->op_count + 1);
  uint32_t *loose = TFC_ARENA_ARRAY(&t->arena, uint32_t, (size_t)t->transfer_count + 1);
  uint32_t running_count = 0, loose_count = 0;
  if (!ended || !running || !loose) return tfc_status_no_memory(NULL);
  for (uint32_t d = 0; d < w->device_count; d++) ended[d] = TFC_NONE;
  for (uint32_t i = 0; i < t->transfer_count; i++)
    if (!w->has_consumer[t->transfers[i].node]) loose[loose_count++] = i;
  for (uint32_t i = 0; i < t->op_count; i++) {
    struct tfc_traced_op *o = &t->ops[i];
    uint32_t kept = 0;
    TFC_RETURN_IF_ERROR(tfc_interrupted(reading));
    for (uint32_t k = 0; k < running_count; k++) {
      struct tfc_traced_op *r = &t->ops[running[k]];
      uint32_t *last = &ended[r->device];
      if (r->device != o->device || r->end > o->start)
        running[kept++] = running[k];
      else if (*last == TFC_NONE || r->end >= t->ops[*last].end)
        *last = running[k];
    }
    running_count = kept;
    o->before = ended[o->device];
    TFC_RETURN_IF_ERROR(add_inputs(t, w, i));
    uint32_t taken = TFC_NONE;
    kept = 0;
    for (uint32_t k = 0; k < loose_count; k++) {
      const struct tfc_traced_transfer *x = &t->transfers[loose[k]];
      if (x->target != o->device || x->end > o->start)
        loose[kept++] = loose[k];
      else if (taken == TFC_NONE || x->end > t->transfers[taken].end)
        taken = loose[k];
    }
    loose_count = kept;
    if (taken != TFC_NONE) TFC_RETURN_IF_ERROR(add_input(t, i, producer_of(t, w, taken, i), taken));
    o->by_input = o->arrival >= 0 && (o->before == TFC_NONE || o->arrival >= t->ops[o->before].end);
    w->last_op[o->node] = i;
    running[running_count++] = i;
  }
  return NULL;
}

// Finds what the transfer `transfer`, an input of operation `op`, waited for: its producer, or the previous operation
// or transfer of the target device. Returns the operation that ended; if it was a transfer (*out_transfer, otherwise
// TFC_NONE), that transfer's producer. TFC_NONE: it waited for nothing that was recorded.
static uint32_t cause_of_transfer(const struct tfc_traced *t, struct work *w, uint32_t transfer, uint32_t producer,
                                  uint32_t op, uint32_t *out_transfer) {
  const struct tfc_traced_transfer *x = &t->transfers[transfer];
  const uint32_t before = t->ops[op].before;
  uint32_t cause = producer;
  int64_t end = producer != TFC_NONE ? t->ops[producer].end : -1;
  *out_transfer = TFC_NONE;
  if (before != TFC_NONE && t->ops[before].end <= x->start && t->ops[before].end > end)
    cause = before, end = t->ops[before].end;
  for (uint32_t i = transfer; i-- > 0 && w->latest_end[i] > end;) {
    const struct tfc_traced_transfer *y = &t->transfers[i];
    if (y->target != x->target || y->end > x->start || y->end <= end) continue;
    end = y->end, *out_transfer = i;
  }
  return *out_transfer != TFC_NONE ? producer_of(t, w, *out_transfer, op) : cause;
}

// Where operations of a device overlap, one transfer can be on the path several times.
static tfc_status add_to_path(struct tfc_traced *t, struct work *w, const struct tfc_traced_item *item) {
  if (t->path_count == w->path_capacity) {
    const uint32_t grown = 2 * w->path_capacity + 64;
    struct tfc_traced_item *path = TFC_ARENA_ARRAY(&t->arena, struct tfc_traced_item, grown);
    if (!path) return tfc_status_no_memory(NULL);
    if (t->path_count) memcpy(path, t->path, t->path_count * sizeof *path);
    t->path = path, w->path_capacity = grown;
  }
  t->path[t->path_count++] = *item;
  return NULL;
}

static tfc_status find_path(struct tfc_traced *t, struct work *w) {
  uint32_t last = 0;
  for (uint32_t i = 1; i < t->op_count; i++)
    if (t->ops[i].end > t->ops[last].end) last = i;
  int64_t until = t->ops[last].end;
  for (uint32_t at = last; at != TFC_NONE;) {
    const struct tfc_traced_op *o = &t->ops[at];
    const uint32_t op = (uint32_t)at;
    TFC_RETURN_IF_ERROR(tfc_interrupted(reading));
    TFC_RETURN_IF_ERROR(
        add_to_path(t, w, &(struct tfc_traced_item){.op = at, .transfer = TFC_NONE, .start = o->start, .end = until}));
    until = o->start;
    at = o->by_input ? o->producer : o->before;
    for (uint32_t transfer = o->by_input ? o->transfer : TFC_NONE; transfer != TFC_NONE;) {
      const struct tfc_traced_transfer *x = &t->transfers[transfer];
      const int64_t end = least(x->end, until), start = least(x->start, end);
      TFC_RETURN_IF_ERROR(add_to_path(
          t, w, &(struct tfc_traced_item){.op = TFC_NONE, .transfer = transfer, .start = start, .end = end}));
      until = start;
      at = cause_of_transfer(t, w, transfer, at, op, &transfer);
    }
    if (at != TFC_NONE) until = least(until, t->ops[at].end);
  }
  for (uint32_t i = 0; i < t->path_count / 2; i++) {
    struct tfc_traced_item swap = t->path[i];
    t->path[i] = t->path[t->path_count - 1 - i], t->path[t->path_count - 1 - i] = swap;
  }
  for (uint32_t i = 0; i < t->path_count; i++) t->path[i].waited = t->path[i].start - (i ? t->path[i - 1].end : 0);
  return NULL;
}

// Limits how late `from` may end: `to`, which starts `lag` after that end, must not end after its own `latest`. If `to`
// waited for `from`, the lag is the measured one; otherwise it is the time of the transfer, or 0.
static void hold(struct tfc_traced *t, uint32_t from, const struct tfc_traced_op *to, int64_t lag) {
  if (from == TFC_NONE) return;
  int64_t latest = to->latest - (to->end - to->start) - lag;
  t->ops[from].latest = most(least(t->ops[from].latest, latest), t->ops[from].end);
}
// Returns the operation whose end decided when operation `op` started; all transfers between the two are followed.
static uint32_t root_of(const struct tfc_traced *t, struct work *w, uint32_t op) {
  const struct tfc_traced_op *o = &t->ops[op];
  uint32_t at = o->by_input ? o->producer : o->before;
  for (uint32_t transfer = o->by_input ? o->transfer : TFC_NONE; transfer != TFC_NONE;)
    at = cause_of_transfer(t, w, transfer, at, op, &transfer);
  return at;
}
static tfc_status find_slack(struct tfc_traced *t, struct work *w) {
  uint32_t link = t->link_count;
  for (uint32_t i = 0; i < t->op_count; i++) t->ops[i].latest = t->end;
  for (uint32_t i = t->op_count; i-- > 0;) {
    const struct tfc_traced_op *o = &t->ops[i];
    TFC_RETURN_IF_ERROR(tfc_interrupted(reading));
    const uint32_t root = root_of(t, w, i);
    for (; link > 0 && t->links[link - 1].op == i; link--) {
      const struct tfc_traced_link *l = &t->links[link - 1];
      if (l->producer == TFC_NONE) continue;
      const bool cause = o->by_input && l->producer == o->producer && l->transfer == o->transfer && root == o->producer;
      const struct tfc_traced_transfer *x = l->transfer != TFC_NONE ? &t->transfers[l->transfer] : NULL;
      hold(t, l->producer, o, cause ? most(o->start - t->ops[l->producer].end, 0) : x ? x->end - x->start : 0);
    }
    hold(t, o->before, o, o->before == TFC_NONE || root != o->before ? 0 : o->start - t->ops[o->before].end);
  }
  return NULL;
}

static int longest_first(const void *a, const void *b) {
  const struct tfc_traced_gap *x = a, *y = b;
  int64_t p = x->end - x->start, q = y->end - y->start;
  if (p != q) return p < q ? 1 : -1;
  if (x->device != y->device) return x->device < y->device ? -1 : 1;
  return (x->start > y->start) - (x->start < y->start);
}

// Returns how much of [begin, end) is covered by transfers to the device.
static int64_t moved_to(const struct tfc_traced *t, int32_t device, int64_t begin, int64_t end) {
  int64_t sum = 0, at = begin;
  for (uint32_t i = 0; i < t->transfer_count && t->transfers[i].start < end && begin < end; i++) { // sorted by start
    if (t->transfers[i].target != device) continue;
    const int64_t from = clamp(t->transfers[i].start, at, end), to = clamp(t->transfers[i].end, from, end);
    sum += to - from;
    at = to;
  }
  return sum;
}

static tfc_status find_gaps(struct tfc_traced *t, const struct work *w) {
  int64_t *at = TFC_ARENA_ARRAY(&t->arena, int64_t, (size_t)w->device_count + 1);
  bool *used = TFC_ARENA_ARRAY(&t->arena, bool, (size_t)w->device_count + 1);
  if (!at || !used) return tfc_status_no_memory(NULL);
  for (uint32_t d = 0; d < w->device_count; d++) at[d] = 0, used[d] = false;
  for (uint32_t i = 0; i < t->op_count; i++) {
    const struct tfc_traced_op *o = &t->ops[i];
    int64_t begin = at[o->device];
    used[o->device] = true;
    at[o->device] = most(begin, o->end);
    if (o->start <= begin) continue;
    TFC_RETURN_IF_ERROR(tfc_interrupted(reading));
    struct tfc_traced_gap *g = &t->gaps[t->gap_count++];
    *g = (struct tfc_traced_gap){.device = o->device, .op = i, .start = begin, .end = o->start};
    int64_t from = begin;
    if (o->transfer != TFC_NONE) {
      const struct tfc_traced_transfer *x = &t->transfers[o->transfer];
      // At `done` the producer had ended, or the transfer began if no producer is known; at `there` the tensor had
      // arrived.
      int64_t done = o->producer != TFC_NONE ? t->ops[o->producer].end : x->start;
      int64_t there = most(from, least(x->end, o->start));
      done = most(from, least(done, there));
      // Before the transfer began, other transfers to the device may have been on their way. In the rest of that time
      // the device had what it needed but had not begun, for example because all cores worked for other devices.
      const int64_t began = clamp(x->start, done, there), moved = moved_to(t, o->device, done, began);
      g->dependency = done - from, g->transfer = moved + there - began, g->other = began - done - moved, from = there;
    } else if (o->producer != TFC_NONE && t->ops[o->producer].device != o->device) {
      int64_t done = most(from, least(t->ops[o->producer].end, o->start));
      g->dependency = done - from, from = done;
    }
    g->other += o->start - from;
  }
  for (uint32_t d = 0; d < w->device_count; d++)
    if (used[d] && at[d] < t->end)
      t->gaps[t->gap_count++] = (struct tfc_traced_gap){
          .device = (int32_t)d, .op = TFC_NONE, .start = at[d], .end = t->end, .other = t->end - at[d]};
  qsort(t->gaps, t->gap_count, sizeof *t->gaps, longest_first);
  return NULL;
}

tfc_status tfc_traced_load(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_traced *out) {
  struct tfc_table edges = {0};
  tfc_status s = tfc_traced_edges(store, args, &edges);
  if (!s) s = tfc_traced_load_step(store, args, &edges, out);
  tfc_table_deinit(&edges);
  return s;
}

tfc_status tfc_traced_load_step(struct tfc_store *store, const struct tfc_query_args *args,
                                const struct tfc_table *edges, struct tfc_traced *out) {
  struct tfc_traced t = {0};
  struct work w = {0};
  tfc_status s = NULL;
  TFC_TRY(s, load_rows(store, args, &t));
  TFC_TRY(s, load_edges(store, args, edges, &t, &w));
  t.gaps = TFC_ARENA_ARRAY(&t.arena, struct tfc_traced_gap, (size_t)t.op_count + w.device_count + 1);
  if (!t.gaps) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, find_causes(&t, &w));
  TFC_TRY(s, find_path(&t, &w));
  TFC_TRY(s, find_slack(&t, &w));
  TFC_TRY(s, find_gaps(&t, &w));
  *out = t;
  t = (struct tfc_traced){0};
out:
  tfc_traced_deinit(&t);
  return s;
}

void tfc_traced_deinit(struct tfc_traced *t) {
  tfc_table_deinit(&t->op_rows);
  tfc_table_deinit(&t->transfer_rows);
  tfc_arena_deinit(&t->arena);
  *t = (struct tfc_traced){0};
}
