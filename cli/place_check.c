// Checks those of tfc-place's options that can be checked without the graph.
#include <stdlib.h>
#include <string.h>

#include "cli/device_list.h"
#include "cli/place.h"
#include "cli/program.h"
#include "cli/task.h"
#include "runtime/base/pattern.h"
#include "runtime/base/units.h"

// Checks that each text has the form "LEFT=RIGHT", with neither side empty.
static int check_pairs(const struct tfc_program *program, const char *flag, const struct tfc_texts *texts,
                       const char *form) {
  for (uint32_t i = 0; i < texts->count; i++) {
    const char *equals = strrchr(texts->items[i], '=');
    if (!equals || equals == texts->items[i] || !equals[1])
      return tfc_flags_error(program, "--%s needs %s, not '%s'", flag, form, texts->items[i]);
  }
  return 0;
}

static int check_pins(const struct tfc_program *program, const struct tfc_texts *pins) {
  int code = check_pairs(program, "pin", pins, "'REGEX=DEVICE'");
  for (uint32_t i = 0; i < pins->count && !code; i++) {
    const int size = (int)(strrchr(pins->items[i], '=') - pins->items[i]);
    char why[160];
    struct tfc_pattern *pattern = tfc_pattern_make(pins->items[i], (size_t)size, why, sizeof why);
    const bool made = pattern != NULL;
    tfc_pattern_free(pattern);
    if (made) continue;
    code = tfc_flags_error(program, "--pin %s: '%.*s' is no regular expression: %s", pins->items[i], size,
                           pins->items[i], why);
  }
  return code;
}

static int check_sizes(const struct tfc_program *program, const struct tfc_texts *texts) {
  for (uint32_t i = 0; i < texts->count; i++) {
    uint64_t bytes;
    tfc_status s = tfc_parse_bytes(tfc_str_from(strrchr(texts->items[i], '=') + 1), &bytes);
    if (!s) continue;
    int code = tfc_flags_error(program, "--memory %s: %s (sizes: 200MB, 1.5GiB, or a number of bytes)", texts->items[i],
                               tfc_status_message(s));
    tfc_status_free(s);
    return code;
  }
  return 0;
}

static int check_devices(const struct tfc_program *program, const struct place_options *o) {
  const bool tasks = o->cluster || cli_task_started();
  if (o->devices && tasks && strchr(o->devices, '/'))
    return 0; // these are TensorFlow's names, and each task looks up its own devices
  char *error = o->devices ? cli_device_list_error(o->devices, o->machine != NULL) : NULL;
  int code = error ? tfc_flags_error(program, "--devices %s: %s", o->devices, error) : 0;
  free(error);
  return code;
}

int place_check_cost_graph(const struct tfc_program *program, const struct place_options *o) {
  const struct {
    const char *flag;
    bool given;
  } flags_of_runs[] = {
      {"step", o->step != NULL},    {"fetch", o->fetches.count > 0}, {"target", o->targets.count > 0},
      {"init", o->inits.count > 0}, {"feed", o->feeds.count > 0},    {"checkpoint", o->checkpoint != NULL},
  };
  for (size_t i = 0; i < sizeof flags_of_runs / sizeof *flags_of_runs; i++)
    if (flags_of_runs[i].given)
      return tfc_flags_error(program, "--%s is not for a cost graph, which is not run: '%s' is one",
                             flags_of_runs[i].flag, o->graph);
  return 0;
}

int place_check_texts(const struct tfc_program *program, const struct place_options *o) {
  int code = check_devices(program, o);
  if (!code) code = check_pins(program, &o->request.pins);
  if (!code) code = check_pairs(program, "memory", &o->limits, "'DEVICE=SIZE'");
  if (!code) code = check_sizes(program, &o->limits);
  if (!code) code = check_pairs(program, "baseline", &o->request.baselines, "NAME=FILE");
  if (!code) code = check_pairs(program, "feed", &o->feeds, "NAME=FILE.npy or NAME=DTYPE[SHAPE]");
  int64_t run;
  if (!code && o->resume && !place_resume(o, &run))
    code = tfc_flags_error(program, "--resume %s: not a run's number (tfc-report list shows them)", o->resume);
  if (!code && o->resume && o->evaluate)
    code = tfc_flags_error(program, "--resume goes on with a search, and --evaluate searches nothing: leave one out");
  return code;
}

bool place_resume(const struct place_options *o, int64_t *out) {
  *out = o->resume ? -1 : 0;
  if (!o->resume || !o->resume[0]) return true;
  tfc_status s = tfc_parse_i64(tfc_str_from(o->resume), out);
  const bool fine = !s && *out > 0;
  tfc_status_free(s);
  return fine;
}

int place_check_elsewhere(const struct tfc_program *program, const struct place_options *o) {
  if (o->measure_timeout > 0 && !o->measure_with)
    return tfc_flags_error(program, "--measure-timeout is for --measure-with");
  if (!o->measure_with) return 0;
  if (!o->measure_with[0]) return tfc_flags_error(program, "--measure-with needs a command");
  if (!o->machine)
    return tfc_flags_error(program,
                           "--measure-with needs a machine: describe where the command runs steps with --machine "
                           "FILE.yaml");
  if (o->request.objective == TFC_OBJECTIVE_THROUGHPUT)
    return tfc_flags_error(program, "--measure-with measures steps one by one: --objective throughput is not for it; "
                                    "leave --measure-with out, and the loads are modelled");
  return 0;
}
