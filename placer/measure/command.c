// Runs a user's program that measures. How errors are handled: a line that makes no sense, or that answers another
// request, costs only the requested reading, and the program continues, because each request and each answer is one
// line. If the program has ended, or does not answer in time, tfc ends it; that costs the reading, too, and the next
// reading starts the program again.
#include "placer/measure/command.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/measure/command_wire.h"
#include "placer/measure/lines.h"
#include "placer/model/placement_json.h"
#include "runtime/base/clock.h"

enum { STARTS = 4 };                  // the program is started once, and again at most three times
enum { LONGEST_READY = 1 << 20 };     // bytes of the line that says that the program is ready
static const double least_wait = 60;  // by default tfc waits at least so many seconds for an answer
static const double least_start = 10; // a program may take at least so many seconds to start, whatever the timeout is

struct tfc_command {
  struct tfc_command_options o;
  struct tfc_lines *lines; // NULL: not running
  struct tfc_command_ready ready;
  uint32_t starts;
  uint64_t next_id, late_id; // id of a request whose answer may still arrive late; 0: none
  double longest_s;
  struct tfc_text hello;
  char *folder, *last_words;
};

tfc_label tfc_command_label(const struct tfc_command *p) {
  return p->ready.label;
}
bool tfc_command_has_operations(const struct tfc_command *p) {
  return p->ready.operations;
}
uint32_t tfc_command_restarts(const struct tfc_command *p) {
  return p->starts ? p->starts - 1 : 0;
}

static double patience(const struct tfc_command *p) {
  return p->o.timeout_s > 0 ? p->o.timeout_s : fmax(least_wait, 10 * p->longest_s);
}

// The most bytes of an answer. A request has some bytes for each node (its name and its device); an answer may have a
// time for each step and, for each node, a record of its operation and records of its transfers, which are longer.
static size_t longest_answer(tfc_str request, uint32_t steps) {
  return LONGEST_READY + 64 * request.size + 32 * (size_t)steps;
}

static void end(struct tfc_command *p, bool hung) {
  free(p->last_words);
  p->last_words = tfc_lines_stop(p->lines, hung);
  p->lines = NULL;
}

// Exchanges the hello and ready lines.
static tfc_status greet(struct tfc_command *p) {
  tfc_status s = NULL;
  tfc_str line;
  int64_t left = (int64_t)(1e9 * fmax(least_start, patience(p)));
  TFC_TRY(s, tfc_lines_exchange(p->lines, (tfc_str){p->hello.data, p->hello.size}, LONGEST_READY, &left, p->o.cancel,
                                &line));
  TFC_TRY(s, tfc_command_read_ready(line, &p->ready));
out:
  return s;
}

// Starts the program until it is ready, as long as it may be started again. `why` (taken): the error that ended it
// before, or NULL.
static tfc_status start(struct tfc_command *p, tfc_status why) {
  while (p->starts < STARTS) {
    if (p->starts && p->o.say) {
      char *text = tfc_format("--measure-with: %s; the command is started again (%u of %d)", tfc_status_message(why),
                              p->starts, STARTS - 1);
      if (text) p->o.say(p->o.user, text);
      free(text);
    }
    tfc_status_free(why);
    why = NULL;
    p->starts++, p->late_id = 0;
    tfc_status s = tfc_lines_start(p->o.command, p->o.stderr_to, &p->lines);
    if (s) return s;
    why = greet(p);
    if (!why) return NULL;
    end(p, tfc_status_code(why) == TFC_DEADLINE_EXCEEDED);
    if (tfc_status_code(why) == TFC_CANCELLED) return why;
    if (p->last_words && tfc_status_code(why) == TFC_UNAVAILABLE) {
      tfc_status_free(why);
      why = tfc_status_make(TFC_UNAVAILABLE, "%s", p->last_words);
    }
  }
  tfc_status s = tfc_status_make(TFC_UNAVAILABLE,
                                 "--measure-with '%s': %s; it was started %d times: run it by hand with -v to see why",
                                 p->o.command, tfc_status_message(why), STARTS);
  tfc_status_free(why);
  return s;
}

tfc_status tfc_command_start(const struct tfc_command_options *options, struct tfc_command **out) {
  tfc_status s = NULL;
  struct tfc_command *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory(NULL);
  p->o = *options, p->next_id = 1;
  if (options->ask) { // there is no program to start
    p->ready = (struct tfc_command_ready){.label = TFC_LABEL_MEASURED};
    *out = p;
    return NULL;
  }
  p->folder = tfc_format("%s/tfc-measure-XXXXXX", options->temporary ? options->temporary : "/tmp");
  if (!p->folder) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (!mkdtemp(p->folder)) {
    s = tfc_status_make(TFC_DATA_LOSS, "%s: %s", p->folder, strerror(errno));
    p->folder[0] = 0; // there is no folder to remove
    goto out;
  }
  TFC_TRY(s, tfc_command_write_hello(&p->o, &p->hello));
  TFC_TRY(s, start(p, NULL));
  *out = p, p = NULL;
out:
  tfc_command_stop(p);
  return s;
}

// Waits for the answer to `id`. A late answer to the request before, whose reading has failed already, is skipped once.
static tfc_status converse(struct tfc_command *p, uint64_t id, tfc_str request, uint32_t steps,
                           struct tfc_command_answer *answer, bool *out_ended, bool *out_hung) {
  const size_t longest = longest_answer(request, steps);
  int64_t left = (int64_t)(1e9 * patience(p));
  for (int lines = 0;; lines++) {
    uint64_t got = 0;
    tfc_str line;
    tfc_status s = tfc_lines_exchange(p->lines, request, longest, &left, p->o.cancel, &line);
    const tfc_code code = tfc_status_code(s);
    if (s) {
      *out_ended = true, *out_hung = code != TFC_UNAVAILABLE;
      answer->state = TFC_RESULT_FAILED;
      if (lines && code == TFC_DEADLINE_EXCEEDED) *out_ended = false; // the program answered, but not this request
      return s;
    }
    s = tfc_command_read_answer(line, id, answer, &got);
    if (tfc_status_code(s) != TFC_OUT_OF_RANGE) return s;
    const bool late = p->late_id && got == p->late_id && !lines;
    p->late_id = id;
    if (!late) return s;
    tfc_status_free(s);
    request = (tfc_str){0};
    const int64_t grace = (int64_t)(1e9 * fmax(2, 3 * p->longest_s));
    if (left > grace) left = grace;
  }
}

// Writes the file without fsync: it is removed after the answer, so it need not survive a crash of the machine.
static tfc_status write_file(const char *path, const struct tfc_placement *placement) {
  struct tfc_text text = {0};
  TFC_RETURN_IF_ERROR(tfc_placement_format(placement, &text));
  FILE *file = fopen(path, "we");
  bool fine = file && fwrite(text.data, 1, text.size, file) == text.size;
  const int error = errno;
  if (file) fine &= fclose(file) == 0;
  tfc_text_deinit(&text);
  return fine ? NULL : tfc_status_make(TFC_DATA_LOSS, "%s: %s", path, strerror(error));
}

static tfc_status ask_here(const struct tfc_command *p, const struct tfc_placement *placement, uint32_t warmup,
                           uint32_t steps, struct tfc_command_answer *answer) {
  const int64_t begin = tfc_now_ns();
  free(answer->message);
  answer->message = NULL;
  tfc_status s = p->o.ask(p->o.ask_user, placement, warmup, steps, answer);
  answer->seconds = 1e-9 * (double)(tfc_now_ns() - begin);
  return s;
}

tfc_status tfc_command_ask(struct tfc_command *p, const struct tfc_placement *placement, uint32_t warmup,
                           uint32_t steps, struct tfc_command_answer *answer) {
  tfc_status s = NULL, lost = NULL;
  struct tfc_text request = {0};
  char *file = NULL;
  bool ended = false, hung = false;
  const uint64_t id = p->next_id++;
  if (p->o.cancel && atomic_load(p->o.cancel)) return tfc_status_make(TFC_CANCELLED, "interrupted");
  answer->step_us.count = answer->operations.count = answer->transfers.count = 0;
  if (p->o.ask) return ask_here(p, placement, warmup, steps, answer);
  if (!p->lines) {
    lost = tfc_status_make(TFC_UNAVAILABLE, "%s", p->last_words ? p->last_words : "the command has ended");
    TFC_TRY(s, start(p, lost));
  }
  if (!(file = tfc_format("%s/%llu.json", p->folder, (unsigned long long)id))) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, write_file(file, placement));
  TFC_TRY(s, tfc_command_write_request(id, placement, file, warmup, steps, &request));
  const int64_t begin = tfc_now_ns();
  lost = converse(p, id, (tfc_str){request.data, request.size}, steps, answer, &ended, &hung);
  answer->seconds = 1e-9 * (double)(tfc_now_ns() - begin);
  if (!lost && answer->state == TFC_RESULT_OK) p->late_id = 0;
  if (!lost || !ended) p->longest_s = fmax(p->longest_s, answer->seconds);
  if (tfc_status_code(lost) == TFC_CANCELLED) {
    s = lost;
  } else if (lost) {
    if (ended) end(p, hung);
    answer->state = TFC_RESULT_FAILED;
    free(answer->message);
    answer->message = hung && tfc_status_code(lost) == TFC_DEADLINE_EXCEEDED
                          ? tfc_format("no answer within %.3g s", answer->seconds)
                      : ended && p->last_words ? tfc_str_dup(tfc_str_from(p->last_words))
                                               : tfc_str_dup(tfc_str_from(tfc_status_message(lost)));
    tfc_status_free(lost);
    if (!answer->message) TFC_TRY(s, tfc_status_no_memory(NULL));
    if (ended) { // the next reading starts the program again, and reports that
      free(p->last_words);
      p->last_words = tfc_str_dup(tfc_str_from(answer->message));
    }
  }
out:
  if (file) unlink(file);
  free(file);
  tfc_text_deinit(&request);
  return s;
}

void tfc_command_stop(struct tfc_command *p) {
  if (!p) return;
  end(p, false);
  if (p->folder && p->folder[0]) rmdir(p->folder);
  free(p->folder);
  free(p->last_words);
  tfc_text_deinit(&p->hello);
  free(p);
}
