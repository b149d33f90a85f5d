#include "cli/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t child;
static void pass_on(int number) {
  if (child > 0) kill((pid_t)child, number);
}

static int say(const char *program, const struct tfc_guard *g, int status) {
  char host[64] = "";
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (gethostname(host, sizeof host - 1) != 0) host[0] = 0;
  fprintf(stderr, "%s: %s on %s was ended by signal %d (%s); the last it did: %s\n", program,
          g->name[0] ? g->name : "a task that had not joined", host[0] ? host : "an unknown host", WTERMSIG(status),
          strsignal(WTERMSIG(status)), g->last[0] ? g->last : "nothing so far");
  return 4;
}

bool tfc_guard_enter(const char *program, struct tfc_guard **out, int *out_code) {
  static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
  *out = NULL;
  struct tfc_guard *g = mmap(NULL, sizeof *g, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (g == MAP_FAILED) return true;
  const pid_t parent = getpid();
  fflush(NULL);
  const pid_t pid = fork();
  if (pid < 0) {
    munmap(g, sizeof *g);
    return true;
  }
  if (pid == 0) { // the child is killed when its guard dies
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(4);
    *out = g;
    return true;
  }
  child = pid;
  for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
    const struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    sigaction(passed[i], &action, NULL);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) break;
  *out_code = say(program, g, status);
  return false;
}
