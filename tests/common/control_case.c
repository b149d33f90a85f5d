#include "tests/common/control_case.h"

enum { MOST = 64 };

const char *control_case_text(const json_t *item, const char *key) {
  const char *text = json_string_value(json_object_get(item, key));
  return text ? text : "";
}

static tfc_status outputs_of(const struct tfc_graph *g, const json_t *item, struct tfc_output *out, uint32_t *count) {
  const json_t *names = json_object_get(item, "xs");
  *count = 0;
  if (json_array_size(names) > MOST - 2) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many inputs");
  TFC_RETURN_IF_ERROR(tfc_graph_parse_output(g, tfc_str_from(control_case_text(item, "y")), &out[(*count)++]));
  TFC_RETURN_IF_ERROR(tfc_graph_parse_output(g, tfc_str_from(control_case_text(item, "weight")), &out[(*count)++]));
  for (size_t i = 0; i < json_array_size(names); i++)
    TFC_RETURN_IF_ERROR(
        tfc_graph_parse_output(g, tfc_str_from(json_string_value(json_array_get(names, i))), &out[(*count)++]));
  return NULL;
}

tfc_status control_case_load(const struct whole *whole, const json_t *item, struct tfc_graph **out,
                             struct tfc_output *y, struct tfc_output *weight, struct tfc_output *xs) {
  struct tfc_output all[MOST];
  uint32_t count;
  const uint32_t init = tfc_graph_find(whole->graph, tfc_str_from(control_case_text(item, "init")));
  if (init == TFC_NONE) return tfc_status_make(TFC_NOT_FOUND, "no initialiser");
  TFC_RETURN_IF_ERROR(outputs_of(whole->graph, item, all, &count));
  TFC_RETURN_IF_ERROR(whole_part(whole, all, count, &init, 1, out));
  TFC_RETURN_IF_ERROR(outputs_of(*out, item, all, &count));
  *y = all[0], *weight = all[1];
  for (uint32_t i = 2; i < count; i++) xs[i - 2] = all[i];
  return NULL;
}
