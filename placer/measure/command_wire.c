#include "placer/measure/command_wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/model/json.h"

// --- Writing ---------------------------------------------------------------------------------------------------------
tfc_status tfc_command_write_hello(const struct tfc_command_options *o, struct tfc_text *t) {
  tfc_text_printf(t, "{\"format\": \"tfc-measure\", \"version\": 1, \"graph\": ");
  tfc_json_add_string(t, tfc_str_from(o->graph));
  if (o->machine) {
    tfc_text_printf(t, ", \"machine\": ");
    tfc_json_add_string(t, tfc_str_from(o->machine));
  }
  tfc_text_printf(t, ", \"devices\": [");
  for (uint32_t i = 0; i < o->device_count; i++) {
    if (i) tfc_text_printf(t, ", ");
    tfc_json_add_string(t, o->devices[i]);
  }
  tfc_text_printf(t, "]}");
  return t->failed ? tfc_status_no_memory("talking to a measuring program") : NULL;
}

tfc_status tfc_command_write_request(uint64_t id, const struct tfc_placement *p, const char *file, uint32_t warmup,
                                     uint32_t steps, struct tfc_text *t) {
  bool first = true;
  tfc_text_printf(t, "{\"id\": %llu, \"placement\": {", (unsigned long long)id);
  for (uint32_t i = 0; i < p->node_count; i++) {
    if (i) tfc_text_add(t, TFC_STR(", "));
    tfc_json_add_string(t, p->nodes[i].name);
    tfc_text_add(t, TFC_STR(": "));
    tfc_json_add_string(t, p->nodes[i].device);
  }
  tfc_text_add(t, TFC_STR("}, \"order\": {"));
  for (uint32_t i = 0; i < p->node_count; i++) {
    if (isnan(p->nodes[i].order)) continue;
    if (!first) tfc_text_add(t, TFC_STR(", "));
    first = false;
    tfc_json_add_string(t, p->nodes[i].name);
    tfc_text_add(t, TFC_STR(": "));
    tfc_json_add_number(t, p->nodes[i].order);
  }
  tfc_text_add(t, TFC_STR("}, \"file\": "));
  tfc_json_add_string(t, tfc_str_from(file));
  tfc_text_printf(t, ", \"warmup\": %u, \"steps\": %u}", warmup, steps);
  return t->failed ? tfc_status_no_memory("talking to a measuring program") : NULL;
}

// Makes an error message that quotes the beginning of the line.
static tfc_status not_json(tfc_str line, const char *wanted, const char *why) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "%s was expected, and came '%.*s'%s: %s", wanted,
                         (int)(line.size < 80 ? line.size : 80), line.data, line.size < 80 ? "" : "...", why);
}

static tfc_status parse(tfc_str line, const char *wanted, json_t **out) {
  json_error_t error;
  *out = json_loadb(line.data ? line.data : "", line.size, JSON_ALLOW_NUL, &error);
  if (!*out) return not_json(line, wanted, error.text);
  if (json_is_object(*out)) return NULL;
  json_decref(*out);
  *out = NULL;
  return not_json(line, wanted, "not an object");
}

tfc_status tfc_command_read_ready(tfc_str line, struct tfc_command_ready *out) {
  static const char wanted[] = "{\"ready\": true, ...}";
  tfc_status s = NULL;
  json_t *root = NULL;
  struct tfc_command_ready ready = {TFC_LABEL_MEASURED, false};
  tfc_str label = {0}, error = {0};
  bool is_ready = false;
  TFC_TRY(s, parse(line, wanted, &root));
  TFC_TRY(s, tfc_json_bool(root, "ready", &is_ready));
  TFC_TRY(s, tfc_json_bool(root, "operations", &ready.operations));
  TFC_TRY(s, tfc_json_string(root, "label", &label));
  if (!is_ready) {
    tfc_status_free(tfc_json_string(root, "error", &error));
    if (error.data) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "it is not ready: %.*s", TFC_STR_ARG(error));
    s = not_json(line, wanted, "it is not ready");
    goto out;
  }
  bool known = !label.data;
  for (int i = TFC_LABEL_MEASURED; i <= TFC_LABEL_MODELLED; i++)
    if (tfc_str_is(label, tfc_label_name((tfc_label)i))) ready.label = (tfc_label)i, known = true;
  if (!known) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "\"label\" is '%.*s'", TFC_STR_ARG(label));
  *out = ready;
out:
  json_decref(root);
  return s;
}

static const double most_us = 1e15; // 30 years: in nanoseconds this still fits into 64 bits

// Checks times of an operation or of a transfer; a start of NaN is not known.
static tfc_status check_times(double start_us, double time_us) {
  if (!(time_us >= 0) || time_us > most_us)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "no \"time_us\" of at least 0 and at most %g", most_us);
  if (fabs(start_us) > most_us) return tfc_status_make(TFC_INVALID_ARGUMENT, "\"start_us\" is no time within a step");
  return NULL;
}

static tfc_status read_operation(const json_t *item, struct tfc_command_operation *out) {
  *out = (struct tfc_command_operation){.start_us = (double)NAN, .time_us = (double)NAN};
  TFC_RETURN_IF_ERROR(tfc_json_string(item, "node", &out->node));
  TFC_RETURN_IF_ERROR(tfc_json_string(item, "device", &out->device));
  TFC_RETURN_IF_ERROR(tfc_json_number(item, "start_us", &out->start_us));
  TFC_RETURN_IF_ERROR(tfc_json_number(item, "time_us", &out->time_us));
  if (!out->node.data || !out->device.data) return tfc_status_make(TFC_INVALID_ARGUMENT, "no node or device");
  return check_times(out->start_us, out->time_us);
}

static tfc_status read_transfer(const json_t *item, struct tfc_command_transfer *out) {
  int64_t output = 0;
  *out = (struct tfc_command_transfer){.start_us = (double)NAN, .time_us = (double)NAN};
  TFC_RETURN_IF_ERROR(tfc_json_string(item, "node", &out->node));
  TFC_RETURN_IF_ERROR(tfc_json_string(item, "from", &out->from));
  TFC_RETURN_IF_ERROR(tfc_json_string(item, "to", &out->to));
  TFC_RETURN_IF_ERROR(tfc_json_i64(item, "output", &output));
  TFC_RETURN_IF_ERROR(tfc_json_number(item, "start_us", &out->start_us));
  TFC_RETURN_IF_ERROR(tfc_json_number(item, "time_us", &out->time_us));
  if (!out->node.data || !out->from.data || !out->to.data)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "no node, \"from\" or \"to\"");
  out->output = output < INT32_MIN || output > INT32_MAX ? INT32_MAX : (int32_t)output;
  return check_times(out->start_us, out->time_us);
}

static tfc_status read_list(const json_t *root, const char *name, const json_t **out) {
  *out = tfc_json_field(root, name);
  if (*out && !json_is_array(*out)) return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is not a list", name);
  for (size_t i = 0; *out && i < json_array_size(*out); i++)
    if (strcmp(name, "step_us") != 0 && !json_is_object(json_array_get(*out, i)))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\"[%zu] is not an object", name, i);
  return NULL;
}

static tfc_status read_times(const json_t *root, struct tfc_command_answer *a) {
  const json_t *steps, *operations, *transfers;
  double sum_us = 0;
  TFC_RETURN_IF_ERROR(read_list(root, "step_us", &steps));
  TFC_RETURN_IF_ERROR(read_list(root, "operations", &operations));
  TFC_RETURN_IF_ERROR(read_list(root, "transfers", &transfers));
  if (json_array_size(steps) == 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "no \"step_us\"");
  for (size_t i = 0; i < json_array_size(steps); i++) {
    const json_t *item = json_array_get(steps, i);
    const double us = json_is_number(item) ? json_number_value(item) : (double)NAN;
    if (!isfinite(us) || us <= 0 || us > most_us)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "\"step_us\"[%zu] is no time of a step", i);
    if (!tfc_array_push(&a->step_us, us)) return tfc_status_no_memory("talking to a measuring program");
  }
  for (size_t i = 0; i < json_array_size(operations); i++) {
    struct tfc_command_operation row;
    tfc_status s = read_operation(json_array_get(operations, i), &row);
    if (s) return tfc_status_annotate(s, "\"operations\"[%zu]", i);
    if ((sum_us += row.time_us) > most_us)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "\"operations\" take more than %g us together", most_us);
    if (!tfc_array_push(&a->operations, row)) return tfc_status_no_memory("talking to a measuring program");
  }
  for (size_t i = 0; i < json_array_size(transfers); i++) {
    struct tfc_command_transfer row;
    tfc_status s = read_transfer(json_array_get(transfers, i), &row);
    if (s) return tfc_status_annotate(s, "\"transfers\"[%zu]", i);
    if (!tfc_array_push(&a->transfers, row)) return tfc_status_no_memory("talking to a measuring program");
  }
  return NULL;
}

void tfc_command_answer_deinit(struct tfc_command_answer *a) {
  tfc_array_free(&a->step_us);
  tfc_array_free(&a->operations);
  tfc_array_free(&a->transfers);
  free(a->message);
  json_decref(a->document);
  *a = (struct tfc_command_answer){0};
}

static void clear(struct tfc_command_answer *a) {
  a->step_us.count = a->operations.count = a->transfers.count = 0;
  free(a->message);
  a->message = NULL;
  json_decref(a->document);
  a->document = NULL;
}

tfc_status tfc_command_read_answer(tfc_str line, uint64_t id, struct tfc_command_answer *a, uint64_t *out_id) {
  tfc_status s = NULL;
  json_t *root = NULL;
  tfc_str error = {0};
  bool fits = true;
  uint64_t given = UINT64_MAX;
  clear(a);
  a->state = TFC_RESULT_FAILED;
  TFC_TRY(s, parse(line, "an answer", &root));
  TFC_TRY(s, tfc_json_whole(root, "id", &given));
  *out_id = given;
  if (given == UINT64_MAX) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the answer has no \"id\"");
  if (given != id)
    TFC_FAIL(s, TFC_OUT_OF_RANGE, "the answer is to %llu and not to %llu", (unsigned long long)given,
             (unsigned long long)id);
  TFC_TRY(s, tfc_json_bool(root, "fits", &fits));
  TFC_TRY(s, tfc_json_string(root, "error", &error));
  a->document = root, root = NULL;
  if (error.data) {
    if (!(a->message = tfc_str_dup(error))) TFC_TRY(s, tfc_status_no_memory(NULL));
  } else if (!fits) {
    a->state = TFC_RESULT_NO_FIT;
    if (!(a->message = tfc_str_dup(TFC_STR("it does not fit, says the program that measures"))))
      TFC_TRY(s, tfc_status_no_memory(NULL));
  } else {
    TFC_TRY(s, read_times(a->document, a));
    a->state = TFC_RESULT_OK;
  }
out:
  if (s) {
    a->step_us.count = a->operations.count = a->transfers.count = 0;
    a->state = TFC_RESULT_FAILED;
  }
  json_decref(root);
  return s;
}
