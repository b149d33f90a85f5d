// A step's plan (plans.h) is made once for each set of feeds, fetches and targets; it is sent to the tasks as names of
// nodes. A step then costs one message to each task, and one answer.
#include "runtime/cluster/client.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/none.h"
#include "runtime/base/units.h"
#include "runtime/cluster/client_internal.h"
#include "runtime/cluster/member_internal.h"
#include "runtime/cluster/plans.h"
#include "runtime/cluster/queues.h"
#include "runtime/cluster/serve.h"
#include "runtime/cluster/states.h"
#include "runtime/exec/saved_state.h"

#define STATIC_US 5000
enum { MOST_SHAPES = 8 };            // a step is planned statically for so many shapes of its feeds
#define REST_NS INT64_C(10000000000) // for so long queue runners are waited for before states are saved

struct tfc_cluster_session {
  struct tfc_member *task;
  const struct tfc_graph *graph;
  struct tfc_cut cut;
  char *execution;
  uint32_t number;
  pthread_mutex_t lock; // guards the fields that follow
  bool *told;           // [task] the task has received its part of the graph
  TFC_ARRAY(struct tfc_cluster_plan *) plans;
  struct tfc_cluster_queues *queues; // the graph's queue runners, or NULL
};

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

static tfc_status tell_plan(struct tfc_cluster_session *session, const struct tfc_cluster_plan *p,
                            const struct tfc_cluster_part *part) {
  struct tfc_member *t = session->task;
  tfc_status s = NULL;
  struct tfc_text names = {0};
  struct tfc_buffer *body = NULL;
  const struct tfc_head_plan head = {.session = session->number,
                                     .plan = p->id,
                                     .feeds = (uint32_t)part->feeds.count,
                                     .fetches = (uint32_t)part->fetches.count,
                                     .targets = part->target_count,
                                     .crossings = part->crossing_count};
  tfc_text_add(&names, (tfc_str){part->feed_names.data, part->feed_names.size});
  tfc_text_add(&names, (tfc_str){part->fetch_names.data, part->fetch_names.size});
  tfc_text_add(&names, (tfc_str){part->target_names.data, part->target_names.size});
  tfc_text_add(&names, (tfc_str){part->crossings.data, part->crossings.size});
  if (names.failed) TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
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

// Whether a static plan may run what this client plans (see run_plan).
static bool may_be_static(const struct tfc_member *t, const struct tfc_cluster_plan *p) {
  bool may = t->options.has_script;
  for (uint32_t i = 0; i < p->foreign_count; i++) may = may && !tfc_member_is_client(t, p->ranks[i]);
  return may;
}

// Finds the plan of a step, or makes it. spec->feed_shapes is needed.
static tfc_status plan_of(struct tfc_cluster_session *session, const struct tfc_run_spec *spec,
                          struct tfc_cluster_plan **out) {
  tfc_status s = NULL;
  struct tfc_cluster_plan *p = NULL;
  const struct tfc_member *t = session->task;
  uint32_t alike = 0;
  *out = NULL;
  pthread_mutex_lock(&session->lock);
  for (size_t i = 0; i < session->plans.count && !*out; i++) {
    if (tfc_cluster_plan_is_for(session->plans.data[i], spec)) *out = session->plans.data[i];
    alike += tfc_cluster_plan_has_names(session->plans.data[i], spec);
  }
  if (*out) goto out;
  const double static_us = t->options.static_us > 0 ? t->options.static_us : STATIC_US;
  TFC_TRY(s, tfc_cluster_plan_make(&session->cut, t->rank, t->count, session->queues, spec,
                                   alike < MOST_SHAPES ? static_us : INFINITY, &p));
  if (!may_be_static(t, p)) {
    free(p->feed_shapes);
    p->feed_shapes = NULL;
  }
  p->id = (uint32_t)session->plans.count + 1;
  for (uint32_t i = 0; i < p->part_count; i++) {
    TFC_TRY(s, tell_graph(session, p->parts[i].rank));
    TFC_TRY(s, tell_plan(session, p, &p->parts[i]));
  }
  if (!tfc_array_push(&session->plans, p)) TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  *out = p, p = NULL;
out:
  pthread_mutex_unlock(&session->lock);
  tfc_cluster_plan_free(p);
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

// Finds a step that the task `from` was asked to run a part of; NULL: there is none. Under the lock.
static struct tfc_client_step *step_of(struct tfc_member *t, int64_t number, uint32_t from) {
  struct tfc_client_step *step = t->steps;
  while (step && step->number != number) step = step->next;
  for (uint32_t i = 0; step && i < step->rank_count; i++)
    if (step->ranks[i] == from) return step;
  return NULL;
}
static struct tfc_part_answer *answer_of(struct tfc_client_step *step, uint32_t from) {
  uint32_t i = 0;
  while (step->ranks[i] != from) i++;
  return &step->answers[i];
}

tfc_status tfc_client_done(struct tfc_member *t, uint32_t from, const struct tfc_head_done *head, tfc_str message) {
  tfc_status s = NULL;
  char name[TFC_TASK_TEXT];
  bool aborts = false;
  const int64_t now = tfc_step_is_traced(head->step) ? tfc_now_ns() : 0;
  pthread_mutex_lock(&t->lock);
  struct tfc_client_step *step = step_of(t, head->step, from);
  if (!step || !step->remaining) {
    s = t->failure ? NULL : tfc_status_make(TFC_INVALID_ARGUMENT, "an answer that nobody asked for");
  } else {
    step->remaining--;
    if (step->answers && !head->code) {
      answer_of(step, from)->trip.answered_ns = now;
      step->untraced++;
    }
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

tfc_status tfc_client_trace(struct tfc_member *t, uint32_t from, const struct tfc_head_done *head, tfc_str message,
                            struct tfc_buffer *trace, uint64_t size) {
  tfc_status s = NULL;
  char name[TFC_TASK_TEXT];
  pthread_mutex_lock(&t->lock);
  struct tfc_client_step *step = step_of(t, head->step, from);
  struct tfc_part_answer *a = step && step->answers ? answer_of(step, from) : NULL;
  if (!a || !a->trip.answered_ns || a->traced) {
    s = t->failure ? NULL : tfc_status_make(TFC_INVALID_ARGUMENT, "a trace that nobody asked for");
    goto out;
  }
  a->traced = true;
  if (size) tfc_buffer_retain(a->trace = trace), a->trace_size = size;
  if (head->code && !step->status)
    step->status =
        tfc_status_make(TFC_RESOURCE_EXHAUSTED, "on %s: %.*s", tfc_member_name_of(t, from, name), TFC_STR_ARG(message));
  step->untraced--;
  atomic_fetch_add(&step->changes, 1);
  pthread_cond_broadcast(&t->changed);
out:
  pthread_mutex_unlock(&t->lock);
  return s;
}

// Returns the oldest step that still runs.
static int64_t begin_step(struct tfc_member *t, struct tfc_client_step *step, bool traced) {
  pthread_mutex_lock(&t->lock);
  step->number = tfc_step_number(t->rank, t->next_step++ << 1 | traced);
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
static tfc_status start_part(struct tfc_member *t, const struct tfc_cluster_part *part, const struct tfc_head_run *head,
                             struct tfc_client_step *step, const struct tfc_tensor *copies) {
  struct tfc_message *m = NULL;
  if (atomic_load(&step->cancel)) return NULL;
  for (uint32_t k = 0; k < part->feeds.count; k++) {
    const struct tfc_head_tensor key = {.step = step->number, .edge = k | TFC_EDGE_FEED};
    TFC_RETURN_IF_ERROR(tfc_message_of_tensor(&key, &copies[k], &m));
    m->more = true; // the message to run the part follows
    TFC_RETURN_IF_ERROR(tfc_member_send(t, part->rank, m));
  }
  TFC_RETURN_IF_ERROR(tfc_message_of(TFC_KIND_RUN, head, sizeof *head, (tfc_str){0}, &m));
  if (step->answers) step->answers[step->rank_count].trip.asked_ns = tfc_now_ns();
  TFC_RETURN_IF_ERROR(tfc_member_send(t, part->rank, m));
  step->remaining++;
  step->rank_count++;
  return NULL;
}

static tfc_status send_step(struct tfc_cluster_session *session, const struct tfc_cluster_plan *p,
                            struct tfc_client_step *step, int64_t oldest, int64_t deadline_ns, bool is_static,
                            const struct tfc_tensor *feeds) {
  struct tfc_member *t = session->task;
  tfc_status s = NULL;
  const struct tfc_head_run head = {.session = session->number,
                                    .plan = p->id,
                                    .step = step->number,
                                    .oldest = oldest,
                                    .deadline_ns = deadline_ns,
                                    .is_static = is_static && tfc_member_clients(t) == 1};
  for (uint32_t i = 0; i < p->part_count && !s; i++) {
    const struct tfc_cluster_part *part = &p->parts[i];
    if (i == p->own) continue;
    struct tfc_tensor *copies = calloc(part->feeds.count + 1, sizeof *copies);
    if (!copies) return tfc_status_no_memory("a step of several tasks");
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

static tfc_status run_here(struct tfc_cluster_session *session, const struct tfc_cluster_plan *p,
                           struct tfc_client_step *step, bool is_static, const struct tfc_tensor *feeds,
                           struct tfc_tensor *fetches, const struct tfc_run_options *options,
                           struct tfc_serve_record *record) {
  tfc_status s = NULL;
  const struct tfc_cluster_part *part = &p->parts[p->own];
  struct tfc_tensor *in = calloc(part->feeds.count + 1, sizeof *in),
                    *out = calloc(part->fetches.count + 1, sizeof *out);
  struct tfc_run_options own = {.cancel = &step->cancel, .step = step->number};
  if (options) own.trace = options->trace, own.deadline_ns = options->deadline_ns;
  if (!in || !out) TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  for (size_t k = 0; k < part->feeds.count; k++) in[k] = feeds[part->feeds.data[k]];
  TFC_TRY(s, tfc_serve_here(session->task, session->number, p->id, is_static, in, out, &own, record));
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

// Waits until *count, of answers or traces that have to come, is 0. `until`: when the step is aborted; 0: never.
static void wait_for_others(struct tfc_member *t, struct tfc_client_step *step, const uint32_t *count, int64_t until) {
  pthread_mutex_lock(&t->lock);
  while (*count && !t->failure) {
    const uint32_t seen = atomic_load(&step->changes);
    pthread_mutex_unlock(&t->lock);
    tfc_member_attend(t, &step->changes, seen);
    pthread_mutex_lock(&t->lock);
    if (atomic_load(&step->changes) != seen || !*count) continue;
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

// Returns the step's error, which the caller owns from then on.
static tfc_status take_status(struct tfc_member *t, struct tfc_client_step *step) {
  pthread_mutex_lock(&t->lock);
  tfc_status s = step->status;
  step->status = NULL;
  pthread_mutex_unlock(&t->lock);
  return s;
}

static tfc_status take_fetches(struct tfc_member *t, const struct tfc_cluster_plan *p,
                               const struct tfc_client_step *step, struct tfc_tensor *fetches) {
  for (uint32_t i = 0; i < p->part_count; i++) {
    const struct tfc_cluster_part *part = &p->parts[i];
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

// --- Traces ----------------------------------------------------------------------------------------------------------
static bool has_own_clock(const struct tfc_member *t, uint32_t rank) {
  const char *here = t->peers[t->rank].hello.clock;
  return rank != t->rank && (!here[0] || strcmp(t->peers[rank].hello.clock, here) != 0);
}

// Takes what the tasks have recorded of a step, when it has come.
static tfc_status take_traces(struct tfc_cluster_session *session, const struct tfc_client_step *step,
                              struct tfc_serve_record *own, struct tfc_cluster_trace *trace) {
  struct tfc_member *t = session->task;
  tfc_status s = NULL;
  struct tfc_text here = {0};
  int64_t *offsets = calloc(t->count, sizeof *offsets);
  if (!offsets) TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  if (own->served) {
    TFC_TRY(s, tfc_serve_record_write(t, own, &here));
    TFC_TRY(s, tfc_cluster_trace_add(trace, &session->cut, t->rank, (tfc_str){here.data, here.size}, NULL, offsets));
  }
  for (uint32_t i = 0; i < step->rank_count; i++) {
    const struct tfc_part_answer *a = &step->answers[i];
    if (!a->trace) TFC_FAIL(s, TFC_INTERNAL, "the trace of a task did not come");
    TFC_TRY(s, tfc_cluster_trace_add(trace, &session->cut, step->ranks[i], (tfc_str){a->trace->data, a->trace_size},
                                     has_own_clock(t, step->ranks[i]) ? &a->trip : NULL, offsets));
  }
  // transfers need the clocks of both their tasks
  TFC_TRY(s, tfc_cluster_trace_add_arrivals(trace, &session->cut, t->rank, (tfc_str){here.data, here.size}, offsets));
  for (uint32_t i = 0; i < step->rank_count; i++) {
    const struct tfc_part_answer *a = &step->answers[i];
    TFC_TRY(s, tfc_cluster_trace_add_arrivals(trace, &session->cut, step->ranks[i],
                                              (tfc_str){a->trace->data, a->trace_size}, offsets));
  }
out:
  tfc_text_deinit(&here);
  free(offsets);
  return s;
}

static tfc_status run_step(struct tfc_cluster_session *session, const struct tfc_cluster_plan *p, bool is_static,
                           const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                           const struct tfc_run_options *options, struct tfc_cluster_trace *trace) {
  struct tfc_member *t = session->task;
  const int64_t begin = tfc_now_ns(), deadline_ns = options ? options->deadline_ns : 0;
  const int64_t until = deadline_ns ? begin + deadline_ns : 0;
  struct tfc_serve_record own = {0};
  struct tfc_client_step step = {.ranks = p->ranks,
                                 .asked = options ? options->cancel : NULL,
                                 .begin = begin,
                                 .queues = p->wanted ? session->queues : NULL,
                                 .wanted = p->wanted};
  for (uint32_t i = 0; fetches && i < p->fetch_count; i++) fetches[i] = (struct tfc_tensor){0};
  if (trace && !(step.answers = calloc(p->foreign_count + 1u, sizeof *step.answers)))
    return tfc_status_no_memory("a step of several tasks");
  const int64_t oldest = begin_step(t, &step, trace != NULL);
  tfc_status s = tfc_meeting_begin(t->meeting, step.number, oldest);
  tfc_member_note(t, "ran its step %lld, with %u other tasks", (long long)tfc_step_count(step.number),
                  p->foreign_count);
  if (!s) s = send_step(session, p, &step, oldest, deadline_ns, is_static, feeds);
  if (!s && p->own != TFC_NONE) s = run_here(session, p, &step, is_static, feeds, fetches, options, &own);
  if (s) {
    pthread_mutex_lock(&t->lock);
    tfc_client_abort_locked(t, &step, s);
    pthread_mutex_unlock(&t->lock);
  }
  wait_for_others(t, &step, &step.remaining, until);
  s = take_status(t, &step);
  if (!s) s = take_fetches(t, p, &step, fetches);
  if (trace) {
    trace->begin_ns = begin, trace->end_ns = tfc_now_ns();
    wait_for_others(t, &step, &step.untraced, 0); // if the step has failed, too: the other tasks send theirs
    if (!s) s = take_status(t, &step);
    if (!s) s = take_traces(session, &step, &own, trace);
  }
  end_step(t, &step);
  tfc_status_free(step.status); // the job has failed in the meantime
  tfc_serve_record_deinit(t, &own);
  for (uint32_t i = 0; step.answers && i < p->foreign_count; i++) tfc_buffer_release(step.answers[i].trace);
  free(step.answers);
  for (uint32_t i = 0; s && fetches && i < p->fetch_count; i++) tfc_tensor_release(&fetches[i]);
  return s;
}

// A static plan waits at fixed places, and reads variables without a lock. So it has its task to itself: no other step
// runs in the task until it ends. The task's gate sees to that.
//
// If this is the only client, all tasks run static plans, because no other client's steps can come. If there are
// others, only this client's own part is static, and only if the other parts are in tasks that are no clients. Then
// these parts, in ready order, wait for nobody, so this step ends: it needs nothing that another step brings
// (tfc_needs_ready_order). Whoever waits at the gate, for this part to end, does not wait for ever.
static tfc_status run_plan(struct tfc_cluster_session *session, const struct tfc_cluster_plan *p,
                           const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                           const struct tfc_run_options *options, struct tfc_cluster_trace *trace) {
  struct tfc_gate *gate = &session->task->gate;
  const bool is_static = p->feed_shapes && tfc_gate_enter_static(gate);
  if (!is_static) tfc_gate_enter_dynamic(gate);
  tfc_status s = run_step(session, p, is_static, feeds, fetches, options, trace);
  tfc_gate_leave(gate, is_static);
  return s;
}

// Finds the plan for feeds of these shapes.
static tfc_status plan_for(struct tfc_cluster_session *session, const struct tfc_run_spec *spec,
                           const struct tfc_tensor *feeds, struct tfc_cluster_plan **out) {
  struct tfc_run_spec with_shapes = *spec;
  struct tfc_shape *shapes = malloc((spec->feed_count + 1u) * sizeof *shapes);
  if (!shapes) return tfc_status_no_memory("a step of several tasks");
  for (uint32_t i = 0; i < spec->feed_count; i++) shapes[i] = feeds[i].shape;
  with_shapes.feed_shapes = shapes;
  tfc_status s = plan_of(session, &with_shapes, out);
  free(shapes);
  return s;
}

tfc_status tfc_cluster_session_run(struct tfc_cluster_session *session, const struct tfc_run_spec *spec,
                                   const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                   const struct tfc_run_options *options) {
  struct tfc_cluster_plan *p = NULL;
  TFC_RETURN_IF_ERROR(plan_for(session, spec, feeds, &p));
  return tfc_cluster_queues_explain(session->queues, run_plan(session, p, feeds, fetches, options, NULL));
}

tfc_status tfc_cluster_session_run_traced(struct tfc_cluster_session *session, const struct tfc_run_spec *spec,
                                          const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                          const struct tfc_run_options *options, struct tfc_cluster_trace *out) {
  struct tfc_cluster_plan *p = NULL;
  TFC_RETURN_IF_ERROR(plan_for(session, spec, feeds, &p));
  *out = (struct tfc_cluster_trace){0};
  tfc_status s = run_plan(session, p, feeds, fetches, options, out);
  if (s) tfc_cluster_trace_deinit(out);
  return tfc_cluster_queues_explain(session->queues, s);
}

static tfc_status fill(void *arg, uint32_t node, const _Atomic bool *cancel) {
  struct tfc_cluster_session *session = arg;
  struct tfc_cluster_plan *p = NULL;
  const struct tfc_run_spec spec = {.targets = &node, .target_count = 1};
  TFC_RETURN_IF_ERROR(plan_of(session, &spec, &p));
  return run_plan(session, p, NULL, NULL, &(struct tfc_run_options){.cancel = cancel}, NULL);
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
  struct tfc_cluster_plan *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory("a step of several tasks");
  *p = (struct tfc_cluster_plan){
      .id = id, .own = t->rank, .feed_count = feeds ? t->count : 0, .fetch_count = fetches ? t->count : 0};
  p->parts = calloc(t->count, sizeof *p->parts);
  p->ranks = calloc(t->count, sizeof *p->ranks);
  if (!p->parts || !p->ranks) TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  p->part_count = t->count;
  for (uint32_t r = 0; r < t->count; r++) {
    p->parts[r].rank = r;
    ok &= feeds ? tfc_array_push(&p->parts[r].feeds, r) : tfc_array_push(&p->parts[r].fetches, r);
    if (r != t->rank) p->ranks[p->foreign_count++] = r;
  }
  if (!ok) TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  s = run_plan(session, p, feeds, fetches, &options, NULL);
out:
  tfc_cluster_plan_free(p);
  return s;
}

// Appends the states of all tasks, without the lines about steps, which go to `m`. `everyone`: the steps of all clients
// matter, not only those of this one.
static tfc_status fetch_states(struct tfc_cluster_session *session, bool everyone, const _Atomic bool *cancel,
                               struct tfc_text *out, struct tfc_moving *m) {
  const struct tfc_member *t = session->task;
  char name[TFC_TASK_TEXT];
  struct tfc_tensor *texts = calloc(t->count, sizeof *texts);
  if (!texts) return tfc_status_no_memory("a step of several tasks");
  tfc_moving_begin(m);
  tfc_status s = run_in_all(session, TFC_PLAN_SAVE, NULL, cancel, texts);
  for (uint32_t r = 0; !s && r < t->count; r++) {
    const size_t begin = out->size;
    tfc_text_printf(out, "task\t%s\n", tfc_member_name_of(t, r, name));
    const size_t head = out->size;
    tfc_str text = {texts[r].data, texts[r].size}, line;
    while (tfc_line_next(&text, &line)) {
      if (tfc_moving_take(m, everyone || r == t->rank, line)) continue;
      tfc_text_add(out, line);
      tfc_text_add(out, TFC_STR("\n"));
    }
    if (out->size == head && !out->failed) out->size = begin, out->data[begin] = 0; // it keeps nothing
    tfc_moving_next(m);
  }
  if (!s && (out->failed || m->failed)) s = tfc_status_no_memory("a step of several tasks");
  for (uint32_t r = 0; r < t->count; r++) tfc_tensor_release(&texts[r]);
  free(texts);
  return s;
}

void tfc_cluster_session_pause(struct tfc_cluster_session *session) {
  if (session->queues) tfc_cluster_queues_pause(session->queues);
}
void tfc_cluster_session_go_on(struct tfc_cluster_session *session) {
  if (session->queues) tfc_cluster_queues_go_on(session->queues);
}

// What a queue runner's step has taken and not yet put into a queue is in no object. So states are fetched until the
// steps that have begun wait for queues or other objects, and did so the time before, too: then nothing moved while the
// second states were fetched.
tfc_status tfc_cluster_session_rest(struct tfc_cluster_session *session, bool everyone, const _Atomic bool *cancel,
                                    struct tfc_text *out) {
  struct tfc_moving m = {0};
  struct tfc_text states = {0};
  tfc_status s = NULL;
  const int64_t until = tfc_now_ns() + REST_NS;
  bool rested = false;
  for (int64_t pause = 500000;; pause += pause < 50000000 ? pause : 0) {
    states.size = 0;
    s = fetch_states(session, everyone, cancel, &states, &m);
    const bool rests = tfc_moving_rests(&m);
    if (s || (rests && (rested || !m.threads))) break;
    rested = rests;
    if (tfc_now_ns() > until) {
      tfc_text_printf(out, "unsaved\twhat queue runners had in hand (they did not come to rest within %d s)\n",
                      (int)(REST_NS / 1000000000));
      break;
    }
    nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
  }
  tfc_moving_deinit(&m);
  tfc_text_deinit(&states);
  return s;
}

tfc_status tfc_cluster_session_save_state(struct tfc_cluster_session *session, const _Atomic bool *cancel,
                                          struct tfc_text *out) {
  struct tfc_moving m = {0};
  tfc_status s = fetch_states(session, false, cancel, out, &m);
  tfc_moving_deinit(&m);
  return s;
}

tfc_status tfc_cluster_session_keep(struct tfc_cluster_session *session, tfc_str lines) {
  struct tfc_member *t = session->task;
  char *copy = tfc_str_dup(lines);
  if (!copy) return tfc_status_no_memory("a step of several tasks");
  pthread_mutex_lock(&t->lock);
  free(t->own_lines);
  t->own_lines = copy;
  pthread_mutex_unlock(&t->lock);
  return NULL;
}
char *tfc_cluster_session_kept(struct tfc_cluster_session *session) {
  struct tfc_member *t = session->task;
  pthread_mutex_lock(&t->lock);
  char *lines = t->restored_lines;
  t->restored_lines = NULL;
  pthread_mutex_unlock(&t->lock);
  return lines;
}

uint32_t tfc_cluster_session_task_of(const struct tfc_cluster_session *session, uint32_t node) {
  return session->cut.ranks[node];
}

tfc_status tfc_cluster_session_restore_state(struct tfc_cluster_session *session, tfc_str text,
                                             const _Atomic bool *cancel, struct tfc_text *out_lost) {
  tfc_status s = NULL;
  const struct tfc_member *t = session->task;
  struct tfc_tensor *texts = calloc(t->count, sizeof *texts);
  bool *clients = calloc(t->count, sizeof *clients);
  if (!texts || !clients) TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  for (uint32_t r = 0; r < t->count; r++) clients[r] = t->peers[r].hello.has_script;
  for (tfc_str task, own; tfc_states_section(&text, "task\t", &task, &own);) {
    const uint32_t rank = tfc_states_list_lost(&session->cut, t->rank, clients, task, own, out_lost);
    if (rank == TFC_NONE || texts[rank].dtype || !own.size) continue;
    TFC_TRY(s, tfc_tensor_create(TFC_UINT8, &TFC_SHAPE((int64_t)own.size), &texts[rank]));
    memcpy(texts[rank].data, own.data, own.size);
  }
  if (out_lost->failed) TFC_TRY(s, tfc_status_no_memory("the state of operations"));
  for (uint32_t r = 0; r < t->count; r++)
    if (!texts[r].dtype) TFC_TRY(s, tfc_tensor_create(TFC_UINT8, &TFC_SHAPE(0), &texts[r]));
  s = run_in_all(session, TFC_PLAN_RESTORE, texts, cancel, NULL);
out:
  for (uint32_t r = 0; texts && r < t->count; r++) tfc_tensor_release(&texts[r]);
  free(texts);
  free(clients);
  return s;
}

// --- The session -----------------------------------------------------------------------------------------------------
tfc_status tfc_cluster_session_create(struct tfc_member *task, const struct tfc_graph *graph,
                                      const struct tfc_execution *execution, struct tfc_cluster_session **out) {
  tfc_status s = NULL;
  struct tfc_text text = {0};
  struct tfc_cluster_session *session = calloc(1, sizeof *session);
  if (!session) return tfc_status_no_memory("a step of several tasks");
  session->task = task;
  atomic_fetch_add(&task->sessions, 1);
  session->graph = graph;
  tfc_graph_retain(graph);
  pthread_mutex_init(&session->lock, NULL);
  session->told = calloc(task->count, sizeof *session->told);
  struct tfc_execution how = *execution;
  how.threads = 0, how.limits = NULL, how.limit_count = 0; // each task has its own number of threads and its own
                                                           // limits, so they are not sent
  tfc_execution_format(&how, &text);
  session->execution = tfc_format("%.*s", (int)text.size, text.data ? text.data : "");
  if (!session->told || !session->execution || text.failed) TFC_TRY(s, tfc_status_no_memory("a step of several tasks"));
  TFC_TRY(s, tfc_cut_make(graph, task->spec, task->rank, &session->cut));
  pthread_mutex_lock(&task->lock);
  session->number = ++task->next_session;
  pthread_mutex_unlock(&task->lock);
  TFC_TRY(s, tfc_cluster_queues_create(graph, &(struct tfc_cluster_filler){fill, session, &task->fillers},
                                       &session->queues));
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
  for (size_t i = 0; i < session->plans.count; i++) tfc_cluster_plan_free(session->plans.data[i]);
  tfc_array_free(&session->plans);
  tfc_cut_deinit(&session->cut);
  atomic_fetch_sub(&session->task->sessions, 1);
  tfc_graph_release(session->graph);
  pthread_mutex_destroy(&session->lock);
  free(session->execution);
  free(session->told);
  free(session);
}
