// Reads a settings file from libyaml's events, with a state machine of three levels: the file's mapping, a key's value,
// and the content of a list or mapping.
#include "cli/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "placer/model/yaml_problem.h"
#include "runtime/base/file.h"

tfc_status tfc_settings_read(const char *path, bool (*fn)(void *user, const char *key, const char *value), void *user) {
  struct tfc_file file = {0};
  yaml_parser_t parser;
  yaml_event_t event = {0};
  char *key = NULL, *name = NULL; // the flag's name, and the name of the current entry of a mapping
  bool in_map = false, list = false, map = false, parsing = false, done = false;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_file_map_document(path, &file));
  TFC_TRY(s, tfc_status_annotate(tfc_yaml_check((tfc_str){(const char *)file.data, file.size}), "%s", path));
  if (!yaml_parser_initialize(&parser)) TFC_TRY(s, tfc_status_no_memory(NULL));
  parsing = true;
  yaml_parser_set_input_string(&parser, file.data ? file.data : (const unsigned char *)"", file.size);
  while (!done) {
    if (!yaml_parser_parse(&parser, &event)) TFC_TRY(s, tfc_status_annotate(tfc_yaml_problem(&parser), "%s", path));
    size_t line = event.start_mark.line + 1;
    const char *value = event.type == YAML_SCALAR_EVENT ? (const char *)event.data.scalar.value : NULL;
    switch (event.type) {
    case YAML_STREAM_END_EVENT: done = true; break;
    case YAML_MAPPING_START_EVENT:
      if (!in_map)
        in_map = true;
      else if (key && !list && !map)
        map = true;
      else
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s, line %zu: a mapping has no place here", path, line);
      break;
    case YAML_MAPPING_END_EVENT:
      if (map) free(key), key = NULL, map = false;
      break;
    case YAML_SEQUENCE_START_EVENT:
      if (!key || list || map) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s, line %zu: a list has no place here", path, line);
      list = true;
      break;
    case YAML_SEQUENCE_END_EVENT: free(key), key = NULL, list = false; break;
    case YAML_SCALAR_EVENT:
      if (!in_map) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s, line %zu: settings are 'name: value'", path, line);
      if (!key) {
        key = strdup(value);
      } else if (map && !name) {
        name = strdup(value);
      } else {
        char *both = map ? malloc(strlen(name) + strlen(value) + 2) : NULL;
        if (both) sprintf(both, "%s=%s", name, value);
        bool go_on = fn(user, key, both ? both : value);
        free(both);
        free(name), name = NULL;
        if (!list && !map) free(key), key = NULL;
        done = !go_on;
      }
      break;
    case YAML_ALIAS_EVENT: TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s, line %zu: aliases are not read", path, line);
    default: break;
    }
    yaml_event_delete(&event);
  }
out:
  if (parsing) yaml_event_delete(&event), yaml_parser_delete(&parser);
  free(key);
  free(name);
  tfc_file_unmap(&file);
  return s;
}
