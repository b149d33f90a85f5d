// The standard input, output and error of the command are non-blocking pipes, which this process watches with poll,
// also when it writes: a command may answer before it has read everything, or read nothing at all, and neither may
// block this process.
#include "placer/measure/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/array.h"
#include "runtime/base/clock.h"

extern char **environ;

enum { TAIL = 400 }; // bytes: how much of the end of the program's stderr is kept
// A command may write faster than it is read, without end. So much is read before anything else is looked at; and one
// that has written so much since its stdin was closed will not end by itself.
enum { ONE_TURN = 1 << 20, FLOOD = 16 << 20 };
static const int64_t slice_ns = 50000000; // while it waits, it checks after each slice whether to stop

struct tfc_lines {
  pid_t pid;
  int in, out, err; // this process's ends of its stdin, stdout and stderr; -1: closed
  int stderr_to;
  TFC_ARRAY(char) text; // text that was read and not yet returned
  size_t given, seen;   // bytes of it that were returned; bytes that are known to contain no newline
  char tail[TAIL + 1];
  size_t tail_size;
};

static void close_end(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

tfc_status tfc_lines_start(const char *command, int stderr_to, struct tfc_lines **out) {
  tfc_status s = NULL;
  int ends[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  struct tfc_lines *l = calloc(1, sizeof *l);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, usual;
  if (!l) return tfc_status_no_memory(NULL);
  l->in = l->out = l->err = -1, l->stderr_to = stderr_to;
  for (int i = 0; i < 3; i++)
    if (pipe2(ends[i], O_CLOEXEC) != 0) TFC_FAIL(s, TFC_INTERNAL, "pipe: %s", strerror(errno));
  const int theirs[3] = {ends[0][0], ends[1][1], ends[2][1]};
  int ours[3] = {ends[0][1], ends[1][0], ends[2][0]};
  for (int i = 0; i < 3; i++)
    if (ours[i] <= 2 || theirs[i] <= 2) TFC_FAIL(s, TFC_INTERNAL, "stdin, stdout or stderr is closed");
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; i++) posix_spawn_file_actions_adddup2(&actions, theirs[i], i);
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  sigaddset(&usual, SIGINT);
  sigaddset(&usual, SIGTERM);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)command, NULL};
  int rc = posix_spawn(&l->pid, argv[0], &actions, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (rc) {
    l->pid = 0;
    TFC_FAIL(s, TFC_INTERNAL, "/bin/sh: %s", strerror(rc));
  }
  l->in = ours[0], l->out = ours[1], l->err = ours[2];
  ends[0][1] = ends[1][0] = ends[2][0] = -1;
  fcntl(l->in, F_SETFL, O_NONBLOCK);
  fcntl(l->out, F_SETFL, O_NONBLOCK);
  fcntl(l->err, F_SETFL, O_NONBLOCK);
  *out = l, l = NULL;
out:
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 2; k++) close_end(&ends[i][k]);
  free(l);
  return s;
}

// Writes to the command. If it has ended, the result is an error, and this process gets no SIGPIPE.
static ssize_t write_quietly(int fd, const char *data, size_t size) {
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  ssize_t n = write(fd, data, size);
  const int error = errno;
  if (n < 0 && error == EPIPE && !was_pending) {
    const struct timespec now = {0};
    while (sigtimedwait(&pipe_signal, NULL, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return n;
}

static void keep_tail(struct tfc_lines *l, const char *data, size_t size) {
  if (size > TAIL) data += size - TAIL, size = TAIL;
  if (l->tail_size + size > TAIL) {
    const size_t drop = l->tail_size + size - TAIL;
    memmove(l->tail, l->tail + drop, l->tail_size - drop);
    l->tail_size -= drop;
  }
  memcpy(l->tail + l->tail_size, data, size);
  l->tail_size += size;
}

// Returns how much it has read, at most about ONE_TURN.
static size_t read_stderr(struct tfc_lines *l) {
  char buffer[4096];
  ssize_t n = 0;
  size_t all = 0;
  while (l->err >= 0 && (n = read(l->err, buffer, sizeof buffer)) > 0) {
    keep_tail(l, buffer, (size_t)n);
    for (ssize_t done = 0, m; l->stderr_to >= 0 && done < n; done += m)
      if ((m = write(l->stderr_to, buffer + done, (size_t)(n - done))) <= 0) break;
    if ((all += (size_t)n) >= ONE_TURN) return all;
  }
  if (l->err >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) close_end(&l->err);
  return all;
}

// Reads what the command has written so far, up to ONE_TURN; what waits may be `longest` bytes. Closes l->out if the
// command has closed its stdout.
static tfc_status read_stdout(struct tfc_lines *l, size_t longest) {
  const size_t end = l->text.count + ONE_TURN;
  while (l->out >= 0 && l->text.count < end) {
    if (l->text.count > longest || !tfc_array_reserve(&l->text, l->text.count + 65536))
      return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "the command wrote a line of more than %zu bytes", longest);
    ssize_t n = read(l->out, l->text.data + l->text.count, 65536);
    if (n > 0) l->text.count += (size_t)n;
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n < 0 && errno == EAGAIN) return NULL;
    close_end(&l->out);
  }
  return NULL;
}

static bool next_line(struct tfc_lines *l, tfc_str *out) {
  if (l->seen < l->given) l->seen = l->given;
  const char *end = l->text.count > l->seen ? memchr(l->text.data + l->seen, '\n', l->text.count - l->seen) : NULL;
  if (!end) {
    l->seen = l->text.count;
    return false;
  }
  const size_t size = (size_t)(end - l->text.data) - l->given;
  *out = (tfc_str){l->text.data + l->given, size};
  l->given += size + 1;
  return true;
}

tfc_status tfc_lines_exchange(struct tfc_lines *l, tfc_str request, size_t longest, int64_t *left_ns,
                              const atomic_bool *cancel, tfc_str *out_line) {
  size_t written = 0;
  const size_t total = request.size ? request.size + 1 : 0;
  if (l->given) { // removes what was returned
    memmove(l->text.data, l->text.data + l->given, l->text.count - l->given);
    l->text.count -= l->given, l->given = l->seen = 0;
  }
  for (int64_t before = tfc_now_ns(), now;; before = now) {
    // Time in which this process was stopped (by Ctrl-Z, or because the machine was suspended) does not count.
    int64_t waited = (now = tfc_now_ns()) - before;
    if (waited > 4 * slice_ns) waited = slice_ns;
    *left_ns -= waited;
    if (cancel && atomic_load(cancel)) return tfc_status_make(TFC_CANCELLED, "interrupted");
    if ((written == total || l->in < 0) && next_line(l, out_line)) return NULL;
    if (l->out < 0) {
      if (next_line(l, out_line)) return NULL;
      return tfc_status_make(TFC_UNAVAILABLE, "the command has ended");
    }
    if (*left_ns <= 0) return tfc_status_make(TFC_DEADLINE_EXCEEDED, "the command does not answer");
    struct pollfd p[3] = {{.fd = l->out, .events = POLLIN},
                          {.fd = l->err, .events = POLLIN},
                          {.fd = written < total ? l->in : -1, .events = POLLOUT}};
    const int64_t wait = *left_ns < slice_ns ? *left_ns : slice_ns;
    const int rc = poll(p, 3, (int)(wait / 1000000) + 1);
    if (rc < 0 && errno != EINTR) return tfc_status_make(TFC_INTERNAL, "poll: %s", strerror(errno));
    if (rc <= 0) continue;
    if (p[1].revents) read_stderr(l);
    if (p[2].revents) {
      const bool end = written == request.size;
      const ssize_t n = write_quietly(l->in, end ? "\n" : request.data + written, end ? 1 : request.size - written);
      if (n > 0)
        written += (size_t)n;
      else if (n < 0 && errno != EAGAIN && errno != EINTR)
        close_end(&l->in); // the command reads no more, but it may still write
    }
    if (p[0].revents) TFC_RETURN_IF_ERROR(read_stdout(l, longest));
  }
}

static char *last_words(struct tfc_lines *l, const char *how, int number) {
  l->tail[l->tail_size] = 0;
  for (size_t n = l->tail_size; n > 0 && strchr("\r\n\t ", l->tail[n - 1]); n--) l->tail[n - 1] = 0;
  const char *line = strrchr(l->tail, '\n');
  line = line ? line + 1 : l->tail;
  return tfc_format(*line ? "%s %d: %s" : "%s %d", how, number, line);
}

char *tfc_lines_stop(struct tfc_lines *l, bool hung) {
  char *text = NULL;
  int status = 0;
  pid_t gone = 0;
  if (!l) return NULL;
  close_end(&l->in);
  const int64_t end = tfc_now_ns() + 5000000000;
  // Bytes that the command writes while it ends. They are read, because a command whose pipe is full cannot end.
  size_t dropped = 0;
  while (!hung && l->pid > 0 && tfc_now_ns() < end && dropped < FLOOD) {
    if (l->err >= 0) dropped += read_stderr(l);
    char bytes[4096];
    ssize_t n = 0;
    while (l->out >= 0 && dropped < FLOOD && (n = read(l->out, bytes, sizeof bytes)) > 0) dropped += (size_t)n;
    gone = waitpid(l->pid, &status, WNOHANG);
    if (gone != 0) break;
    tfc_sleep_ns(5000000);
  }
  if (l->pid > 0) {
    kill(-l->pid, SIGKILL); // the whole process group, with everything it started
    while (gone == 0 && waitpid(l->pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (l->err >= 0) read_stderr(l);
  if (gone > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 0)
    text = last_words(l, "it ended with code", WEXITSTATUS(status));
  else if (gone > 0 && WIFSIGNALED(status))
    text = last_words(l, "it was ended by signal", WTERMSIG(status));
  close_end(&l->out);
  close_end(&l->err);
  tfc_array_free(&l->text);
  free(l);
  return text;
}
