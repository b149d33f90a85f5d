// A task from joining the job to leaving it: the progress thread, pings, barriers, and the end of the task or of the
// job.
#include "runtime/cluster/client_internal.h"
#include "runtime/cluster/member_internal.h"
#include "runtime/cluster/serve.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/cluster/queues.h"

enum {
  PING_NS = 1000000000,
  TICK_NS = 2000000,
  DEFAULT_SILENCE_S = 6,
  ASLEEP_NS = 1500000000,
  ATTEND_NS = 200000,        // a thread that waits polls for messages for this long before it sleeps
  ATTEND_CROWDED_NS = 20000, // the same, if the host has more tasks than cores
  WAITS_NS = 20000000,       // after this time a step probably waits for a queue, so the queue runners that fill its
                             // queues are started
};

const char *tfc_member_name_of(const struct tfc_member *t, uint32_t rank, char out[TFC_TASK_TEXT]) {
  return tfc_cluster_task_name(t->spec, rank, out);
}
const char *tfc_member_name(const struct tfc_member *t, char out[TFC_TASK_TEXT]) {
  return tfc_member_name_of(t, t->rank, out);
}
uint32_t tfc_member_rank(const struct tfc_member *task) {
  return task->rank;
}
const char *tfc_member_host(const struct tfc_member *task, uint32_t rank) {
  return task->peers[rank].hello.host;
}
uint32_t tfc_member_device_count(const struct tfc_member *task, uint32_t rank) {
  return task->peers[rank].hello.device_count;
}
const struct tfc_device_info *tfc_member_device(const struct tfc_member *task, uint32_t rank, uint32_t index) {
  return &task->peers[rank].devices[index];
}
void tfc_member_show_devices(const struct tfc_member *task, uint32_t rank, struct tfc_text *out) {
  for (uint32_t d = 0; d < task->peers[rank].hello.device_count; d++) {
    const struct tfc_device_info *i = &task->peers[rank].devices[d];
    tfc_text_printf(out, "%s%s (%s, %u cores)", d ? ", " : "", i->name, i->model, i->cores);
  }
}

tfc_status tfc_member_send(struct tfc_member *t, uint32_t to, struct tfc_message *m) {
  if (to < t->count) atomic_store(&t->peers[to].talks, true);
  return t->transport->type->send(t->transport, to, m);
}

static tfc_status tell(struct tfc_member *t, uint32_t to, uint32_t kind, const void *head, size_t size) {
  struct tfc_message *m = NULL;
  TFC_RETURN_IF_ERROR(tfc_message_of(kind, head, size, (tfc_str){0}, &m));
  return tfc_member_send(t, to, m);
}
static tfc_status tell_all(struct tfc_member *t, uint32_t kind, const void *head, size_t size) {
  for (uint32_t r = 0; r < t->count; r++)
    if (r != t->rank) TFC_RETURN_IF_ERROR(tell(t, r, kind, head, size));
  return NULL;
}

void tfc_member_note(struct tfc_member *t, const char *format, ...) {
  va_list args;
  pthread_mutex_lock(&t->lock);
  va_start(args, format);
  vsnprintf(t->last, sizeof t->last, format, args);
  va_end(args);
  if (t->options.last) memcpy(t->options.last, t->last, TFC_TASK_LAST);
  pthread_mutex_unlock(&t->lock);
}

// --- The end of the job ----------------------------------------------------------------------------------------------
// Returns a copy of the error with which the job failed; NULL: it has not failed. Call it without the lock.
static tfc_status failure_of(struct tfc_member *t) {
  pthread_mutex_lock(&t->lock);
  tfc_status s = t->failure ? tfc_status_clone(t->failure) : NULL;
  pthread_mutex_unlock(&t->lock);
  return s;
}

uint32_t tfc_member_clients(const struct tfc_member *t) {
  uint32_t clients = 0;
  for (uint32_t r = 0; r < t->count; r++) clients += tfc_member_is_client(t, r);
  return clients;
}

bool tfc_member_is_client(const struct tfc_member *t, uint32_t rank) {
  return t->peers[rank].hello.has_script && !atomic_load(&t->peers[rank].serves);
}

uint64_t tfc_member_static_parts(const struct tfc_member *t) {
  return atomic_load(&t->static_parts);
}

void tfc_member_took_steps(struct tfc_member *t, uint64_t steps) {
  atomic_store(&t->taken, steps);
}
static uint64_t own_steps(const struct tfc_member *t) {
  return atomic_load(t->options.has_script ? &t->taken : &t->parts);
}
uint64_t tfc_member_steps(const struct tfc_member *t, uint32_t rank, int64_t *out_ns) {
  if (rank == t->rank) {
    *out_ns = tfc_now_ns();
    return own_steps(t);
  }
  *out_ns = atomic_load(&t->peers[rank].told_ns);
  return atomic_load(&t->peers[rank].steps);
}

bool tfc_member_has_failed(struct tfc_member *t) {
  pthread_mutex_lock(&t->lock);
  const bool failed = t->failure != NULL;
  pthread_mutex_unlock(&t->lock);
  return failed;
}

void tfc_member_give_up(struct tfc_member *t, tfc_status why) {
  pthread_mutex_lock(&t->lock);
  if (t->failure)
    tfc_status_free(why);
  else
    t->failure = why;
  for (struct tfc_client_step *step = t->steps; step; step = step->next) {
    step->remaining = 0;
    atomic_fetch_add(&step->changes, 1);
    if (!step->status) step->status = tfc_status_clone(t->failure);
    atomic_store(&step->cancel, true);
  }
  for (struct tfc_running *r = t->running; r; r = r->next) atomic_store(&r->cancel, true);
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
}

static void end_job(struct tfc_member *t, int code, tfc_status why) {
  char *text = tfc_format("%s", tfc_status_message(why));
  pthread_mutex_lock(&t->lock);
  const bool first = !t->told;
  t->told = true;
  pthread_mutex_unlock(&t->lock);
  if (first && t->options.failed) t->options.failed(t->options.arg, code, text ? text : "out of memory");
  tfc_member_give_up(t, why);
  t->transport->type->fail(t->transport, code, text ? text : "out of memory");
  free(text);
}

void tfc_member_fail(struct tfc_member *t, int code, const char *why) {
  pthread_mutex_lock(&t->lock);
  t->told = true; // the program has already told the user why
  pthread_mutex_unlock(&t->lock);
  char name[TFC_TASK_TEXT];
  end_job(t, code, tfc_status_make(TFC_UNAVAILABLE, "%s: %s", tfc_member_name_of(t, t->rank, name), why));
}

// --- Messages ------------------------------------------------------------------------------------------------------
static bool has_texts(const struct tfc_device_info *i) {
  return tfc_message_text(i->name, sizeof i->name) && tfc_message_text(i->kind, sizeof i->kind) &&
         tfc_message_text(i->tensorflow, sizeof i->tensorflow) && tfc_message_text(i->model, sizeof i->model) &&
         tfc_message_text(i->label, sizeof i->label) && tfc_message_text(i->math, sizeof i->math);
}

// Copies the devices that a hello describes.
static tfc_status read_devices(const struct tfc_head_hello *h, tfc_str bytes, struct tfc_device_info **out) {
  struct tfc_device_info *devices = NULL;
  bool ok = h->device_count <= TFC_HELLO_DEVICES && bytes.size == h->device_count * sizeof *devices;
  if (ok && !(devices = calloc(h->device_count + 1u, sizeof *devices))) return tfc_status_no_memory("joining");
  if (ok && bytes.size) memcpy(devices, bytes.data, bytes.size);
  for (uint32_t d = 0; ok && d < h->device_count; d++) ok = has_texts(&devices[d]);
  if (!ok) {
    free(devices);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a hello with devices that make no sense");
  }
  *out = devices;
  return NULL;
}

static tfc_status tell_hello(struct tfc_member *t, uint32_t to, uint32_t kind, uint32_t about) {
  const struct tfc_peer *p = &t->peers[about];
  struct tfc_message *m = NULL;
  const tfc_str devices = {(const char *)p->devices, p->hello.device_count * sizeof *p->devices};
  TFC_RETURN_IF_ERROR(tfc_message_of(kind, &p->hello, sizeof p->hello, devices, &m));
  return tfc_member_send(t, to, m);
}

static tfc_status take_hello(struct tfc_member *t, const struct tfc_message *m, bool welcome) {
  struct tfc_head_hello h;
  struct tfc_device_info *devices = NULL;
  tfc_str rest;
  TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, &rest));
  if (h.version != TFC_HELLO_VERSION)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "it is another version of tfc (%u, here %d)", h.version,
                           TFC_HELLO_VERSION);
  if (h.rank >= t->count || (!welcome && h.rank != m->peer) || (welcome && m->peer != 0) ||
      !tfc_message_text(h.host, sizeof h.host) || !tfc_message_text(h.clock, sizeof h.clock) || t->peers[h.rank].joined)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a hello that makes no sense");
  TFC_RETURN_IF_ERROR(read_devices(&h, rest, &devices));
  pthread_mutex_lock(&t->lock);
  struct tfc_peer *p = &t->peers[h.rank];
  t->joined_count++;
  p->joined = true;
  if (h.rank != t->rank) // a task knows itself already
    p->hello = h, p->devices = devices, devices = NULL;
  t->all_joined = t->joined_count == t->count;
  const bool tells = t->all_joined && t->rank == 0;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
  free(devices);
  for (uint32_t about = 0; tells && about < t->count; about++)
    for (uint32_t r = 1; r < t->count; r++) TFC_RETURN_IF_ERROR(tell_hello(t, r, TFC_KIND_WELCOME, about));
  return NULL;
}

static struct tfc_gathering *gathering_of(struct tfc_member *t, const char *name) {
  for (size_t i = 0; i < t->gatherings.count; i++)
    if (!strcmp(t->gatherings.data[i].name, name)) return &t->gatherings.data[i];
  struct tfc_gathering made = {.who = calloc(t->count, sizeof(bool))};
  snprintf(made.name, sizeof made.name, "%s", name);
  if (made.who && tfc_array_push(&t->gatherings, made)) return &t->gatherings.data[t->gatherings.count - 1];
  free(made.who);
  return NULL;
}

// For task 0, under the lock: returns an error if a task with a script has ended before it came to the barrier.
static tfc_status never_comes(struct tfc_member *t, const struct tfc_gathering *g) {
  char name[TFC_TASK_TEXT];
  for (uint32_t r = 0; g->came && r < t->count; r++)
    if (t->peers[r].hello.has_script && t->peers[r].ended && !g->who[r])
      return tfc_status_make(TFC_ABORTED, "%s has ended and never came to the barrier '%s'",
                             tfc_member_name_of(t, r, name), g->name);
  return NULL;
}

static bool release_locked(struct tfc_member *t, const char *name, uint32_t votes) {
  char *copy = tfc_format("%s", name);
  if (copy && tfc_array_push(&t->released, (struct tfc_release){copy, votes})) {
    atomic_fetch_add(&t->releases, 1);
    pthread_cond_broadcast(&t->changed);
    return true;
  }
  free(copy);
  return false;
}

static tfc_status take_barrier(struct tfc_member *t, uint32_t from, const struct tfc_head_barrier *h) {
  struct tfc_head_barrier all_votes = *h;
  tfc_status s = NULL;
  bool all = true;
  pthread_mutex_lock(&t->lock);
  struct tfc_gathering *g = gathering_of(t, h->name);
  if (!g) TFC_TRY(s, tfc_status_no_memory("a barrier"));
  if (g->who[from]) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "it came twice to the barrier '%s'", h->name);
  g->who[from] = true;
  g->votes |= h->votes;
  g->came++;
  for (uint32_t r = 0; r < t->count; r++) all = all && (g->who[r] || !t->peers[r].hello.has_script);
  if (!all) {
    s = never_comes(t, g);
    goto out;
  }
  memset(g->who, 0, t->count * sizeof *g->who);
  all_votes.votes = g->votes;
  g->came = g->votes = 0;
  if (t->options.has_script && !release_locked(t, h->name, all_votes.votes))
    TFC_TRY(s, tfc_status_no_memory("a barrier"));
out:
  pthread_mutex_unlock(&t->lock);
  for (uint32_t r = 0; r < t->count && all && !s; r++) // who only serves waits at no barrier
    if (r != t->rank && t->peers[r].hello.has_script) s = tell(t, r, TFC_KIND_RELEASE, &all_votes, sizeof all_votes);
  return s;
}

static tfc_status take_ended(struct tfc_member *t, uint32_t from, const struct tfc_head_ended *h) {
  tfc_status s = NULL;
  pthread_mutex_lock(&t->lock);
  t->peers[from].ended = true;
  if (h->leaves) t->peers[from].leaves = true;
  if (h->serves) atomic_store(&t->peers[from].serves, true);
  for (size_t i = 0; t->rank == 0 && i < t->gatherings.count && !s; i++) s = never_comes(t, &t->gatherings.data[i]);
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
  return s;
}

// Notes that a tensor has come, for the trace of its step.
static void note_arrival(struct tfc_member *t, const struct tfc_head_tensor *h) {
  enum { MOST = 1 << 20 }; // steps that fail leave some
  const struct tfc_arrival arrival = {h->step, h->sent_ns, tfc_now_ns(), h->bytes, h->edge};
  if (!tfc_step_is_traced(h->step) || h->edge & (TFC_EDGE_FEED | TFC_EDGE_FETCH)) return;
  pthread_mutex_lock(&t->lock);
  if (t->came_in.count < MOST) (void)tfc_array_push(&t->came_in, arrival);
  pthread_mutex_unlock(&t->lock);
}

static tfc_status take_tensor(struct tfc_member *t, struct tfc_message *m) {
  struct tfc_head_tensor h;
  struct tfc_tensor value = {0};
  TFC_RETURN_IF_ERROR(tfc_message_tensor(m, &h, &value));
  if (tfc_step_client(h.step) >= t->count) {
    tfc_tensor_release(&value);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor of a step that no task runs");
  }
  note_arrival(t, &h);
  const struct tfc_rendezvous_key key = {.step = h.step, .iteration = h.iteration, .edge = h.edge, .peer = m->peer};
  tfc_status s = tfc_meeting_give(t->meeting, &key, h.dead ? NULL : &value);
  tfc_tensor_release(&value);
  return s;
}

// --- Collective operations -------------------------------------------------------------------------------------------
static tfc_status send_collective(struct tfc_collective_wire *wire, uint32_t to, const struct tfc_collective_head *head,
                                  tfc_str rest, struct tfc_buffer *body, uint64_t size) {
  struct tfc_message *m = NULL;
  if (rest.size > TFC_MESSAGE_MOST_HEAD - sizeof *head)
    return tfc_status_make(TFC_UNIMPLEMENTED, "a group of collective operations with too many members");
  TFC_RETURN_IF_ERROR(tfc_message_of(TFC_KIND_COLLECTIVE, head, sizeof *head, rest, &m));
  if (size) tfc_buffer_retain(m->body = body), m->body_size = size;
  return tfc_member_send(((struct tfc_member_wire *)(void *)wire)->member, to, m);
}

static tfc_status connect_collectives(struct tfc_member *t) {
  TFC_RETURN_IF_ERROR(tfc_collectives_of(t->resources, &t->collectives));
  t->wire = (struct tfc_member_wire){{.rank = t->rank, .count = t->count, .send = send_collective}, t};
  tfc_collectives_connect(t->collectives, &t->wire.base);
  return NULL;
}

static void set_steps(struct tfc_peer *peer, uint64_t steps, int64_t age_ns) {
  atomic_store(&peer->steps, steps);
  atomic_store(&peer->told_ns, tfc_now_ns() - age_ns);
}

static tfc_status take(struct tfc_member *t, struct tfc_message *m) {
  tfc_str rest;
  switch (m->kind) {
  case TFC_KIND_HELLO: return take_hello(t, m, false);
  case TFC_KIND_WELCOME: return take_hello(t, m, true);
  case TFC_KIND_PING: {
    struct tfc_head_ping h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, &rest));
    if (!tfc_message_text(h.last, sizeof h.last)) return tfc_status_make(TFC_INVALID_ARGUMENT, "a ping without an end");
    if (h.tasks > t->count || (h.tasks && m->peer) || rest.size != h.tasks * sizeof(struct tfc_told_steps))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "a ping about tasks that do not exist");
    memcpy(t->peers[m->peer].last, h.last, sizeof h.last);
    for (uint32_t r = 1; r < h.tasks; r++) {
      struct tfc_told_steps told;
      memcpy(&told, rest.data + r * sizeof told, sizeof told);
      if (told.age_ns >= 0) set_steps(&t->peers[r], told.steps, told.age_ns);
    }
    set_steps(&t->peers[m->peer], h.steps, 0);
    return NULL;
  }
  case TFC_KIND_GRAPH: {
    struct tfc_head_graph h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, &rest));
    return tfc_serve_graph(t, m->peer, h.session, rest, m->body, m->body_size);
  }
  case TFC_KIND_PLAN: {
    struct tfc_head_plan h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, NULL));
    return tfc_serve_plan(t, m->peer, &h, m->body, m->body_size);
  }
  case TFC_KIND_RUN: {
    struct tfc_head_run h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, NULL));
    if (tfc_step_client(h.step) != m->peer) return tfc_status_make(TFC_INVALID_ARGUMENT, "a step of another client");
    return tfc_serve_start(t, m->peer, &h);
  }
  case TFC_KIND_TENSOR: return take_tensor(t, m);
  case TFC_KIND_DONE: {
    struct tfc_head_done h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, &rest));
    return tfc_client_done(t, m->peer, &h, rest);
  }
  case TFC_KIND_TRACE: {
    struct tfc_head_done h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, &rest));
    return tfc_client_trace(t, m->peer, &h, rest, m->body, m->body_size);
  }
  case TFC_KIND_ABORT: {
    struct tfc_head_abort h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, NULL));
    tfc_serve_abort(t, h.step);
    return NULL;
  }
  case TFC_KIND_BARRIER:
  case TFC_KIND_RELEASE: {
    struct tfc_head_barrier h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, NULL));
    if (!tfc_message_text(h.name, sizeof h.name) || (m->kind == TFC_KIND_RELEASE && m->peer != 0) ||
        (m->kind == TFC_KIND_BARRIER && t->rank != 0))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "a barrier that makes no sense");
    if (m->kind == TFC_KIND_BARRIER) return take_barrier(t, m->peer, &h);
    pthread_mutex_lock(&t->lock);
    const bool ok = release_locked(t, h.name, h.votes);
    pthread_mutex_unlock(&t->lock);
    return ok ? NULL : tfc_status_no_memory("a barrier");
  }
  case TFC_KIND_ENDED: {
    struct tfc_head_ended h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, NULL));
    return take_ended(t, m->peer, &h);
  }
  case TFC_KIND_COLLECTIVE: {
    struct tfc_collective_head h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, &rest));
    return tfc_collectives_take(t->collectives, m->peer, &h, rest, m->body, m->body_size);
  }
  case TFC_KIND_STOP: {
    struct tfc_head_stop h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, NULL));
    if (!t->stop_told && t->options.stopped) t->options.stopped(t->options.arg);
    t->stop_told = true;
    return NULL;
  }
  case TFC_KIND_FORGET: {
    struct tfc_head_forget h;
    TFC_RETURN_IF_ERROR(tfc_message_read(m, &h, sizeof h, NULL));
    tfc_serve_forget(t, m->peer, h.session);
    return NULL;
  }
  default: return tfc_status_make(TFC_INVALID_ARGUMENT, "a message of the unknown kind %u", m->kind);
  }
}

// --- Pings ---------------------------------------------------------------------------------------------------------
// Returns what is known of the steps of all tasks, which task 0 tells the others, as far as it fits into a message's
// head. The caller frees it. NULL: nothing is told.
static struct tfc_told_steps *all_steps(const struct tfc_member *t, int64_t now, uint64_t *out_count) {
  const size_t fit = (TFC_MESSAGE_MOST_HEAD - sizeof(struct tfc_head_ping)) / sizeof(struct tfc_told_steps);
  struct tfc_told_steps *all = t->rank == 0 ? calloc(t->count, sizeof *all) : NULL;
  *out_count = all ? (t->count < fit ? t->count : fit) : 0;
  for (uint32_t r = 0; r < *out_count; r++) {
    int64_t told_ns;
    all[r].steps = tfc_member_steps(t, r, &told_ns);
    all[r].age_ns = !told_ns ? -1 : told_ns < now ? now - told_ns : 0;
  }
  return all;
}

// Task 0 exchanges pings with all other tasks; two other tasks do so once one of them has sent the other a message. So
// tasks that may wait for each other find out if they are cut off from each other, and many tasks that have nothing to
// do with each other send each other nothing.
static tfc_status look_after(struct tfc_member *t, int64_t now, int64_t *next_ping) {
  const int64_t silence = t->options.silence_ns ? t->options.silence_ns : (int64_t)DEFAULT_SILENCE_S * 1000000000;
  if (now < *next_ping) return NULL;
  *next_ping = now + (PING_NS < silence / 4 ? PING_NS : silence / 4);
  struct tfc_head_ping ping = {.steps = own_steps(t)};
  tfc_status s = NULL;
  pthread_mutex_lock(&t->lock);
  memcpy(ping.last, t->last, sizeof ping.last);
  const bool joined = t->all_joined;
  pthread_mutex_unlock(&t->lock);
  struct tfc_told_steps *steps = all_steps(t, now, &ping.tasks);
  const tfc_str rest = {(const char *)steps, ping.tasks * sizeof *steps};
  for (uint32_t r = 0; joined && r < t->count; r++) {
    struct tfc_peer *p = &t->peers[r];
    if (r == t->rank || (t->rank != 0 && r != 0 && !atomic_load(&p->talks))) continue;
    struct tfc_message *m = NULL;
    if (!p->watched) p->watched = true, p->heard = now;
    TFC_TRY(s, tfc_message_of(TFC_KIND_PING, &ping, sizeof ping, rest, &m));
    m->overtakes = true; // behind a large tensor it might arrive so late that the task counts as lost
    TFC_TRY(s, tfc_member_send(t, r, m));
    char name[TFC_TASK_TEXT];
    if (now - p->heard > silence)
      TFC_FAIL(s, TFC_UNAVAILABLE, "%s on %s (process %u) has said nothing for %.1f s; the last it did: %s",
               tfc_member_name_of(t, r, name), p->hello.host, p->hello.pid, (double)(now - p->heard) * 1e-9,
               p->last[0] ? p->last : "joined"); // a task that has sent no ping has joined at least
  }
out:
  free(steps);
  return s;
}

// Tells all tasks once that this one was asked to stop.
static tfc_status tell_stop(struct tfc_member *t) {
  if (t->stop_told || !t->options.stop || !atomic_load(t->options.stop)) return NULL;
  pthread_mutex_lock(&t->lock);
  const bool joined = t->all_joined;
  pthread_mutex_unlock(&t->lock);
  if (!joined) return NULL;
  t->stop_told = true;
  return tell_all(t, TFC_KIND_STOP, &(struct tfc_head_stop){0}, sizeof(struct tfc_head_stop));
}

// For each running step of this client: starts its queue runners if the step has waited long, and aborts the step if
// the user has cancelled it.
static void look_at_steps(struct tfc_member *t, int64_t now) {
  pthread_mutex_lock(&t->lock);
  for (struct tfc_client_step *step = t->steps; step; step = step->next) {
    if (step->queues && now - step->begin > WAITS_NS) {
      tfc_cluster_queues_start(step->queues, step->wanted);
      step->queues = NULL;
    }
    if (step->asked && atomic_load(step->asked) && !atomic_load(&step->cancel))
      tfc_client_abort_locked(t, step, tfc_status_make(TFC_CANCELLED, "the step was cancelled"));
  }
  pthread_mutex_unlock(&t->lock);
}

// Handles all received messages. The caller holds `helm`.
static tfc_status handle_all(struct tfc_member *t, int64_t now) {
  const struct tfc_transport_type *type = t->transport->type;
  tfc_status s = NULL;
  struct tfc_message *m = NULL;
  while (!s && !(s = type->receive(t->transport, &m)) && m) {
    const uint32_t from = m->peer;
    char name[TFC_TASK_TEXT];
    t->peers[from].heard = now;
    atomic_store(&t->peers[from].talks, true);
    s = take(t, m);
    if (s)
      s = tfc_status_annotate(s, "%s on %s: message '%s'", tfc_member_name_of(t, from, name),
                              t->peers[from].joined ? t->peers[from].hello.host : "an unknown host",
                              tfc_message_kind_name(m->kind));
    tfc_message_free(m);
    m = NULL;
  }
  return s;
}

// Ends the job after an error in moving or handling messages. `foreign`: another task has ended the job. What is wrong
// with a task is exit code 4, and may not come again; a barrier to which a script does not come always does (ABORTED).
static void end_progress(struct tfc_member *t, tfc_status s, bool foreign) {
  if (foreign)
    tfc_member_give_up(t, s);
  else
    end_job(t, tfc_status_code(s) == TFC_ABORTED ? tfc_status_exit_code(s) : 4, s);
}

void tfc_member_attend(struct tfc_member *t, const _Atomic uint32_t *word, uint32_t seen) {
  const struct tfc_transport_type *type = t->transport->type;
  if (!t->attend_ns || atomic_load(word) != seen) return;
  type->attend(t->transport, true);
  const int64_t until = tfc_now_ns() + t->attend_ns;
  for (int64_t now = 0; atomic_load(word) == seen && !atomic_load(&t->stop) && now < until;) {
    now = tfc_now_ns();
    if (pthread_mutex_trylock(&t->helm) != 0) continue;
    tfc_status s = type->progress(t->transport, 0);
    const bool foreign = tfc_status_code(s) == TFC_UNAVAILABLE;
    if (!s) s = handle_all(t, now);
    pthread_mutex_unlock(&t->helm);
    if (!s) continue;
    end_progress(t, s, foreign);
    break;
  }
  type->attend(t->transport, false);
}

static void *progress(void *arg) {
  struct tfc_member *t = arg;
  tfc_status s = NULL;
  bool foreign = false;
  int64_t next_ping = 0, begin = tfc_now_ns(), before = begin;
  pthread_mutex_lock(&t->helm);
  for (uint32_t r = 0; r < t->count; r++) t->peers[r].heard = begin;
  pthread_mutex_unlock(&t->helm);
  while (!s && !atomic_load(&t->stop)) {
    s = t->transport->type->progress(t->transport, TICK_NS);
    foreign = tfc_status_code(s) == TFC_UNAVAILABLE;
    const int64_t now = tfc_now_ns();
    pthread_mutex_lock(&t->helm);
    if (now - before > ASLEEP_NS) // this process was stopped for a while, so it could not receive the others' pings
      for (uint32_t r = 0; r < t->count; r++) t->peers[r].heard = now;
    before = now;
    if (!s) s = handle_all(t, now);
    if (!s) s = tell_stop(t);
    if (!s) s = look_after(t, now, &next_ping);
    pthread_mutex_unlock(&t->helm);
    look_at_steps(t, now);
  }
  if (s) end_progress(t, s, foreign);
  return NULL;
}

// Waits until something has changed, at most 0.1 s. Under the lock.
static void wait_changed(struct tfc_member *t) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += 100000000;
  if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
  pthread_cond_timedwait(&t->changed, &t->lock, &until);
}

static void attend_meeting(struct tfc_rendezvous *r, const _Atomic uint32_t *word, uint32_t seen) {
  tfc_member_attend(((struct tfc_meeting *)(void *)r)->owner, word, seen);
}

// Writes what tells this clock from those of other kernels: hosts may have one name, and containers of one host
// several. A time namespace has a clock of its own.
static void describe_clock(char out[TFC_CLOCK_TEXT]) {
  char boot[40] = "", space[64] = "";
  FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
  const bool known = f && fgets(boot, sizeof boot, f);
  if (f) fclose(f);
  if (readlink("/proc/self/ns/time", space, sizeof space - 1) < 0) space[0] = 0; // a kernel without time namespaces
  boot[strcspn(boot, "\n")] = 0;
  snprintf(out, TFC_CLOCK_TEXT, "%s%s%s", known ? boot : "", known ? " " : "", known ? space : "");
}

static tfc_status describe_self(struct tfc_member *t) {
  struct tfc_peer *own = &t->peers[t->rank];
  struct tfc_head_hello *h = &own->hello;
  if (t->devices->count > TFC_HELLO_DEVICES)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a task with %u devices: it may have %d", t->devices->count,
                           (int)TFC_HELLO_DEVICES);
  *h = (struct tfc_head_hello){.version = TFC_HELLO_VERSION,
                               .rank = t->rank,
                               .has_script = t->options.has_script,
                               .pid = (uint32_t)getpid(),
                               .device_count = t->devices->count};
  if (gethostname(h->host, sizeof h->host - 1) != 0) snprintf(h->host, sizeof h->host, "unknown");
  describe_clock(h->clock);
  own->devices = calloc(t->devices->count + 1u, sizeof *own->devices);
  if (!own->devices) return tfc_status_no_memory("joining");
  for (uint32_t d = 0; d < t->devices->count; d++) own->devices[d] = t->devices->devices[d]->info;
  return NULL;
}

tfc_status tfc_member_join(const struct tfc_member_options *options, struct tfc_member **out) {
  tfc_status s = NULL;
  struct tfc_member *t = calloc(1, sizeof *t);
  if (!t) {
    tfc_transport_close(options->transport);
    return tfc_status_no_memory(NULL);
  }
  t->spec = options->spec;
  t->transport = options->transport;
  t->devices = options->devices;
  t->options = *options;
  t->rank = t->transport->rank;
  t->count = t->transport->count;
  t->queue_last = &t->queue;
  t->next_step = 1;
  pthread_mutex_init(&t->lock, NULL);
  pthread_mutex_init(&t->helm, NULL);
  tfc_gate_init(&t->gate, 0);
  pthread_cond_init(&t->work, NULL);
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  t->attend_ns = cores >= (long)t->transport->beside_count ? ATTEND_NS : ATTEND_CROWDED_NS;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&t->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  if (t->spec->tasks.count != t->count)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the cluster has %zu tasks, %u are connected", t->spec->tasks.count, t->count);
  t->peers = calloc(t->count, sizeof *t->peers);
  if (!t->peers) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_resources_create(&t->resources));
  TFC_TRY(s, tfc_meeting_create(t->resources, &t->meeting));
  t->meeting->base.send = tfc_serve_send;
  t->meeting->base.flush = tfc_serve_flush;
  t->meeting->base.attend = attend_meeting;
  t->meeting->base.lends = !t->transport->hands_over && !t->options.never_lends;
  t->meeting->owner = t;
  TFC_TRY(s, connect_collectives(t));
  TFC_TRY(s, describe_self(t));
  tfc_ticks_resync(); // for the first time, which takes 2 ms: not while a step is timed
  tfc_member_note(t, "joined");
  if (pthread_create(&t->progress, NULL, progress, t) != 0)
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of threads: a task's progress");
  t->progress_started = true;
  TFC_TRY(s, tell_hello(t, 0, TFC_KIND_HELLO, t->rank));
  pthread_mutex_lock(&t->lock);
  while (!t->all_joined && !t->failure) wait_changed(t);
  pthread_mutex_unlock(&t->lock);
  TFC_TRY(s, failure_of(t));
  *out = t, t = NULL;
out:
  // The others wait for this task's hello, or for its answers: an error of its own ends the job for them, too.
  if (t && t->count > 1 && !tfc_member_has_failed(t)) end_job(t, tfc_status_exit_code(s), tfc_status_clone(s));
  tfc_member_free(t);
  return s;
}

static void tell_packets(const struct tfc_member *t) {
  char name[TFC_TASK_TEXT];
  const unsigned long long sent = atomic_load(&t->transport->sent), packets = atomic_load(&t->transport->packets);
  if (packets)
    tfc_log(TFC_LOG_DEBUG, "%s: %llu messages sent, in %llu packets", tfc_member_name(t, name), sent, packets);
}

void tfc_member_free(struct tfc_member *t) {
  if (!t) return;
  tfc_serve_end(t);
  atomic_store(&t->stop, true);
  if (t->progress_started) pthread_join(t->progress, NULL);
  tfc_serve_free(t);
  tell_packets(t);
  tfc_transport_close(t->transport);
  tfc_meeting_free(t->meeting);
  tfc_collectives_release(t->collectives);
  tfc_resources_free(t->resources);
  for (size_t i = 0; i < t->gatherings.count; i++) free(t->gatherings.data[i].who);
  for (size_t i = 0; i < t->released.count; i++) free(t->released.data[i].name);
  tfc_array_free(&t->gatherings);
  tfc_array_free(&t->released);
  tfc_status_free(t->failure);
  free(t->restored);
  free(t->own_lines);
  tfc_array_free(&t->came_in);
  free(t->restored_lines);
  for (uint32_t r = 0; t->peers && r < t->count; r++) free(t->peers[r].devices);
  free(t->peers);
  pthread_cond_destroy(&t->changed);
  pthread_cond_destroy(&t->work);
  pthread_mutex_destroy(&t->helm);
  tfc_gate_deinit(&t->gate);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

static bool take_release(struct tfc_member *t, const char *name, uint32_t *out_votes) {
  for (size_t i = 0; i < t->released.count; i++)
    if (!strcmp(t->released.data[i].name, name)) {
      free(t->released.data[i].name);
      *out_votes = t->released.data[i].votes;
      t->released.data[i] = t->released.data[--t->released.count];
      return true;
    }
  return false;
}

tfc_status tfc_member_vote(struct tfc_member *t, const char *name, uint32_t votes, const _Atomic bool *cancel,
                           uint32_t *out_votes) {
  struct tfc_head_barrier h = {.votes = votes};
  const uint32_t seen = atomic_load(&t->releases);
  if (strlen(name) >= sizeof h.name)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the name of a barrier is longer than %zu bytes", sizeof h.name - 1);
  snprintf(h.name, sizeof h.name, "%s", name);
  tfc_member_note(t, "waits at the barrier '%s'", name);
  TFC_RETURN_IF_ERROR(tell(t, 0, TFC_KIND_BARRIER, &h, sizeof h));
  bool cancelled = false, came = false;
  tfc_member_attend(t, &t->releases, seen);
  pthread_mutex_lock(&t->lock);
  while (!(came = take_release(t, name, out_votes)) && !t->failure && !cancelled) {
    wait_changed(t);
    cancelled = cancel && atomic_load(cancel);
  }
  pthread_mutex_unlock(&t->lock);
  if (came) {
    tfc_member_note(t, "left the barrier '%s'", name);
    return NULL;
  }
  return cancelled ? tfc_status_make(TFC_CANCELLED, "cancelled at the barrier '%s'", name) : failure_of(t);
}

tfc_status tfc_member_barrier(struct tfc_member *t, const char *name, const _Atomic bool *cancel) {
  uint32_t votes;
  return tfc_member_vote(t, name, 0, cancel, &votes);
}

static tfc_status end(struct tfc_member *t, bool leaves, const _Atomic bool *cancel) {
  const struct tfc_head_ended head = {.leaves = leaves, .serves = atomic_load(&t->sessions) == 0};
  bool all = false, cancelled = false;
  TFC_RETURN_IF_ERROR(tell_all(t, TFC_KIND_ENDED, &head, sizeof head));
  TFC_RETURN_IF_ERROR(take_ended(t, t->rank, &head));
  pthread_mutex_lock(&t->lock);
  while (!t->failure && !cancelled) {
    all = true;
    for (uint32_t r = 0; r < t->count; r++) all = all && (leaves ? t->peers[r].leaves : t->peers[r].ended);
    if (all) break;
    wait_changed(t);
    cancelled = cancel && atomic_load(cancel);
  }
  pthread_mutex_unlock(&t->lock);
  if (cancelled) return tfc_status_make(TFC_CANCELLED, "cancelled while others still run");
  return all ? NULL : failure_of(t);
}

tfc_status tfc_member_wait_alone(struct tfc_member *t, const _Atomic bool *cancel) {
  bool cancelled = false, alone = false;
  pthread_mutex_lock(&t->lock);
  while (!t->failure && !cancelled) {
    alone = tfc_member_clients(t) == tfc_member_is_client(t, t->rank);
    if (alone) break;
    wait_changed(t);
    cancelled = cancel && atomic_load(cancel);
  }
  pthread_mutex_unlock(&t->lock);
  if (cancelled) return tfc_status_make(TFC_CANCELLED, "cancelled while others have their scripts");
  return alone ? NULL : failure_of(t);
}

tfc_status tfc_member_end(struct tfc_member *t, const _Atomic bool *cancel) {
  tfc_member_note(t, "its script has ended");
  return end(t, false, cancel);
}
tfc_status tfc_member_leave(struct tfc_member *t) {
  tfc_member_note(t, "leaves");
  return end(t, true, NULL);
}
