// A step has a plan. It says which tasks run parts of the step, and for each part the feeds, the fetches and the
// targets: the step's own targets, and the _Send nodes of tensors that other tasks need. A plan is made once for each
// set of feeds, fetches and targets; it is sent to the tasks as names of nodes. A step then costs one message to each
// task, and one answer.
#include "runtime/cluster/client.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/no_memory.h"
#include "runtime/base/units.h"
#include "runtime/cluster/cut.h"
#include "runtime/cluster/member_internal.h"
#include "runtime/cluster/queues.h"
#include "runtime/cluster/states.h"
#include "runtime/exec/saved_state.h"
#include "runtime/pass/pass.h"

#define REST_NS INT64_C(10000000000) // for so long queue runners are waited for before states are saved
struct part {                        // the part of a plan that one task runs
  uint32_t rank;
  TFC_ARRAY(uint32_t) feeds, fetches; // indices into the feeds and fetches of the step
  struct tfc_text feed_names, fetch_names, target_names;
  uint32_t target_count;
};
struct plan {
  uint32_t id;
  struct tfc_output *feeds, *fetches;
  uint32_t *targets;
  uint32_t feed_count, fetch_count, target_count;
  struct part *parts;
  uint32_t *ranks; // ranks of the other tasks that run parts
  uint32_t part_count, foreign_count;
  uint32_t own; // index of this task's part, UINT32_MAX: none
  bool *wanted; // [runner] queue runners whose queues the step uses, or NULL
};
struct tfc_cluster_session {
  struct tfc_member *task;
  const struct tfc_graph *graph;
  struct tfc_cut cut;
  char *execution;
  uint32_t number;
  pthread_mutex_t lock; // guards the fields that follow
  bool *told;           // [task] the task has received its part of the graph
  TFC_ARRAY(struct plan *) plans;
  struct tfc_cluster_queues *queues; // the graph's queue runners, or NULL
};

static tfc_status no_memory(void) {
  return tfc_status_no_memory("a step of several tasks");
}

// --- Plans -----------------------------------------------------------------------------------------------------------
static void plan_free(struct plan *p) {
  if (!p) return;
  for (uint32_t i = 0; p->parts && i < p->part_count; i++) {
    struct part *part = &p->parts[i];
    tfc_array_free(&part->feeds);
    tfc_array_free(&part->fetches);
    tfc_text_deinit(&part->feed_names);
    tfc_text_deinit(&part->fetch_names);
    tfc_text_deinit(&part->target_names);
  }
  free(p->wanted), free(p->parts), free(p->ranks), free(p->feeds), free(p->fetches), free(p->targets);
  free(p);
}

static bool same_outputs(const struct tfc_output *a, const struct tfc_output *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (a[i].node != b[i].node || a[i].index != b[i].index) return false;
  return true;
}
static bool is_for(const struct plan *p, const struct tfc_run_spec *spec) {
  return p->feed_count == spec->feed_count && p->fetch_count == spec->fetch_count &&
         p->target_count == spec->target_count && same_outputs(p->feeds, spec->feeds, p->feed_count) &&
         same_outputs(p->fetches, spec->fetches, p->fetch_count) &&
         (!p->target_count || !memcmp(p->targets, spec->targets, p->target_count * sizeof *p->targets));
}

static void add_name(struct tfc_text *out, const struct tfc_graph *g, struct tfc_output o) {
  const tfc_str name = g->nodes[o.node].name;
  if (o.index >= 0)
    tfc_text_printf(out, "%.*s:%d", TFC_STR_ARG(name), o.index);
  else
    tfc_text_add(out, name);
  tfc_text_add(out, (tfc_str){"", 1});
}

static bool is_fed(const struct tfc_run_spec *spec, struct tfc_output o) {
  for (uint32_t i = 0; i < spec->feed_count; i++)
    if (spec->feeds[i].node == o.node && spec->feeds[i].index == o.index) return true;
  return false;
}
// A node does not run if all its outputs are fed; then its inputs are not needed either.
static bool is_replaced(const struct tfc_graph *g, const struct tfc_run_spec *spec, uint32_t node) {
  for (uint32_t k = 0; k < g->nodes[node].output_count; k++)
    if (!is_fed(spec, (struct tfc_output){node, (int32_t)k})) return false;
  return g->nodes[node].output_count > 0;
}

static bool is_wanted(const struct tfc_cut *cut, const struct tfc_run_spec *spec, const bool *needed,
                      const struct tfc_cut_edge *e) {
  const struct tfc_graph *g = cut->graph;
  for (uint32_t c = g->consumer_begin[e->source.node]; c < g->consumer_begin[e->source.node + 1]; c++) {
    const struct tfc_consumer *k = &g->consumers[c];
    if (k->output == e->source.index && cut->ranks[k->node] == e->to && needed[k->node] &&
        !is_replaced(g, spec, k->node))
      return true;
  }
  return false;
}

// Finds which nodes of the graph run. The condition of every loop that runs is needed, because other tasks need its
// value to continue their loops.
static tfc_status find_needed(const struct tfc_cut *cut, const struct tfc_run_spec *spec, bool *needed) {
  const struct tfc_graph *g = cut->graph;
  tfc_status s = NULL;
  uint32_t *targets = calloc((size_t)spec->target_count + cut->frames.count + 1, sizeof *targets);
  bool *runs = calloc(cut->frames.count + 1u, sizeof *runs);
  uint32_t count = spec->target_count;
  if (!targets || !runs) TFC_TRY(s, no_memory());
  if (count) memcpy(targets, spec->targets, count * sizeof *targets);
  for (bool more = true; more;) {
    more = false;
    TFC_TRY(s, tfc_prune(g, spec->feeds, spec->feed_count, spec->fetches, spec->fetch_count, targets, count, needed));
    for (uint32_t i = 0; cut->loops.count && i < g->node_count; i++) {
      const uint32_t frame = needed[i] ? cut->frames.of_node[i] : 0;
      if (!frame || runs[frame]) continue;
      runs[frame] = true;
      const uint32_t condition = cut->frames.frames[frame].condition;
      if (condition == TFC_NO_NODE || needed[condition]) continue;
      targets[count++] = condition;
      more = true;
    }
  }
out:
  free(targets);
  free(runs);
  return s;
}

// Adds the edges that send the conditions of loops to the tasks that iterate in them.
static void want_conditions(const struct tfc_cut *cut, bool *wanted, bool *rounds) {
  for (bool more = true; more;) {
    more = false;
    for (uint32_t e = 0; e < cut->edges.count; e++) {
      const struct tfc_cut_edge *edge = &cut->edges.data[e];
      for (uint32_t f = wanted[e] ? edge->frame : 0; f; f = cut->frames.frames[f].parent) {
        rounds[tfc_cut_loop_of(cut, f, edge->from)] = true;
        rounds[tfc_cut_loop_of(cut, f, edge->to)] = true;
      }
    }
    for (uint32_t k = 0; k < cut->loops.count; k++) {
      const uint32_t edge = cut->loops.data[k].edge;
      if (!rounds[k] || edge == UINT32_MAX || wanted[edge]) continue;
      wanted[edge] = more = true;
    }
  }
}

// Fills p->parts [tasks]: one part for each task, also for tasks that have nothing to run.
static tfc_status fill_parts(const struct tfc_cluster_session *session, const struct tfc_run_spec *spec,
                             struct plan *p) {
  const struct tfc_graph *g = session->graph;
  const struct tfc_cut *cut = &session->cut;
  tfc_status s = NULL;
  bool *needed = calloc(g->node_count + 1u, sizeof *needed), failed = false;
  bool *wanted = calloc(cut->edges.count + 1, sizeof *wanted), *rounds = calloc(cut->loops.count + 1, sizeof *rounds);
  if (!needed || !wanted || !rounds) {
    s = no_memory();
    goto out;
  }
  TFC_TRY(s, find_needed(cut, spec, needed));
  if (session->queues) p->wanted = tfc_cluster_queues_wanted(session->queues, needed);
  for (uint32_t e = 0; e < cut->edges.count; e++) {
    const struct tfc_cut_edge *edge = &cut->edges.data[e];
    wanted[e] =
        is_wanted(cut, spec, needed, edge) && !(edge->source.index < 0 && is_replaced(g, spec, edge->source.node));
  }
  want_conditions(cut, wanted, rounds);
  for (uint32_t e = 0; e < cut->edges.count; e++) {
    char name[TFC_CUT_NAME];
    if (!wanted[e]) continue;
    struct part *part = &p->parts[cut->edges.data[e].from];
    tfc_text_add(&part->target_names, tfc_str_from(tfc_cut_send_name(e, name)));
    tfc_text_add(&part->target_names, (tfc_str){"", 1});
    part->target_count++;
  }
  for (uint32_t i = 0; i < spec->target_count; i++) {
    struct part *part = &p->parts[cut->ranks[spec->targets[i]]];
    add_name(&part->target_names, g, (struct tfc_output){spec->targets[i], TFC_CONTROL});
    part->target_count++;
  }
  for (uint32_t i = 0; i < spec->fetch_count; i++) {
    struct part *part = &p->parts[cut->ranks[spec->fetches[i].node]];
    add_name(&part->fetch_names, g, spec->fetches[i]);
    failed |= !tfc_array_push(&part->fetches, i);
  }
  for (uint32_t i = 0; i < spec->feed_count; i++) {
    struct part *part = &p->parts[cut->ranks[spec->feeds[i].node]];
    if (!part->target_count && !part->fetches.count) continue; // this task runs nothing that could read the feed
    add_name(&part->feed_names, g, spec->feeds[i]);
    failed |= !tfc_array_push(&part->feeds, i);
  }
  for (uint32_t i = 0; i < p->part_count; i++)
    failed |= p->parts[i].feed_names.failed | p->parts[i].fetch_names.failed | p->parts[i].target_names.failed;
  if (failed) s = no_memory();
out:
  free(needed);
  free(wanted);
  free(rounds);
  return s;
}

static void *copy_of(const void *data, size_t size) {
  void *copy = malloc(size + 1);
  if (copy && size) memcpy(copy, data, size);
  return copy;
}

static tfc_status check_spec(const struct tfc_graph *g, const struct tfc_run_spec *spec) {
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < (k ? spec->fetch_count : spec->feed_count); i++) {
      const struct tfc_output o = k ? spec->fetches[i] : spec->feeds[i];
      if (o.node >= g->node_count || o.index < 0 || (uint32_t)o.index >= g->nodes[o.node].output_count)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "%s %u is not an output of the graph", k ? "fetch" : "feed", i);
    }
  for (uint32_t i = 0; i < spec->target_count; i++)
    if (spec->targets[i] >= g->node_count) return tfc_status_make(TFC_INVALID_ARGUMENT, "target %u is not a node", i);
  return NULL;
}

static tfc_status make_plan(struct tfc_cluster_session *session, const struct tfc_run_spec *spec, struct plan **out) {
  tfc_status s = NULL;
  struct plan *p = calloc(1, sizeof *p);
  const uint32_t tasks = session->task->count;
  if (!p) return no_memory();
  TFC_TRY(s, check_spec(session->graph, spec));
  p->feeds = copy_of(spec->feeds, spec->feed_count * sizeof *p->feeds);
  p->fetches = copy_of(spec->fetches, spec->fetch_count * sizeof *p->fetches);
  p->targets = copy_of(spec->targets, spec->target_count * sizeof *p->targets);
  p->parts = calloc(tasks, sizeof *p->parts);
  p->ranks = calloc(tasks, sizeof *p->ranks);
  if (!p->feeds || !p->fetches || !p->targets || !p->parts || !p->ranks) TFC_TRY(s, no_memory());
  p->feed_count = spec->feed_count;
  p->fetch_count = spec->fetch_count;
  p->target_count = spec->target_count;
  p->part_count = tasks;
  for (uint32_t r = 0; r < tasks; r++) p->parts[r].rank = r;
  TFC_TRY(s, fill_parts(session, spec, p));
  p->own = UINT32_MAX;
  uint32_t kept = 0;
  for (uint32_t r = 0; r < tasks; r++) { // keep only parts in which something runs
    if (!p->parts[r].target_count && !p->parts[r].fetches.count) continue;
    const struct part swap = p->parts[kept];
    p->parts[kept] = p->parts[r];
    p->parts[r] = swap;
    if (p->parts[kept].rank == session->task->rank)
      p->own = kept;
    else
      p->ranks[p->foreign_count++] = p->parts[kept].rank;
    kept++;
  }
  for (uint32_t r = kept; r < tasks; r++) {
    struct part *part = &p->parts[r]; // nothing runs in this task; only names of feeds were collected for it
    tfc_array_free(&part->feeds);
    tfc_text_deinit(&part->feed_names);
    *part = (struct part){0};
  }
  p->part_count = kept;
  *out = p, p = NULL;
out:
  plan_free(p);
  return s;
}

// --- Sending graphs and plans to tasks -----------------------------------------------------------------------------
static tfc_status buffer_of(tfc_str bytes, struct tfc_buffer **out) {
  *out = NULL;
  if (!bytes.size) return NULL;
  TFC_RETURN_IF_ERROR(tfc_buffer_create_host(bytes.size, out));
  memcpy((*out)->data, bytes.data, bytes.size);
  return NULL;
}

static tfc_status send_with_body(struct tfc_member *t, uint32_t to, uint32_t kind, const void *head, size_t head_size,
                                 tfc_str rest, struct tfc_buffer *body, uint64_t size) {
  struct tfc_message *m = NULL;
  TFC_RETURN_IF_ERROR(tfc_message_of(kind, head, head_size, rest, &m));
  if (size) tfc_buffer_retain(m->body = body), m->body_size = size;
  return tfc_member_send(t, to, m);
}

static tfc_status tell_graph(struct tfc_cluster_session *session, uint32_t rank) {
  struct tfc_member *t = session->task;
  tfc_status s = NULL;
  struct tfc_text text = {0};
  struct tfc_buffer *body = NULL;
  const struct tfc_head_graph head = {.session = session->number};
  const tfc_str execution = tfc_str_from(session->execution);
  if (session->told[rank]) return NULL;
  TFC_TRY(s, tfc_cut_write(&session->cut, rank, &text));
  TFC_TRY(s, buffer_of((tfc_str){text.data, text.size}, &body));
  s = rank == t->rank ? tfc_serve_graph(t, rank, session->number, execution, body, text.size)
                      : send_with_body(t, rank, TFC_KIND_GRAPH, &head, sizeof head, execution, body, text.size);
  session->told[rank] = !s;
out:
  tfc_buffer_release(body);
  tfc_text_deinit(&text);
  return s;
}

static tfc_status tell_plan(struct tfc_cluster_session *session, const struct plan *p, const struct part *part) {
  struct tfc_member *t = session->task;
  tfc_status s = NULL;
  struct tfc_text names = {0};
  struct tfc_buffer *body = NULL;
  const struct tfc_head_plan head = {.session = session->number,
                                     .plan = p->id,
                                     .feeds = (uint32_t)part->feeds.count,
                                     .fetches = (uint32_t)part->fetches.count,
                                     .targets = part->target_count};
  tfc_text_add(&names, (tfc_str){part->feed_names.data, part->feed_names.size});
  tfc_text_add(&names, (tfc_str){part->fetch_names.data, part->fetch_names.size});
  tfc_text_add(&names, (tfc_str){part->target_names.data, part->target_names.size});
  if (names.failed) TFC_TRY(s, no_memory());
  TFC_TRY(s, buffer_of((tfc_str){names.data, names.size}, &body));
  s = part->rank == t->rank
          ? tfc_serve_plan(t, t->rank, &head, body, names.size)
          : send_with_body(t, part->rank, TFC_KIND_PLAN, &head, sizeof head, (tfc_str){0}, body, names.size);
out:
  tfc_buffer_release(body);
  tfc_text_deinit(&names);
  return s;
}

// Tells the tasks to free their parts of the session now, not at the end of the job, because other clients may still
// run steps for a long time.
static void tell_forget(struct tfc_cluster_session *session) {
  struct tfc_member *t = session->task;
  const struct tfc_head_forget head = {.session = session->number};
  for (uint32_t r = 0; session->told && r < t->count; r++) {
    if (!session->told[r]) continue;
    if (r == t->rank)
      tfc_serve_forget(t, r, session->number);
    else // an error is ignored: if sending fails, the job fails, and all tasks free everything
      tfc_status_free(send_with_body(t, r, TFC_KIND_FORGET, &head, sizeof head, (tfc_str){0}, NULL, 0));
  }
}

static tfc_status plan_of(struct tfc_cluster_session *session, const struct tfc_run_spec *spec, struct plan **out) {
  tfc_status s = NULL;
  struct plan *p = NULL;
  *out = NULL;
  pthread_mutex_lock(&session->lock);
  for (size_t i = 0; i < session->plans.count && !*out; i++)
    if (is_for(session->plans.data[i], spec)) *out = session->plans.data[i];
  if (*out) goto out;
  TFC_TRY(s, make_plan(session, spec, &p));
  p->id = (uint32_t)session->plans.count + 1;
  for (uint32_t i = 0; i < p->part_count; i++) {
    TFC_TRY(s, tell_graph(session, p->parts[i].rank));
    TFC_TRY(s, tell_plan(session, p, &p->parts[i]));
  }
  if (!tfc_array_push(&session->plans, p)) TFC_TRY(s, no_memory());
  *out = p, p = NULL;
out:
  pthread_mutex_unlock(&session->lock);
  plan_free(p);
  return s;
}

// --- Steps -----------------------------------------------------------------------------------------------------------
void tfc_client_abort_locked(struct tfc_member *t, struct tfc_client_step *step, tfc_status why) {
  atomic_fetch_add(&step->changes, 1);
  if (!step->status)
    step->status = why;
  else
    tfc_status_free(why);
  if (atomic_exchange(&step->cancel, true)) return;
  const struct tfc_head_abort head = {.step = step->number};
  for (uint32_t i = 0; i < step->rank_count; i++) {
    struct tfc_message *m = NULL;
    tfc_status s = tfc_message_of(TFC_KIND_ABORT, &head, sizeof head, (tfc_str){0}, &m);
    if (!s) s = tfc_member_send(t, step->ranks[i], m);
    // this step ends with `why` in any case; if the other task never answers, the progress thread ends the job
    tfc_status_free(s);
  }
}

tfc_status tfc_client_done(struct tfc_member *t, uint32_t from, const struct tfc_head_done *head, tfc_str message) {
  tfc_status s = NULL;
  char name[TFC_TASK_TEXT];
  bool aborts = false;
  pthread_mutex_lock(&t->lock);
  struct tfc_client_step *step = t->steps;
  while (step && step->number != head->step) step = step->next;
  bool asked = false;
  for (uint32_t i = 0; step && i < step->rank_count; i++) asked |= step->ranks[i] == from;
  if (!step || !asked || !step->remaining) {
    s = t->failure ? NULL : tfc_status_make(TFC_INVALID_ARGUMENT, "an answer that nobody asked for");
  } else {
    step->remaining--;
    atomic_fetch_add(&step->changes, 1);
    if (head->code) {
      const tfc_code code = head->code <= TFC_INTERNAL ? (tfc_code)head->code : TFC_INTERNAL;
      aborts = true;
      tfc_client_abort_locked(
          t, step, tfc_status_make(code, "on %s: %.*s", tfc_member_name_of(t, from, name), TFC_STR_ARG(message)));
    }
    pthread_cond_broadcast(&t->changed);
  }
  pthread_mutex_unlock(&t->lock);
  if (aborts) tfc_meeting_abort(t->meeting, head->step);
  return s;
}

// Returns the oldest step that still runs.
static int64_t begin_step(struct tfc_member *t, struct tfc_client_step *step) {
  pthread_mutex_lock(&t->lock);
  step->number = tfc_step_number(t->rank, t->next_step++);
  int64_t oldest = step->number;
  for (const struct tfc_client_step *other = t->steps; other; other = other->next)
    if (other->number < oldest) oldest = other->number;
  step->next = t->steps;
  t->steps = step;
  if (t->failure) {
    step->status = tfc_status_clone(t->failure);
    atomic_store(&step->cancel, true);
  }
  pthread_mutex_unlock(&t->lock);
  return oldest;
}

static void end_step(struct tfc_member *t, struct tfc_client_step *step) {
  pthread_mutex_lock(&t->lock);
  for (struct tfc_client_step **at = &t->steps; *at; at = &(*at)->next)
    if (*at == step) {
      *at = step->next;
      break;
    }
  pthread_mutex_unlock(&t->lock);
  tfc_meeting_end(t->meeting, step->number);
}

// Sends a task its feeds and the message to run its part. The caller holds the lock: if the step is aborted, only tasks
// that have got the message must get the abort; and a task's answer may arrive at once.
static tfc_status start_part(struct tfc_member *t, const struct part *part, const struct tfc_head_run *head,
                             struct tfc_client_step *step, const struct tfc_tensor *copies) {
  struct tfc_message *m = NULL;
  if (atomic_load(&step->cancel)) return NULL;
  for (uint32_t k = 0; k < part->feeds.count; k++) {
    const struct tfc_head_tensor key = {.step = step->number, .edge = k | TFC_EDGE_FEED};
    TFC_RETURN_IF_ERROR(tfc_message_of_tensor(&key, &copies[k], &m));
    TFC_RETURN_IF_ERROR(tfc_member_send(t, part->rank, m));
  }
  TFC_RETURN_IF_ERROR(tfc_message_of(TFC_KIND_RUN, head, sizeof *head, (tfc_str){0}, &m));
  TFC_RETURN_IF_ERROR(tfc_member_send(t, part->rank, m));
  step->remaining++;
  step->rank_count++;
  return NULL;
}

static tfc_status send_step(struct tfc_cluster_session *session, const struct plan *p, struct tfc_client_step *step,
                            int64_t oldest, int64_t deadline_ns, const struct tfc_tensor *feeds) {
  struct tfc_member *t = session->task;
  tfc_status s = NULL;
  const struct tfc_head_run head = {
      .session = session->number, .plan = p->id, .step = step->number, .oldest = oldest, .deadline_ns = deadline_ns};
  for (uint32_t i = 0; i < p->part_count && !s; i++) {
    const struct part *part = &p->parts[i];
    if (i == p->own) continue;
    struct tfc_tensor *copies = calloc(part->feeds.count + 1, sizeof *copies);
    if (!copies) return no_memory();
    // the caller may change the memory of its feeds when the step has ended
    for (size_t k = 0; k < part->feeds.count && !s; k++) s = tfc_tensor_clone(&feeds[part->feeds.data[k]], &copies[k]);
    pthread_mutex_lock(&t->lock);
    if (!s) s = start_part(t, part, &head, step, copies);
    pthread_mutex_unlock(&t->lock);
    for (size_t k = 0; k < part->feeds.count; k++) tfc_tensor_release(&copies[k]);
    free(copies);
  }
  return s;
}

static tfc_status run_here(struct tfc_cluster_session *session, const struct plan *p, struct tfc_client_step *step,
                           const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                           const struct tfc_run_options *options) {
  tfc_status s = NULL;
  const struct part *part = &p->parts[p->own];
  struct tfc_tensor *in = calloc(part->feeds.count + 1, sizeof *in),
                    *out = calloc(part->fetches.count + 1, sizeof *out);
  struct tfc_run_options own = {.cancel = &step->cancel, .step = step->number};
  if (options) own.trace = options->trace, own.deadline_ns = options->deadline_ns;
  if (!in || !out) TFC_TRY(s, no_memory());
  for (size_t k = 0; k < part->feeds.count; k++) in[k] = feeds[part->feeds.data[k]];
  TFC_TRY(s, tfc_serve_here(session->task, session->number, p->id, in, out, &own));
  for (size_t k = 0; k < part->fetches.count; k++) {
    if (fetches)
      fetches[part->fetches.data[k]] = out[k];
    else
      tfc_tensor_release(&out[k]);
  }
out:
  free(in);
  free(out);
  return s;
}

static void wait_for_others(struct tfc_member *t, struct tfc_client_step *step, int64_t until) {
  pthread_mutex_lock(&t->lock);
  while (step->remaining && !t->failure) {
    const uint32_t seen = atomic_load(&step->changes);
    pthread_mutex_unlock(&t->lock);
    tfc_member_attend(t, &step->changes, seen);
    pthread_mutex_lock(&t->lock);
    if (atomic_load(&step->changes) != seen || !step->remaining) continue;
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += 20000000;
    if (at.tv_nsec >= 1000000000) at.tv_sec++, at.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&t->changed, &t->lock, &at);
    if (until && tfc_now_ns() > until && !atomic_load(&step->cancel))
      tfc_client_abort_locked(t, step, tfc_status_make(TFC_DEADLINE_EXCEEDED, "the step did not end in time"));
  }
  pthread_mutex_unlock(&t->lock);
}

static tfc_status take_fetches(struct tfc_member *t, const struct plan *p, const struct tfc_client_step *step,
                               struct tfc_tensor *fetches) {
  for (uint32_t i = 0; i < p->part_count; i++) {
    const struct part *part = &p->parts[i];
    for (uint32_t k = 0; i != p->own && k < part->fetches.count; k++) {
      const struct tfc_rendezvous_key key = {
          .step = step->number, .iteration = TFC_FETCHED_FROM(part->rank), .edge = k | TFC_EDGE_FETCH};
      struct tfc_tensor value = {0};
      if (!tfc_meeting_take(t->meeting, &key, &value))
        return tfc_status_make(TFC_INTERNAL, "a fetched tensor did not come");
      if (fetches)
        fetches[part->fetches.data[k]] = value;
      else
        tfc_tensor_release(&value);
    }
  }
  return NULL;
}

static tfc_status run_plan(struct tfc_cluster_session *session, const struct plan *p, const struct tfc_tensor *feeds,
                           struct tfc_tensor *fetches, const struct tfc_run_options *options) {
  struct tfc_member *t = session->task;
  const int64_t deadline_ns = options ? options->deadline_ns : 0;
  const int64_t until = deadline_ns ? tfc_now_ns() + deadline_ns : 0;
  struct tfc_client_step step = {.ranks = p->ranks,
                                 .asked = options ? options->cancel : NULL,
                                 .begin = tfc_now_ns(),
                                 .queues = p->wanted ? session->queues : NULL,
                                 .wanted = p->wanted};
  for (uint32_t i = 0; fetches && i < p->fetch_count; i++) fetches[i] = (struct tfc_tensor){0};
  const int64_t oldest = begin_step(t, &step);
  tfc_status s = tfc_meeting_begin(t->meeting, step.number, oldest);
  tfc_member_note(t, "ran its step %lld, with %u other tasks",
                  (long long)(step.number & (((int64_t)1 << TFC_STEP_BITS) - 1)), p->foreign_count);
  if (!s) s = send_step(session, p, &step, oldest, deadline_ns, feeds);
  if (!s && p->own != UINT32_MAX) s = run_here(session, p, &step, feeds, fetches, options);
  if (s) {
    pthread_mutex_lock(&t->lock);
    tfc_client_abort_locked(t, &step, s);
    pthread_mutex_unlock(&t->lock);
  }
  wait_for_others(t, &step, until);
  s = step.status;
  if (!s) s = take_fetches(t, p, &step, fetches);
  end_step(t, &step);
  for (uint32_t i = 0; s && fetches && i < p->fetch_count; i++) tfc_tensor_release(&fetches[i]);
  return s;
}

tfc_status tfc_cluster_session_run(struct tfc_cluster_session *session, const struct tfc_run_spec *spec,
                                   const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                   const struct tfc_run_options *options) {
  struct plan *p = NULL;
  TFC_RETURN_IF_ERROR(plan_of(session, spec, &p));
  return tfc_cluster_queues_explain(session->queues, run_plan(session, p, feeds, fetches, options));
}

static tfc_status fill(void *arg, uint32_t node, const _Atomic bool *cancel) {
  struct tfc_cluster_session *session = arg;
  struct plan *p = NULL;
  const struct tfc_run_spec spec = {.targets = &node, .target_count = 1};
  TFC_RETURN_IF_ERROR(plan_of(session, &spec, &p));
  return run_plan(session, p, NULL, NULL, &(struct tfc_run_options){.cancel = cancel});
}

// --- State of operations ---------------------------------------------------------------------------------------------
// Runs one of the plans that every task has: `feeds` or `fetches` has one text for each task.
static tfc_status run_in_all(struct tfc_cluster_session *session, uint32_t id, const struct tfc_tensor *feeds,
                             const _Atomic bool *cancel, struct tfc_tensor *fetches) {
  tfc_status s = NULL;
  const struct tfc_member *t = session->task;
  const struct tfc_run_options options = {.cancel = cancel};
  bool ok = true;
  if (cancel && atomic_load(cancel)) return tfc_status_make(TFC_CANCELLED, "the step was cancelled");
  struct plan *p = calloc(1, sizeof *p);
  if (!p) return no_memory();
  *p = (struct plan){
      .id = id, .own = t->rank, .feed_count = feeds ? t->count : 0, .fetch_count = fetches ? t->count : 0};
  p->parts = calloc(t->count, sizeof *p->parts);
  p->ranks = calloc(t->count, sizeof *p->ranks);
  if (!p->parts || !p->ranks) TFC_TRY(s, no_memory());
  p->part_count = t->count;
  for (uint32_t r = 0; r < t->count; r++) {
    p->parts[r].rank = r;
    ok &= feeds ? tfc_array_push(&p->parts[r].feeds, r) : tfc_array_push(&p->parts[r].fetches, r);
    if (r != t->rank) p->ranks[p->foreign_count++] = r;
  }
  if (!ok) TFC_TRY(s, no_memory());
  s = run_plan(session, p, feeds, fetches, &options);
out:
  plan_free(p);
  return s;
}

typedef TFC_ARRAY(int64_t) step_list;
static bool has_step(const step_list *list, int64_t step) {
  for (size_t i = 0; i < list->count; i++)
    if (list->data[i] == step) return true;
  return false;
}
static bool has_all(const step_list *list, const step_list *of) {
  for (size_t i = 0; i < of->count; i++)
    if (!has_step(list, of->data[i])) return false;
  return true;
}
// The steps of this client that run now. Those that save states have ended when it is called.
static bool list_steps(struct tfc_member *t, step_list *out) {
  bool ok = true;
  out->count = 0;
  pthread_mutex_lock(&t->lock);
  for (const struct tfc_client_step *step = t->steps; step; step = step->next) ok &= tfc_array_push(out, step->number);
  pthread_mutex_unlock(&t->lock);
  return ok;
}

// Appends the states of all tasks, without the lines about waiting steps, which go to `waits`.
static tfc_status fetch_states(struct tfc_cluster_session *session, const _Atomic bool *cancel, struct tfc_text *out,
                               step_list *waits) {
  const struct tfc_member *t = session->task;
  char name[TFC_TASK_TEXT];
  bool ok = true;
  struct tfc_tensor *texts = calloc(t->count, sizeof *texts);
  if (!texts) return no_memory();
  tfc_status s = run_in_all(session, TFC_PLAN_SAVE, NULL, cancel, texts);
  for (uint32_t r = 0; !s && r < t->count; r++) {
    if (!texts[r].size) continue;
    tfc_text_printf(out, "task\t%s\n", tfc_member_name_of(t, r, name));
    tfc_str text = {texts[r].data, texts[r].size}, line;
    while (tfc_state_line(&text, &line)) {
      int64_t step;
      if (tfc_str_starts(line, "waits\t")) {
        if (!s) s = tfc_parse_i64(tfc_str_sub(line, 6, SIZE_MAX), &step);
        ok &= s || tfc_array_push(waits, step);
        continue;
      }
      tfc_text_add(out, line);
      tfc_text_add(out, TFC_STR("\n"));
    }
  }
  if (!s && (out->failed || !ok)) s = no_memory();
  for (uint32_t r = 0; r < t->count; r++) tfc_tensor_release(&texts[r]);
  free(texts);
  return s;
}

// What a queue runner's step has taken and not yet put into a queue is in no object. So no runner begins a step, and
// states are fetched until the steps that have begun wait for queues or other objects, and did so the time before, too:
// then nothing moved while the second states were fetched.
static tfc_status fetch_resting(struct tfc_cluster_session *session, const _Atomic bool *cancel, struct tfc_text *out) {
  step_list running = {0}, waits = {0};
  tfc_status s = NULL;
  const int64_t until = tfc_now_ns() + REST_NS;
  bool rested = false;
  for (int64_t pause = 500000;; pause += pause < 50000000 ? pause : 0) {
    out->size = 0, waits.count = 0;
    const uint32_t active = tfc_cluster_queues_active(session->queues);
    if (!list_steps(session->task, &running)) s = no_memory();
    const bool all_listed = active == running.count; // a thread may be about to begin its step, or be ending it
    if (!s) s = fetch_states(session, cancel, out, &waits);
    const bool rests = all_listed && has_all(&waits, &running);
    if (s || (rests && (rested || !active))) break;
    rested = rests;
    if (tfc_now_ns() > until) {
      tfc_text_printf(out, "unsaved\twhat queue runners had in hand (they did not come to rest within %d s)\n",
                      (int)(REST_NS / 1000000000));
      break;
    }
    nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
  }
  tfc_array_free(&running);
  tfc_array_free(&waits);
  return s;
}

void tfc_cluster_session_pause(struct tfc_cluster_session *session) {
  if (session->queues) tfc_cluster_queues_pause(session->queues);
}
void tfc_cluster_session_go_on(struct tfc_cluster_session *session) {
  if (session->queues) tfc_cluster_queues_go_on(session->queues);
}

tfc_status tfc_cluster_session_save_state(struct tfc_cluster_session *session, const _Atomic bool *cancel,
                                          struct tfc_text *out) {
  step_list waits = {0};
  if (session->queues) {
    tfc_cluster_queues_pause(session->queues);
    tfc_status s = fetch_resting(session, cancel, out);
    tfc_cluster_queues_go_on(session->queues);
    return s;
  }
  tfc_status s = fetch_states(session, cancel, out, &waits);
  tfc_array_free(&waits);
  return s;
}

tfc_status tfc_cluster_session_restore_state(struct tfc_cluster_session *session, tfc_str text,
                                             const _Atomic bool *cancel, struct tfc_text *out_lost) {
  tfc_status s = NULL;
  const struct tfc_member *t = session->task;
  struct tfc_tensor *texts = calloc(t->count, sizeof *texts);
  if (!texts) return no_memory();
  for (tfc_str line; tfc_state_line(&text, &line);) {
    if (!tfc_str_equal(tfc_state_word(&line), TFC_STR("task"))) continue;
    tfc_str rest = text, next;
    size_t size = 0;
    while (tfc_state_line(&rest, &next) && !tfc_str_starts(next, "task\t")) size = text.size - rest.size;
    const tfc_str own = tfc_str_sub(text, 0, size);
    const uint32_t rank = tfc_states_list_lost(&session->cut, t->rank, line, own, out_lost);
    if (rank == UINT32_MAX || texts[rank].dtype || !own.size) continue;
    TFC_TRY(s, tfc_tensor_create(TFC_UINT8, &TFC_SHAPE((int64_t)own.size), &texts[rank]));
    memcpy(texts[rank].data, own.data, own.size);
  }
  if (out_lost->failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: the state of operations");
  for (uint32_t r = 0; r < t->count; r++)
    if (!texts[r].dtype) TFC_TRY(s, tfc_tensor_create(TFC_UINT8, &TFC_SHAPE(0), &texts[r]));
  s = run_in_all(session, TFC_PLAN_RESTORE, texts, cancel, NULL);
out:
  for (uint32_t r = 0; r < t->count; r++) tfc_tensor_release(&texts[r]);
  free(texts);
  return s;
}

// --- The session -----------------------------------------------------------------------------------------------------
tfc_status tfc_cluster_session_create(struct tfc_member *task, const struct tfc_graph *graph,
                                      const struct tfc_execution *execution, struct tfc_cluster_session **out) {
  tfc_status s = NULL;
  struct tfc_text text = {0};
  struct tfc_cluster_session *session = calloc(1, sizeof *session);
  if (!session) return no_memory();
  session->task = task;
  session->graph = graph;
  tfc_graph_retain(graph);
  pthread_mutex_init(&session->lock, NULL);
  session->told = calloc(task->count, sizeof *session->told);
  struct tfc_execution how = *execution;
  how.threads = 0, how.limits = NULL, how.limit_count = 0; // each task has its own number of threads and its own
                                                           // limits, so they are not sent
  tfc_execution_format(&how, &text);
  session->execution = tfc_format("%.*s", (int)text.size, text.data ? text.data : "");
  if (!session->told || !session->execution || text.failed) TFC_TRY(s, no_memory());
  TFC_TRY(s, tfc_cut_make(graph, task->spec, task->rank, &session->cut));
  pthread_mutex_lock(&task->lock);
  session->number = ++task->next_session;
  pthread_mutex_unlock(&task->lock);
  TFC_TRY(s, tfc_cluster_queues_create(graph, &(struct tfc_cluster_filler){fill, session}, &session->queues));
  *out = session, session = NULL;
out:
  tfc_text_deinit(&text);
  tfc_cluster_session_free(session);
  return s;
}

void tfc_cluster_session_free(struct tfc_cluster_session *session) {
  if (!session) return;
  tfc_cluster_queues_free(session->queues);
  tell_forget(session);
  for (size_t i = 0; i < session->plans.count; i++) plan_free(session->plans.data[i]);
  tfc_array_free(&session->plans);
  tfc_cut_deinit(&session->cut);
  tfc_graph_release(session->graph);
  pthread_mutex_destroy(&session->lock);
  free(session->execution);
  free(session->told);
  free(session);
}
