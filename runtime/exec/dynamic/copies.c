// Moves values to the devices that read them, by the devices' own copies. The operation that reads a value waits for
// its copy on its device. Until a copy is done it holds the memory that it reads and writes, so no other operation can
// reuse it.
//
// Copies to a device signal its timeline, in the order in which they were submitted. A copy is submitted together with
// the operation that waits for it, so that every queue has the work of two steps in the same order.
#include <stdlib.h>

#include "runtime/exec/dynamic/copies.h"
#include "runtime/exec/dynamic/kernels.h"
#include "runtime/exec/dynamic/ready.h"

// Copies that are under way hold memory: there are at most MOST_UNDER_WAY of them, and together they hold at most
// 1/MOST_PART of the memory of the smaller of the two devices.
enum { MOST_UNDER_WAY = 64, MOST_PART = 16 };
enum { SPIN_NS = 20000 };
static const int64_t patience_ns = 1000000000;

typedef tfc_status allocate_fn(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out);
struct tfc_run_copy {
  struct tfc_run_copy *next;
  struct tfc_tensor source, target; // the target has no buffer, only an address
  struct tfc_buffer *memory;        // the target's memory
  uint16_t from, to;
  uint32_t id;    // number of the plan's transfer, for traces
  uint64_t value; // the value of `to`'s timeline when the copy is done
};
struct tfc_run_copies {
  struct tfc_timeline *timelines;
  pthread_mutex_t lock; // guards the members below
  struct tfc_run_copy *first;
  uint32_t count;
  uint64_t bytes;
  allocate_fn *allocate[]; // [devices] the devices' own allocators
};

static void free_copy(struct tfc_run_copy *c) {
  tfc_tensor_release(&c->source);
  tfc_buffer_release(c->memory);
  free(c);
}

static bool is_done(const struct tfc_run_copies *x, const struct tfc_run_copy *c) {
  return tfc_semaphore_reached(x->timelines[c->to].semaphore, c->value);
}

static bool wait_for(const struct tfc_run_copies *x, const struct tfc_run_copy *c, int64_t timeout_ns) {
  tfc_status s = tfc_semaphore_wait(x->timelines[c->to].semaphore, c->value, SPIN_NS, timeout_ns);
  bool reached = s == NULL;
  tfc_status_free(s);
  return reached;
}

static void let_go(struct tfc_run_copies *x) { // the caller holds the lock
  for (struct tfc_run_copy **at = &x->first, *c; (c = *at);) {
    if (!is_done(x, c)) {
      at = &c->next;
      continue;
    }
    *at = c->next;
    x->count--;
    x->bytes -= c->source.size;
    free_copy(c);
  }
}

// Waits until no copy is under way, at most `timeout_ns` for each copy. Returns whether that freed memory.
static bool finish(struct tfc_run_copies *x, int64_t timeout_ns) {
  pthread_mutex_lock(&x->lock);
  const uint32_t before = x->count;
  bool in_time = true;
  for (const struct tfc_run_copy *c = x->first; c && in_time; c = c->next) in_time = wait_for(x, c, timeout_ns);
  let_go(x);
  const bool gave = x->count < before;
  pthread_mutex_unlock(&x->lock);
  return gave;
}

// An allocation that failed is repeated after the copies are done, which frees the memory that they hold.
static tfc_status allocate(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out) {
  const struct tfc_run *r = env->owner;
  allocate_fn *own = r->copies->allocate[env->device->index];
  tfc_status s = own(env, bytes, out);
  if (tfc_status_code(s) != TFC_RESOURCE_EXHAUSTED || !finish(r->copies, patience_ns)) return s;
  tfc_status_free(s);
  return own(env, bytes, out);
}

static tfc_status allocate_on(struct tfc_run *r, struct tfc_device *device, size_t bytes, struct tfc_buffer **out) {
  tfc_status s = device->driver->allocate(device, bytes, out);
  if (tfc_status_code(s) != TFC_RESOURCE_EXHAUSTED || !finish(r->copies, patience_ns)) return s;
  tfc_status_free(s);
  return device->driver->allocate(device, bytes, out);
}

tfc_status tfc_run_copies_begin(struct tfc_run *r) {
  const struct tfc_session *session = r->session;
  bool any = false;
  for (uint32_t d = 0; d < session->device_count; d++) any |= tfc_run_own_space(r, (uint16_t)d);
  if (r->nested) r->copies = r->parent->copies;
  if (any && !r->copies) {
    struct tfc_run_copies *x = calloc(1, sizeof *x + session->device_count * sizeof *x->allocate);
    if (!x) return tfc_status_no_memory("running a step");
    pthread_mutex_init(&x->lock, NULL);
    x->timelines = session->timelines;
    for (uint32_t d = 0; d < session->device_count; d++) x->allocate[d] = r->envs[d].allocate;
    r->copies = x;
  }
  for (uint32_t d = 0; any && d < session->device_count; d++)
    if (tfc_run_own_space(r, (uint16_t)d)) r->envs[d].allocate = allocate;
  return NULL;
}

void tfc_run_copies_finish(struct tfc_run *r) {
  if (r->copies && !r->nested) (void)finish(r->copies, -1);
}

void tfc_run_copies_end(struct tfc_run *r) {
  if (!r->copies || r->nested) return;
  tfc_run_copies_finish(r);
  pthread_mutex_destroy(&r->copies->lock);
  free(r->copies);
  r->copies = NULL;
}

// --- Sending -----------------------------------------------------------------------------------------------------
static const struct tfc_run_copy *find(const struct tfc_run_copy *c, const struct tfc_tensor *t, uint16_t to) {
  while (c && (c->to != to || c->source.buffer != t->buffer || c->source.data != t->data || c->source.size != t->size))
    c = c->next;
  return t->buffer ? c : NULL;
}

static void become(struct tfc_run_value *v, struct tfc_buffer *memory, uint16_t to) {
  v->t.data = memory->data;
  v->t.buffer = memory;
  v->location = to;
}

// Whether the value is on its way already, or is sent by this operation: one copy is enough.
static bool join(struct tfc_run_copies *x, struct tfc_run_value *v, struct tfc_run_sending *sending) {
  const struct tfc_run_copy *c = find(sending->made, &v->t, sending->to);
  pthread_mutex_lock(&x->lock);
  if (!c && (c = find(x->first, &v->t, sending->to)) && c->value > sending->arrival) sending->arrival = c->value;
  if (c) tfc_buffer_retain(c->memory);
  struct tfc_buffer *memory = c ? c->memory : NULL;
  pthread_mutex_unlock(&x->lock);
  if (!memory) return false;
  tfc_buffer_release(v->t.buffer);
  become(v, memory, sending->to);
  return true;
}

static uint64_t most_bytes(const struct tfc_run *r, uint16_t from, uint16_t to) {
  uint64_t a = r->session->devices[to]->info.memory, b = UINT64_MAX;
  if (from != TFC_PLAN_HOST) b = r->session->devices[from]->info.memory;
  return (a < b ? a : b) / MOST_PART;
}

static void make_way(struct tfc_run_copies *x, uint64_t bytes, uint64_t most) {
  pthread_mutex_lock(&x->lock);
  let_go(x);
  while (x->first && (x->count >= MOST_UNDER_WAY || bytes > most || x->bytes > most - bytes)) {
    (void)wait_for(x, x->first, -1);
    let_go(x);
  }
  pthread_mutex_unlock(&x->lock);
}

tfc_status tfc_run_send(struct tfc_run *r, const struct tfc_dnode *n, uint32_t slot, struct tfc_run_value *v,
                        struct tfc_run_sending *sending) {
  struct tfc_run_copies *x = r->copies;
  struct tfc_buffer *memory = NULL;
  if (v->t.size && join(x, v, sending)) return NULL;
  make_way(x, v->t.size, most_bytes(r, v->location, sending->to));
  TFC_RETURN_IF_ERROR(allocate_on(r, r->session->devices[sending->to], v->t.size, &memory));
  if (v->t.size) {
    struct tfc_run_copy *c = malloc(sizeof *c);
    if (!c) {
      tfc_buffer_release(memory);
      return tfc_status_no_memory("running a step");
    }
    *c = (struct tfc_run_copy){.next = sending->made,
                               .source = v->t,
                               .target = v->t,
                               .memory = memory,
                               .from = v->location,
                               .to = sending->to};
    c->id = tfc_run_transfer(r, n, slot, v->location);
    c->target.data = memory->data;
    c->target.buffer = NULL;
    tfc_buffer_retain(memory);
    sending->made = c;
  } else {
    tfc_buffer_release(v->t.buffer);
  }
  become(v, memory, sending->to);
  return NULL;
}

tfc_status tfc_run_submit(struct tfc_run *r, struct tfc_run_sending *sending) {
  struct tfc_timeline *timeline = &r->session->timelines[sending->to];
  struct tfc_device *device = r->session->devices[sending->to];
  struct tfc_run_copies *x = r->copies;
  while (sending->made) {
    struct tfc_run_copy *c = sending->made;
    const struct tfc_copy copy = {.source_device = c->from == TFC_PLAN_HOST ? NULL : r->session->devices[c->from],
                                  .target_device = device,
                                  .source = &c->source,
                                  .target = &c->target,
                                  .id = c->id,
                                  .fresh = true};
    c->value = timeline->last + 1;
    TFC_RETURN_IF_ERROR(device->driver->copy(device, &copy, r->step, NULL, 0,
                                             &(struct tfc_timepoint){timeline->semaphore, c->value}, 1));
    timeline->last = sending->arrival = c->value;
    sending->made = c->next;
    pthread_mutex_lock(&x->lock);
    struct tfc_run_copy **end = &x->first;
    while (*end) end = &(*end)->next;
    *end = c;
    c->next = NULL;
    x->count++;
    x->bytes += c->source.size;
    pthread_mutex_unlock(&x->lock);
  }
  return NULL;
}

void tfc_run_drop(struct tfc_run_sending *sending) {
  while (sending->made) {
    struct tfc_run_copy *c = sending->made;
    sending->made = c->next;
    free_copy(c);
  }
}

tfc_status tfc_run_await(struct tfc_run *r, uint16_t to, uint64_t arrival) {
  struct tfc_device *device = r->session->devices[to];
  const struct tfc_timepoint point = {r->session->timelines[to].semaphore, arrival};
  TFC_RETURN_IF_ERROR(device->driver->await ? device->driver->await(device, &point, 1)
                                            : tfc_semaphore_wait(point.semaphore, arrival, SPIN_NS, -1));
  return tfc_step_stopped(r->step) ? tfc_status_make(TFC_CANCELLED, "the step was cancelled") : NULL;
}

void tfc_run_leave(struct tfc_run *r, struct tfc_variable *v) {
  struct tfc_run_copies *x = r->copies;
  pthread_mutex_lock(&v->access);
  const struct tfc_buffer *written = v->value.buffer;
  pthread_mutex_unlock(&v->access);
  pthread_mutex_lock(&x->lock);
  for (const struct tfc_run_copy *c = x->first; c; c = c->next)
    if (c->source.buffer == written) (void)wait_for(x, c, -1);
  pthread_mutex_unlock(&x->lock);
}
