// Finds the format of a file, and the GraphDef in it. The content decides the format: text has no control characters,
// and binary messages differ in their fields.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/no_memory.h"
#include "runtime/graph/import_internal.h"
#include "runtime/graph/text_format.h"

enum kind { kind_graph, kind_meta, kind_saved_model };

static bool is_text(tfc_str bytes) {
  size_t n = bytes.size < 4096 ? bytes.size : 4096;
  bool word = false;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)bytes.data[i];
    if (c < 32 && c != '\n' && c != '\r' && c != '\t') return false;
    if (c == 127) return false;
    word |= (c >= 'a' && c <= 'z') || c == '#';
  }
  return word;
}

// Whether the bytes look like a NodeDef: it has an op (field 2) that is text; a FunctionDef has no field 2.
static bool looks_like_node(tfc_str bytes) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  bool op = false;
  while (tfc_wire_next(&w, &f)) op |= f.number == 2 && f.type == TFC_WIRE_BYTES;
  return op && !w.error;
}

static bool looks_like_graph_def(tfc_str bytes) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f))
    if (f.number == 1 && f.type == TFC_WIRE_BYTES) return looks_like_node(f.bytes);
  return false;
}

static enum kind kind_of_bytes(tfc_str bytes) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  int firsts = 0;
  bool meta = false, schema = false;
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 1 && f.type == TFC_WIRE_VARINT) schema = true;
    if (f.number == 1 && f.type == TFC_WIRE_BYTES && ++firsts > 1) return kind_graph; // many nodes, one meta_info_def
    if (f.number == 2 && f.type == TFC_WIRE_BYTES && schema) return kind_saved_model;
    if (f.number == 2 && f.type == TFC_WIRE_BYTES && looks_like_graph_def(f.bytes)) meta = true;
  }
  return meta ? kind_meta : kind_graph;
}

static enum kind kind_of_text(tfc_str text) {
  // The first word shows which message it is. Skips blanks and comments before it.
  size_t i = 0;
  while (i < text.size) {
    char c = text.data[i];
    if (c == '#')
      while (i < text.size && text.data[i] != '\n') i++;
    else if (c == ' ' || c == '\n' || c == '\r' || c == '\t')
      i++;
    else
      break;
  }
  tfc_str rest = tfc_str_sub(text, i, text.size);
  if (tfc_str_starts(rest, "saved_model_schema_version") || tfc_str_starts(rest, "meta_graphs"))
    return kind_saved_model;
  const char *metas[] = {"meta_info_def", "graph_def", "saver_def", "collection_def", "signature_def"};
  for (size_t k = 0; k < sizeof metas / sizeof *metas; k++)
    if (tfc_str_starts(rest, metas[k])) return kind_meta;
  return kind_graph;
}

// Chooses a MetaGraphDef of a SavedModel: the one with the tag "serve"; if there is none, the one with the tag "train";
// if there is none either, the first.
static tfc_str pick_meta_graph(tfc_str saved_model) {
  struct tfc_wire w = tfc_wire_of(saved_model), m, t;
  struct tfc_field f, e, g = {0};
  tfc_str best = {0};
  int best_rank = -1;
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 2 || f.type != TFC_WIRE_BYTES) continue;
    int rank = 0;
    m = tfc_wire_of(f.bytes);
    while (tfc_wire_next(&m, &e)) {
      if (e.number != 1 || e.type != TFC_WIRE_BYTES) continue;
      t = tfc_wire_of(e.bytes);
      while (tfc_wire_next(&t, &g)) {
        if (g.number != 4 || g.type != TFC_WIRE_BYTES) continue;
        if (tfc_str_is(g.bytes, "serve")) rank = 2;
        if (tfc_str_is(g.bytes, "train") && rank < 1) rank = 1;
      }
    }
    if (rank > best_rank) best = f.bytes, best_rank = rank;
  }
  return best;
}

static tfc_status last_field(tfc_str bytes, uint32_t number, tfc_str *out) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  *out = (tfc_str){0};
  while (tfc_wire_next(&w, &f))
    if (f.number == number && f.type == TFC_WIRE_BYTES) *out = f.bytes;
  return w.error ? tfc_status_make(TFC_INVALID_ARGUMENT, "%s (field %u)", w.error, f.number) : NULL;
}

// Makes a graph from the bytes of `src`; the graph owns `src`.
static tfc_status read_source(struct tfc_source *src, tfc_str bytes, const char *path, tfc_graph_format *out_format,
                              struct tfc_graph **out) {
  static const char *const messages[] = {"GraphDef", "MetaGraphDef", "SavedModel"};
  static const tfc_graph_format formats[] = {TFC_FORMAT_GRAPHDEF, TFC_FORMAT_META, TFC_FORMAT_SAVEDMODEL};
  tfc_status s = NULL;
  struct tfc_graph *g = NULL;
  bool text = is_text(bytes);
  enum kind kind = text ? kind_of_text(bytes) : kind_of_bytes(bytes);
  TFC_TRY(s, tfc_graph_new(&g));
  g->source = src;
  if (!bytes.size) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the file is empty");
  g->path = tfc_arena_str(&g->arena, tfc_str_from(path));
  if (!g->path.data) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (text) {
    struct tfc_text wire = {0};
    s = tfc_text_to_wire(bytes, messages[kind], &wire);
    free(src->owned);
    src->owned = wire.data;
    if (s) goto out;
    bytes = (tfc_str){wire.data ? wire.data : "", wire.size};
  }
  if (kind == kind_saved_model) {
    src->saved_model = bytes;
    TFC_TRY(s, last_field(bytes, 2, &src->meta_graph)); // only checks that the message is complete
    bytes = src->meta_graph = pick_meta_graph(bytes);
    if (!bytes.data) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the SavedModel holds no MetaGraph");
  }
  if (kind != kind_graph) {
    src->meta_graph = bytes;
    TFC_TRY(s, last_field(bytes, 2, &src->graph_def));
    if (!src->graph_def.data) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the MetaGraph holds no graph");
    TFC_TRY(s, tfc_read_meta(g, bytes));
  } else {
    src->graph_def = bytes;
  }
  if (src->directory) {
    g->variables_prefix = tfc_arena_printf(&g->arena, "%s/variables/variables", src->directory);
    if (!g->variables_prefix.data) TFC_TRY(s, tfc_status_no_memory(NULL));
    TFC_TRY(s, tfc_read_assets(g, bytes, src->directory));
  }
  TFC_TRY(s, tfc_read_graph_def(g, src->graph_def));
  if (!g->node_count && !g->function_count)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "no graph was found in it (GraphDef, MetaGraphDef or SavedModel is wanted)");
  if (out_format) *out_format = text && kind == kind_graph ? TFC_FORMAT_PBTXT : formats[kind];
  *out = g, g = NULL;
out:
  if (!g && s) tfc_source_release(src); // no graph owns the source, so it is released here
  tfc_graph_release(g);
  return tfc_status_annotate(s, "%s", path);
}

tfc_status tfc_graph_parse(tfc_str bytes, const char *path, tfc_graph_format *out_format, struct tfc_graph **out) {
  struct tfc_source *src = calloc(1, sizeof *src);
  if (src) src->owned = tfc_str_dup(bytes);
  if (!src || !src->owned) {
    tfc_source_release(src);
    return tfc_status_no_memory_for("%s: %zu bytes", path, bytes.size);
  }
  return read_source(src, (tfc_str){src->owned, bytes.size}, path, out_format, out);
}

static char *model_file(const char *directory) {
  static const char *const names[] = {"saved_model.pb", "saved_model.pbtxt"};
  for (int i = 0; i < 2; i++) {
    char *file = tfc_format("%s/%s", directory, names[i]);
    if (!file || access(file, F_OK) == 0) return file;
    free(file);
  }
  return NULL;
}

tfc_status tfc_graph_load(const char *path, tfc_graph_format *out_format, struct tfc_graph **out) {
  tfc_status s = NULL;
  struct tfc_source *src = calloc(1, sizeof *src);
  struct stat st;
  char *file = NULL;
  if (!src) return tfc_status_no_memory(path);
  if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
    file = model_file(path);
    if (!file) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: a directory without saved_model.pb", path);
    src->directory = tfc_str_dup(tfc_str_from(path));
    if (!src->directory) TFC_TRY(s, tfc_status_no_memory(path));
  }
  TFC_TRY(s, tfc_file_map_document(file ? file : path, &src->file));
  s = read_source(src, (tfc_str){(const char *)src->file.data, src->file.size}, path, out_format, out);
  src = NULL;
out:
  tfc_source_release(src);
  free(file);
  return s;
}
