// Writes graphs: the bytes of the file are copied field by field, with unknown fields. Only the device of each NodeDef
// is replaced, and so are the lengths of the messages around it. Nodes that did not come from a file are written from
// their records.
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runtime/base/file.h"
#include "runtime/base/no_memory.h"
#include "runtime/graph/export.h"
#include "runtime/graph/export_attr.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/text_format.h"

struct devices {
  tfc_device_fn fn;
  void *arg;
  tfc_str function; // the function that is being written, "" outside of functions
  struct tfc_text key;
};

static void put_raw(struct tfc_text *out, const struct tfc_field *f, const struct tfc_wire *w) {
  tfc_text_add(out, (tfc_str){(const char *)f->start, (size_t)(w->at - f->start)});
}

static tfc_str ask(struct devices *d, tfc_str name, tfc_str device) {
  if (!d->fn) return (tfc_str){0};
  if (!d->function.size) return d->fn(d->arg, name, device);
  d->key.size = 0;
  tfc_text_printf(&d->key, "function/%.*s:%.*s", TFC_STR_ARG(d->function), TFC_STR_ARG(name));
  return d->fn(d->arg, tfc_text_view(&d->key), device);
}

// Writes a NodeDef with the device that the callback returns, in place of the old one or after the inputs. (The order
// of fields has no meaning, but other writers put the device there.)
static tfc_status copy_node(struct devices *d, tfc_str bytes, struct tfc_text *out) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  tfc_str name = {0}, device = TFC_STR("");
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 1 && f.type == TFC_WIRE_BYTES) name = f.bytes;
    if (f.number == 4 && f.type == TFC_WIRE_BYTES) device = f.bytes;
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s': %s", TFC_STR_ARG(name), w.error);
  tfc_str wanted = ask(d, name, device);
  if (!wanted.data || tfc_str_equal(wanted, device)) {
    tfc_text_add(out, bytes);
    return NULL;
  }
  bool written = wanted.size == 0;
  w = tfc_wire_of(bytes);
  while (tfc_wire_next(&w, &f)) {
    bool is_device = f.number == 4 && f.type == TFC_WIRE_BYTES;
    if (!written && f.number >= 4) {
      tfc_wire_put_bytes(out, 4, wanted);
      written = true;
    }
    if (!is_device) put_raw(out, &f, &w);
  }
  if (!written) tfc_wire_put_bytes(out, 4, wanted);
  return NULL;
}

// Copies a message; `inner` rewrites the messages in field `number`.
typedef tfc_status (*rewrite_fn)(struct devices *d, tfc_str bytes, struct tfc_text *out);
static tfc_status copy_message(struct devices *d, tfc_str bytes, uint32_t number, rewrite_fn inner, uint32_t number2,
                               rewrite_fn inner2, struct tfc_text *out) {
  tfc_status s = NULL;
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  struct tfc_text part = {0};
  while (!s && tfc_wire_next(&w, &f)) {
    rewrite_fn fn = f.type != TFC_WIRE_BYTES ? NULL : f.number == number ? inner : f.number == number2 ? inner2 : NULL;
    if (!fn) {
      put_raw(out, &f, &w);
      continue;
    }
    part.size = 0;
    s = fn(d, f.bytes, &part);
    if (!s) tfc_wire_put_bytes(out, f.number, tfc_text_view(&part));
  }
  if (!s && w.error) s = tfc_status_make(TFC_INVALID_ARGUMENT, "%s", w.error);
  out->failed |= part.failed;
  tfc_text_deinit(&part);
  return s;
}

static tfc_status copy_function(struct devices *d, tfc_str bytes, struct tfc_text *out) {
  struct tfc_wire w = tfc_wire_of(bytes), sig;
  struct tfc_field f, e;
  d->function = TFC_STR("?");
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 1 || f.type != TFC_WIRE_BYTES) continue;
    sig = tfc_wire_of(f.bytes);
    while (tfc_wire_next(&sig, &e))
      if (e.number == 1 && e.type == TFC_WIRE_BYTES) d->function = e.bytes;
  }
  tfc_status s = copy_message(d, bytes, 3, copy_node, 0, NULL, out);
  d->function = (tfc_str){0};
  return s;
}

static tfc_status copy_library(struct devices *d, tfc_str bytes, struct tfc_text *out) {
  return copy_message(d, bytes, 1, copy_function, 0, NULL, out);
}

static tfc_status copy_graph_def(struct devices *d, tfc_str bytes, struct tfc_text *out) {
  return copy_message(d, bytes, 1, copy_node, 2, copy_library, out);
}

// Writes a graph that has no file: its nodes, then the library and versions of the graph that it was made from.
static tfc_status encode_graph_def(struct devices *d, const struct tfc_graph *g, struct tfc_text *out) {
  tfc_status s = NULL;
  struct tfc_text part = {0};
  for (uint32_t i = 0; i < g->node_count && !s; i++) {
    const struct tfc_node *n = &g->nodes[i];
    part.size = 0;
    if (n->raw.size) {
      s = copy_node(d, n->raw, &part);
    } else {
      tfc_str device = ask(d, n->name, n->device);
      tfc_wire_put_node(&part, g, n, device.data ? device : n->device);
    }
    if (!s) tfc_wire_put_bytes(out, 1, tfc_text_view(&part));
  }
  const struct tfc_graph *library = g->library ? g->library : g;
  if (!s && library->source) {
    struct tfc_wire w = tfc_wire_of(library->source->graph_def);
    struct tfc_field f;
    while (!s && tfc_wire_next(&w, &f)) {
      if (f.number == 1) continue;
      if (f.number != 2 || f.type != TFC_WIRE_BYTES) {
        put_raw(out, &f, &w);
        continue;
      }
      part.size = 0;
      s = copy_library(d, f.bytes, &part);
      if (!s) tfc_wire_put_bytes(out, 2, tfc_text_view(&part));
    }
  } else if (!s) {
    struct tfc_text versions = {0};
    tfc_wire_put_int(&versions, 1, 1645); // producer: TensorFlow 2.15
    tfc_wire_put_bytes(out, 4, tfc_text_view(&versions));
    out->failed |= versions.failed;
    tfc_text_deinit(&versions);
  }
  out->failed |= part.failed;
  tfc_text_deinit(&part);
  return s;
}

// Writes a MetaGraphDef around a new graph: the fields of the old one, or only those that loading needs.
static void wrap_meta(const struct tfc_source *src, tfc_str graph_def, bool tagged, struct tfc_text *out) {
  bool written = false;
  if (src && src->meta_graph.data) {
    struct tfc_wire w = tfc_wire_of(src->meta_graph);
    struct tfc_field f;
    while (tfc_wire_next(&w, &f)) {
      bool is_graph = f.number == 2 && f.type == TFC_WIRE_BYTES;
      if (is_graph && !written) tfc_wire_put_bytes(out, 2, graph_def);
      if (!is_graph) put_raw(out, &f, &w);
      written |= is_graph;
    }
  } else {
    struct tfc_text info = {0};
    if (tagged) tfc_wire_put_bytes(&info, 4, TFC_STR("serve"));
    tfc_wire_put_bytes(&info, 5, TFC_STR("2.15.1"));
    tfc_wire_put_bytes(out, 1, tfc_text_view(&info));
    out->failed |= info.failed;
    tfc_text_deinit(&info);
  }
  if (!written) tfc_wire_put_bytes(out, 2, graph_def);
}

static void wrap_saved_model(const struct tfc_source *src, tfc_str meta_graph, struct tfc_text *out) {
  if (!src || !src->saved_model.data) {
    tfc_wire_put_int(out, 1, 1);
    tfc_wire_put_bytes(out, 2, meta_graph);
    return;
  }
  struct tfc_wire w = tfc_wire_of(src->saved_model);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f))
    if (f.number == 2 && f.type == TFC_WIRE_BYTES && f.bytes.data == src->meta_graph.data)
      tfc_wire_put_bytes(out, 2, meta_graph);
    else
      put_raw(out, &f, &w);
}

// --- Files beside a SavedModel -------------------------------------------------------------------------------------
static tfc_status make_directory(const char *path) {
  if (mkdir(path, 0777) == 0 || errno == EEXIST) return NULL;
  return tfc_status_make(TFC_DATA_LOSS, "%s: cannot be made: %s", path, strerror(errno));
}

static tfc_status copy_tree(const char *from, const char *to, int depth) {
  tfc_status s = NULL;
  char *a = NULL, *b = NULL;
  DIR *dir = opendir(from);
  if (!dir) return errno == ENOENT ? NULL : tfc_status_make(TFC_INVALID_ARGUMENT, "%s: %s", from, strerror(errno));
  if (depth > 8) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: directories are nested too deeply", from);
  TFC_TRY(s, make_directory(to));
  for (struct dirent *e; (e = readdir(dir));) {
    struct stat st;
    struct tfc_file file = {0};
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    free(a), free(b);
    a = tfc_format("%s/%s", from, e->d_name);
    b = tfc_format("%s/%s", to, e->d_name);
    if (!a || !b) TFC_TRY(s, tfc_status_no_memory(NULL));
    if (stat(a, &st) != 0) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: %s", a, strerror(errno));
    if (S_ISDIR(st.st_mode)) {
      TFC_TRY(s, copy_tree(a, b, depth + 1));
    } else if (S_ISREG(st.st_mode)) {
      TFC_TRY(s, tfc_file_map(a, &file));
      s = tfc_file_write(b, (tfc_str){(const char *)file.data, file.size});
      tfc_file_unmap(&file);
      if (s) goto out;
    }
  }
out:
  closedir(dir);
  free(a);
  free(b);
  return s;
}

static tfc_status write_saved_model(const struct tfc_graph *g, tfc_str content, const char *path) {
  static const char *const beside[] = {"variables", "assets", "assets.extra"};
  tfc_status s = NULL;
  char *file = tfc_format("%s/saved_model.pb", path), *from = NULL, *to = NULL;
  const char *directory = g->source ? g->source->directory : NULL;
  struct stat st;
  if (!file) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (stat(file, &st) == 0) TFC_FAIL(s, TFC_DATA_LOSS, "%s: there is a SavedModel already", path);
  TFC_TRY(s, make_directory(path));
  for (int i = 0; i < 3 && directory; i++) {
    free(from), free(to);
    from = tfc_format("%s/%s", directory, beside[i]);
    to = tfc_format("%s/%s", path, beside[i]);
    if (!from || !to) TFC_TRY(s, tfc_status_no_memory(NULL));
    TFC_TRY(s, copy_tree(from, to, 0));
  }
  s = tfc_file_write(file, content); // written last, because a directory without this file is not a model
out:
  free(file);
  free(from);
  free(to);
  return s;
}

tfc_status tfc_graph_save(const struct tfc_graph *g, tfc_graph_format format, tfc_device_fn device, void *arg,
                          const char *path) {
  tfc_status s = NULL;
  struct devices d = {.fn = device, .arg = arg};
  struct tfc_text graph_def = {0}, meta = {0}, content = {0};
  const struct tfc_source *src = g->source;
  s = src ? copy_graph_def(&d, src->graph_def, &graph_def) : encode_graph_def(&d, g, &graph_def);
  if (s) goto out;
  switch (format) {
  case TFC_FORMAT_GRAPHDEF:
    content = graph_def;
    graph_def = (struct tfc_text){0};
    break;
  case TFC_FORMAT_PBTXT: TFC_TRY(s, tfc_wire_to_text(tfc_text_view(&graph_def), "GraphDef", &content)); break;
  case TFC_FORMAT_META: wrap_meta(src, tfc_text_view(&graph_def), false, &content); break;
  case TFC_FORMAT_SAVEDMODEL:
    wrap_meta(src, tfc_text_view(&graph_def), true, &meta);
    wrap_saved_model(src, tfc_text_view(&meta), &content);
    break;
  }
  if (graph_def.failed || meta.failed || content.failed || d.key.failed)
    TFC_TRY(s, tfc_status_no_memory_for("writing %s", path));
  s = format == TFC_FORMAT_SAVEDMODEL ? write_saved_model(g, tfc_text_view(&content), path)
                                      : tfc_file_write(path, tfc_text_view(&content));
out:
  tfc_text_deinit(&graph_def);
  tfc_text_deinit(&meta);
  tfc_text_deinit(&content);
  tfc_text_deinit(&d.key);
  return s;
}
