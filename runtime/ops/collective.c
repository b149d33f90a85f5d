// A round is one call of each member of a group. A call joins its group and its round. When all members of this task
// have called, their tensors are sent to the tasks that need them. When the pieces of the other tasks have come, the
// thread that brought the last piece computes the result. No thread waits.
//
// Sums of two tasks, or of small tensors: each task gets the parts of all tasks and adds them up. Otherwise task k adds
// up the k-th piece of the tensor and sends the sum to the others, so that a task sends each byte about twice, however
// many tasks there are.
//
// Task 0 knows who has joined which group, and tells all members when the group is complete.
#include "runtime/ops/collective.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/base/str.h"
#include "runtime/ops/collective_math.h"
#include "runtime/ops/collective_parts.h"

enum { JOIN, GROUP, PIECE, BREAK };
enum { FIRST, SUMMED, MOST_DIRECT = 16384 };

struct member {
  uint32_t task, device;
  int32_t rank, zero;
};
struct call { // a call of a member of this task that has no result yet
  struct call *next;
  struct tfc_kernel_ctx *ctx;
  struct tfc_collective_call how;
  struct tfc_tensor value, result;
  tfc_status status;
};
struct piece { // what another task has sent
  struct piece *next;
  uint32_t task;
  struct tfc_collective_head head;
  struct tfc_buffer *body;
  uint64_t size;
};
struct round {
  struct round *next;
  int32_t group;
  int64_t instance, turn;
  struct call *calls;
  uint32_t call_count, piece_count[2]; // number of pieces, by stage of a sum
  struct piece *pieces;
  bool begun, direct, summed;
  bool busy;                      // a thread computes without the lock
  const void **froms;             // for that thread: the data of each task, or of each member
  struct tfc_tensor part, result; // part: the sum of this task's members; result: what all members get
};
struct turn { // how often a device has called with this instance key
  int64_t instance, next;
  uint32_t device;
};
struct group {
  struct group *next;
  int32_t key, size;
  TFC_ARRAY(struct member) members; // in their order; set when the group is complete
  TFC_ARRAY(uint32_t) tasks;        // tasks of the members, ascending
  TFC_ARRAY(uint32_t) joined;       // devices of this task that have joined
  TFC_ARRAY(struct turn) turns;
  uint32_t own, own_count; // this task's place among the tasks, and how many members it has
  bool complete;
  char *broken; // why no call can succeed any more
};
struct tfc_collectives {
  struct tfc_object object;
  struct tfc_collective_wire *wire; // NULL: this is the only task
  pthread_mutex_t lock;
  struct group *groups, *gathering; // gathering: in task 0, all groups, complete or not
  struct round *rounds;
  struct call *answered; // calls to answer after the lock is released
};

static uint32_t own_rank(const struct tfc_collectives *c) {
  return c->wire ? c->wire->rank : 0;
}

// --- Answers ---------------------------------------------------------------------------------------------------------
static void answer(struct call *calls) {
  while (calls) {
    struct call *next = calls->next;
    tfc_status s = calls->status;
    if (!s) s = tfc_kernel_set_output(calls->ctx, 0, &calls->result);
    tfc_tensor_release(&calls->result);
    tfc_tensor_release(&calls->value);
    calls->ctx->done(calls->ctx, s);
    free(calls);
    calls = next;
  }
}
static void unlock_and_answer(struct tfc_collectives *c) {
  struct call *calls = c->answered;
  c->answered = NULL;
  pthread_mutex_unlock(&c->lock);
  answer(calls);
}

static void round_free(struct tfc_collectives *c, struct round *r) {
  for (struct round **at = &c->rounds; *at; at = &(*at)->next)
    if (*at == r) {
      *at = r->next;
      break;
    }
  while (r->pieces) {
    struct piece *p = r->pieces;
    r->pieces = p->next;
    tfc_buffer_release(p->body);
    free(p);
  }
  tfc_tensor_release(&r->part);
  tfc_tensor_release(&r->result);
  free(r->froms);
  free(r);
}

static struct group *group_of(struct group **list, int32_t key, bool create) {
  struct group *g = *list;
  while (g && g->key != key) g = g->next;
  if (g || !create) return g;
  g = calloc(1, sizeof *g);
  if (!g) return NULL;
  g->key = key;
  g->next = *list;
  return *list = g;
}

// The place of a member of this task in its group.
static uint32_t place_of(struct tfc_collectives *c, const struct tfc_collective_call *how) {
  const struct group *g = group_of(&c->groups, how->group, false);
  for (uint32_t m = 0; g && m < g->members.count; m++)
    if (g->members.data[m].task == own_rank(c) && g->members.data[m].device == how->device) return m;
  return 0;
}

// Ends the round: its calls get its result, or an error.
static void end_round(struct tfc_collectives *c, struct round *r, const char *error) {
  while (r->calls) {
    struct call *one = r->calls;
    r->calls = one->next;
    if (error)
      one->status = tfc_status_make(TFC_ABORTED, "%s", error);
    else
      one->status = tfc_collective_own(&one->how, place_of(c, &one->how), &r->result, &one->result);
    one->next = c->answered;
    c->answered = one;
  }
  round_free(c, r);
}

// --- Sending --------------------------------------------------------------------------------------------------
static tfc_status tell(struct tfc_collectives *c, uint32_t to, const struct tfc_collective_head *head, tfc_str rest,
                       struct tfc_buffer *body, uint64_t size) {
  return c->wire->send(c->wire, to, head, rest, body, size);
}

static void break_here(struct tfc_collectives *c, int32_t key, const char *why) {
  struct group *g = group_of(&c->groups, key, true);
  if (!g || g->broken) return;
  g->broken = tfc_format("collective operations of group %d have ended: %s", key, why);
  for (struct round *r = c->rounds, *next; r; r = next) {
    next = r->next;
    if (r->group == key && !r->busy) end_round(c, r, g->broken ? g->broken : "out of memory");
  }
}
static void break_group(struct tfc_collectives *c, int32_t key, const char *why) {
  const struct tfc_collective_head head = {.what = BREAK, .group = key};
  for (uint32_t r = 0; c->wire && r < c->wire->count; r++)
    if (r != c->wire->rank) tfc_status_free(tell(c, r, &head, tfc_str_from(why), NULL, 0));
  break_here(c, key, why);
}

// --- Groups ----------------------------------------------------------------------------------------------------------
static int by_place(const void *a, const void *b) {
  const struct member *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  if (x->task != y->task) return x->task < y->task ? -1 : 1;
  return x->device < y->device ? -1 : x->device > y->device;
}

static void advance(struct tfc_collectives *c, struct round *r);

// Returns a round whose members of this task have all called, and which has not begun; NULL: there is none.
static struct round *round_to_begin(const struct tfc_collectives *c, const struct group *g) {
  for (struct round *r = c->rounds; r; r = r->next)
    if (r->group == g->key && !r->begun && !r->busy && r->call_count == g->own_count) return r;
  return NULL;
}

static tfc_status take_group(struct tfc_collectives *c, const struct tfc_collective_head *head, tfc_str rest) {
  struct group *g = group_of(&c->groups, head->group, false);
  const uint32_t count = (uint32_t)head->size;
  if (head->size <= 0 || rest.size != count * sizeof(struct member) || !g || g->complete)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a group of collective operations that makes no sense");
  if (!tfc_array_resize(&g->members, count)) return tfc_status_no_memory("a group");
  memcpy(g->members.data, rest.data, rest.size);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t task = g->members.data[i].task;
    size_t at = 0;
    if (c->wire ? task >= c->wire->count : task)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "a group of collective operations with a task that does not exist");
    g->own_count += task == own_rank(c);
    while (at < g->tasks.count && g->tasks.data[at] < task) at++;
    if (at < g->tasks.count && g->tasks.data[at] == task) continue;
    if (!tfc_array_push(&g->tasks, task)) return tfc_status_no_memory("a group");
    memmove(&g->tasks.data[at + 1], &g->tasks.data[at], (g->tasks.count - 1 - at) * sizeof(uint32_t));
    g->tasks.data[at] = task;
  }
  while (g->own < g->tasks.count && g->tasks.data[g->own] != own_rank(c)) g->own++;
  g->complete = true;
  // It may end rounds, and release the lock for a time.
  for (struct round *r; (r = round_to_begin(c, g));) advance(c, r);
  return NULL;
}

// In task 0, adds a device of a task to its group.
static void gather(struct tfc_collectives *c, uint32_t task, const struct tfc_collective_head *head) {
  struct group *g = group_of(&c->gathering, head->group, true);
  const struct member one = {task, head->device, head->rank, 0};
  struct tfc_collective_head told = {.what = GROUP, .group = head->group, .size = head->size};
  char text[128];
  if (!g) {
    break_group(c, head->group, "out of memory");
    return;
  }
  if (!g->size) g->size = head->size;
  if (g->size != head->size || g->members.count == (size_t)g->size) {
    snprintf(text, sizeof text, g->size == head->size ? "it has more than %d members" : "its size is %d and %d",
             g->size, head->size);
    break_group(c, head->group, text);
    return;
  }
  if (!tfc_array_push(&g->members, one)) {
    break_group(c, head->group, "out of memory");
    return;
  }
  if (g->members.count < (size_t)g->size) return;
  qsort(g->members.data, g->members.count, sizeof one, by_place);
  for (size_t i = 1; i < g->members.count; i++)
    if (g->members.data[i].rank >= 0 && g->members.data[i].rank == g->members.data[i - 1].rank) {
      snprintf(text, sizeof text, "two of its members have the rank %d", g->members.data[i].rank);
      break_group(c, head->group, text);
      return;
    }
  const tfc_str all = {(const char *)g->members.data, g->members.count * sizeof one};
  bool here = false;
  for (size_t i = 0; i < g->members.count; i++) {
    const uint32_t to = g->members.data[i].task;
    bool told_already = false;
    for (size_t k = 0; k < i && !told_already; k++) told_already = g->members.data[k].task == to;
    if (told_already) continue;
    tfc_status s = NULL;
    if (to == own_rank(c))
      here = true;
    else
      s = tell(c, to, &told, all, NULL, 0);
    tfc_status_free(s);
  }
  tfc_status s = here ? take_group(c, &told, all) : NULL;
  if (s) break_group(c, head->group, tfc_status_message(s));
  tfc_status_free(s);
}

static tfc_status join(struct tfc_collectives *c, struct group *g, const struct tfc_collective_call *how) {
  for (size_t i = 0; i < g->joined.count; i++)
    if (g->joined.data[i] == how->device) return NULL;
  if (!tfc_array_push(&g->joined, how->device)) return tfc_status_no_memory("a collective operation");
  const struct tfc_collective_head head = {
      .what = JOIN, .group = how->group, .size = how->size, .rank = how->rank, .device = how->device};
  if (own_rank(c) != 0) return tell(c, 0, &head, (tfc_str){0}, NULL, 0);
  gather(c, 0, &head);
  return NULL;
}

// --- Rounds ----------------------------------------------------------------------------------------------------------
static struct round *round_of(struct tfc_collectives *c, int32_t group, int64_t instance, int64_t turn) {
  struct round *r = c->rounds;
  while (r && !(r->group == group && r->instance == instance && r->turn == turn)) r = r->next;
  if (r) return r;
  r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->group = group, r->instance = instance, r->turn = turn;
  r->next = c->rounds;
  return c->rounds = r;
}

static const struct piece *piece_of(const struct round *r, uint32_t task, uint32_t part) {
  const struct piece *p = r->pieces;
  while (p && !(p->task == task && p->head.part == part)) p = p->next;
  return p;
}

// Gets a buffer that begins with the tensor's elements: the tensor's own, or a copy; *out NULL: the tensor is empty.
static tfc_status whole_buffer(const struct tfc_tensor *t, struct tfc_buffer **out) {
  *out = NULL;
  if (!t->size) return NULL;
  if (t->buffer && t->data == t->buffer->data) {
    tfc_buffer_retain(*out = t->buffer);
    return NULL;
  }
  TFC_RETURN_IF_ERROR(tfc_buffer_create_host(t->size, out));
  memcpy((*out)->data, t->data, t->size);
  return NULL;
}

static void part_of_buffer_free(struct tfc_buffer *b) {
  tfc_buffer_release(b->owner);
  free(b);
}
// Makes a buffer of `size` bytes of another buffer, to which it keeps a reference.
static tfc_status part_of_buffer(struct tfc_buffer *whole, size_t begin, size_t size, struct tfc_buffer **out) {
  struct tfc_buffer *b = calloc(1, sizeof *b);
  if (!b) return tfc_status_no_memory("a collective operation");
  *b = (struct tfc_buffer){.references = 1,
                           .data = (char *)whole->data + begin,
                           .size = size,
                           .destroy = part_of_buffer_free,
                           .owner = whole};
  tfc_buffer_retain(whole);
  *out = b;
  return NULL;
}

static struct tfc_collective_head head_of(const struct round *r, uint32_t part, const struct tfc_tensor *t) {
  struct tfc_collective_head h = {.what = PIECE,
                                  .part = part,
                                  .group = r->group,
                                  .kind = r->calls->how.kind,
                                  .dtype = (uint32_t)t->dtype,
                                  .instance = r->instance,
                                  .turn = r->turn,
                                  .dim_count = t->shape.rank};
  for (int32_t d = 0; d < t->shape.rank; d++) h.dims[d] = t->shape.dims[d];
  return h;
}

enum { ALL_TASKS = UINT32_MAX };

// Sends the bytes [begin, begin + size) of a tensor to task `to` of the group; ALL_TASKS: to all others.
static tfc_status give(struct tfc_collectives *c, const struct group *g, const struct round *r, uint32_t to,
                       uint32_t part, const struct tfc_tensor *t, size_t begin, size_t size) {
  struct tfc_buffer *whole = NULL, *piece = NULL;
  const struct tfc_collective_head head = head_of(r, part, t);
  tfc_status s = NULL;
  TFC_TRY(s, whole_buffer(t, &whole));
  if (whole && size) TFC_TRY(s, part_of_buffer(whole, begin, size, &piece));
  for (size_t i = 0; i < g->tasks.count; i++)
    if (i != g->own && (to == ALL_TASKS || to == i))
      TFC_TRY(s, tell(c, g->tasks.data[i], &head, (tfc_str){0}, piece, piece ? size : 0));
out:
  tfc_buffer_release(piece);
  tfc_buffer_release(whole);
  return s;
}

static tfc_status other_tensor(const struct group *g, const struct piece *p) {
  return tfc_status_make(TFC_INVALID_ARGUMENT,
                         "members of group %d call different operations, or with tensors of different types or shapes, "
                         "for instance %lld",
                         g->key, (long long)p->head.instance);
}
static bool matches(const struct piece *p, const struct round *r, const struct tfc_tensor *like) {
  if (p->head.kind != (uint32_t)r->calls->how.kind || p->head.dtype != (uint32_t)like->dtype ||
      p->head.dim_count != like->shape.rank)
    return false;
  for (int32_t d = 0; d < like->shape.rank; d++)
    if (p->head.dims[d] != like->shape.dims[d]) return false;
  return true;
}

// --- Sums ------------------------------------------------------------------------------------------------------------
static int64_t chunk_begin(const struct group *g, int64_t elements, size_t task) {
  return elements / (int64_t)g->tasks.count * (int64_t)task +
         elements % (int64_t)g->tasks.count * (int64_t)task / (int64_t)g->tasks.count;
}

// Computes result[begin, end) from the parts of all tasks, in the order of the tasks. Called without the lock.
static void add_parts(const struct group *g, const struct round *r, int64_t begin, int64_t end) {
  const struct tfc_collective_call *how = &r->calls->how;
  const size_t bytes = tfc_dtype_size(how->dtype), skip = (size_t)begin * bytes;
  char *to = (char *)r->result.data + skip;
  const void *sum = NULL;
  if (begin == end) return;
  for (size_t i = 0; i < g->tasks.count; i++) {
    const void *from = i == g->own ? (char *)r->part.data + skip : r->froms[i];
    if (sum) tfc_collective_combine(how->math, how->dtype, to, sum, from, end - begin);
    sum = sum ? to : from;
  }
  if (sum != to) memcpy(to, sum, (size_t)(end - begin) * bytes);
  if (how->divides) tfc_collective_divide(how->dtype, to, end - begin, how->size);
}

// Computes the part of this task from its members' tensors.
static tfc_status add_own(const struct group *g, struct round *r) {
  const struct call *first = NULL;
  const uint32_t own = g->tasks.data[g->own];
  for (size_t m = 0; m < g->members.count; m++) {
    if (g->members.data[m].task != own) continue;
    const struct call *one = r->calls;
    while (one && one->how.device != g->members.data[m].device) one = one->next;
    if (!one) return tfc_status_make(TFC_INTERNAL, "a member of group %d has not called", g->key);
    if (!first) {
      first = one;
      tfc_tensor_share(&one->value, &r->part);
      if (!r->part.data || !one->value.buffer) TFC_RETURN_IF_ERROR(tfc_tensor_clone(&one->value, &r->part));
      continue;
    }
    const void *sum = r->part.data;
    struct tfc_tensor fresh = {0};
    if (r->part.buffer == first->value.buffer) {
      TFC_RETURN_IF_ERROR(tfc_tensor_create(first->how.dtype, &first->value.shape, &fresh));
      tfc_collective_combine(first->how.math, first->how.dtype, fresh.data, sum, one->value.data,
                             tfc_tensor_elements(&fresh));
      tfc_tensor_release(&r->part);
      r->part = fresh;
    } else {
      tfc_collective_combine(first->how.math, first->how.dtype, r->part.data, sum, one->value.data,
                             tfc_tensor_elements(&r->part));
    }
  }
  return NULL;
}

// Releases the lock to compute; `busy` keeps the round from being freed or continued meanwhile.
static void leave_lock(struct tfc_collectives *c, struct round *r) {
  r->busy = true;
  pthread_mutex_unlock(&c->lock);
}
static void take_lock(struct tfc_collectives *c, struct round *r) {
  pthread_mutex_lock(&c->lock);
  r->busy = false;
}

// Checks what the other tasks gave, and sets r->froms.
static tfc_status find_pieces(const struct group *g, struct round *r, uint32_t stage, int64_t elements) {
  const size_t bytes = tfc_dtype_size(r->calls->how.dtype);
  if (!r->froms) r->froms = calloc(g->tasks.count, sizeof *r->froms);
  if (!r->froms) return tfc_status_no_memory("a collective operation");
  for (size_t i = 0; i < g->tasks.count; i++) {
    if (i == g->own) continue;
    const struct piece *p = piece_of(r, g->tasks.data[i], stage);
    const size_t chunk = stage == SUMMED ? i : g->own;
    const int64_t wanted = r->direct ? elements : chunk_begin(g, elements, chunk + 1) - chunk_begin(g, elements, chunk);
    if (!p || !matches(p, r, &r->part) || p->size != (size_t)wanted * bytes)
      return p ? other_tensor(g, p) : tfc_status_make(TFC_INVALID_ARGUMENT, "a task gave two parts of a sum");
    r->froms[i] = p->body ? p->body->data : NULL;
  }
  return NULL;
}

static tfc_status begin_sum(struct tfc_collectives *c, struct group *g, struct round *r) {
  leave_lock(c, r);
  tfc_status s = add_own(g, r);
  if (!s) s = tfc_tensor_create(r->part.dtype, &r->part.shape, &r->result);
  take_lock(c, r);
  if (s) return s;
  const int64_t n = tfc_tensor_elements(&r->part);
  const size_t bytes = tfc_dtype_size(r->part.dtype);
  r->begun = true;
  r->direct = g->tasks.count <= 2 || r->part.size <= MOST_DIRECT;
  if (r->direct) return give(c, g, r, ALL_TASKS, FIRST, &r->part, 0, r->part.size);
  for (uint32_t i = 0; i < g->tasks.count && !s; i++) {
    const int64_t begin = chunk_begin(g, n, i), end = chunk_begin(g, n, i + 1u);
    if (i != g->own) s = give(c, g, r, i, FIRST, &r->part, (size_t)begin * bytes, (size_t)(end - begin) * bytes);
  }
  return s;
}

static tfc_status reduce(struct tfc_collectives *c, struct group *g, struct round *r, bool *out_ended) {
  const uint32_t others = (uint32_t)g->tasks.count - 1;
  if (!r->begun) TFC_RETURN_IF_ERROR(begin_sum(c, g, r));
  const int64_t n = tfc_tensor_elements(&r->part);
  const size_t bytes = tfc_dtype_size(r->part.dtype);
  const int64_t begin = r->direct ? 0 : chunk_begin(g, n, g->own), end = r->direct ? n : chunk_begin(g, n, g->own + 1u);
  if (!r->summed) {
    if (r->piece_count[FIRST] < others) return NULL;
    TFC_RETURN_IF_ERROR(find_pieces(g, r, FIRST, n));
    leave_lock(c, r);
    add_parts(g, r, begin, end);
    take_lock(c, r);
    r->summed = true;
    if (!r->direct)
      TFC_RETURN_IF_ERROR(
          give(c, g, r, ALL_TASKS, SUMMED, &r->result, (size_t)begin * bytes, (size_t)(end - begin) * bytes));
  }
  if (!r->direct) {
    if (r->piece_count[SUMMED] < others) return NULL;
    TFC_RETURN_IF_ERROR(find_pieces(g, r, SUMMED, n));
    leave_lock(c, r);
    for (size_t i = 0; i < g->tasks.count; i++) {
      const int64_t at = chunk_begin(g, n, i), size = chunk_begin(g, n, i + 1) - at;
      if (i != g->own && size) memcpy((char *)r->result.data + (size_t)at * bytes, r->froms[i], (size_t)size * bytes);
    }
    take_lock(c, r);
  }
  *out_ended = true;
  return NULL;
}

// --- Gathering and broadcasting --------------------------------------------------------------------------------------
static tfc_status find_tensors(const struct group *g, struct round *r) {
  const struct tfc_tensor *like = &r->calls->value;
  r->froms = calloc(g->members.count, sizeof *r->froms);
  if (!r->froms) return tfc_status_no_memory("a collective operation");
  for (uint32_t m = 0; m < g->members.count; m++) {
    const struct member *who = &g->members.data[m];
    if (who->task == g->tasks.data[g->own]) {
      const struct call *one = r->calls;
      while (one && one->how.device != who->device) one = one->next;
      if (one) r->froms[m] = one->value.data;
      continue;
    }
    const struct piece *p = piece_of(r, who->task, m);
    if (!p) return tfc_status_make(TFC_INVALID_ARGUMENT, "a task gave two tensors for one member");
    if (!matches(p, r, like) || p->size != like->size) return other_tensor(g, p);
    r->froms[m] = p->body ? p->body->data : NULL;
  }
  struct tfc_shape shape = like->shape;
  shape.dims[0] *= g->size;
  return tfc_tensor_create(like->dtype, &shape, &r->result);
}

static tfc_status gather_all(struct tfc_collectives *c, struct group *g, struct round *r, bool *out_ended) {
  for (uint32_t m = 0; !r->begun && m < g->members.count; m++) {
    if (g->members.data[m].task != g->tasks.data[g->own]) continue;
    for (const struct call *one = r->calls; one; one = one->next)
      if (one->how.device == g->members.data[m].device)
        TFC_RETURN_IF_ERROR(give(c, g, r, ALL_TASKS, m, &one->value, 0, one->value.size));
  }
  r->begun = true;
  if (r->piece_count[FIRST] + r->piece_count[SUMMED] + g->own_count < g->members.count) return NULL;
  TFC_RETURN_IF_ERROR(find_tensors(g, r));
  const size_t size = r->calls->value.size;
  leave_lock(c, r);
  for (uint32_t m = 0; size && m < g->members.count; m++) memcpy((char *)r->result.data + m * size, r->froms[m], size);
  take_lock(c, r);
  *out_ended = true;
  return NULL;
}

static tfc_status broadcast(struct tfc_collectives *c, struct group *g, struct round *r, bool *out_ended) {
  const struct call *giver = NULL;
  for (const struct call *one = r->calls; one; one = one->next) {
    if (one->how.gives && giver) return tfc_status_make(TFC_INVALID_ARGUMENT, "two members broadcast");
    if (one->how.gives) giver = one;
  }
  if (giver) {
    TFC_RETURN_IF_ERROR(give(c, g, r, ALL_TASKS, FIRST, &giver->value, 0, giver->value.size));
    if (giver->value.buffer)
      tfc_tensor_share(&giver->value, &r->result);
    else
      TFC_RETURN_IF_ERROR(tfc_tensor_clone(&giver->value, &r->result));
  }
  r->begun = true;
  if (giver && r->pieces) return tfc_status_make(TFC_INVALID_ARGUMENT, "two members broadcast");
  if (!giver && !r->pieces) return NULL;
  const struct piece *p = r->pieces;
  if (p) {
    struct tfc_shape shape = {.rank = p->head.dim_count};
    size_t bytes = 0;
    for (int32_t d = 0; d < shape.rank; d++) shape.dims[d] = p->head.dims[d];
    TFC_RETURN_IF_ERROR(tfc_tensor_bytes((tfc_dtype)p->head.dtype, &shape, &bytes));
    if (bytes != p->size || p->head.kind != TFC_COLLECTIVE_BROADCAST) return other_tensor(g, p);
    if (bytes) {
      r->result = (struct tfc_tensor){(tfc_dtype)p->head.dtype, shape, p->body->data, bytes, p->body};
      tfc_buffer_retain(p->body);
    } else {
      TFC_RETURN_IF_ERROR(tfc_tensor_create((tfc_dtype)p->head.dtype, &shape, &r->result));
    }
  }
  for (const struct call *one = r->calls; one; one = one->next) {
    char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
    if (one->how.gives || (one->how.dtype == r->result.dtype && tfc_shape_equal(&one->how.shape, &r->result.shape)))
      continue;
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%s%s is broadcast where %s%s is expected",
                           tfc_dtype_name(r->result.dtype), tfc_shape_show(&r->result.shape, a),
                           tfc_dtype_name(one->how.dtype), tfc_shape_show(&one->how.shape, b));
  }
  *out_ended = true;
  return NULL;
}

// Continues a round as far as possible.
static void advance(struct tfc_collectives *c, struct round *r) {
  struct group *g = group_of(&c->groups, r->group, false);
  bool ended = false;
  tfc_status s = NULL;
  if (r->busy || !g || !g->complete || !r->calls || r->call_count < g->own_count) return;
  for (uint32_t seen = UINT32_MAX, count; !s && !ended; seen = count) { // pieces may come while the lock is not held
    count = r->piece_count[FIRST] + r->piece_count[SUMMED];
    if (count == seen || g->broken) break;
    switch (r->calls->how.kind) {
    case TFC_COLLECTIVE_REDUCE:
    case TFC_COLLECTIVE_REDUCE_SCATTER: s = reduce(c, g, r, &ended); break;
    case TFC_COLLECTIVE_GATHER:
    case TFC_COLLECTIVE_ALL_TO_ALL: s = gather_all(c, g, r, &ended); break;
    case TFC_COLLECTIVE_BROADCAST: s = broadcast(c, g, r, &ended); break;
    }
  }
  if (ended) {
    end_round(c, r, NULL);
    return;
  }
  if (g->broken) end_round(c, r, g->broken); // another thread broke the group while the lock was not held
  if (s) break_group(c, g->key, tfc_status_message(s));
  tfc_status_free(s);
}

// --- Calls and messages --------------------------------------------------------------------------------------------
// Checks that the call fits to the round's other calls.
static tfc_status check_beside(const struct round *r, const struct tfc_collective_call *how,
                               const struct tfc_tensor *value) {
  const struct call *first = r->calls;
  for (const struct call *one = r->calls; one; one = one->next)
    if (one->how.device == how->device)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "its device takes part twice at the same time");
  if (!first) return NULL;
  const bool same = first->how.kind == how->kind && first->how.math == how->math &&
                    first->how.divides == how->divides && first->how.dtype == how->dtype &&
                    (how->kind == TFC_COLLECTIVE_BROADCAST || tfc_shape_equal(&first->value.shape, &value->shape));
  return same ? NULL
              : tfc_status_make(TFC_INVALID_ARGUMENT,
                                "another member of group %d calls another operation, or with a tensor of another type "
                                "or shape, for instance %lld",
                                how->group, (long long)how->instance);
}

static int64_t *turn_of(struct group *g, int64_t instance, uint32_t device) {
  for (size_t i = 0; i < g->turns.count; i++)
    if (g->turns.data[i].instance == instance && g->turns.data[i].device == device) return &g->turns.data[i].next;
  if (!tfc_array_push(&g->turns, (struct turn){instance, 0, device})) return NULL;
  return &g->turns.data[g->turns.count - 1].next;
}

static tfc_status add_call(struct tfc_collectives *c, struct call *one) {
  const struct tfc_collective_call *how = &one->how;
  struct group *g = group_of(&c->groups, how->group, true);
  if (!g) return tfc_status_no_memory("a collective operation");
  if (g->broken) return tfc_status_make(TFC_ABORTED, "%s", g->broken);
  if (!g->size) g->size = how->size;
  if (g->size != how->size)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the size of group %d is %d, and was %d before", how->group, how->size,
                           g->size);
  bool is_member = !g->complete;
  for (size_t i = 0; i < g->joined.count; i++) is_member |= g->joined.data[i] == how->device;
  if (!is_member) return tfc_status_make(TFC_INVALID_ARGUMENT, "group %d has other members", how->group);
  int64_t *turn = turn_of(g, how->instance, how->device);
  struct round *r = turn ? round_of(c, how->group, how->instance, *turn) : NULL;
  if (!r) return tfc_status_no_memory("a collective operation");
  TFC_RETURN_IF_ERROR(check_beside(r, how, &one->value));
  ++*turn;
  one->next = r->calls;
  r->calls = one;
  r->call_count++;
  const int64_t instance = r->instance, number = r->turn;
  tfc_status s = join(c, g, how); // which may end the round
  if (s) {
    break_group(c, how->group, tfc_status_message(s));
    tfc_status_free(s);
  }
  for (r = c->rounds; r; r = r->next)
    if (r->group == how->group && r->instance == instance && r->turn == number) break;
  if (r) advance(c, r);
  return NULL;
}

tfc_status tfc_collectives_call(struct tfc_collectives *c, struct tfc_kernel_ctx *ctx,
                                const struct tfc_collective_call *how, const struct tfc_tensor *value) {
  TFC_RETURN_IF_ERROR(tfc_collective_check(how, value));
  struct call *one = calloc(1, sizeof *one);
  if (!one) return tfc_status_no_memory("a collective operation");
  *one = (struct call){.ctx = ctx, .how = *how};
  if (value) tfc_tensor_share(value, &one->value);
  pthread_mutex_lock(&c->lock);
  tfc_status s = add_call(c, one);
  unlock_and_answer(c);
  if (!s) return NULL;
  tfc_tensor_release(&one->value);
  free(one);
  return s;
}

static tfc_status take_piece(struct tfc_collectives *c, uint32_t from, const struct tfc_collective_head *head,
                             struct tfc_buffer *body, uint64_t size) {
  struct tfc_shape shape = {.rank = head->dim_count};
  size_t bytes = 0;
  if (head->dim_count < 0 || head->dim_count > TFC_MAX_RANK || head->dtype >= TFC_DTYPE_COUNT ||
      !tfc_dtype_is_plain((tfc_dtype)head->dtype))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a collective tensor whose description makes no sense");
  for (int32_t d = 0; d < shape.rank; d++) shape.dims[d] = head->dims[d];
  TFC_RETURN_IF_ERROR(tfc_tensor_bytes((tfc_dtype)head->dtype, &shape, &bytes));
  if (size > bytes) return tfc_status_make(TFC_INVALID_ARGUMENT, "a collective tensor that is longer than it says");
  const struct group *g = group_of(&c->groups, head->group, false);
  if (g && g->broken) return NULL;
  struct round *r = round_of(c, head->group, head->instance, head->turn);
  struct piece *p = r ? calloc(1, sizeof *p) : NULL;
  if (!p) return tfc_status_no_memory("a collective operation");
  *p = (struct piece){.next = r->pieces, .task = from, .head = *head, .body = body, .size = size};
  tfc_buffer_retain(body);
  r->pieces = p;
  r->piece_count[head->part == SUMMED]++;
  advance(c, r);
  return NULL;
}

tfc_status tfc_collectives_take(struct tfc_collectives *c, uint32_t from, const struct tfc_collective_head *head,
                                tfc_str rest, struct tfc_buffer *body, uint64_t size) {
  tfc_status s = NULL;
  char text[256];
  pthread_mutex_lock(&c->lock);
  if (head->what == JOIN && own_rank(c) == 0 && head->size > 0) {
    gather(c, from, head);
  } else if (head->what == GROUP && from == 0) {
    s = take_group(c, head, rest);
  } else if (head->what == PIECE) {
    s = take_piece(c, from, head, body, size);
  } else if (head->what == BREAK) {
    snprintf(text, sizeof text, "%.*s", (int)(rest.size < 255 ? rest.size : 255), rest.size ? rest.data : "");
    break_here(c, head->group, text);
  } else {
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "a collective operation that makes no sense");
  }
  unlock_and_answer(c);
  return s;
}

// --- The object ------------------------------------------------------------------------------------------------------
static const struct round *cancelled_round(struct tfc_collectives *c) {
  for (const struct round *r = c->rounds; r; r = r->next) {
    const struct group *g = group_of(&c->groups, r->group, false);
    for (const struct call *one = g && !g->broken ? r->calls : NULL; one; one = one->next)
      if (one->ctx->env->cancelled(one->ctx->env)) return r;
  }
  return NULL;
}

// A step was cancelled, so some of its members may never call: their groups are broken, and the other members' calls
// end.
static void wake(struct tfc_object *object) {
  struct tfc_collectives *c = (struct tfc_collectives *)(void *)object;
  pthread_mutex_lock(&c->lock);
  for (const struct round *r; (r = cancelled_round(c));)
    break_group(c, r->group, "the step of a member was cancelled, or has failed");
  unlock_and_answer(c);
}

static void groups_free(struct group *g) {
  while (g) {
    struct group *next = g->next;
    tfc_array_free(&g->members);
    tfc_array_free(&g->tasks);
    tfc_array_free(&g->joined);
    tfc_array_free(&g->turns);
    free(g->broken);
    free(g);
    g = next;
  }
}

static void destroy(struct tfc_object *object) {
  struct tfc_collectives *c = (struct tfc_collectives *)(void *)object;
  while (c->rounds) end_round(c, c->rounds, "the session has ended");
  answer(c->answered);
  groups_free(c->groups);
  groups_free(c->gathering);
  pthread_mutex_destroy(&c->lock);
  free(c);
}
static const struct tfc_object_type type = {.name = "collectives", .destroy = destroy, .wake = wake};

static tfc_status make(void *arg, struct tfc_object **out) {
  (void)arg;
  struct tfc_collectives *c = calloc(1, sizeof *c);
  if (!c) return tfc_status_no_memory("collective operations");
  c->object = (struct tfc_object){&type, 1};
  pthread_mutex_init(&c->lock, NULL);
  *out = &c->object;
  return NULL;
}

tfc_status tfc_collectives_of(struct tfc_resources *resources, struct tfc_collectives **out) {
  struct tfc_object *object = NULL;
  TFC_RETURN_IF_ERROR(
      tfc_resources_find_or_create(resources, TFC_STR("_task"), TFC_STR("collectives"), &type, make, NULL, &object));
  *out = (struct tfc_collectives *)(void *)object;
  return NULL;
}
void tfc_collectives_release(struct tfc_collectives *c) {
  if (c) tfc_object_release(&c->object);
}
void tfc_collectives_connect(struct tfc_collectives *c, struct tfc_collective_wire *wire) {
  c->wire = wire;
}
