#include "cli/run_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"
#include "runtime/base/clock.h"
#include "runtime/base/str.h"
#include "runtime/io/events.h"

#define LOOK_NS 5000000000
#define WRITE_NS 10000000000

struct told { // what a task had told
  uint64_t steps;
  int64_t ns; // when it was told; 0: it has told nothing yet
};
struct run_status {
  const struct run_setup *setup;
  struct tfc_events *events;
  uint32_t count;
  int64_t looked_ns, written_ns;
  struct told *first, *looked, *written; // [tasks] at the beginning, at the last look, with the last events
  struct tfc_text text;
};

static void look(const struct run_status *status, struct told *out) {
  for (uint32_t r = 0; r < status->count; r++) out[r].steps = tfc_member_steps(status->setup->member, r, &out[r].ns);
}

// Steps a second between two looks. Negative: the task has told nothing new.
static double rate(const struct told *from, const struct told *to) {
  if (to->ns <= from->ns || to->steps < from->steps) return -1;
  return (double)(to->steps - from->steps) * 1e9 / (double)(to->ns - from->ns);
}

tfc_status run_status_open(const struct run_setup *setup, const char *folder, struct run_status **out) {
  struct run_status *status = calloc(1, sizeof *status);
  if (!status) return tfc_status_no_memory("the status of training");
  status->setup = setup;
  status->count = (uint32_t)setup->tasks->tasks.count;
  status->first = calloc(status->count, sizeof *status->first);
  status->looked = calloc(status->count, sizeof *status->looked);
  status->written = calloc(status->count, sizeof *status->written);
  tfc_status s = status->first && status->looked && status->written ? tfc_events_create(folder, &status->events)
                                                                    : tfc_status_no_memory("the status of training");
  if (s) return tfc_status_join(s, run_status_close(status));
  status->looked_ns = status->written_ns = tfc_now_ns();
  look(status, status->first);
  for (uint32_t r = 0; r < status->count; r++)
    if (!status->first[r].ns) status->first[r].ns = status->looked_ns; // training begins now, with step 0
  memcpy(status->looked, status->first, status->count * sizeof *status->first);
  memcpy(status->written, status->first, status->count * sizeof *status->first);
  *out = status;
  return NULL;
}

// Describes the rates since `from`, which becomes what tasks have told now.
static void describe(struct run_status *status, struct told *from) {
  const struct tfc_cluster_spec *tasks = status->setup->tasks;
  struct told now;
  status->text.size = 0;
  for (uint32_t r = 0; r < status->count; r++) {
    now.steps = tfc_member_steps(status->setup->member, r, &now.ns);
    const double a_second = rate(&from[r], &now);
    if (a_second < 0) continue;
    from[r] = now;
    tfc_text_printf(&status->text, "%s%s:%u %.*f %s", status->text.size ? ", " : "a second: ", tasks->tasks.data[r].job,
                    tasks->tasks.data[r].index,
                    a_second < 10    ? 2
                    : a_second < 100 ? 1
                                     : 0,
                    a_second, tfc_member_is_client(status->setup->member, r) ? "steps" : "parts of steps");
  }
}

const char *run_status_text(struct run_status *status) {
  const int64_t now = tfc_now_ns();
  if (now - status->looked_ns >= LOOK_NS) {
    status->looked_ns = now;
    describe(status, status->looked);
  }
  return status->text.failed || !status->text.size ? "" : status->text.data;
}

static tfc_status write_rates(const struct run_status *status, int64_t step, const struct told *now) {
  const struct tfc_cluster_spec *tasks = status->setup->tasks;
  for (uint32_t r = 0; r < status->count; r++) {
    char tag[128];
    const double a_second = rate(&status->written[r], &now[r]);
    if (a_second < 0) continue;
    if (r == tfc_member_rank(status->setup->member)) // as TensorFlow's training sessions name it
      TFC_RETURN_IF_ERROR(tfc_events_scalar(status->events, step, TFC_STR("global_step/sec"), (float)a_second));
    snprintf(tag, sizeof tag, "%s/%s/%u",
             tfc_member_is_client(status->setup->member, r) ? "steps_per_second" : "parts_of_steps_per_second",
             tasks->tasks.data[r].job, tasks->tasks.data[r].index);
    TFC_RETURN_IF_ERROR(tfc_events_scalar(status->events, step, tfc_str_from(tag), (float)a_second));
  }
  return NULL;
}

tfc_status run_status_write(struct run_status *status, int64_t step, const struct tfc_tensor *fetched, bool at_once) {
  const struct run_options *o = status->setup->options;
  const int64_t now_ns = tfc_now_ns();
  tfc_status s = NULL;
  if (!at_once && now_ns - status->written_ns < WRITE_NS) return NULL;
  struct told *now = calloc(status->count, sizeof *now);
  if (!now) return tfc_status_no_memory("the status of training");
  look(status, now);
  TFC_TRY(s, write_rates(status, step, now));
  for (uint32_t i = 0; i < o->fetches.count; i++)
    if (fetched[i].dtype == TFC_FLOAT && tfc_tensor_elements(&fetched[i]) == 1)
      TFC_TRY(s, tfc_events_scalar(status->events, step, tfc_str_from(o->fetches.items[i]),
                                   *(const float *)fetched[i].data));
  for (uint32_t r = 0; r < status->count; r++)
    if (rate(&status->written[r], &now[r]) >= 0) status->written[r] = now[r];
  status->written_ns = now_ns;
out:
  free(now);
  return s;
}

void run_status_say(struct run_status *status) {
  describe(status, status->first);
  if (!status->text.failed && status->text.size) tfc_say("%s", status->text.data);
}

tfc_status run_status_close(struct run_status *status) {
  if (!status) return NULL;
  tfc_status s = tfc_events_close(status->events);
  free(status->first);
  free(status->looked);
  free(status->written);
  tfc_text_deinit(&status->text);
  free(status);
  return s;
}
