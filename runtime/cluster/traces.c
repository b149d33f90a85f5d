// Nodes of a part have the names that they have in the client's graph; those that cutting has added are skipped.
#include "runtime/cluster/traces.h"

#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/base/state_text.h"
#include "runtime/base/units.h"
#include "runtime/cluster/cut.h"

tfc_status tfc_part_trace_begin(struct tfc_part_trace *p, uint32_t devices, size_t records) {
  *p = (struct tfc_part_trace){0};
  p->sink.buffers = calloc(2 * (size_t)devices + 1, sizeof *p->sink.buffers);
  if (!p->sink.buffers) return tfc_status_no_memory("the trace of a step");
  p->sink.buffer_count = devices + 1;
  p->sink.copies = p->sink.buffers + devices + 1;
  for (uint32_t i = 0; i < 2 * devices + 1; i++) {
    struct tfc_trace_buffer *b = &p->sink.buffers[i];
    b->records = calloc(records, sizeof *b->records);
    if (!b->records) return tfc_status_no_memory("the trace of a step");
    b->capacity = records;
  }
  return NULL;
}

size_t tfc_part_trace_needs(const struct tfc_part_trace *p) {
  size_t most = 0;
  for (uint32_t i = 0; i < 2 * p->sink.buffer_count - 1; i++) {
    const struct tfc_trace_buffer *b = &p->sink.buffers[i];
    if (b->count + b->dropped > most) most = b->count + b->dropped;
  }
  return most;
}

tfc_status tfc_part_trace_write(const struct tfc_part_trace *p, const struct tfc_graph *part,
                                const tfc_arrival_list *arrivals, struct tfc_text *out) {
  size_t lost = 0;
  tfc_ticks_resync(); // between steps, so that the clock of ticks does not drift away
  for (uint32_t i = 0; i < 2 * p->sink.buffer_count - 1; i++) lost += p->sink.buffers[i].dropped;
  tfc_text_printf(out, "part\t%lld\t%lld\t%zu\n", (long long)p->here.asked_ns, (long long)p->here.answered_ns, lost);
  for (uint32_t i = 0; i < p->sink.buffer_count; i++) {
    const struct tfc_trace_buffer *b = &p->sink.buffers[i];
    for (size_t k = 0; k < b->count; k++) {
      const struct tfc_trace_record *r = &b->records[k];
      if ((r->kind != TFC_TRACE_OP && r->kind != TFC_TRACE_EXECUTE) || r->id >= part->node_count) continue;
      tfc_text_printf(out, "op\t%lld\t%lld\t%u\t", (long long)tfc_ticks_to_ns(r->begin),
                      (long long)tfc_ticks_to_ns(r->end), r->device);
      tfc_state_add(out, part->nodes[r->id].name);
      tfc_text_add(out, TFC_STR("\n"));
    }
  }
  for (size_t i = 0; i < arrivals->count; i++) {
    const struct tfc_arrival *a = &arrivals->data[i];
    tfc_text_printf(out, "tensor\t%lld\t%lld\t%u\t%llu\n", (long long)a->sent_ns, (long long)a->arrived_ns, a->edge,
                    (unsigned long long)a->bytes);
  }
  return out->failed ? tfc_status_no_memory("the trace of a step") : NULL;
}

void tfc_part_trace_deinit(struct tfc_part_trace *p) {
  for (uint32_t i = 0; p->sink.buffers && i < 2 * p->sink.buffer_count - 1; i++) free(p->sink.buffers[i].records);
  free(p->sink.buffers);
  *p = (struct tfc_part_trace){0};
}

// --- The client ------------------------------------------------------------------------------------------------------
// Reads the numbers of a line after its kind.
static tfc_status read_numbers(tfc_str line, int64_t *out, uint32_t count, tfc_str *rest) {
  for (uint32_t i = 0; i < count; i++) {
    tfc_status s = tfc_parse_i64(tfc_state_word(&line), &out[i]);
    if (s) return s;
    if (out[i] < 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "%lld in a trace", (long long)out[i]);
  }
  *rest = line;
  return NULL;
}

static tfc_status add_op(struct tfc_cluster_trace *t, const struct tfc_graph *g, uint32_t rank, tfc_str line,
                         int64_t offset) {
  int64_t n[3];
  struct tfc_text name = {0};
  tfc_status s = NULL;
  TFC_TRY(s, read_numbers(line, n, 3, &line));
  tfc_state_read(line, &name);
  if (name.failed) TFC_TRY(s, tfc_status_no_memory("the trace of a step"));
  const uint32_t node = tfc_graph_find(g, (tfc_str){name.data, name.size});
  if (node == TFC_NONE) goto out;
  const struct tfc_cluster_op op = {n[0] - offset, n[1] - offset, node, rank, (uint32_t)n[2]};
  if (!tfc_array_push(&t->ops, op)) s = tfc_status_no_memory("the trace of a step");
out:
  tfc_text_deinit(&name);
  return s;
}

tfc_status tfc_cluster_trace_add(struct tfc_cluster_trace *t, const struct tfc_cut *cut, uint32_t rank, tfc_str text,
                                 const struct tfc_round_trip *trip, int64_t *offsets) {
  int64_t n[3];
  for (tfc_str line; tfc_line_next(&text, &line);) {
    const tfc_str kind = tfc_state_word(&line);
    if (tfc_str_is(kind, "part")) {
      TFC_RETURN_IF_ERROR(read_numbers(line, n, 3, &line));
      t->lost += n[2];
      if (!trip) continue;
      // as NTP does
      offsets[rank] = ((n[0] - trip->asked_ns) + (n[1] - trip->answered_ns)) / 2;
      const int64_t off = ((trip->answered_ns - trip->asked_ns) - (n[1] - n[0]) + 1) / 2;
      if (off > t->clock_off_ns) t->clock_off_ns = off;
    } else if (tfc_str_is(kind, "op")) {
      TFC_RETURN_IF_ERROR(add_op(t, cut->graph, rank, line, offsets[rank]));
    }
  }
  return NULL;
}

tfc_status tfc_cluster_trace_add_arrivals(struct tfc_cluster_trace *t, const struct tfc_cut *cut, uint32_t rank,
                                          tfc_str text, const int64_t *offsets) {
  int64_t n[4];
  for (tfc_str line; tfc_line_next(&text, &line);) {
    if (!tfc_str_is(tfc_state_word(&line), "tensor")) continue;
    TFC_RETURN_IF_ERROR(read_numbers(line, n, 4, &line));
    const struct tfc_cut_edge *edge = (uint64_t)n[2] < cut->edges.count ? &cut->edges.data[n[2]] : NULL;
    if (!edge || edge->to != rank)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor of edge %lld in a trace", (long long)n[2]);
    const struct tfc_cluster_transfer transfer = {.begin_ns = n[0] - offsets[edge->from],
                                                  .end_ns = n[1] - offsets[rank],
                                                  .bytes = (uint64_t)n[3],
                                                  .tensor = edge->source,
                                                  .from = edge->from,
                                                  .to = rank};
    if (!tfc_array_push(&t->transfers, transfer)) return tfc_status_no_memory("the trace of a step");
  }
  return NULL;
}

void tfc_cluster_trace_deinit(struct tfc_cluster_trace *t) {
  tfc_array_free(&t->ops);
  tfc_array_free(&t->transfers);
  *t = (struct tfc_cluster_trace){0};
}
