#include "tests/common/part.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"
#include "tests/common/packed.h"

struct whole_piece { // one field of the GraphDef, with its tag
  size_t begin, end;
  uint32_t node; // TFC_NONE: this field is no node, and every part contains it
};

static uint64_t varint(const struct tfc_text *f, size_t *at) {
  uint64_t value = 0;
  for (int shift = 0; *at < f->size && shift < 64; shift += 7) {
    const uint8_t byte = (uint8_t)f->data[(*at)++];
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

// In a GraphDef, field 1 is a node; in a node, field 1 is the name, which is written first.
static tfc_status find_pieces(struct whole *w, const char *path) {
  enum { NODE = 1 << 3 | 2, NAME = 1 << 3 | 2 };
  for (size_t at = 0; at < w->file.size; w->count++) {
    struct whole_piece piece = {.begin = at, .node = TFC_NONE};
    const uint64_t tag = varint(&w->file, &at), size = varint(&w->file, &at);
    if ((tag & 7) != 2 || size > w->file.size - at)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: a field of another kind", path);
    piece.end = at + size;
    if (tag == NODE) {
      if (varint(&w->file, &at) == NAME) {
        const uint64_t length = varint(&w->file, &at);
        piece.node = tfc_graph_find(w->graph, (tfc_str){w->file.data + at, length});
      }
      if (piece.node == TFC_NONE) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: a node without a name", path);
    }
    at = piece.end;
    if (!(w->count & (w->count + 1)) && // 0, 1, 3, 7, ...
        !(w->pieces = realloc(w->pieces, 2 * (w->count + 1) * sizeof *w->pieces)))
      abort();
    w->pieces[w->count] = piece;
  }
  return NULL;
}

tfc_status whole_load(const char *path, struct whole *out) {
  *out = (struct whole){0};
  TFC_RETURN_IF_ERROR(packed_read(path, &out->file));
  TFC_RETURN_IF_ERROR(tfc_graph_parse((tfc_str){out->file.data, out->file.size}, path, NULL, &out->graph));
  return find_pieces(out, path);
}

void whole_deinit(struct whole *w) {
  tfc_graph_release(w->graph);
  tfc_text_deinit(&w->file);
  free(w->pieces);
  *w = (struct whole){0};
}

tfc_status whole_part(const struct whole *w, const struct tfc_output *outputs, uint32_t output_count,
                      const uint32_t *targets, uint32_t target_count, struct tfc_graph **out) {
  tfc_status s = NULL;
  struct tfc_text bytes = {0};
  bool *needed = calloc(w->graph->node_count + 1u, sizeof *needed);
  if (!needed) abort();
  TFC_TRY(s, tfc_prune(w->graph, NULL, 0, outputs, output_count, targets, target_count, needed));
  for (size_t i = 0; i < w->count; i++) {
    const struct whole_piece *p = &w->pieces[i];
    if (p->node == TFC_NONE || needed[p->node])
      tfc_text_add(&bytes, (tfc_str){w->file.data + p->begin, p->end - p->begin});
  }
  TFC_TRY(s, tfc_graph_parse((tfc_str){bytes.data, bytes.size}, "part.pb", NULL, out));
out:
  free(needed);
  tfc_text_deinit(&bytes);
  return s;
}
