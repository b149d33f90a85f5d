#include "cli/restart.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/program.h"
#include "runtime/base/clock.h"

struct command {      // the command line of mpirun, with this program and its arguments except --restarts
  const char **words; // ended by two NULLs: there is room for one more
  char count[16], program[4096];
};

static bool make_command(uint32_t tasks, char **argv, struct command *out) {
  size_t given = 0, n = 0;
  while (argv[given]) given++;
  out->words = calloc(given + 9, sizeof *out->words);
  const ssize_t size = readlink("/proc/self/exe", out->program, sizeof out->program - 1);
  if (!out->words || size <= 0) return false;
  out->program[size] = 0;
  snprintf(out->count, sizeof out->count, "%u", tasks);
  const char *const begin[] = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", out->count, out->program};
  for (size_t i = 0; i < sizeof begin / sizeof *begin; i++) out->words[n++] = begin[i];
  for (size_t i = 1; i < given; i++) {
    if (!strcmp(argv[i], "--restarts"))
      i++;
    else if (strncmp(argv[i], "--restarts=", 11) != 0)
      out->words[n++] = argv[i];
  }
  return true;
}

// If a task is killed while the job starts, mpirun of Open MPI 4.1 sometimes waits for ever, although it has no process
// any more. So mpirun is ended if it has had no process for MOST_ALONE looks in a row; but only if it had a task on
// this host before, because if all tasks are on other hosts, it has no process here at all.
static const int64_t look_ns = INT64_C(1000000000);
enum { MOST_ALONE = 10 };

// Reads a process's name, state and parent from /proc/PID/stat, "PID (NAME) STATE PARENT ...". The name may have any
// characters.
static bool read_stat(const char *pid, char out_name[16], char *out_state, int *out_parent) {
  char path[300], text[256];
  snprintf(path, sizeof path, "/proc/%s/stat", pid);
  FILE *f = fopen(path, "r");
  if (!f) return false;
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  const char *begin = strchr(text, '('), *end = strrchr(text, ')');
  if (!begin || !end || end < begin) return false;
  snprintf(out_name, 16, "%.*s", (int)(end - begin - 1), begin + 1);
  return sscanf(end + 1, " %c %d", out_state, out_parent) == 2;
}

// Whether mpirun has a process that runs; true if that cannot be found out. Sets *began if a process of mpirun, also
// one that has ended, has the name of the program that mpirun starts.
static bool has_processes(pid_t mpirun, const char *program, bool *began) {
  bool any = false;
  char own[16]; // the system keeps so much of a name
  DIR *all = opendir("/proc");
  if (!all) return true;
  const char *slash = strrchr(program, '/');
  snprintf(own, sizeof own, "%.15s", slash ? slash + 1 : program);
  for (const struct dirent *e; (e = readdir(all));) {
    char name[16], state;
    int parent;
    if (e->d_name[0] < '1' || e->d_name[0] > '9' || !read_stat(e->d_name, name, &state, &parent)) continue;
    if (parent != (int)mpirun) continue;
    *began |= strcmp(name, own) == 0;
    any |= state != 'Z';
  }
  closedir(all);
  return any;
}

// mpirun passes SIGUSR1 on to all tasks at once, and waits for them: they save, and end with 130. To a signal that asks
// it to end, it would give them a second for that.
static const int64_t save_ns = INT64_C(30000000000); // the tasks take 20 s at most

// Waits for mpirun; false: there is nothing to wait for.
static bool wait_for(pid_t mpirun, const char *program, int *out_status) {
  bool began = false;      // it has been seen with a task
  int64_t cancelled = 0;   // when the job was told to stop; 0: it was not
  bool terminated = false; // it did not stop
  uint32_t alone = 0;
  int64_t next = tfc_now_ns() + look_ns;
  for (;;) {
    const pid_t gone = waitpid(mpirun, out_status, WNOHANG);
    if (gone == mpirun) return true;
    if (gone < 0 && errno != EINTR) return false;
    tfc_sleep_ns(20000000);
    if (!cancelled && atomic_load(tfc_program_cancel())) cancelled = tfc_now_ns(), kill(mpirun, SIGUSR1);
    if (cancelled && !terminated && tfc_now_ns() - cancelled > save_ns) terminated = true, kill(mpirun, SIGTERM);
    const bool due = tfc_now_ns() >= next;
    if (began && !due) continue;
    const bool has = has_processes(mpirun, program, &began); // until a task is seen at every turn: it may end soon
    if (!due) continue;
    next = tfc_now_ns() + look_ns;
    alone = has || !began ? 0 : alone + 1;
    if (alone != MOST_ALONE) continue;
    tfc_warn("all processes of mpirun have ended, and it has not: it is killed");
    kill(mpirun, SIGKILL);
  }
}

static int cannot_start(const char *what) {
  return tfc_program_fail(tfc_status_make(TFC_ABORTED, "%s: %s", what, strerror(errno)));
}

// Runs the job once and returns its exit code. If a signal ended mpirun or a process, the code is 4, as for any task
// that stops working.
static int start(const char *program, const struct command *c) {
  fflush(NULL);
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) return cannot_start("no process can be started");
  if (pid == 0) {
    setpgid(0, 0); // Ctrl-C reaches this program alone, which then lets the tasks save
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    execvp(c->words[0], (char *const *)(uintptr_t)c->words);
    fprintf(stderr, "%s: mpirun cannot be started: %s (Debian: openmpi-bin)\n", program, strerror(errno));
    _exit(1);
  }
  int status = 0;
  if (!wait_for(pid, c->program, &status)) return cannot_start("mpirun is lost");
  if (atomic_load(tfc_program_cancel())) return 130;
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 128 + 2) return 4;
  return WEXITSTATUS(status);
}

int cli_restart(const struct cli_restart *r) {
  struct command c = {0};
  int code = 1;
  if (!make_command(r->tasks, r->argv, &c)) {
    free(c.words);
    return tfc_program_fail(tfc_status_no_memory(NULL));
  }
  size_t words = 0;
  while (c.words[words]) words++;
  for (int64_t i = 0; i <= r->restarts; i++) {
    cli_failure_forget(r->folder);
    code = start(r->program, &c);
    const int own = code == 4 ? cli_failure_read(r->folder) : 0; // 4 may be that of another task
    if (own) code = own;
    // A task or a device that stopped working may work the next time; an error in the graph would only come again.
    if (code != 4 || atomic_load(tfc_program_cancel()) || i == r->restarts) break;
    tfc_say("the job has failed; restart %lld of %lld", (long long)(i + 1), (long long)r->restarts);
    if (r->again) c.words[words] = r->again(r->user);
  }
  free(c.words);
  return code;
}
