// Runs the parts of graphs that clients sent to this task (this task may be a client, too). Each part is a session of
// its own; all of them share the task's variables, queues and tables. A part's GraphDef is read when the first step of
// it begins.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/cluster/member_internal.h"
#include "runtime/cluster/serve.h"
#include "runtime/cluster/states.h"
#include "runtime/cluster/tasks.h"
#include "runtime/exec/saved_state.h"
#include "runtime/graph/import.h"

struct served_plan {
  uint32_t id, feed_count, fetch_count, target_count, crossing_count;
  struct tfc_buffer *names;
  uint64_t names_size;
  bool read;
  struct tfc_output *feeds, *fetches;
  uint32_t *targets;
  struct tfc_crossing *crossings;
  _Atomic size_t records; // room for so many records of each device a traced step needs; 0: not known
};
struct tfc_served {
  uint32_t client, number;
  // The task's list holds one reference, and so does each thread that runs a step of the part or adds a plan to it: a
  // client may tell the task to forget a graph while an aborted step of it still runs here. Guarded by the task's lock.
  uint32_t references;
  char *execution;
  struct tfc_buffer *bytes;
  uint64_t size;
  // Guards the list of plans. Received messages add to it, and these must never wait for a graph that is being opened:
  // the task would fall silent.
  pthread_mutex_t list_lock;
  TFC_ARRAY(struct served_plan *) plans;
  pthread_mutex_t lock; // held while the graph is opened and plans are read; guards the fields below and the plans
  struct tfc_graph *graph;
  struct tfc_session *session;
  uint16_t *placement; // NULL: the task has only one device
};
enum { MOST_THREADS = 512 };

static void served_free(struct tfc_served *s) {
  tfc_session_free(s->session);
  tfc_graph_release(s->graph);
  for (size_t i = 0; i < s->plans.count; i++) {
    struct served_plan *p = s->plans.data[i];
    tfc_buffer_release(p->names);
    free(p->feeds), free(p->fetches), free(p->targets), free(p->crossings);
    free(p);
  }
  tfc_array_free(&s->plans);
  tfc_buffer_release(s->bytes);
  pthread_mutex_destroy(&s->list_lock);
  pthread_mutex_destroy(&s->lock);
  free(s->placement);
  free(s->execution);
  free(s);
}

// Takes a reference; the caller must call `let_go`. NULL: there is no such graph, or its client told the task to forget
// it.
static struct tfc_served *find(struct tfc_member *t, uint32_t client, uint32_t number) {
  struct tfc_served *found = NULL;
  pthread_mutex_lock(&t->lock);
  for (size_t i = 0; i < t->served.count && !found; i++)
    if (t->served.data[i]->client == client && t->served.data[i]->number == number) found = t->served.data[i];
  if (found) found->references++;
  pthread_mutex_unlock(&t->lock);
  return found;
}

static void let_go(struct tfc_member *t, struct tfc_served *s) {
  if (!s) return;
  pthread_mutex_lock(&t->lock);
  const bool last = --s->references == 0;
  pthread_mutex_unlock(&t->lock);
  if (last) served_free(s);
}

tfc_status tfc_serve_graph(struct tfc_member *t, uint32_t client, uint32_t session, tfc_str execution,
                           struct tfc_buffer *graph, uint64_t size) {
  struct tfc_served *s = find(t, client, session);
  if (s) {
    let_go(t, s);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "graph %u is there already", session);
  }
  s = calloc(1, sizeof *s);
  if (!s) return tfc_status_no_memory("serving a part of a graph");
  *s = (struct tfc_served){.client = client, .number = session, .references = 1, .bytes = graph, .size = size};
  s->execution = tfc_format("%.*s", TFC_STR_ARG(execution));
  pthread_mutex_init(&s->list_lock, NULL);
  pthread_mutex_init(&s->lock, NULL);
  tfc_buffer_retain(graph);
  pthread_mutex_lock(&t->lock);
  const bool kept = s->execution && tfc_array_push(&t->served, s);
  pthread_mutex_unlock(&t->lock);
  if (kept) return NULL;
  tfc_buffer_release(graph);
  pthread_mutex_destroy(&s->list_lock);
  pthread_mutex_destroy(&s->lock);
  free(s->execution);
  free(s);
  return tfc_status_no_memory("serving a part of a graph");
}

// Checks that there are as many names as the head says, and adds the plan to `s`.
static tfc_status add_plan(struct tfc_served *s, const struct tfc_head_plan *head, struct tfc_buffer *names,
                           uint64_t size) {
  const uint64_t count = (uint64_t)head->feeds + head->fetches + head->targets + head->crossings;
  uint64_t ends = 0;
  for (uint64_t i = 0; i < size; i++) ends += ((const char *)names->data)[i] == 0;
  if (ends != count || (size && ((const char *)names->data)[size - 1]))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a plan of %llu names with %llu", (unsigned long long)count,
                           (unsigned long long)ends);
  struct served_plan *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory("serving a part of a graph");
  *p = (struct served_plan){.id = head->plan,
                            .feed_count = head->feeds,
                            .fetch_count = head->fetches,
                            .target_count = head->targets,
                            .crossing_count = head->crossings,
                            .names = names,
                            .names_size = size};
  tfc_buffer_retain(names);
  pthread_mutex_lock(&s->list_lock);
  const bool kept = tfc_array_push(&s->plans, p);
  pthread_mutex_unlock(&s->list_lock);
  if (kept) return NULL;
  tfc_buffer_release(names);
  free(p);
  return tfc_status_no_memory("serving a part of a graph");
}

tfc_status tfc_serve_plan(struct tfc_member *t, uint32_t client, const struct tfc_head_plan *head,
                          struct tfc_buffer *names, uint64_t size) {
  struct tfc_served *s = find(t, client, head->session);
  if (!s) return tfc_status_make(TFC_INVALID_ARGUMENT, "a plan of graph %u, which is not there", head->session);
  tfc_status status = add_plan(s, head, names, size);
  let_go(t, s);
  return status;
}

// --- State of operations -------------------------------------------------------------------------------------------
// The text of a task has the lines of its iterators and objects, and for each session "session<TAB>CLIENT<TAB>NUMBER"
// with the lines of its operations (runtime/exec/saved_state.h).
#define SESSION "session\t"
static tfc_status write_session(struct tfc_member *t, struct tfc_served *s, struct tfc_text *out) {
  char name[TFC_TASK_TEXT];
  tfc_status status = NULL;
  pthread_mutex_lock(&s->lock);
  if (s->session) {
    tfc_text_printf(out, SESSION "%s\t%u\n", tfc_member_name_of(t, s->client, name), s->number);
    status = tfc_session_write_state(s->session, out);
  }
  pthread_mutex_unlock(&s->lock);
  return status;
}

// Gives a session that has just been opened, or is open, its lines of `text`.
static tfc_status read_session(struct tfc_member *t, struct tfc_served *s, tfc_str text) {
  char name[TFC_TASK_TEXT], wanted[TFC_TASK_TEXT + 16];
  snprintf(wanted, sizeof wanted, "%s\t%u", tfc_member_name_of(t, s->client, name), s->number);
  for (tfc_str who, own; tfc_states_section(&text, SESSION, &who, &own);)
    if (tfc_str_is(who, wanted)) return tfc_session_read_state(s->session, own);
  return NULL;
}

// Writes which steps this task runs as a client, without the step `own`, and its lines (tfc_cluster_session_keep).
static void write_client(struct tfc_member *t, int64_t own, struct tfc_text *out) {
  const uint32_t threads = atomic_load(&t->fillers); // before the list: these threads, and their steps, may end now
  if (threads) tfc_text_printf(out, "threads\t%u\n", threads);
  pthread_mutex_lock(&t->lock);
  for (const struct tfc_client_step *step = t->steps; step; step = step->next)
    if (step->number != own) tfc_text_printf(out, "runs\t%lld\n", (long long)step->number);
  if (t->own_lines) tfc_text_printf(out, "%s", t->own_lines);
  pthread_mutex_unlock(&t->lock);
}

// Returns the lines that this task wrote as a client; NULL: there are none, or (*out_ok false) out of memory.
static char *client_lines_of(tfc_str text, bool *out_ok) {
  struct tfc_text lines = {0};
  for (tfc_str line; tfc_line_next(&text, &line) && !tfc_str_starts(line, SESSION);) {
    if (!tfc_str_starts(line, "variable\t")) continue;
    tfc_text_add(&lines, line);
    tfc_text_add(&lines, TFC_STR("\n"));
  }
  char *copy = lines.size && !lines.failed ? tfc_str_dup((tfc_str){lines.data, lines.size}) : NULL;
  *out_ok = !lines.failed && (copy || !lines.size);
  tfc_text_deinit(&lines);
  return copy;
}

// Runs the step `own`, which saves or restores the state of this task's operations: it has one fetch, or one feed, a
// text.
static tfc_status run_state(struct tfc_member *t, int64_t own, const struct tfc_tensor *feed,
                            struct tfc_tensor *fetch) {
  tfc_status status = NULL;
  struct tfc_text text = {0};
  TFC_ARRAY(struct tfc_served *) all = {0};
  bool ok = true;
  pthread_mutex_lock(&t->lock);
  for (size_t i = 0; ok && i < t->served.count; i++) {
    ok = tfc_array_push(&all, t->served.data[i]);
    t->served.data[i]->references += ok;
  }
  if (feed && ok) {
    free(t->restored);
    free(t->restored_lines);
    t->restored_lines = client_lines_of((tfc_str){feed->data, feed->size}, &ok);
    // from the first session on: what is before may be long
    t->restored = tfc_str_dup(tfc_states_from((tfc_str){feed->data, feed->size}, SESSION));
    ok = ok && t->restored;
  }
  pthread_mutex_unlock(&t->lock);
  if (!ok) TFC_TRY(status, tfc_status_no_memory("the state of operations"));
  if (feed) {
    const tfc_str given = {feed->data, feed->size};
    TFC_TRY(status, tfc_resources_read_state(t->resources, given));
    for (size_t i = 0; i < all.count && !status; i++) {
      pthread_mutex_lock(&all.data[i]->lock);
      if (all.data[i]->session) status = read_session(t, all.data[i], given);
      pthread_mutex_unlock(&all.data[i]->lock);
    }
    goto out;
  }
  write_client(t, own, &text);
  TFC_TRY(status, tfc_resources_write_state(t->resources, &text));
  for (size_t i = 0; i < all.count; i++) TFC_TRY(status, write_session(t, all.data[i], &text));
  TFC_TRY(status, tfc_tensor_create(TFC_UINT8, &TFC_SHAPE((int64_t)text.size), fetch));
  if (text.size) memcpy(fetch->data, text.data, text.size);
out:
  for (size_t i = 0; i < all.count; i++) let_go(t, all.data[i]);
  tfc_array_free(&all);
  tfc_text_deinit(&text);
  return status;
}

// --- Running -------------------------------------------------------------------------------------------------------
// Reads the part's graph and opens its session. Under the lock of `s`.
static tfc_status open_session(struct tfc_member *t, struct tfc_served *s) {
  tfc_status status = NULL;
  struct tfc_execution execution = {0};
  char name[TFC_TASK_TEXT], *restored = NULL;
  char *path = tfc_format("graph %u of %s", s->number, tfc_member_name_of(t, s->client, name));
  if (s->session) goto out;
  if (!path) TFC_TRY(status, tfc_status_no_memory(NULL));
  TFC_TRY(status, tfc_execution_parse(tfc_str_from(s->execution), &execution));
  if (!s->graph)
    TFC_TRY(status, tfc_graph_parse((tfc_str){s->bytes ? s->bytes->data : "", s->size}, path, NULL, &s->graph));
  if (t->devices->count > 1 && !s->placement) {
    s->placement = calloc(s->graph->node_count + 1u, sizeof *s->placement);
    if (!s->placement) TFC_TRY(status, tfc_status_no_memory(NULL));
    TFC_TRY(status, tfc_member_place(s->graph, t->devices, s->placement));
  }
  const struct tfc_session_options options = {
      .devices = t->devices, .execution = execution, .resources = t->resources, .rendezvous = &t->meeting->base};
  TFC_TRY(status, tfc_session_create(s->graph, &options, &s->session));
  pthread_mutex_lock(&t->lock);
  if (t->restored) restored = tfc_str_dup(tfc_str_from(t->restored));
  const bool copied = restored || !t->restored;
  pthread_mutex_unlock(&t->lock);
  if (!copied) TFC_TRY(status, tfc_status_no_memory(NULL));
  if (restored) status = read_session(t, s, tfc_str_from(restored));
out:
  free(restored);
  free(path);
  tfc_execution_deinit(&execution);
  return status;
}

// Reads the text of a crossing (struct tfc_head_plan). INVALID_ARGUMENT: it makes no sense.
static tfc_status read_crossing(const struct tfc_graph *g, const char *text, struct tfc_crossing *out) {
  const size_t name = strcspn(text, " ");
  TFC_RETURN_IF_ERROR(tfc_graph_parse_node(g, (tfc_str){text, name}, &out->node));
  const tfc_op_role role = tfc_node_role(&g->nodes[out->node]);
  bool good = role == TFC_ROLE_SEND || role == TFC_ROLE_RECEIVE;
  uint32_t numbers = 0;
  for (const char *at = text + name; good && *at; numbers++) {
    char *end;
    const long long value = strtoll(at, &end, 10);
    good = end != at && value >= 0 && numbers <= TFC_MAX_RANK;
    if (good && numbers == 0) out->tail_us = (double)value * 1e-3;
    if (good && numbers > 0) out->shape.dims[out->shape.rank++] = value;
    at = end;
  }
  size_t bytes = 0;
  if (good && role == TFC_ROLE_RECEIVE) // else the shape has too many elements
    TFC_RETURN_IF_ERROR(tfc_tensor_bytes(TFC_UINT8, &out->shape, &bytes));
  return good && numbers ? NULL
                         : tfc_status_make(TFC_INVALID_ARGUMENT, "the crossing '%s' of a plan makes no sense", text);
}

static tfc_status read_plan(const struct tfc_served *s, struct served_plan *p) {
  if (p->read) return NULL;
  free(p->feeds), free(p->fetches), free(p->targets), free(p->crossings);
  p->crossings = calloc(p->crossing_count + 1u, sizeof *p->crossings);
  p->feeds = calloc(p->feed_count + 1u, sizeof *p->feeds);
  p->fetches = calloc(p->fetch_count + 1u, sizeof *p->fetches);
  p->targets = calloc(p->target_count + 1u, sizeof *p->targets);
  if (!p->feeds || !p->fetches || !p->targets || !p->crossings)
    return tfc_status_no_memory("serving a part of a graph");
  const char *at = p->names ? p->names->data : NULL;
  for (uint32_t i = 0; i < p->feed_count; i++, at += strlen(at) + 1)
    TFC_RETURN_IF_ERROR(tfc_graph_parse_output(s->graph, tfc_str_from(at), &p->feeds[i]));
  for (uint32_t i = 0; i < p->fetch_count; i++, at += strlen(at) + 1)
    TFC_RETURN_IF_ERROR(tfc_graph_parse_output(s->graph, tfc_str_from(at), &p->fetches[i]));
  for (uint32_t i = 0; i < p->target_count; i++, at += strlen(at) + 1)
    TFC_RETURN_IF_ERROR(tfc_graph_parse_node(s->graph, tfc_str_from(at), &p->targets[i]));
  for (uint32_t i = 0; i < p->crossing_count; i++, at += strlen(at) + 1)
    TFC_RETURN_IF_ERROR(read_crossing(s->graph, at, &p->crossings[i]));
  p->read = true;
  return NULL;
}

// Finds the graph and the plan of a step. *out: the caller calls `let_go` on it when the step has ended, also after an
// error.
static tfc_status prepare(struct tfc_member *t, uint32_t client, uint32_t session, uint32_t plan,
                          struct tfc_served **out, struct served_plan **out_plan) {
  struct tfc_served *s = find(t, client, session);
  struct served_plan *p = NULL;
  *out = s;
  if (!s) return tfc_status_make(TFC_INVALID_ARGUMENT, "a step of graph %u, which is not there", session);
  pthread_mutex_lock(&s->list_lock);
  for (size_t i = 0; i < s->plans.count && !p; i++)
    if (s->plans.data[i]->id == plan) p = s->plans.data[i];
  pthread_mutex_unlock(&s->list_lock);
  pthread_mutex_lock(&s->lock);
  tfc_status status = p ? open_session(t, s) : tfc_status_make(TFC_INVALID_ARGUMENT, "there is no plan %u", plan);
  if (!status) status = read_plan(s, p);
  pthread_mutex_unlock(&s->lock);
  *out_plan = p;
  return status;
}

static tfc_status run_plan(struct tfc_member *t, const struct tfc_served *s, const struct served_plan *p,
                           bool is_static, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                           const struct tfc_run_options *options) {
  struct tfc_run_options own = options ? *options : (struct tfc_run_options){0};
  bool in_fixed_order = false;
  own.in_fixed_order = &in_fixed_order;
  const struct tfc_run_spec spec = {.feeds = p->feeds,
                                    .feed_count = p->feed_count,
                                    .fetches = p->fetches,
                                    .fetch_count = p->fetch_count,
                                    .targets = p->targets,
                                    .target_count = p->target_count,
                                    .placement = s->placement,
                                    .crossings = p->crossings,
                                    .crossing_count = is_static ? p->crossing_count : 0,
                                    .adapt = TFC_ADAPT_WHERE_FASTER,
                                    .dynamic = !is_static};
  tfc_status status = tfc_session_run(s->session, &spec, feeds, fetches, &own);
  if (in_fixed_order) atomic_fetch_add(&t->static_parts, 1);
  atomic_fetch_add(&t->parts, 1);
  return status;
}

// Takes the arrivals of a step from the task's list.
static tfc_status take_arrivals(struct tfc_member *t, int64_t step, tfc_arrival_list *out) {
  size_t kept = 0;
  bool ok = true;
  pthread_mutex_lock(&t->lock);
  for (size_t i = 0; i < t->came_in.count; i++)
    if (t->came_in.data[i].step == step)
      ok &= tfc_array_push(out, t->came_in.data[i]);
    else
      t->came_in.data[kept++] = t->came_in.data[i];
  t->came_in.count = kept;
  pthread_mutex_unlock(&t->lock);
  return ok ? NULL : tfc_status_no_memory("serving a part of a graph");
}

tfc_status tfc_serve_record_write(struct tfc_member *t, struct tfc_serve_record *record, struct tfc_text *out) {
  tfc_arrival_list arrivals = {0};
  tfc_status status = take_arrivals(t, record->step, &arrivals);
  if (!status) status = tfc_part_trace_write(&record->trace, record->served->graph, &arrivals, out);
  tfc_array_free(&arrivals);
  return status;
}

void tfc_serve_record_deinit(struct tfc_member *t, struct tfc_serve_record *record) {
  if (record->trace.sink.buffers) tfc_part_trace_deinit(&record->trace);
  let_go(t, record->served);
  *record = (struct tfc_serve_record){0};
}

// Runs a plan. Of a traced step, `out` gets what this task records, and holds the reference to `s` from then on.
static tfc_status run_recorded(struct tfc_member *t, struct tfc_served **s, struct served_plan *p, bool is_static,
                               const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                               const struct tfc_run_options *options, struct tfc_serve_record *out) {
  tfc_status status = NULL;
  if (!options || !tfc_step_is_traced(options->step)) return run_plan(t, *s, p, is_static, feeds, fetches, options);
  const size_t known = atomic_load(&p->records), records = known ? known : 4 * (size_t)(*s)->graph->node_count + 1024;
  TFC_RETURN_IF_ERROR(tfc_part_trace_begin(&out->trace, t->devices->count, records));
  struct tfc_run_options own = *options;
  own.trace = &out->trace.sink;
  TFC_TRY(status, run_plan(t, *s, p, is_static, feeds, fetches, &own));
  // Iterations of loops have records of their own. The next step has room for as many as this one had, and some more.
  const size_t needs = tfc_part_trace_needs(&out->trace);
  if (needs > records) atomic_store(&p->records, needs + needs / 4);
  out->step = options->step;
  out->served = *s, *s = NULL;
out:
  return status;
}

tfc_status tfc_serve_here(struct tfc_member *t, uint32_t session, uint32_t plan, bool is_static,
                          const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                          const struct tfc_run_options *options, struct tfc_serve_record *out_record) {
  struct tfc_served *s = NULL;
  struct served_plan *p = NULL;
  if (plan == TFC_PLAN_SAVE || plan == TFC_PLAN_RESTORE)
    return run_state(t, options->step, plan == TFC_PLAN_RESTORE ? feeds : NULL, fetches);
  tfc_status status = prepare(t, t->rank, session, plan, &s, &p);
  if (!status) status = run_recorded(t, &s, p, is_static, feeds, fetches, options, out_record);
  let_go(t, s);
  return status;
}

static tfc_status send_value(struct tfc_member *t, uint32_t to, const struct tfc_head_tensor *key,
                             const struct tfc_tensor *value, bool more) {
  struct tfc_message *m = NULL;
  TFC_RETURN_IF_ERROR(tfc_message_of_tensor(key, value, &m));
  m->more = more;
  return tfc_member_send(t, to, m);
}

tfc_status tfc_serve_send(struct tfc_rendezvous *r, const struct tfc_rendezvous_key *key, tfc_str name,
                          const struct tfc_tensor *value, bool more) {
  struct tfc_member *t = ((struct tfc_meeting *)(void *)r)->owner;
  const struct tfc_head_tensor head = {.step = key->step,
                                       .sent_ns = tfc_step_is_traced(key->step) ? tfc_now_ns() : 0,
                                       .iteration = key->iteration,
                                       .edge = key->edge};
  tfc_status s = send_value(t, key->peer, &head, value, more);
  return s ? tfc_status_annotate(s, "'%.*s'", TFC_STR_ARG(name)) : NULL;
}

void tfc_serve_flush(struct tfc_rendezvous *r) {
  struct tfc_member *t = ((struct tfc_meeting *)(void *)r)->owner;
  tfc_status s = t->transport->type->flush(t->transport);
  if (s) tfc_member_give_up(t, s);
}

// The answer follows it.
static tfc_status send_fetch(struct tfc_member *t, const struct tfc_running *r, uint32_t i,
                             const struct tfc_tensor *value) {
  const struct tfc_head_tensor key = {
      .step = r->number, .iteration = TFC_FETCHED_FROM(t->rank), .edge = i | TFC_EDGE_FETCH};
  return send_value(t, r->client, &key, value, true);
}

static tfc_status run_foreign_state(struct tfc_member *t, const struct tfc_running *r) {
  const struct tfc_rendezvous_key key = {.step = r->number, .edge = TFC_EDGE_FEED};
  const bool restores = r->head.plan == TFC_PLAN_RESTORE;
  struct tfc_tensor feed = {0}, fetch = {0};
  tfc_status status = NULL;
  if (restores && (!tfc_meeting_take(t->meeting, &key, &feed) || feed.dtype != TFC_UINT8))
    TFC_FAIL(status, TFC_INVALID_ARGUMENT, "a step came without its feed");
  TFC_TRY(status, run_state(t, r->number, restores ? &feed : NULL, &fetch));
  if (!restores) status = send_fetch(t, r, 0, &fetch);
out:
  tfc_tensor_release(&feed);
  tfc_tensor_release(&fetch);
  return status;
}

// Runs a step that another task has started.
static tfc_status run_foreign(struct tfc_member *t, struct tfc_running *r, struct tfc_serve_record *out_record) {
  tfc_status status = NULL;
  struct tfc_served *s = NULL;
  struct served_plan *p = NULL;
  struct tfc_tensor *feeds = NULL, *fetches = NULL;
  if (r->head.plan == TFC_PLAN_SAVE || r->head.plan == TFC_PLAN_RESTORE) return run_foreign_state(t, r);
  TFC_TRY(status, prepare(t, r->client, r->head.session, r->head.plan, &s, &p));
  feeds = calloc(p->feed_count + 1u, sizeof *feeds);
  fetches = calloc(p->fetch_count + 1u, sizeof *fetches);
  if (!feeds || !fetches) TFC_TRY(status, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < p->feed_count; i++) {
    const struct tfc_rendezvous_key key = {.step = r->number, .edge = i | TFC_EDGE_FEED};
    if (!tfc_meeting_take(t->meeting, &key, &feeds[i]) || feeds[i].dtype == TFC_DTYPE_NONE)
      TFC_FAIL(status, TFC_INVALID_ARGUMENT, "a step came without its feed %u", i);
  }
  const struct tfc_run_options options = {.deadline_ns = r->head.deadline_ns, .cancel = &r->cancel, .step = r->number};
  TFC_TRY(status, run_recorded(t, &s, p, r->head.is_static, feeds, fetches, &options, out_record));
  for (uint32_t i = 0; i < p->fetch_count && !status; i++) status = send_fetch(t, r, i, &fetches[i]);
out:
  for (uint32_t i = 0; feeds && i < p->feed_count; i++) tfc_tensor_release(&feeds[i]);
  for (uint32_t i = 0; fetches && i < p->fetch_count; i++) tfc_tensor_release(&fetches[i]);
  free(feeds);
  free(fetches);
  let_go(t, s);
  return status;
}

static void answer(struct tfc_member *t, const struct tfc_running *r, tfc_status status) {
  const struct tfc_head_done head = {.step = r->number, .code = (uint32_t)tfc_status_code(status)};
  struct tfc_message *m = NULL;
  tfc_status s = tfc_message_of(TFC_KIND_DONE, &head, sizeof head, tfc_str_from(tfc_status_message(status)), &m);
  if (!s) s = tfc_member_send(t, r->client, m);
  tfc_status_free(status);
  if (s) tfc_member_give_up(t, s);
}

// Sends the client what this task has recorded of a part that it has answered for.
static void send_trace(struct tfc_member *t, const struct tfc_running *r, struct tfc_serve_record *record) {
  struct tfc_text text = {0};
  struct tfc_buffer *body = NULL;
  struct tfc_message *m = NULL;
  tfc_status status = tfc_serve_record_write(t, record, &text);
  if (!status) status = tfc_buffer_create_host(text.size, &body);
  if (!status) memcpy(body->data, text.data, text.size);
  const struct tfc_head_done head = {.step = r->number, .code = (uint32_t)tfc_status_code(status)};
  tfc_status s = tfc_message_of(TFC_KIND_TRACE, &head, sizeof head, tfc_str_from(tfc_status_message(status)), &m);
  if (!s && body) m->body = body, m->body_size = text.size, body = NULL;
  if (!s) s = tfc_member_send(t, r->client, m);
  tfc_status_free(status);
  tfc_buffer_release(body);
  tfc_text_deinit(&text);
  if (s) tfc_member_give_up(t, s);
}

static void *work(void *arg) {
  struct tfc_member *t = arg;
  char name[TFC_TASK_TEXT];
  bool served = false;
  pthread_mutex_lock(&t->lock);
  for (;;) {
    // Polls for messages for a while, because the next step often follows soon.
    if (served && !t->queue && !t->attending && !atomic_load(&t->stop)) {
      const uint32_t seen = atomic_load(&t->arrivals);
      t->idle_threads++, t->attending++;
      pthread_mutex_unlock(&t->lock);
      tfc_member_attend(t, &t->arrivals, seen);
      pthread_mutex_lock(&t->lock);
      t->idle_threads--, t->attending--;
    }
    while (!t->queue && !atomic_load(&t->stop)) {
      t->idle_threads++;
      pthread_cond_wait(&t->work, &t->lock);
      t->idle_threads--;
    }
    struct tfc_running *r = t->queue;
    if (!r) break;
    t->queue = r->next;
    if (!t->queue) t->queue_last = &t->queue;
    r->next = t->running;
    t->running = r;
    pthread_mutex_unlock(&t->lock);
    tfc_member_note(t, "ran its part of step %lld of %s", (long long)tfc_step_count(r->number),
                    tfc_member_name_of(t, r->client, name));
    struct tfc_serve_record record = {0};
    if (t->options.has_script) tfc_gate_enter_dynamic(&t->gate); // this task's own steps may be static
    tfc_status status = run_foreign(t, r, &record);
    if (t->options.has_script) tfc_gate_leave(&t->gate, false);
    const bool traced = !status && record.served;
    tfc_meeting_end(t->meeting, r->number);
    if (traced) record.trace.here = (struct tfc_round_trip){r->came_ns, tfc_now_ns()};
    answer(t, r, status);
    if (traced) send_trace(t, r, &record);
    tfc_serve_record_deinit(t, &record);
    pthread_mutex_lock(&t->lock);
    for (struct tfc_running **at = &t->running; *at; at = &(*at)->next)
      if (*at == r) {
        *at = r->next;
        break;
      }
    free(r);
    served = true;
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

tfc_status tfc_serve_start(struct tfc_member *t, uint32_t client, const struct tfc_head_run *head) {
  TFC_RETURN_IF_ERROR(tfc_meeting_begin(t->meeting, head->step, head->oldest));
  struct tfc_running *r = calloc(1, sizeof *r);
  if (!r) return tfc_status_no_memory("serving a part of a graph");
  *r = (struct tfc_running){.number = head->step,
                            .came_ns = tfc_step_is_traced(head->step) ? tfc_now_ns() : 0,
                            .head = *head,
                            .client = client};
  tfc_status s = NULL;
  uint32_t queued = 1;
  pthread_mutex_lock(&t->lock);
  if (atomic_load(&t->stop)) { // this task is about to leave, and its threads are joined: nobody would run the step
    pthread_mutex_unlock(&t->lock);
    free(r);
    return NULL;
  }
  if (t->failure) atomic_store(&r->cancel, true);
  for (const struct tfc_running *q = t->queue; q; q = q->next) queued++;
  *t->queue_last = r;
  t->queue_last = &r->next;
  atomic_fetch_add(&t->arrivals, 1);
  if (queued > t->idle_threads) {
    pthread_t thread;
    if (t->threads.count == MOST_THREADS || !tfc_array_reserve(&t->threads, t->threads.count + 1) ||
        pthread_create(&thread, NULL, work, t) != 0)
      s = t->threads.count ? NULL : tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of threads: a step of another task");
    else
      (void)tfc_array_push(&t->threads, thread);
  }
  if (queued > t->attending) pthread_cond_signal(&t->work);
  pthread_mutex_unlock(&t->lock);
  return s;
}

void tfc_serve_abort(struct tfc_member *t, int64_t step) {
  bool runs = false;
  pthread_mutex_lock(&t->lock);
  for (int list = 0; list < 2; list++)
    for (struct tfc_running *r = list ? t->running : t->queue; r; r = r->next)
      if (r->number == step) atomic_store(&r->cancel, true), runs = true;
  pthread_mutex_unlock(&t->lock);
  if (!runs) return; // the step has already ended
  tfc_meeting_abort(t->meeting, step);
  tfc_resources_wake(t->resources);
}

void tfc_serve_forget(struct tfc_member *t, uint32_t client, uint32_t session) {
  struct tfc_served *found = NULL;
  pthread_mutex_lock(&t->lock);
  for (size_t i = 0; i < t->served.count && !found; i++) {
    if (t->served.data[i]->client != client || t->served.data[i]->number != session) continue;
    found = t->served.data[i];
    t->served.data[i] = t->served.data[--t->served.count];
  }
  pthread_mutex_unlock(&t->lock);
  let_go(t, found);
}

void tfc_serve_end(struct tfc_member *t) {
  pthread_mutex_lock(&t->lock);
  for (int list = 0; list < 2; list++)
    for (struct tfc_running *r = list ? t->running : t->queue; r; r = r->next) atomic_store(&r->cancel, true);
  atomic_store(&t->stop, true);
  pthread_cond_broadcast(&t->changed);
  pthread_cond_broadcast(&t->work);
  pthread_mutex_unlock(&t->lock);
  if (t->resources) tfc_resources_wake(t->resources);
  for (size_t i = 0; i < t->threads.count; i++) pthread_join(t->threads.data[i], NULL);
  t->threads.count = 0;
}

void tfc_serve_free(struct tfc_member *t) {
  tfc_array_free(&t->threads);
  for (size_t i = 0; i < t->served.count; i++) let_go(t, t->served.data[i]);
  tfc_array_free(&t->served);
}
