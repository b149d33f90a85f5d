#include "placer/measure/guard.h"

#include <pthread.h>
#include <stdlib.h>

#include "placer/measure/wire.h"
#include "runtime/exec/where.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // the plan must not be freed while it is examined
static const struct tfc_plan *watched;
static int answers;

static void *answer(void *arg) {
  sigset_t wanted;
  int got = 0;
  (void)arg;
  sigemptyset(&wanted);
  sigaddset(&wanted, TFC_GUARD_SIGNAL);
  while (sigwait(&wanted, &got) == 0) {
    pthread_mutex_lock(&lock);
    char *text = watched ? tfc_plan_where(watched) : NULL;
    struct tfc_pack p = {0};
    tfc_pack_str(&p, tfc_str_from(text ? text : ""));
    // The pipe is used without a lock: a worker that hangs sends nothing, and one that still sends is ended now anyway.
    tfc_status_free(tfc_wire_send(answers, TFC_WIRE_WHERE, &p));
    tfc_wire_free(&p.bytes);
    free(text);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

void tfc_guard_start(int fd) {
  pthread_t thread;
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, TFC_GUARD_SIGNAL);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  answers = fd;
  if (pthread_create(&thread, NULL, answer, NULL) == 0) pthread_detach(thread);
}

void tfc_guard_watch(const struct tfc_plan *plan) {
  pthread_mutex_lock(&lock);
  watched = plan;
  pthread_mutex_unlock(&lock);
}
