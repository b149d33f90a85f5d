// The program's side of measuring: starts the worker, watches it, and starts another one if it is lost.
#include "placer/measure/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "placer/measure/guard.h"
#include "placer/measure/wire.h"
#include "profiler/lock.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/memory_left.h"
#include "runtime/base/sandbox.h"
#include "runtime/device/list_kinds.h"

extern char **environ;

struct tfc_measurer {
  struct tfc_measure_info info;
  struct tfc_lock *lock;
  struct tfc_pack setup; // the message, to set up the next worker
  char *program;
  double hang_seconds, setup_seconds, end_s, waited_s;
  const atomic_bool *cancel;
  bool answered;       // the last status came from the worker (and not from losing it)
  double longest_wait; // longest wait for a message so far
  int fd;
  pid_t pid;
  uint32_t restarts;
  uint64_t kills; // tfc_memory_kills when the worker was started
  tfc_wire_buffer message;
};

// --- The worker ------------------------------------------------------------------------------------------------------
static void end_worker(struct tfc_measurer *m, bool kill_it, int *out_status) {
  if (m->fd >= 0) close(m->fd), m->fd = -1; // at a message boundary, closing the pipe ends the worker
  if (m->pid > 0) {
    int64_t deadline = tfc_now_ns() + 2000000000;
    pid_t gone = 0;
    while (!kill_it && (gone = waitpid(m->pid, out_status, WNOHANG)) == 0 && tfc_now_ns() < deadline)
      tfc_sleep_ns(2000000);
    if (gone == 0) {
      kill(m->pid, SIGKILL);
      while (waitpid(m->pid, out_status, 0) < 0 && errno == EINTR) {
      }
    }
  }
  m->pid = 0;
}

static tfc_status start_worker(struct tfc_measurer *m) {
  int ends[2];
  char number[16], nodes[32];
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t blocked;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return tfc_status_make(TFC_INTERNAL, "socketpair: %s", strerror(errno));
  int far = ends[1] == 3 ? 4 : 3; // dup2 to another number than its own clears close-on-exec
  snprintf(number, sizeof number, "%d", far);
  snprintf(nodes, sizeof nodes, "%llu", (unsigned long long)tfc_untrusted_nodes());
  char *argv[] = {m->program, (char *)(uintptr_t) "--tfc-measuring-worker", number, tfc_untrusted() ? nodes : NULL,
                  NULL};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], far);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, 2, 1); // a worker must not write to stdout
  // Ctrl-C is handled by the parent: SIGINT is blocked until the worker ignores it.
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGHUP);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  m->kills = tfc_memory_kills();
  int rc = posix_spawn(&m->pid, m->program, &actions, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (rc) {
    close(ends[0]);
    m->pid = 0;
    return tfc_status_make(TFC_INTERNAL, "%s: cannot be started as the measuring process: %s", m->program,
                           strerror(rc));
  }
  m->fd = ends[0];
  return NULL;
}

// Returns for how many seconds to wait for a message: `hang_seconds`; near the end of the time only until that end or,
// if that is longer, three times the longest wait so far (at least 2 s).
static double patience(const struct tfc_measurer *m) {
  double left = m->end_s > 0 ? m->end_s - tfc_now_s() : INFINITY;
  return fmin(m->hang_seconds, fmax(left, fmax(2, 3 * m->longest_wait)));
}

static bool time_is_over(const struct tfc_measurer *m) {
  return m->end_s > 0 && tfc_now_s() >= m->end_s;
}

// Receives the next message. If it is a status message, returns that status.
static tfc_status receive(struct tfc_measurer *m, double seconds, uint32_t *out_type, struct tfc_unpack *out) {
  m->answered = false;
  TFC_RETURN_IF_ERROR(tfc_wire_receive(m->fd, (int64_t)(seconds * 1e9), m->cancel, out_type, &m->message));
  *out = (struct tfc_unpack){m->message.data, m->message.data + m->message.count, false};
  if (*out_type != TFC_WIRE_FAILED) return NULL;
  m->answered = true;
  uint32_t code = tfc_unpack_u32(out);
  tfc_str text = tfc_unpack_str(out);
  if (out->failed || code == TFC_OK || code > TFC_INTERNAL) code = TFC_INTERNAL;
  return tfc_status_make((tfc_code)code, "%.*s", TFC_STR_ARG(text));
}
// Receives the next message of type `wanted`, and skips heartbeats.
static tfc_status expect(struct tfc_measurer *m, enum tfc_wire_type wanted, double seconds, struct tfc_unpack *out) {
  uint32_t type;
  do TFC_RETURN_IF_ERROR(receive(m, seconds, &type, out));
  while (type == TFC_WIRE_BEAT);
  return type == (uint32_t)wanted ? NULL : tfc_status_make(TFC_INTERNAL, "an unexpected message");
}

// Asks a silent worker what its step waits for; NULL: it gave no answer.
static char *ask_where(struct tfc_measurer *m) {
  char *text = NULL;
  if (m->pid <= 0 || kill(m->pid, TFC_GUARD_SIGNAL)) return NULL;
  const double until = tfc_now_s() + 1;
  for (double left = 1; left > 0 && !text; left = until - tfc_now_s()) {
    uint32_t type = 0;
    struct tfc_unpack u;
    tfc_status s = receive(m, left, &type, &u);
    const bool ended = s != NULL;
    tfc_status_free(s);
    if (ended) break;
    if (type != TFC_WIRE_WHERE) continue; // another message: the worker continues to work
    tfc_str where = tfc_unpack_str(&u);
    if (!where.size || u.failed) break;
    text = tfc_str_dup(where);
  }
  return text;
}

// Describes how a lost worker died. *out_code: RESOURCE_EXHAUSTED if the system ended it for lack of memory, else
// ABORTED.
static char *cause(const struct tfc_measurer *m, int status, bool hung, double seconds, const char *where,
                   tfc_code *out_code) {
  *out_code = TFC_ABORTED;
  if (hung)
    return tfc_format("the measuring process gave no sign for %.0f s and was ended%s%s", seconds, where ? ": " : "",
                      where ? where : "");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && tfc_memory_kills() > m->kills) {
    *out_code = TFC_RESOURCE_EXHAUSTED;
    return tfc_format("out of memory: the system killed the measuring process (SIGKILL), because memory ran out");
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    return tfc_format("the measuring process was killed (SIGKILL): by the system where memory ran out, or by somebody");
  const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
  if (WIFSIGNALED(status))
    return tfc_format("the measuring process crashed: %s (SIG%s)", strsignal(WTERMSIG(status)), name ? name : "?");
  return tfc_format("the measuring process ended with code %d", WEXITSTATUS(status));
}

static tfc_status set_up_once(struct tfc_measurer *m, struct tfc_unpack *out, bool *out_died) {
  *out_died = false;
  TFC_RETURN_IF_ERROR(start_worker(m));
  m->answered = false;
  tfc_status s = tfc_wire_send(m->fd, TFC_WIRE_SETUP, &m->setup);
  if (!s) s = expect(m, TFC_WIRE_SETUP, m->setup_seconds, out);
  tfc_code code = tfc_status_code(s);
  if (!s || m->answered || (code != TFC_UNAVAILABLE && code != TFC_DEADLINE_EXCEEDED)) return s;
  int status = 0; // the code must differ from that for a missing device
  end_worker(m, code == TFC_DEADLINE_EXCEEDED, &status);
  *out_died = code == TFC_UNAVAILABLE;
  char *why = cause(m, status, code == TFC_DEADLINE_EXCEEDED, m->setup_seconds, NULL, &code);
  tfc_status_free(s);
  s = tfc_status_make(code, "loading and initialising the graph: %s", why ? why : "the process was lost");
  free(why);
  return s;
}

// Starts a second worker if the first one died, because the cause may have ended (a signal from outside, memory that
// another program needed).
static tfc_status set_up_worker(struct tfc_measurer *m, struct tfc_unpack *out) {
  bool died = false;
  tfc_status s = set_up_once(m, out, &died);
  if (!died) return s;
  tfc_log(TFC_LOG_WARNING, "%s; it is started again", tfc_status_message(s));
  tfc_status_free(s);
  m->restarts++;
  return set_up_once(m, out, &died);
}

// --- Creating --------------------------------------------------------------------------------------------------------
static void pack_tensor(struct tfc_pack *p, const struct tfc_tensor *t) {
  tfc_pack_u32(p, t->dtype);
  tfc_pack_u32(p, (uint32_t)t->shape.rank);
  for (int32_t d = 0; d < t->shape.rank; d++) tfc_pack_u64(p, (uint64_t)t->shape.dims[d]);
  if (t->dtype != TFC_STRING) {
    tfc_pack_array(p, t->data, t->size, 1);
    return;
  }
  struct tfc_pack strings = {0};
  for (int64_t i = 0; i < tfc_tensor_elements(t); i++) tfc_pack_str(&strings, tfc_tensor_get_string(t, i));
  if (!p->failed) p->failed = strings.failed;
  tfc_pack_array(p, strings.bytes.data, strings.bytes.count, 1);
  tfc_wire_free(&strings.bytes);
}

static void pack_setup(const struct tfc_measure_options *o, struct tfc_pack *p) {
  tfc_pack_str(p, tfc_str_from(o->graph));
  tfc_pack_str(p, tfc_str_from(o->devices));
  tfc_pack_str(p, tfc_str_from(o->checkpoint));
  struct tfc_text execution = {0};
  tfc_execution_format(&o->execution, &execution);
  tfc_pack_str(p, (tfc_str){execution.data, execution.size});
  if (execution.failed && !p->failed) p->failed = execution.size + 1;
  tfc_text_deinit(&execution);
  tfc_pack_str(p, tfc_str_from(o->tuning));
  tfc_pack_u32(p, o->feed_count);
  tfc_pack_u32(p, o->fetch_count);
  tfc_pack_u32(p, o->target_count);
  tfc_pack_u32(p, o->init_count);
  for (uint32_t i = 0; i < o->feed_count; i++) tfc_pack_str(p, o->feeds[i].name), pack_tensor(p, o->feeds[i].value);
  for (uint32_t i = 0; i < o->fetch_count; i++) tfc_pack_str(p, o->fetches[i]);
  for (uint32_t i = 0; i < o->target_count; i++) tfc_pack_str(p, o->targets[i]);
  for (uint32_t i = 0; i < o->init_count; i++) tfc_pack_str(p, o->inits[i]);
}

static void *copy_array(struct tfc_unpack *u, size_t size, uint32_t *out_count) {
  size_t count = 0;
  const void *data = tfc_unpack_array(u, size, &count);
  char *copy = malloc(count * size + 1);
  if (!copy) return u->failed = true, NULL;
  memcpy(copy, data, count * size);
  *out_count = (uint32_t)count;
  return copy;
}

static tfc_status read_info(struct tfc_unpack *u, struct tfc_measure_info *info) {
  uint32_t one = 0;
  info->device_count = tfc_unpack_u32(u);
  if (u->failed || info->device_count > TFC_MAX_DEVICES) return tfc_status_make(TFC_INTERNAL, "a broken message");
  if (!(info->devices = calloc(info->device_count + 1u, sizeof *info->devices)))
    return tfc_status_no_memory("measuring");
  for (uint32_t d = 0; d <= info->device_count; d++) {
    struct tfc_device_info *device = copy_array(u, sizeof *device, &one);
    if (device && one == 1) *(d < info->device_count ? &info->devices[d] : &info->whole) = *device;
    free(device);
  }
  tfc_str note = tfc_unpack_str(u);
  if (note.size && !(info->note = tfc_str_dup(note))) return tfc_status_no_memory("measuring");
  info->node_count = tfc_unpack_u32(u);
  info->is_static = tfc_unpack_u32(u);
  info->ops = copy_array(u, sizeof *info->ops, &info->op_count);
  info->done_by = copy_array(u, sizeof *info->done_by, &one);
  if (one != info->node_count) free(info->done_by), info->done_by = NULL;
  info->continued = copy_array(u, sizeof *info->continued, &info->continued_count);
  info->shared = copy_array(u, sizeof *info->shared, &info->shared_count);
  info->variables = copy_array(u, sizeof *info->variables, &info->variable_count);
  info->output_bytes = copy_array(u, sizeof *info->output_bytes, &info->output_count);
  info->work = copy_array(u, sizeof *info->work, &one);
  if (one != info->node_count) return tfc_status_make(TFC_INTERNAL, "a broken message");
  info->kind_count = tfc_unpack_u32(u);
  size_t cells = (size_t)info->kind_count * info->node_count;
  if (u->failed || (size_t)(u->end - u->at) < cells) return tfc_status_make(TFC_INTERNAL, "a broken message");
  if (!(info->supported = malloc(cells + 1))) return tfc_status_no_memory("measuring");
  for (size_t i = 0; i < cells; i++) info->supported[i] = u->at[i] != 0;
  u->at += cells;
  tfc_str tuning = tfc_unpack_str(u);
  if (tuning.size && !(info->tuning = tfc_str_dup(tuning))) return tfc_status_no_memory("measuring");
  uint32_t count = tfc_unpack_u32(u);
  if (u->failed || count > info->node_count) return tfc_status_make(TFC_INTERNAL, "a broken message");
  if (!(info->fallbacks = calloc(count + 1u, sizeof *info->fallbacks))) return tfc_status_no_memory("measuring");
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_measure_fallback *f = &info->fallbacks[info->fallback_count++];
    f->node = tfc_unpack_u32(u);
    if (!(f->reason = tfc_str_dup(tfc_unpack_str(u)))) return tfc_status_no_memory("measuring");
  }
  return u->failed ? tfc_status_make(TFC_INTERNAL, "a broken message") : NULL;
}

static tfc_status take_lock(struct tfc_measurer *m, const struct tfc_measure_options *o, const char *path) {
  const int64_t begin = tfc_now_ns();
  for (bool told = false;; told = true) {
    tfc_status s = tfc_lock_take(path, "measuring", &m->lock);
    if (tfc_status_code(s) != TFC_FAILED_PRECONDITION) {
      m->waited_s = 1e-9 * (double)(tfc_now_ns() - begin);
      if (m->end_s > 0) m->end_s += m->waited_s;
      return s;
    }
    tfc_status held = s;
    s = o->wait ? NULL
                : tfc_status_make(TFC_ABORTED,
                                  "another run measures on this machine, and two would disturb each other: %s; --wait "
                                  "waits until it ends",
                                  tfc_status_message(held));
    if (!s && !told) o->wait(o->wait_user, tfc_status_message(held));
    tfc_status_free(held);
    if (s) return s;
    if (m->cancel && atomic_load(m->cancel)) return tfc_status_make(TFC_CANCELLED, "interrupted");
    tfc_sleep_ns(100000000);
  }
}

tfc_status tfc_measurer_create(const struct tfc_measure_options *o, struct tfc_measurer **out) {
  tfc_status s = NULL;
  struct tfc_unpack u;
  char *lock = NULL;
  struct tfc_measurer *m = calloc(1, sizeof *m);
  if (!m) return tfc_status_no_memory("measuring");
  m->fd = -1, m->cancel = o->cancel;
  m->hang_seconds = o->hang_seconds > 0 ? o->hang_seconds : 60;
  // Loading and initialising a graph sends no heartbeat until it has ended.
  m->setup_seconds = fmax(m->hang_seconds, 60);
  // Preparing a graph for a GPU times its convolutions, which takes minutes for hundreds of shapes.
  if (tfc_device_list_may_run_on_its_own(o->devices)) m->setup_seconds *= 5;
  m->end_s = o->end_s;
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n > 0 ? n : 0] = 0;
  if (!(m->program = tfc_str_dup(tfc_str_from(o->program ? o->program : self)))) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (!o->lock) TFC_TRY(s, tfc_lock_path("tfc-measuring.lock", &lock));
  TFC_TRY(s, take_lock(m, o, o->lock ? o->lock : lock));
  pack_setup(o, &m->setup);
  TFC_TRY(s, set_up_worker(m, &u));
  TFC_TRY(s, read_info(&u, &m->info));
  *out = m, m = NULL;
out:
  tfc_measurer_free(m);
  free(lock);
  return s;
}

void tfc_measurer_free(struct tfc_measurer *m) {
  if (!m) return;
  int status;
  end_worker(m, false, &status);
  tfc_lock_release(m->lock);
  tfc_wire_free(&m->setup.bytes);
  tfc_wire_free(&m->message);
  free(m->info.devices);
  free(m->info.note);
  free(m->info.tuning);
  for (uint32_t i = 0; i < m->info.fallback_count; i++) free(m->info.fallbacks[i].reason);
  free(m->info.fallbacks);
  free(m->info.ops);
  free(m->info.done_by);
  free(m->info.continued);
  free(m->info.shared);
  free(m->info.variables);
  free(m->info.output_bytes);
  free(m->info.work);
  free(m->info.supported);
  free(m->program);
  free(m);
}

const struct tfc_measure_info *tfc_measurer_info(const struct tfc_measurer *m) {
  return &m->info;
}
double tfc_measurer_waited_s(const struct tfc_measurer *m) {
  return m->waited_s;
}
void tfc_measurer_set_end(struct tfc_measurer *m, double end_s) {
  m->end_s = end_s;
}

uint32_t tfc_measurer_restarts(const struct tfc_measurer *m) {
  return m->restarts;
}

// --- Batches ---------------------------------------------------------------------------------------------------------
struct pending { // the entries of a batch that are not yet measured, in the message's order
  uint32_t *entry;
  uint32_t count;
};

static void pack_batch(const struct tfc_measure_batch *b, const struct pending *left, uint32_t nodes,
                       struct tfc_pack *p) {
  uint32_t reference = TFC_NONE;
  for (uint32_t i = 0; i < left->count; i++)
    if (left->entry[i] == b->reference) reference = i;
  tfc_pack_u32(p, left->count);
  tfc_pack_u32(p, reference);
  tfc_pack_u32(p, b->warmup);
  tfc_pack_u32(p, b->settle);
  tfc_pack_u32(p, b->block);
  tfc_pack_u32(p, b->blocks);
  tfc_pack_u32(p, b->choose);
  tfc_pack_f64(p, b->choose_until_s);
  tfc_pack_f64(p, b->stop_ratio);
  tfc_pack_f64(p, b->best_us);
  tfc_pack_u32(p, b->trace);
  tfc_pack_u32(p, b->ignore_limits);
  tfc_pack_f64(p, b->deadline_s);
  for (uint32_t i = 0; i < left->count; i++) {
    const struct tfc_measure_entry *e = &b->entries[left->entry[i]];
    tfc_pack_u32(p, e->whole);
    tfc_pack_u32(p, e->plain);
    tfc_pack_u32(p, e->in_parts);
    tfc_pack_u32(p, e->in_flight);
    tfc_pack_u32(p, e->answers);
    tfc_pack_u32(p, e->stays);
    tfc_pack_array(p, e->placement, e->whole ? 0 : nodes, sizeof *e->placement);
    tfc_pack_array(p, e->sequence, e->sequence ? e->sequence_count : 0, sizeof *e->sequence);
  }
}

static tfc_status got_result(const struct pending *left, struct tfc_unpack *u, uint32_t *out_index, tfc_measured_fn fn,
                             void *user) {
  tfc_status s = NULL;
  struct tfc_measured m = {0};
  uint32_t *profile_step = NULL;
  void *arrays[4] = {0};
  struct tfc_step_profile *profiles = NULL;
  uint32_t index = tfc_unpack_u32(u);
  m.state = (tfc_result_state)tfc_unpack_u32(u);
  m.code = (tfc_code)tfc_unpack_u32(u);
  tfc_str text = tfc_unpack_str(u);
  char *message = text.size ? tfc_str_dup(text) : NULL;
  m.in_lanes = tfc_unpack_u32(u);
  m.variables_only = tfc_unpack_u32(u);
  m.by_records = tfc_unpack_u32(u);
  m.seconds = tfc_unpack_f64(u);
  m.ratio = tfc_unpack_f64(u);
  m.steps = arrays[0] = copy_array(u, sizeof *m.steps, &m.step_count);
  m.peak = arrays[1] = copy_array(u, sizeof *m.peak, &m.peak_count);
  m.transfers = arrays[2] = copy_array(u, sizeof *m.transfers, &m.transfer_count);
  m.done_by = arrays[3] = copy_array(u, sizeof *m.done_by, &m.done_by_count);
  if (!m.done_by_count) m.done_by = NULL;
  uint64_t count = tfc_unpack_u64(u);
  if (u->failed || index >= left->count || count > m.step_count) TFC_FAIL(s, TFC_INTERNAL, "a broken message");
  profiles = calloc(count + 1, sizeof *profiles);
  profile_step = calloc(count + 1, sizeof *profile_step);
  if (!profiles || !profile_step) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_step_profile *f = &profiles[i];
    uint32_t n = 0;
    profile_step[i] = tfc_unpack_u32(u);
    f->start_ns = (int64_t)tfc_unpack_u64(u);
    f->duration_ns = (int64_t)tfc_unpack_u64(u);
    f->allocated = tfc_unpack_u64(u);
    f->ops.data = copy_array(u, sizeof *f->ops.data, &n), f->ops.count = n;
    f->transfers.data = copy_array(u, sizeof *f->transfers.data, &n), f->transfers.count = n;
    f->busy.data = copy_array(u, sizeof *f->busy.data, &n), f->busy.count = n;
    f->works.data = copy_array(u, sizeof *f->works.data, &n), f->works.count = n;
    f->calls.data = copy_array(u, sizeof *f->calls.data, &n), f->calls.count = n;
    if (u->failed || profile_step[i] >= m.step_count) TFC_FAIL(s, TFC_INTERNAL, "a broken message");
    m.profile_count++;
  }
  m.entry = left->entry[index];
  m.message = message, m.profiles = profiles, m.profile_step = profile_step;
  *out_index = index;
  TFC_TRY(s, fn(user, &m));
out:
  for (uint32_t i = 0; profiles && i < count; i++) tfc_step_profile_deinit(&profiles[i]);
  for (int i = 0; i < 4; i++) free(arrays[i]);
  free(profiles);
  free(profile_step);
  free(message);
  return s;
}

// Runs the remaining entries until all are measured or the worker is lost; *out_at: the entry that it was working on.
static tfc_status run_some(struct tfc_measurer *m, const struct tfc_measure_batch *b, struct pending *left, bool *done,
                           uint32_t *out_at, double *out_patience, tfc_measured_fn fn, void *user, bool *out_mine) {
  struct tfc_pack p = {0};
  pack_batch(b, left, m->info.node_count, &p);
  tfc_status s = tfc_wire_send(m->fd, TFC_WIRE_BATCH, &p);
  tfc_wire_free(&p.bytes);
  while (!s) {
    uint32_t type, index = 0;
    struct tfc_unpack u;
    int64_t begin = tfc_now_ns();
    s = receive(m, *out_patience = patience(m), &type, &u);
    m->longest_wait = fmax(m->longest_wait, s ? 0 : 1e-9 * (double)(tfc_now_ns() - begin));
    if (s || type == TFC_WIRE_DONE) break;
    if (type == TFC_WIRE_BEAT) {
      *out_at = tfc_unpack_u32(&u);
    } else if (type == TFC_WIRE_RESULT) {
      s = got_result(left, &u, &index, fn, user);
      *out_mine = s != NULL;
      if (!s) done[index] = true, s = tfc_wire_send(m->fd, TFC_WIRE_ACK, NULL);
    } else {
      s = tfc_status_make(TFC_INTERNAL, "an unexpected message");
    }
  }
  return s;
}

tfc_status tfc_measurer_run(struct tfc_measurer *m, const struct tfc_measure_batch *b, tfc_measured_fn fn, void *user) {
  tfc_status s = NULL;
  struct pending left = {malloc((b->count + 1u) * sizeof *left.entry), b->count};
  bool *done = calloc(b->count + 1u, sizeof *done), *tried = calloc(b->count + 1u, sizeof *tried);
  if (!left.entry || !done || !tried) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < b->count; i++) left.entry[i] = i;
  while (left.count) {
    uint32_t at = TFC_NONE;
    double waited = m->hang_seconds;
    bool mine = false;
    if (m->fd < 0 && time_is_over(m)) { // the worker was lost, and there is no time for another one
      for (uint32_t i = 0; i < left.count; i++)
        TFC_TRY(s, fn(user, &(struct tfc_measured){.entry = left.entry[i],
                                                   .state = TFC_RESULT_CUT,
                                                   .message = "no time was left",
                                                   .ratio = (double)NAN}));
      break;
    }
    if (m->fd < 0) { // the last worker was lost
      struct tfc_unpack u;
      TFC_TRY(s, set_up_worker(m, &u));
    }
    memset(done, 0, b->count * sizeof *done);
    s = run_some(m, b, &left, done, &at, &waited, fn, user, &mine);
    if (!s) break;
    tfc_code code = tfc_status_code(s);
    bool hung = code == TFC_DEADLINE_EXCEEDED, lost = !m->answered && (hung || code == TFC_UNAVAILABLE);
    int status = 0;
    if (mine || !lost) {
      if (code == TFC_CANCELLED || mine) end_worker(m, true, &status);
      goto out;
    }
    tfc_status_free(s), s = NULL;
    char *where = hung ? ask_where(m) : NULL;
    end_worker(m, hung, &status);
    m->restarts++;
    char *why = cause(m, status, hung, waited, where, &code);
    free(where);
    struct pending rest = {left.entry, 0};
    for (uint32_t i = 0; i < left.count; i++) {
      if (done[i]) continue;
      uint32_t entry = left.entry[i];
      if ((i == at || at == TFC_NONE) && b->again && !hung && !tried[entry]) {
        if (why) tfc_log(TFC_LOG_WARNING, "%s; it is started again", why);
        tried[entry] = true;
        rest.entry[rest.count++] = entry;
        at = i;
      } else if (i == at || at == TFC_NONE) {
        struct tfc_measured lost_entry = {
            .entry = entry, .state = TFC_RESULT_FAILED, .code = code, .message = why, .ratio = (double)NAN};
        s = fn(user, &lost_entry);
        if (s) break;
        at = i; // there was no heartbeat, so the first entry counts as the cause
      } else {
        rest.entry[rest.count++] = entry;
      }
    }
    free(why);
    if (s) goto out;
    left.count = rest.count;
  }
out:
  free(left.entry);
  free(done);
  free(tried);
  return s;
}

static tfc_status links_once(struct tfc_measurer *m, double end_s, struct tfc_link_time **out, uint32_t *out_count) {
  struct tfc_unpack u;
  if (m->fd < 0) TFC_RETURN_IF_ERROR(set_up_worker(m, &u));
  struct tfc_pack p = {0};
  tfc_pack_f64(&p, end_s);
  tfc_status s = tfc_wire_send(m->fd, TFC_WIRE_LINKS, &p);
  tfc_wire_free(&p.bytes);
  if (s) return s;
  TFC_RETURN_IF_ERROR(expect(m, TFC_WIRE_LINKS, m->hang_seconds, &u));
  struct tfc_link_time *times = copy_array(&u, sizeof *times, out_count);
  if (u.failed) {
    free(times);
    return tfc_status_no_memory("measuring");
  }
  *out = times;
  return NULL;
}

tfc_status tfc_measurer_links(struct tfc_measurer *m, double end_s, struct tfc_link_time **out, uint32_t *out_count) {
  for (bool again = false;; again = true) {
    tfc_status s = links_once(m, end_s, out, out_count);
    tfc_code code = tfc_status_code(s);
    const bool hung = code == TFC_DEADLINE_EXCEEDED;
    if ((code != TFC_UNAVAILABLE && !hung) || m->answered) return tfc_status_annotate(s, "measuring links");
    int status = 0;
    end_worker(m, hung, &status);
    tfc_status_free(s);
    char *why = cause(m, status, hung, m->hang_seconds, NULL, &code); // no device is missing, so the code is another
    s = tfc_status_make(code, "measuring links: %s", why ? why : "the process was lost");
    free(why);
    if (again) return s;
    m->restarts++;
    tfc_log(TFC_LOG_WARNING, "%s; it is started again", tfc_status_message(s));
    tfc_status_free(s);
  }
}
