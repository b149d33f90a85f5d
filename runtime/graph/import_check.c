// The checks that TensorFlow makes when it imports a GraphDef, except those of references between its parts.
#include "runtime/graph/device_spec.h"
#include "runtime/graph/import_internal.h"

enum { graph_version = 1645 }; // of TensorFlow 2.15, whose graphs these are

static tfc_status check_consumer(int64_t bad) {
  if (bad != graph_version) return NULL;
  return tfc_status_make(TFC_INVALID_ARGUMENT, "the graph is not to be read by version %d, which is what tfc reads",
                         graph_version);
}

tfc_status tfc_read_versions(struct tfc_graph *g, tfc_str bytes) {
  struct tfc_wire w = tfc_wire_of(bytes), packed;
  struct tfc_field f;
  uint64_t value;
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 3 && f.type == TFC_WIRE_BYTES) {
      packed = tfc_wire_of(f.bytes);
      while (packed.at != packed.end && tfc_wire_varint(&packed, &value))
        TFC_RETURN_IF_ERROR(check_consumer((int64_t)value));
      if (packed.error) w.error = packed.error;
    }
    if (f.type != TFC_WIRE_VARINT) continue;
    const int64_t version = (int64_t)f.value;
    if (f.number == 3) TFC_RETURN_IF_ERROR(check_consumer(version));
    if (f.number == 1 && version < 0)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "the graph's producer has version %lld", (long long)version);
    if (f.number == 1) g->producer_version = (int32_t)(version & INT32_MAX);
    if (f.number == 2 && version > graph_version)
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "the graph wants a reader of version %lld (min_consumer), and tfc reads version %d",
                             (long long)version, graph_version);
  }
  return w.error ? tfc_status_make(TFC_INVALID_ARGUMENT, "versions: %s", w.error) : NULL;
}

// Whether this is [A-Za-z0-9.][A-Za-z0-9_./-]*, or several of these with '>' between them.
static bool is_name(tfc_str name) {
  bool first = true;
  for (size_t i = 0; i < name.size; i++) {
    const char c = name.data[i];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (!plain && (first || !(c == '_' || c == '/' || c == '-' || c == '>'))) return false;
    first = c == '>';
  }
  return !first;
}

static tfc_status check_class(const struct tfc_graph *g, const struct tfc_node *n) {
  const struct tfc_attr *a = tfc_node_attr(g, n, "_class");
  for (uint32_t k = 0; a && a->kind == TFC_ATTR_LIST_STRING && k < a->count; k++) {
    if (!tfc_str_starts(a->strings[k], "loc:@")) continue;
    tfc_str name = tfc_str_sub(a->strings[k], 5, a->strings[k].size);
    if (tfc_graph_find(g, name) == TFC_NONE)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "it is to be colocated with '%.*s', which is no node of the graph",
                             TFC_STR_ARG(name));
  }
  return NULL;
}

tfc_status tfc_check_nodes(const struct tfc_graph *g) {
  tfc_str known = {0}; // the last valid device string: many nodes have the same
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    tfc_status s = NULL;
    struct tfc_device_spec unused;
    if (!is_name(n->name)) s = tfc_status_make(TFC_INVALID_ARGUMENT, "the name has characters that no name may have");
    if (!s && n->device.size && !tfc_str_equal(n->device, known)) s = tfc_device_spec_parse(n->device, &unused);
    if (n->device.size) known = n->device;
    if (!s) s = check_class(g, n);
    if (s) return tfc_status_annotate(s, "node '%.*s' (%.*s)", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
  }
  return NULL;
}
