#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/paragraph.h"
#include "cli/progress.h"
#include "profiler/warnings.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/log.h"
#include "runtime/ops/blas_core.h"

static const char *program_name = "tfc";
static bool quiet, verbose;
static tfc_color color_choice;
static atomic_bool cancel, cut_off;
static volatile sig_atomic_t grace_s; // 0: work stops at the first signal
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// A step that was told to stop does so at the next operation. An operation that goes on for longer than STUCK_S (a
// pattern of 100,000 characters on a text of as many) would hold the program back; as the step is lost anyway, the
// program ends then. Not by SIGALRM: the grace, and the time of --untrusted, need that.
enum { STUCK_S = 3 };
static volatile sig_atomic_t in_step, has_timer;
static timer_t stuck_timer;

static void on_stuck(int signal_number) {
  (void)signal_number;
  static const char text[] = ": interrupted; an operation of the step does not end, so the program ends without it\n";
  if (!in_step) return;
  if (write(STDERR_FILENO, program_name, strlen(program_name)) > 0) {
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(130);
  }
  _exit(130);
}

// The step was told to stop just now. Called by signal handlers, too.
static void expect_end_of_step(void) {
  static const struct itimerspec once = {.it_value.tv_sec = STUCK_S};
  if (has_timer) timer_settime(stuck_timer, 0, &once, NULL);
}

void tfc_program_step(bool begins) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
  struct sigaction action = {.sa_handler = on_stuck, .sa_flags = SA_RESTART};
  if (begins && !has_timer) {
    sigemptyset(&action.sa_mask);
    sigaction(SIGRTMIN, &action, NULL);
    has_timer = timer_create(CLOCK_MONOTONIC, &event, &stuck_timer) == 0;
  }
  in_step = begins;
  // a signal that came before has armed no timer
  if (begins && atomic_load(grace_s ? &cut_off : &cancel)) expect_end_of_step();
}

// A sender that signals a whole process group (timeout(1), a shell, a job scheduler) may reach the program twice. So a
// signal within half a second of the first is part of it, and does not end the program before it has saved its work.
static void on_signal(int signal_number) {
  (void)signal_number;
  static _Atomic int64_t first_ms; // 0: tfc_program_stop was the first
  struct timespec now = {0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
  if (!atomic_exchange(&cancel, true)) {
    first_ms = ms;
    if (grace_s)
      alarm((unsigned)grace_s);
    else
      expect_end_of_step();
  } else if (first_ms && ms - first_ms > 500) {
    tfc_interrupt_end_child();
    _exit(130);
  }
}

static void on_end_of_grace(int signal_number) {
  (void)signal_number;
  atomic_store(&cut_off, true);
  expect_end_of_step();
}

void tfc_program_finish_steps(bool timed) {
  enum { GRACE_S = 20 }; // Slurm kills 30 s after SIGTERM
  tfc_interrupt_on(&cut_off);
  if (!timed || grace_s) return;
  struct sigaction action = {.sa_handler = on_end_of_grace, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, NULL);
  grace_s = GRACE_S;
  if (atomic_load(&cancel)) alarm(GRACE_S);
}
void tfc_program_forget_signal(void) {
  if (atomic_load(&cancel)) tfc_interrupt_on(NULL);
}
void tfc_program_stop(void) {
  if (atomic_exchange(&cancel, true)) return;
  if (grace_s)
    alarm((unsigned)grace_s);
  else
    expect_end_of_step();
}

// On a terminal, lines that are too long for it are broken between words. Elsewhere they stay whole for who searches
// them.
static void put_lines(char *line, int column) {
  if (!*line) fputc('\n', stderr);
  while (*line) {
    const size_t size = strcspn(line, "\n");
    const bool more = line[size] == '\n';
    line[size] = 0;
    if (column + (int)size <= CLI_COLUMNS) {
      fputs(line, stderr), fputc('\n', stderr);
    } else {
      const int blanks = (int)strspn(line, " ");
      fprintf(stderr, "%*s", blanks, "");
      cli_paragraph(stderr, line + blanks, column + blanks, blanks + 2, CLI_COLUMNS);
    }
    line += size + more, column = 0;
  }
}

static void print_message(const char *color, const char *label, const char *message) {
  struct tfc_text shown = {0};
  tfc_text_add_shown(&shown, tfc_str_from(message));
  char *text = shown.failed ? (char[]){"out of memory"} : shown.data ? shown.data : (char[]){""};
  pthread_mutex_lock(&lock);
  tfc_progress_hide();
  fprintf(stderr, "%s%s%s%s", tfc_paint(stderr, color), label, label[0] ? ": " : "", tfc_paint(stderr, "0"));
  if (strcmp(label, "error") != 0 && isatty(STDERR_FILENO))
    put_lines(text, label[0] ? (int)strlen(label) + 2 : 0);
  else
    fprintf(stderr, "%s\n", text);
  fflush(stderr);
  pthread_mutex_unlock(&lock);
  tfc_text_deinit(&shown);
}

static struct tfc_warnings warnings = TFC_WARNINGS_INIT;
struct tfc_warnings *tfc_program_warnings(void) {
  return &warnings;
}

static void on_log(void *user, tfc_log_level level, const char *message) {
  (void)user;
  if (level == TFC_LOG_DEBUG && !verbose) return;
  if (level == TFC_LOG_INFO && quiet) return;
  if (level == TFC_LOG_WARNING) tfc_warnings_add(&warnings, message);
  if (level >= TFC_LOG_WARNING)
    print_message(level == TFC_LOG_ERROR ? "1;31" : "1;33", level == TFC_LOG_ERROR ? "error" : "warning", message);
  else
    print_message("0", "", message);
}

void tfc_program_choose_blas(void) {
  const char *core = tfc_blas_better_core();
  if (!core || getenv("OPENBLAS_CORETYPE") || setenv("OPENBLAS_CORETYPE", core, 1) != 0) return;
  tfc_blas_choose_again();
  unsetenv("OPENBLAS_CORETYPE");
}

void tfc_program_start(const char *name, char **argv) {
  program_name = name;
  static char line[8192];
  setvbuf(stderr, line, _IOLBF, sizeof line);
  // Four virtual GPUs have about twenty streams. With CUDA's default of 8 hardware queues, streams would wait for each
  // other. CUDA reads this variable when it is initialised.
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const char *core = getenv("OPENBLAS_CORETYPE");
  if (core) {
    bool hush = false;
    for (char **a = argv; a && *a; a++) hush |= strcmp(*a, "-q") == 0 || strcmp(*a, "--quiet") == 0;
    char value[64];
    snprintf(value, sizeof value, "%s", core);
    if (unsetenv("OPENBLAS_CORETYPE") == 0) {
      if (!hush)
        fprintf(stderr,
                "%s: OPENBLAS_CORETYPE=%s is set; starting again\n"
                "  without it, so that OpenBLAS picks the kernels of this processor\n",
                name, value);
      execv("/proc/self/exe", argv);
      fprintf(stderr, "%s: warning: could not start again (%s); OpenBLAS keeps its %s kernels\n", name, strerror(errno),
              value);
    }
  }
  tfc_program_choose_blas();
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  static const int others[] = {SIGHUP, SIGUSR1}; // under nohup SIGHUP is already ignored, and stays so
  struct sigaction old;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (sigaction(others[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(others[i], &action, NULL);
  tfc_interrupt_on(&cancel);
  tfc_log_set(on_log, NULL);
}

char *tfc_program_command_line(void) {
  char text[4096];
  FILE *file = fopen("/proc/self/cmdline", "rb");
  size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  for (size_t i = 0; i + 1 < n; i++)
    if (text[i] == 0) text[i] = ' ';
  text[n] = 0;
  return strdup(text);
}

void tfc_program_set_output(bool is_quiet, bool is_verbose, tfc_color color) {
  quiet = is_quiet, verbose = is_verbose && !is_quiet, color_choice = color;
}
const atomic_bool *tfc_program_cancel(void) {
  return &cancel;
}
const atomic_bool *tfc_program_cut_off(void) {
  return &cut_off;
}
bool tfc_quiet(void) {
  return quiet;
}
size_t tfc_output_columns(void) {
  struct winsize window = {0};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col < CLI_COLUMNS) return CLI_COLUMNS;
  return window.ws_col;
}

int tfc_exit_code(tfc_status status) {
  // A closed queue also gives CANCELLED. The user cancelled only if a signal set `cancel`.
  bool closed = tfc_status_code(status) == TFC_CANCELLED && !atomic_load(&cancel);
  return closed ? 1 : tfc_status_exit_code(status);
}

int tfc_program_fail(tfc_status status) {
  if (!status) return 0;
  int code = tfc_exit_code(status);
  print_message("1;31", program_name, tfc_status_message(status));
  tfc_status_free(status);
  return code;
}

int tfc_program_finish(int code) {
  tfc_progress_hide();
  if (fflush(stdout) != 0 || ferror(stdout)) {
    print_message("1;31", program_name, "the result could not be written to standard output");
    return 6;
  }
  return code;
}

static int kept_stdout = -1;
void tfc_program_close_stdout(void) {
  fflush(stdout);
  int other = verbose ? dup(STDERR_FILENO) : open("/dev/null", O_WRONLY | O_CLOEXEC);
  kept_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (other >= 0 && kept_stdout >= 0) dup2(other, STDOUT_FILENO);
  if (other >= 0) close(other);
}
void tfc_program_open_stdout(void) {
  if (kept_stdout < 0) return;
  fflush(stdout);
  clearerr(stdout);
  dup2(kept_stdout, STDOUT_FILENO);
  close(kept_stdout);
  kept_stdout = -1;
}

void tfc_say(const char *format, ...) {
  char text[4096];
  va_list args;
  if (quiet) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  print_message("0", "", text);
}
void tfc_warn(const char *format, ...) {
  char text[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tfc_warnings_add(&warnings, text);
  print_message("1;33", "warning", text);
}

const char *tfc_paint(FILE *stream, const char *code) {
  static const struct {
    const char *code, *sequence;
  } known[] = {{"0", "\033[0m"},       {"1", "\033[1m"},       {"2", "\033[2m"},      {"1;31", "\033[1;31m"},
               {"1;33", "\033[1;33m"}, {"1;32", "\033[1;32m"}, {"1;36", "\033[1;36m"}};
  bool on = color_choice == TFC_COLOR_ALWAYS;
  if (color_choice == TFC_COLOR_AUTO) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    on = !(no && no[0]) && isatty(fileno(stream)) && !(term && strcmp(term, "dumb") == 0);
  }
  if (on)
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
      if (strcmp(known[i].code, code) == 0) return known[i].sequence;
  return "";
}
