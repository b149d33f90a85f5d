// Checks tfc-place's files before anything is measured: that inputs exist, and that outputs can be written. So a long
// run does not end with an answer that cannot be saved.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/place.h"
#include "cli/program.h"
#include "placer/model/placement.h"
#include "placer/model/placement_json.h"
#include "runtime/base/file.h"
#include "runtime/graph/import.h"

bool place_is_json(const char *path) {
  struct tfc_file file = {0};
  tfc_status s = tfc_file_map_document(path, &file);
  bool found = false;
  for (size_t i = 0; !s && i < file.size; i++) {
    if (memchr(" \t\r\n", file.data[i], 4)) continue; // strchr would find 0, too
    found = file.data[i] == '{';
    break;
  }
  tfc_status_free(s);
  tfc_file_unmap(&file);
  return found;
}

static tfc_status readable_placement(const char *path) {
  struct tfc_placement *placement = NULL;
  tfc_status s = tfc_placement_read(path, &placement);
  tfc_placement_free(placement);
  return s;
}

static tfc_status readable_rival(const char *path) {
  struct tfc_graph *graph = NULL;
  if (place_is_json(path)) return readable_placement(path);
  tfc_status s = tfc_graph_load(path, NULL, &graph);
  tfc_graph_release(graph);
  return s;
}

// Returns the folder of a path ("." if it names none); the caller frees it.
static char *folder_of(const char *path) {
  size_t size = strlen(path);
  while (size > 1 && path[size - 1] == '/') size--;
  while (size > 0 && path[size - 1] != '/') size--;
  while (size > 1 && path[size - 1] == '/') size--;
  return size ? tfc_format("%.*s", (int)size, path) : tfc_format(".");
}

// Whether a file can be written, or a folder created. This is tried, because permission bits mean nothing for root.
static tfc_status writable(const char *path, bool folder) {
  struct stat info;
  tfc_status s = NULL;
  bool there = stat(path, &info) == 0;
  char *probe = NULL;
  if (there && folder && !S_ISDIR(info.st_mode))
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: it is not a folder", path);
  if (there && !folder && S_ISDIR(info.st_mode))
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: it is a folder", path);
  if (there && !folder && !S_ISREG(info.st_mode)) goto out; // a pipe, /dev/stdout
  char *parent = there && folder ? tfc_format("%s", path) : folder_of(path);
  if (parent) probe = tfc_format("%s/.tfc-probe-%d", parent, (int)getpid());
  free(parent);
  if (!probe) TFC_TRY(s, tfc_status_no_memory(NULL));
  unlink(probe); // not through a link that has this name
  const int fd = open(probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: %s", path, strerror(errno));
  close(fd);
  unlink(probe);
out:
  free(probe);
  return s;
}

tfc_status place_check_files(const struct place_options *o) {
  tfc_status s = NULL;
  char *out = NULL, *report = NULL;
  if (o->evaluate && strcmp(o->evaluate, "-") != 0 && strncmp(o->evaluate, "single:", 7) != 0)
    TFC_TRY(s, readable_placement(o->evaluate));
  for (uint32_t i = 0; i < o->request.baselines.count; i++)
    TFC_TRY(s, tfc_status_annotate(readable_rival(strchr(o->request.baselines.items[i], '=') + 1), "--baseline %s",
                                   o->request.baselines.items[i]));
  if (o->out || !o->evaluate) {
    if (!(out = o->out ? tfc_format("%s", o->out) : place_default_path(o->graph, ".placement.json")))
      TFC_TRY(s, tfc_status_no_memory(NULL));
    if (tfc_file_same(out, o->graph) || (o->evaluate && tfc_file_same(out, o->evaluate)))
      TFC_FAIL(s, TFC_DATA_LOSS, "--out %s: cannot be written: it is a file that is read; give another name", out);
    TFC_TRY(s, tfc_status_annotate(writable(out, false), "--out"));
  }
  if ((o->report || !o->evaluate) && !(o->report && strcmp(o->report, "none") == 0)) {
    if (!(report = o->report ? tfc_format("%s", o->report) : place_default_path(o->graph, ".report")))
      TFC_TRY(s, tfc_status_no_memory(NULL));
    TFC_TRY(s, tfc_status_annotate(writable(report, true), "--report"));
  }
  if (o->save_policy) TFC_TRY(s, tfc_status_annotate(writable(o->save_policy, false), "--save-policy"));
  if (o->save_problem) TFC_TRY(s, tfc_status_annotate(writable(o->save_problem, true), "--save-problem"));
out:
  free(out);
  free(report);
  return s;
}

int place_fail(const struct place_options *o, tfc_status status) {
  int code = tfc_exit_code(status);
  json_t *document = NULL, *file = o->common.json ? cli_json_string(o->graph) : NULL;
  if (file) {
    document = json_pack("{s:s, s:i, s:{s:o}, s:o}", "format", "tfc-placement", "version", 1, "graph", "file", file,
                         "error", cli_json_error(status));
    if (document && code == 5) json_object_set_new(document, "feasible", json_false());
  }
  tfc_program_fail(status);
  tfc_status s = document ? cli_json_print(document) : NULL;
  json_decref(document);
  return s ? tfc_program_fail(s) : code;
}

char *place_default_path(const char *graph, const char *suffix) {
  size_t size = strlen(graph);
  while (size > 1 && graph[size - 1] == '/') size--;
  size_t slash = size;
  while (slash > 0 && graph[slash - 1] != '/') slash--;
  for (size_t i = size; i > slash + 1; i--)
    if (graph[i - 1] == '.') {
      size = i - 1;
      break;
    }
  return tfc_format("%.*s%s", (int)size, graph, suffix);
}
