#include "cli/export_lists.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/base/file.h"
#include "runtime/graph/device_spec.h"

static tfc_status write_text(struct tfc_text *text, const char *path) {
  tfc_status s = text->failed ? tfc_status_no_memory(NULL) : tfc_file_write(path, (tfc_str){text->data, text->size});
  tfc_text_deinit(text);
  return s;
}

// --- The format csv ------------------------------------------------------------------------------------------------
static void add_quoted(struct tfc_text *out, tfc_str text) {
  tfc_text_printf(out, "\"");
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] == '"') tfc_text_printf(out, "\"");
    tfc_text_add(out, (tfc_str){&text.data[i], 1});
  }
  tfc_text_printf(out, "\"");
}

static tfc_str tensorflow_name(const struct tfc_placement *p, tfc_str device) {
  for (uint32_t d = 0; d < p->device_count; d++)
    if (tfc_str_equal(p->devices[d].name, device)) return p->devices[d].tensorflow;
  return TFC_STR("");
}

tfc_status cli_export_csv(const struct tfc_placement *p, const char *path) {
  struct tfc_text text = {0};
  tfc_text_printf(&text, "node,device,tensorflow,order,reason\n");
  for (uint32_t i = 0; i < p->node_count; i++) {
    const struct tfc_placement_node *n = &p->nodes[i];
    add_quoted(&text, n->name);
    tfc_text_printf(&text, ",");
    add_quoted(&text, n->device);
    tfc_text_printf(&text, ",");
    add_quoted(&text, tensorflow_name(p, n->device));
    tfc_text_printf(&text, ",");
    if (isfinite(n->order)) tfc_text_printf(&text, "%.17g", n->order);
    tfc_text_printf(&text, ",");
    add_quoted(&text, n->reason);
    tfc_text_printf(&text, "\n");
  }
  return write_text(&text, path);
}

// --- The format device-function ------------------------------------------------------------------------------------
// Writes a Python bytes literal: names are bytes, and all but printable ASCII is escaped.
static void add_literal(struct tfc_text *out, tfc_str text) {
  tfc_text_printf(out, "\"");
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (c < ' ' || c > '~')
      tfc_text_printf(out, "\\x%02x", c);
    else
      tfc_text_printf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
  }
  tfc_text_printf(out, "\"");
}

static const char head[] =
    "\"\"\"Where each operation of a TensorFlow graph was measured to be fastest. Written by tfc-export.\n"
    "\n"
    "While a script builds its graph:\n"
    "\n"
    "    with tf.compat.v1.device(placement.device):\n"
    "        build_the_model()\n"
    "\n"
    "or for a graph that is there already, whatever devices its own script asked for:\n"
    "\n"
    "    placement.apply(graph)\n"
    "\n"
    "Operations are known by their names: the script has to build the graph that was placed, in the same order. What "
    "has\n"
    "another name keeps the device that it has. A device scope inside of the one above wins, as always in TensorFlow; "
    "apply\n"
    "overrides it.\n"
    "\"\"\"\n\n";
static const char tail[] = "\n\n"
                           "def device(op):\n"
                           "    index = NODES.get(op.name)\n"
                           "    return op.device if index is None else DEVICES[index]\n"
                           "\n\n"
                           "def apply(graph):\n"
                           "    \"\"\"Returns how many operations were given a device.\"\"\"\n"
                           "    count = 0\n"
                           "    for op in graph.get_operations():\n"
                           "        if op.name in NODES:\n"
                           "            op._set_device(DEVICES[NODES[op.name]])\n"
                           "            count += 1\n"
                           "    return count\n";

tfc_status cli_export_device_function(const struct tfc_placement *p, const char *path) {
  struct tfc_text text = {0};
  tfc_text_printf(&text, "%sDEVICES = [", head);
  for (uint32_t d = 0; d < p->device_count; d++) {
    tfc_text_printf(&text, d ? ", " : "");
    add_literal(&text, p->devices[d].tensorflow);
  }
  tfc_text_printf(&text, "]\nNODES = {\n");
  for (uint32_t i = 0; i < p->node_count; i++) {
    uint32_t d = 0;
    while (d < p->device_count && !tfc_str_equal(p->devices[d].name, p->nodes[i].device)) d++;
    // TensorFlow itself places operations that run only on the host; operations inside functions are in graphs of their
    // own.
    if (d == p->device_count || tfc_str_starts(p->nodes[i].name, "function/")) continue;
    tfc_text_printf(&text, "    ");
    add_literal(&text, p->nodes[i].name);
    tfc_text_printf(&text, ": %u,\n", d);
  }
  tfc_text_printf(&text, "}\n%s", tail);
  return write_text(&text, path);
}

// --- The format clusterspec ----------------------------------------------------------------------------------------
enum { FIRST_PORT = 2222, MOST_TASKS = 65536 - FIRST_PORT };

tfc_status cli_export_clusterspec(const struct tfc_placement *p, const char *path) {
  tfc_status s = NULL;
  json_t *cluster = json_object();
  struct tfc_text file = {0};
  char *text = NULL;
  int port = FIRST_PORT;
  for (uint32_t d = 0; d < p->device_count; d++) {
    struct tfc_device_spec spec;
    TFC_TRY(s, tfc_device_spec_parse(p->devices[d].tensorflow, &spec));
    char job[128];
    snprintf(job, sizeof job, "%.*s", spec.job.size ? (int)spec.job.size : 9,
             spec.job.size ? spec.job.data : "localhost");
    json_t *tasks = json_object_get(cluster, job);
    if (!tasks) json_object_set_new(cluster, job, tasks = json_array());
    size_t task = spec.task > 0 ? (size_t)spec.task : 0;
    if (task >= MOST_TASKS)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%.*s: task %zu is beyond the ports of one host",
               TFC_STR_ARG(p->devices[d].tensorflow), task);
    while (json_array_size(tasks) <= task) json_array_append_new(tasks, json_null());
  }
  const char *job;
  json_t *tasks;
  json_object_foreach(cluster, job, tasks) {
    for (size_t i = 0; i < json_array_size(tasks); i++) {
      char address[32];
      snprintf(address, sizeof address, "localhost:%d", port++);
      json_array_set_new(tasks, i, json_string(address));
    }
  }
  text = json_dumps(cluster, JSON_INDENT(2));
  if (!text) TFC_TRY(s, tfc_status_no_memory(NULL));
  tfc_text_printf(&file, "%s\n", text);
  s = write_text(&file, path);
out:
  free(text);
  json_decref(cluster);
  return s;
}
