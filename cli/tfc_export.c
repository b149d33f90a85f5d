// tfc-export: writes a placement in the file formats of other programs.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/devmap.h"
#include "cli/export_lists.h"
#include "cli/json.h"
#include "cli/program.h"
#include "cli/untrusted.h"
#include "placer/model/placement_json.h"
#include "profiler/store.h"
#include "profiler/store_runs.h"
#include "runtime/base/file.h"
#include "runtime/base/sha256.h"
#include "runtime/base/units.h"
#include "runtime/graph/export.h"

// format, its name, the file name extension that selects it, whether the file contains a graph
#define FORMATS(X)                                                                                                     \
  X(GRAPHDEF, "graphdef", ".pb", true)                                                                                 \
  X(PBTXT, "pbtxt", ".pbtxt", true)                                                                                    \
  X(META, "meta", ".meta", true)                                                                                       \
  X(SAVEDMODEL, "savedmodel", "/", true)                                                                               \
  X(JSON, "json", ".json", false)                                                                                      \
  X(CSV, "csv", ".csv", false)                                                                                         \
  X(DEVICE_FUNCTION, "device-function", ".py", false)                                                                  \
  X(CLUSTERSPEC, "clusterspec", ".clusterspec", false)
enum {
#define FORMAT_ENUM(name, text, suffix, graph) TO_##name,
  FORMATS(FORMAT_ENUM)
#undef FORMAT_ENUM
};
static const struct {
  const char *name, *suffix;
  bool is_graph;
} formats[] = {
#define FORMAT_ROW(name, text, suffix, graph) {text, suffix, graph},
    FORMATS(FORMAT_ROW)
#undef FORMAT_ROW
};

struct options {
  struct tfc_common common;
  const char *db, *placement, *graph, *out, *map;
  int64_t run;
  int format;
  bool strip;
};
#define AT(member) .offset = offsetof(struct options, member)
static const struct tfc_flag flags[] = {
    {.name = "db",
     .path = TFC_PATH_DATABASE,
     .kind = TFC_FLAG_TEXT,
     AT(db),
     .value = "FILE",
     .help = "the database (default tfc.db)"},
    {.name = "run",
     .kind = TFC_FLAG_COUNT,
     AT(run),
     .value = "RUN",
     .help = "the run whose answer is exported (default: the last one)"},
    {.name = "placement",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(placement),
     .value = "FILE",
     .help = "a placement file instead of a run"},
    {.name = "graph",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(graph),
     .value = "PATH",
     .help = "the graph that gets the devices; needed only where a graph is written"},
    {.name = "format",
     .kind = TFC_FLAG_CHOICE,
     AT(format),
     .choices = "graphdef|pbtxt|meta|savedmodel|json|csv|device-function|clusterspec",
     .help = "the format (default: by the name given to --out)"},
    {.name = "out",
     .path = TFC_PATH_WRITE,
     .kind = TFC_FLAG_TEXT,
     AT(out),
     .value = "PATH",
     .required = true,
     .help = "the file, or for savedmodel the new directory"},
    {.name = "strip-devices",
     .kind = TFC_FLAG_BOOL,
     AT(strip),
     .help = "remove all device strings; needs no placement"},
    {.name = "map",
     .kind = TFC_FLAG_TEXT,
     AT(map),
     .value = "NAME=DEVICE,...",
     .help = "devices of the production machine: 'gpu:0=/job:worker/task:1/device:GPU:0,...'"},
};
static const struct tfc_program program = {
    .name = "tfc-export",
    .summary = "write a placement into a graph for production",
    .usage = "tfc-export [--db FILE] [--run RUN] --graph PATH [--format FORMAT] --out PATH",
    .examples = "  tfc-export --run 17 --graph nmt.pb --out nmt.placed.pb\n"
                "      the answer of run 17 of tfc.db as the graph's device strings\n"
                "  tfc-export --graph model --out placed --format savedmodel \\\n"
                "      --map 'cpu:0=/job:worker/task:0/device:CPU:0'\n"
                "      a SavedModel, for another machine's devices\n"
                "  tfc-export --placement nmt.placement.json --out nmt.csv\n"
                "      one line for each node\n"
                "  tfc-export --run 17 --format device-function --out placement.py\n"
                "      a Python file: 'with tf.compat.v1.device(placement.device):' around the\n"
                "      script that builds the graph\n"
                "  tfc-export --run 17 --format clusterspec --out cluster.json\n"
                "      the jobs and tasks of the devices, with addresses of this host instead of\n"
                "      yours\n"
                "  tfc-export --graph nmt.pb --strip-devices --out nmt.bare.pb\n"
                "      without any device strings\n",
    .flags = flags,
    .flag_count = sizeof flags / sizeof *flags,
};

static bool ends(const char *text, const char *suffix) {
  size_t n = strlen(text), m = strlen(suffix);
  return n >= m && strcmp(text + n - m, suffix) == 0;
}
static int format_of(const char *out) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (ends(out, formats[i].suffix)) return (int)i;
  return -1;
}

static tfc_str strip(void *arg, tfc_str key, tfc_str device) {
  (void)arg, (void)key, (void)device;
  return TFC_STR("");
}

static tfc_status read_placement(const struct options *o, struct tfc_placement **out) {
  struct tfc_store *store = NULL;
  struct tfc_text text = {0};
  char *name = NULL;
  int64_t run;
  tfc_status s = NULL;
  if (o->placement) return tfc_placement_read(o->placement, out);
  TFC_TRY(s, tfc_store_open(o->db, &(struct tfc_store_options){0}, &store));
  TFC_TRY(s, tfc_store_find_run(store, o->run, &run));
  s = tfc_store_get_answer(store, run, &text);
  if (s && o->run < 0) s = tfc_status_annotate(s, "the last run is meant without --run N (tfc-report list shows them)");
  if (s) goto out;
  name = tfc_format("%s, run %lld", o->db, (long long)run);
  TFC_TRY(s, tfc_placement_parse((tfc_str){text.data, text.size}, name ? name : o->db, out));
out:
  free(name);
  tfc_text_deinit(&text);
  tfc_store_close(store);
  return s;
}

// Warns if the graph is not the file that the placement was made for. This is no error: nodes are compared later.
static void check_file(const struct options *o, const struct tfc_placement *p) {
  struct tfc_file file = {0};
  char digest[65];
  if (p->graph_sha256.size != 64) return;
  tfc_status s = tfc_file_map_document(o->graph, &file);
  if (s) {
    tfc_status_free(s); // the path is a directory
    return;
  }
  tfc_sha256((tfc_str){(const char *)file.data, file.size}, digest);
  if (!tfc_str_is(p->graph_sha256, digest))
    tfc_warn("%s is not the file that the placement was made for (%.*s), but has the same nodes", o->graph,
             TFC_STR_ARG(p->graph_file));
  tfc_file_unmap(&file);
}

// Refuses to overwrite the input, by whichever path the output names it: a SavedModel is its folder, or the file
// inside. Returns -1, or 2 after printing an error.
static int keep_input(const char *input, const char *what, const char *out) {
  bool same = false;
  if (!input) return -1;
  char *in_folder = tfc_format("%s/saved_model.pb", input), *out_folder = tfc_format("%s/saved_model.pb", out);
  const char *inputs[] = {input, in_folder}, *outs[] = {out, out_folder};
  for (int i = 0; i < 4; i++) same |= inputs[i / 2] && outs[i % 2] && tfc_file_same(inputs[i / 2], outs[i % 2]);
  free(in_folder), free(out_folder);
  return same ? tfc_flags_error(&program, "--out %s: not written: it is the %s that is read; give another name", out,
                                what)
              : -1;
}

// Writes the graph with its placement. *out_code: 2 if the command line is wrong; the error has then been printed.
static tfc_status export(const struct options *o, struct tfc_placement **placement, int *out_code) {
  static const tfc_graph_format graph_formats[] = {TFC_FORMAT_GRAPHDEF, TFC_FORMAT_PBTXT, TFC_FORMAT_META,
                                                   TFC_FORMAT_SAVEDMODEL};
  struct tfc_graph *graph = NULL;
  struct cli_devmap *devmap = NULL;
  tfc_status s = NULL;
  if (!o->strip) {
    TFC_TRY(s, read_placement(o, placement));
    TFC_TRY(s, cli_devmap_apply(*placement, o->map));
    tfc_str unnamed = o->map ? cli_devmap_unnamed(*placement, o->map) : (tfc_str){0};
    if (unnamed.data) {
      *out_code =
          tfc_flags_error(&program, "--map has no device for %.*s, which the placement uses", TFC_STR_ARG(unnamed));
      goto out;
    }
  }
  // The other formats have the placement's own names, too.
  if (*placement && o->format != TO_JSON && o->format != TO_CSV) TFC_TRY(s, cli_devmap_check(*placement));
  if (!formats[o->format].is_graph && o->graph && access(o->graph, R_OK) != 0) // it is not read, but was named
    TFC_FAIL(s, TFC_NOT_FOUND, "--graph %s: %s", o->graph, strerror(errno));
  if (o->format == TO_JSON) {
    TFC_TRY(s, tfc_placement_write(*placement, o->out));
  } else if (o->format == TO_CSV) {
    TFC_TRY(s, cli_export_csv(*placement, o->out));
  } else if (o->format == TO_DEVICE_FUNCTION) {
    TFC_TRY(s, cli_export_device_function(*placement, o->out));
  } else if (o->format == TO_CLUSTERSPEC) {
    TFC_TRY(s, cli_export_clusterspec(*placement, o->out));
  } else {
    TFC_TRY(s, tfc_graph_load(o->graph, NULL, &graph));
    if (*placement) {
      TFC_TRY(s, cli_devmap_create(graph, *placement, &devmap));
      check_file(o, *placement);
    }
    TFC_TRY(s, tfc_graph_save(graph, graph_formats[o->format], devmap ? cli_devmap_device : strip, devmap, o->out));
  }
out:
  cli_devmap_free(devmap);
  tfc_graph_release(graph);
  return s;
}

// A graph file cannot contain the order of operations, so its steps take another time; this prints it.
static void say_step(const struct tfc_placement *p, bool graph_format) {
  char a[64], b[32];
  if (!p || !graph_format || !isfinite(p->step_median_us)) return;
  const char *ordered = tfc_show_us(a, p->step_median_us);
  if (p->step_label == TFC_LABEL_MODELLED) strcat(a, " (simulated)");
  const bool one_time = !(p->unordered_median_us < p->step_median_us || p->unordered_median_us > p->step_median_us);
  // Where several tasks ran the steps, both times are one measurement: each task chose the order of its own operations.
  if (isfinite(p->unordered_median_us) && one_time)
    tfc_say("A step takes %s (median of %llu) in an order of the runtime's own.", ordered,
            (unsigned long long)p->unordered_count);
  else if (isfinite(p->unordered_median_us))
    tfc_say("A step takes %s (median of %llu) in an order of the runtime's own; with the order of operations that the "
            "placement file holds, and a graph cannot carry, %s.",
            tfc_show_us(b, p->unordered_median_us), (unsigned long long)p->unordered_count, ordered);
  else
    tfc_say("A step takes %s with the order of operations that the placement file holds; a graph cannot carry it, and "
            "what a step takes without was not measured.",
            ordered);
}

int main(int argc, char **argv) {
  static struct options o = {.db = "tfc.db", .run = -1, .format = -1};
  tfc_program_start("tfc-export", argv);
  int code = tfc_flags_parse(&program, argc, argv, &o, NULL);
  if (code >= 0) return code;
  if (o.format < 0) o.format = format_of(o.out);
  if (o.format < 0)
    return tfc_flags_error(&program, "'%s' does not say which format: give --format %s", o.out, flags[4].choices);
  bool graph_format = formats[o.format].is_graph;
  if (graph_format && !o.graph)
    return tfc_flags_error(&program, "--graph PATH is missing: the graph to write devices into");
  if (!graph_format && o.strip)
    return tfc_flags_error(&program, "--strip-devices is about graphs, not %s", formats[o.format].name);
  if (o.strip && (o.map || o.placement))
    return tfc_flags_error(&program, "--strip-devices takes no placement and no --map");
  if ((code = keep_input(o.graph, "graph", o.out)) >= 0 || (code = keep_input(o.placement, "placement", o.out)) >= 0)
    return code;
  if ((code = cli_untrusted_enter(&program, &o, &(struct cli_untrusted_needs){.ends_with_time = true})) >= 0)
    return code;
  struct tfc_placement *placement = NULL;
  int wrong = 0;
  tfc_status s = export(&o, &placement, &wrong);
  if (wrong) {
    tfc_placement_free(placement);
    return wrong;
  }
  if (!s && o.common.json) {
    json_t *document = json_pack("{s:o, s:s}", "file", cli_json_string(o.out), "format", formats[o.format].name);
    if (document && placement) json_object_set_new(document, "nodes", json_integer(placement->node_count));
    double step_us = !placement ? NAN : graph_format ? placement->unordered_median_us : placement->step_median_us;
    if (document && isfinite(step_us)) json_object_set_new(document, "step_median_us", json_real(step_us));
    s = cli_json_print(document);
    json_decref(document);
  } else if (!s) {
    tfc_say("Written: %s", o.out);
    say_step(placement, graph_format);
  }
  tfc_placement_free(placement);
  return tfc_program_finish(tfc_program_fail(s));
}
