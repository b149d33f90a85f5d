// Reads what a MetaGraphDef has besides its GraphDef: collections, signatures, the saver.
#include "runtime/graph/import_internal.h"

static size_t count_field(tfc_str bytes, uint32_t number) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  size_t n = 0;
  while (tfc_wire_next(&w, &f)) n += f.number == number && f.type == TFC_WIRE_BYTES;
  return n;
}

// Reads a CollectionDef: a list of names, bytes or ints (kept as decimal text).
static tfc_status read_collection(struct tfc_graph *g, tfc_str bytes, struct tfc_collection *out) {
  struct tfc_wire w = tfc_wire_of(bytes), l;
  struct tfc_field f, e;
  TFC_ARRAY(tfc_str) values = {0};
  tfc_status s = NULL;
  while (tfc_wire_next(&w, &f)) {
    if (f.type != TFC_WIRE_BYTES || f.number > 3) continue;
    l = tfc_wire_of(f.bytes);
    while (tfc_wire_next(&l, &e)) {
      if (e.number != 1) continue;
      if (f.number != 3) {
        if (e.type == TFC_WIRE_BYTES && !tfc_array_push(&values, e.bytes))
          s = tfc_status_no_memory("reading a MetaGraph");
        continue;
      }
      struct tfc_wire p = tfc_wire_of(e.bytes);
      uint64_t value = e.value;
      if (e.type == TFC_WIRE_VARINT && !tfc_array_push(&values, tfc_arena_printf(&g->arena, "%lld", (long long)value)))
        s = tfc_status_no_memory("reading a MetaGraph");
      while (p.at != p.end && tfc_wire_varint(&p, &value))
        if (!tfc_array_push(&values, tfc_arena_printf(&g->arena, "%lld", (long long)value)))
          s = tfc_status_no_memory("reading a MetaGraph");
      if (p.error) l.error = p.error;
    }
    if (l.error) w.error = l.error;
  }
  if (!s && w.error) s = tfc_status_make(TFC_INVALID_ARGUMENT, "%s", w.error);
  tfc_str *copy = s ? NULL : TFC_ARENA_ARRAY(&g->arena, tfc_str, values.count + 1);
  if (!s && !copy) s = tfc_status_no_memory("reading a MetaGraph");
  if (!s) {
    if (values.count) memcpy(copy, values.data, values.count * sizeof *copy);
    out->values = copy;
    out->count = (uint32_t)values.count;
  }
  tfc_array_free(&values);
  return s;
}

// Reads a map<string, TensorInfo>, field `number` of a SignatureDef; only a TensorInfo's name is kept.
static tfc_status read_tensor_infos(struct tfc_graph *g, tfc_str bytes, uint32_t number, const tfc_str **out_keys,
                                    const tfc_str **out_tensors, uint32_t *out_count) {
  size_t count = count_field(bytes, number);
  tfc_str *keys = TFC_ARENA_ARRAY(&g->arena, tfc_str, count + 1),
          *names = TFC_ARENA_ARRAY(&g->arena, tfc_str, count + 1);
  if (!keys || !names) return tfc_status_no_memory("reading a MetaGraph");
  struct tfc_wire w = tfc_wire_of(bytes), i;
  struct tfc_field f, e;
  uint32_t n = 0;
  while (tfc_wire_next(&w, &f)) {
    tfc_str info;
    if (f.number != number || f.type != TFC_WIRE_BYTES) continue;
    TFC_RETURN_IF_ERROR(tfc_read_entry(f.bytes, &keys[n], &info));
    i = tfc_wire_of(info);
    names[n] = TFC_STR("");
    while (tfc_wire_next(&i, &e))
      if (e.number == 1 && e.type == TFC_WIRE_BYTES) names[n] = e.bytes;
    if (i.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s", i.error);
    n++;
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s", w.error);
  *out_keys = keys;
  *out_tensors = names;
  *out_count = n;
  return NULL;
}

static tfc_status read_saver(struct tfc_graph *g, tfc_str bytes) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f)) {
    if (f.type != TFC_WIRE_BYTES) continue;
    if (f.number == 1) g->saver_filename = f.bytes;
    if (f.number == 2) g->saver_save = f.bytes;
    if (f.number == 3) g->saver_restore = f.bytes;
  }
  return w.error ? tfc_status_make(TFC_INVALID_ARGUMENT, "saver_def: %s", w.error) : NULL;
}

// Reads an AssetFileDef: the tensor, and the file in the model's folder of assets.
static tfc_status read_asset(struct tfc_graph *g, const char *directory, tfc_str bytes, struct tfc_asset *out) {
  struct tfc_wire w = tfc_wire_of(bytes), i;
  struct tfc_field f, e;
  tfc_str file = {0};
  while (tfc_wire_next(&w, &f)) {
    if (f.type != TFC_WIRE_BYTES) continue;
    if (f.number == 2) file = f.bytes;
    if (f.number != 1) continue;
    i = tfc_wire_of(f.bytes);
    while (tfc_wire_next(&i, &e))
      if (e.number == 1 && e.type == TFC_WIRE_BYTES) out->tensor = e.bytes;
    if (i.error) w.error = i.error;
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "asset_file_def: %s", w.error);
  out->path = tfc_arena_printf(&g->arena, "%s/assets/%.*s", directory, TFC_STR_ARG(file));
  return out->path.data ? NULL : tfc_status_no_memory("reading a MetaGraph");
}

// Old models list their assets only in a collection, as Any messages.
static tfc_str any_value(tfc_str any) {
  struct tfc_wire w = tfc_wire_of(any);
  struct tfc_field f;
  tfc_str value = {0};
  while (tfc_wire_next(&w, &f))
    if (f.number == 2 && f.type == TFC_WIRE_BYTES) value = f.bytes;
  return value;
}

// Finds the Any messages (field 5, in it field 1) of the collection "saved_model_assets".
static tfc_str asset_collection(tfc_str meta) {
  struct tfc_wire w = tfc_wire_of(meta), c;
  struct tfc_field f, e;
  tfc_str key, value, found = {0};
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 4 || f.type != TFC_WIRE_BYTES) continue;
    tfc_status s = tfc_read_entry(f.bytes, &key, &value);
    bool ok = !s && tfc_str_is(key, "saved_model_assets");
    tfc_status_free(s);
    if (!ok) continue;
    c = tfc_wire_of(value);
    while (tfc_wire_next(&c, &e))
      if (e.number == 5 && e.type == TFC_WIRE_BYTES) found = e.bytes;
  }
  return found;
}

tfc_status tfc_read_assets(struct tfc_graph *g, tfc_str meta, const char *directory) {
  tfc_str old = asset_collection(meta);
  size_t direct = count_field(meta, 6), count = direct ? direct : count_field(old, 1);
  struct tfc_asset *assets = tfc_arena_array(&g->arena, count + 1, sizeof *assets);
  if (!assets) return tfc_status_no_memory("reading a MetaGraph");
  struct tfc_wire w = tfc_wire_of(direct ? meta : old);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f)) {
    if (f.number != (direct ? 6 : 1) || f.type != TFC_WIRE_BYTES) continue;
    TFC_RETURN_IF_ERROR(read_asset(g, directory, direct ? f.bytes : any_value(f.bytes), &assets[g->asset_count]));
    g->asset_count++;
  }
  g->assets = assets;
  return NULL;
}

tfc_status tfc_read_meta(struct tfc_graph *g, tfc_str bytes) {
  g->collections = tfc_arena_array(&g->arena, count_field(bytes, 4) + 1, sizeof *g->collections);
  g->signatures = tfc_arena_array(&g->arena, count_field(bytes, 5) + 1, sizeof *g->signatures);
  if (!g->collections || !g->signatures) return tfc_status_no_memory("reading a MetaGraph");
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f)) {
    tfc_str key, value;
    tfc_status s = NULL;
    if (f.type != TFC_WIRE_BYTES) continue;
    if (f.number == 3) TFC_RETURN_IF_ERROR(read_saver(g, f.bytes));
    if (f.number != 4 && f.number != 5) continue;
    TFC_RETURN_IF_ERROR(tfc_read_entry(f.bytes, &key, &value));
    if (f.number == 4) {
      struct tfc_collection *c = &g->collections[g->collection_count];
      c->name = key;
      s = read_collection(g, value, c);
      if (s) return tfc_status_annotate(s, "collection '%.*s'", TFC_STR_ARG(key));
      g->collection_count++;
    } else {
      struct tfc_signature *c = &g->signatures[g->signature_count];
      c->name = key;
      s = read_tensor_infos(g, value, 1, &c->input_keys, &c->input_tensors, &c->input_count);
      if (!s) s = read_tensor_infos(g, value, 2, &c->output_keys, &c->output_tensors, &c->output_count);
      if (s) return tfc_status_annotate(s, "signature '%.*s'", TFC_STR_ARG(key));
      g->signature_count++;
    }
  }
  return w.error ? tfc_status_make(TFC_INVALID_ARGUMENT, "MetaGraphDef: %s", w.error) : NULL;
}
