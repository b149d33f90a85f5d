// Reads the format "tfc-machine" as a libyaml document, because its nodes have line numbers for error messages, and
// writes it row by row.
#include <math.h>
#include <stdlib.h>
#include <yaml.h>

#include "placer/model/json.h"
#include "placer/model/machine.h"
#include "placer/model/machine_yaml.h"
#include "placer/model/yaml_problem.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/map.h"
#include "runtime/base/units.h"

#define FORMAT "tfc-machine"

struct reader {
  const char *path;
  yaml_document_t document;
  uint32_t unknown;           // keys so far
  size_t points;              // of all curves so far
  size_t names;               // bytes of all names of devices
  size_t compared;            // bytes that matching all patterns so far compares, at most
  struct tfc_strmap patterns; // those with '*' of all links so far
};

// Limits for files that take little space and much time or memory: aliases ("*name") repeat a long curve, row or name,
// `count` repeats a device's name, each key of a mapping is compared with all keys before it, and each pattern with the
// names of all devices.
enum { MOST_KEYS = 64, MOST_UNKNOWN = 256, MOST_POINTS = 1 << 20, MOST_LINKS = 1 << 18, LONGEST_VALUE = 255 };
#define MOST_COMPARED ((size_t)1 << 31)

static unsigned long line_of(const yaml_node_t *node) {
  return (unsigned long)node->start_mark.line + 1;
}
static tfc_str text_of(const yaml_node_t *node) {
  return (tfc_str){(const char *)node->data.scalar.value, node->data.scalar.length};
}
static bool is_null(const yaml_node_t *node) {
  if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
  tfc_str text = text_of(node);
  return !text.size || tfc_str_is(text, "~") || tfc_str_is(text, "null");
}
#define FAIL_AT(node, ...)                                                                                             \
  return tfc_status_annotate(tfc_status_make(TFC_INVALID_ARGUMENT, __VA_ARGS__), "line %lu", line_of(node))

// Returns the value of a key; NULL: the key is absent, or its value is null.
static yaml_node_t *field(struct reader *r, const yaml_node_t *map, const char *name) {
  for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
    const yaml_node_t *key = yaml_document_get_node(&r->document, p->key);
    if (key->type == YAML_SCALAR_NODE && tfc_str_is(text_of(key), name)) {
      yaml_node_t *value = yaml_document_get_node(&r->document, p->value);
      return is_null(value) ? NULL : value;
    }
  }
  return NULL;
}

// An unknown key is most likely a typing error. It causes only a warning, because newer files may have more keys. A
// duplicate key is an error.
static tfc_status check_keys(struct reader *r, const yaml_node_t *map, const char *const *known) {
  const yaml_node_pair_t *start = map->data.mapping.pairs.start;
  if (map->data.mapping.pairs.top - start > MOST_KEYS) FAIL_AT(map, "a mapping has more than %d keys", MOST_KEYS);
  for (const yaml_node_pair_t *p = start; p < map->data.mapping.pairs.top; p++) {
    const yaml_node_t *key = yaml_document_get_node(&r->document, p->key);
    if (key->type != YAML_SCALAR_NODE) FAIL_AT(key, "a key is not a word");
    bool found = false;
    for (size_t i = 0; known[i]; i++) found |= tfc_str_is(text_of(key), known[i]);
    if (!found && ++r->unknown > MOST_UNKNOWN) FAIL_AT(key, "more than %d keys are not known", MOST_UNKNOWN);
    if (!found)
      tfc_log(TFC_LOG_WARNING, "%s: line %lu: '%.*s' is not known and ignored", r->path, line_of(key),
              TFC_STR_ARG(text_of(key)));
    for (const yaml_node_pair_t *q = start; q < p; q++) {
      const yaml_node_t *other = yaml_document_get_node(&r->document, q->key);
      if (other->type == YAML_SCALAR_NODE && tfc_str_equal(text_of(other), text_of(key)))
        FAIL_AT(key, "'%.*s' is given twice", TFC_STR_ARG(text_of(key)));
    }
  }
  return NULL;
}

static tfc_status scalar(struct reader *r, const yaml_node_t *map, const char *name, tfc_str *out) {
  const yaml_node_t *value = field(r, map, name);
  if (!value) return NULL;
  if (value->type != YAML_SCALAR_NODE) FAIL_AT(value, "%s is not a single value", name);
  *out = text_of(value);
  if (out->size > LONGEST_VALUE) FAIL_AT(value, "%s is longer than %d bytes", name, LONGEST_VALUE);
  // A name with a zero byte, which a file writes as "\0", would end there wherever it is printed.
  if (memchr(out->data, 0, out->size)) FAIL_AT(value, "%s contains a zero byte", name);
  return NULL;
}
#define READ_UNIT(function, type)                                                                                      \
  static tfc_status function(struct reader *r, const yaml_node_t *map, const char *name, type *out) {                  \
    tfc_str text = {0};                                                                                                \
    TFC_RETURN_IF_ERROR(scalar(r, map, name, &text));                                                                  \
    if (!text.data) return NULL;                                                                                       \
    tfc_status s = PARSE(text, out);                                                                                   \
    return s ? tfc_status_annotate(s, "line %lu: %s", line_of(field(r, map, name)), name) : NULL;                      \
  }
#define PARSE tfc_parse_bytes
READ_UNIT(read_bytes, uint64_t)
#undef PARSE
#define PARSE tfc_parse_bandwidth
READ_UNIT(read_bandwidth, double)
#undef PARSE
#define PARSE tfc_parse_time_us
READ_UNIT(read_time, double)
#undef PARSE
#define PARSE tfc_parse_i64
READ_UNIT(read_i64, int64_t)
#undef PARSE
#define PARSE tfc_parse_double
READ_UNIT(read_double, double)
#undef PARSE

static tfc_status read_bool(struct reader *r, const yaml_node_t *map, const char *name, bool *out) {
  static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
  static const char *const no[] = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
  tfc_str text = {0};
  TFC_RETURN_IF_ERROR(scalar(r, map, name, &text));
  if (!text.data) return NULL;
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
    if (tfc_str_is(text, yes[i])) return *out = true, NULL;
    if (tfc_str_is(text, no[i])) return *out = false, NULL;
  }
  FAIL_AT(field(r, map, name), "%s is '%.*s': true or false", name, TFC_STR_ARG(text));
}

static tfc_status read_sequence(struct reader *r, const yaml_node_t *map, const char *name, yaml_node_t **out) {
  yaml_node_t *value = field(r, map, name);
  if (value && value->type != YAML_SEQUENCE_NODE) FAIL_AT(value, "%s is not a list", name);
  *out = value;
  return NULL;
}
static size_t length_of(const yaml_node_t *sequence) {
  return (size_t)(sequence->data.sequence.items.top - sequence->data.sequence.items.start);
}
static yaml_node_t *item_of(struct reader *r, const yaml_node_t *sequence, size_t i) {
  return yaml_document_get_node(&r->document, sequence->data.sequence.items.start[i]);
}

// Adds `by` to the number in a device's name: "acc:3" and 2 give "acc:5".
static tfc_str count_up(struct tfc_arena *arena, tfc_str name, uint32_t by, bool *out_ok) {
  size_t digits = 0;
  while (digits < name.size && name.data[name.size - 1 - digits] >= '0' && name.data[name.size - 1 - digits] <= '9')
    digits++;
  *out_ok = digits > 0 && digits < 10;
  if (by == 0 || !*out_ok) return name;
  unsigned long long number = strtoull(name.data + name.size - digits, NULL, 10) + by;
  return tfc_arena_printf(arena, "%.*s%llu", (int)(name.size - digits), name.data, number);
}

// Replaces each "{host}" in the name by the host's number.
static tfc_str name_host(struct tfc_arena *arena, tfc_str name, uint32_t host) {
  for (size_t i = 0; i < name.size; i++) {
    const tfc_str rest = tfc_str_sub(name, i, SIZE_MAX);
    if (!tfc_str_starts(rest, "{host}")) continue;
    const tfc_str after = name_host(arena, tfc_str_sub(rest, strlen("{host}"), SIZE_MAX), host);
    return tfc_arena_printf(arena, "%.*s%u%.*s", (int)i, name.data, host, TFC_STR_ARG(after));
  }
  return name;
}

static tfc_status read_device(struct reader *r, const yaml_node_t *map, struct tfc_machine *m) {
  static const char *const known[] = {
      "name",     "kind",     "memory", "count", "tensorflow", "flops", "memory_bandwidth",
      "dispatch", "slowdown", "host",   "hosts", NULL};
  struct tfc_machine_device d = {.memory = TFC_NO_LIMIT, .label = TFC_LABEL_MODELLED};
  int64_t count = 1, hosts = 1;
  yaml_node_t *slowdown = NULL;
  double factors[TFC_MAX_DEVICES];
  if (map->type != YAML_MAPPING_NODE) FAIL_AT(map, "a device is not a mapping ({name: …, kind: …})");
  TFC_RETURN_IF_ERROR(check_keys(r, map, known));
  TFC_RETURN_IF_ERROR(scalar(r, map, "name", &d.name));
  TFC_RETURN_IF_ERROR(scalar(r, map, "kind", &d.kind));
  TFC_RETURN_IF_ERROR(scalar(r, map, "tensorflow", &d.tensorflow));
  TFC_RETURN_IF_ERROR(read_bytes(r, map, "memory", &d.memory));
  TFC_RETURN_IF_ERROR(read_double(r, map, "flops", &d.flops));
  TFC_RETURN_IF_ERROR(read_bandwidth(r, map, "memory_bandwidth", &d.memory_bandwidth));
  TFC_RETURN_IF_ERROR(read_time(r, map, "dispatch", &d.dispatch_us));
  TFC_RETURN_IF_ERROR(read_i64(r, map, "count", &count));
  TFC_RETURN_IF_ERROR(scalar(r, map, "host", &d.host));
  TFC_RETURN_IF_ERROR(read_i64(r, map, "hosts", &hosts));
  TFC_RETURN_IF_ERROR(read_sequence(r, map, "slowdown", &slowdown));
  if (!d.name.size) FAIL_AT(map, "a device has no name");
  if (!d.kind.size) FAIL_AT(map, "device '%.*s' has no kind", TFC_STR_ARG(d.name));
  if (count < 1 || count > TFC_MAX_DEVICES)
    FAIL_AT(map, "device '%.*s': count is %lld (1 to %u)", TFC_STR_ARG(d.name), (long long)count, TFC_MAX_DEVICES);
  if (hosts < 1 || hosts > TFC_MAX_DEVICES || (hosts > 1 && !d.host.size))
    FAIL_AT(map, "device '%.*s': hosts is a number from 1 to %u, and needs host: NAME", TFC_STR_ARG(d.name),
            TFC_MAX_DEVICES);
  if (slowdown) {
    if (length_of(slowdown) > TFC_MAX_DEVICES) FAIL_AT(slowdown, "slowdown has too many entries");
    for (size_t i = 0; i < length_of(slowdown); i++) {
      const yaml_node_t *item = item_of(r, slowdown, i);
      if (item->type != YAML_SCALAR_NODE) FAIL_AT(item, "slowdown is not a list of numbers");
      tfc_status s = tfc_parse_double(text_of(item), &factors[i]);
      if (s) return tfc_status_annotate(s, "line %lu: slowdown", line_of(item));
    }
    d.slowdown = factors, d.slowdown_count = (uint32_t)length_of(slowdown);
  }
  const tfc_str name = d.name, tensorflow = d.tensorflow, host = d.host;
  for (uint32_t i = 0; i < count * hosts; i++) {
    const uint32_t of_host = i / (uint32_t)count;
    bool ok;
    d.name = count_up(&m->arena, name, i, &ok);
    if (!ok && count * hosts > 1)
      FAIL_AT(map, "device '%.*s': count and hosts need a number at the end of the name", TFC_STR_ARG(name));
    if (tensorflow.data) {
      d.tensorflow = name_host(&m->arena, count_up(&m->arena, tensorflow, i % (uint32_t)count, &ok), of_host);
      if (!ok && count > 1)
        FAIL_AT(map, "device '%.*s': count needs a number at the end of tensorflow", TFC_STR_ARG(name));
    }
    if (host.data) d.host = count_up(&m->arena, host, of_host, &ok);
    if (host.data && !ok && hosts > 1)
      FAIL_AT(map, "device '%.*s': hosts needs a number at the end of host", TFC_STR_ARG(name));
    tfc_status s = tfc_machine_add_device(m, &d);
    if (s) return tfc_status_annotate(s, "line %lu", line_of(map));
    r->names += d.name.size;
  }
  return NULL;
}

static tfc_status read_curve(struct reader *r, const yaml_node_t *curve, struct tfc_machine *m, struct tfc_link *l) {
  size_t count = length_of(curve);
  r->points += count;
  if (r->points > MOST_POINTS) FAIL_AT(curve, "the curves have more than %d points", MOST_POINTS);
  struct tfc_link_point *points = TFC_ARENA_ARRAY(&m->arena, struct tfc_link_point, count + 1);
  if (!points) return tfc_status_no_memory("a machine");
  if (!count) FAIL_AT(curve, "the curve is empty");
  for (size_t i = 0; i < count; i++) {
    const yaml_node_t *item = item_of(r, curve, i);
    if (item->type != YAML_SEQUENCE_NODE || length_of(item) != 2 || item_of(r, item, 0)->type != YAML_SCALAR_NODE ||
        item_of(r, item, 1)->type != YAML_SCALAR_NODE)
      FAIL_AT(item, "a point of the curve is not [bytes, time]");
    uint64_t bytes;
    tfc_status s = tfc_parse_bytes(text_of(item_of(r, item, 0)), &bytes);
    if (!s) s = tfc_parse_time_us(text_of(item_of(r, item, 1)), &points[i].time_us);
    if (s) return tfc_status_annotate(s, "line %lu: curve", line_of(item));
    points[i].bytes = (double)bytes;
  }
  l->curve = points, l->curve_count = (uint32_t)count;
  return NULL;
}

// Counts what it takes to compare a link's pattern with the names of all devices. Equal patterns are compared once.
static tfc_status count_pattern(struct reader *r, const yaml_node_t *map, const struct tfc_machine *m,
                                tfc_str pattern) {
  bool found;
  if (tfc_str_find(pattern, '*') == SIZE_MAX) return NULL;
  if (!tfc_strmap_put(&r->patterns, pattern, 0, &found)) return tfc_status_no_memory("a machine");
  if (found) return NULL;
  r->compared += r->names + m->device_count * pattern.size;
  if (r->compared > MOST_COMPARED)
    FAIL_AT(map,
            "%zu different patterns with '*' are too many for %u devices: comparing them with all names takes too long",
            r->patterns.count, m->device_count);
  return NULL;
}

static tfc_status read_link(struct reader *r, const yaml_node_t *map, struct tfc_machine *m) {
  static const char *const known[] = {"from",     "to",   "hosts", "latency", "bandwidth", "duplex",
                                      "occupies", "wire", "curve", "wake",    NULL};
  static const char *const occupies[] = {"none", "sender", "receiver", "both"};
  struct tfc_link l = tfc_link_default();
  tfc_str stands = {0}, hosts = {0};
  yaml_node_t *curve = NULL;
  if (map->type != YAML_MAPPING_NODE) FAIL_AT(map, "a link is not a mapping ({from: …, to: …})");
  TFC_RETURN_IF_ERROR(check_keys(r, map, known));
  l.from = l.to = (tfc_str){0};
  TFC_RETURN_IF_ERROR(scalar(r, map, "from", &l.from));
  TFC_RETURN_IF_ERROR(scalar(r, map, "to", &l.to));
  TFC_RETURN_IF_ERROR(scalar(r, map, "wire", &l.wire));
  TFC_RETURN_IF_ERROR(scalar(r, map, "hosts", &hosts));
  TFC_RETURN_IF_ERROR(scalar(r, map, "occupies", &stands));
  TFC_RETURN_IF_ERROR(read_time(r, map, "latency", &l.latency_us));
  TFC_RETURN_IF_ERROR(read_time(r, map, "wake", &l.wake_us));
  TFC_RETURN_IF_ERROR(read_bandwidth(r, map, "bandwidth", &l.bandwidth));
  TFC_RETURN_IF_ERROR(read_bool(r, map, "duplex", &l.duplex));
  TFC_RETURN_IF_ERROR(read_sequence(r, map, "curve", &curve));
  if (!l.from.size || !l.to.size) FAIL_AT(map, "a link needs from and to");
  if (m->link_count >= MOST_LINKS) FAIL_AT(map, "there are more than %d rows of links", MOST_LINKS);
  TFC_RETURN_IF_ERROR(count_pattern(r, map, m, l.from));
  TFC_RETURN_IF_ERROR(count_pattern(r, map, m, l.to));
  if (hosts.data) {
    l.hosts = tfc_str_is(hosts, "same") ? TFC_HOSTS_SAME : TFC_HOSTS_DIFFERENT;
    if (l.hosts != TFC_HOSTS_SAME && !tfc_str_is(hosts, "different"))
      FAIL_AT(map, "hosts is '%.*s': same or different", TFC_STR_ARG(hosts));
  }
  if (stands.data) {
    int which = -1;
    for (int i = 0; i < 4; i++)
      if (tfc_str_is(stands, occupies[i])) which = i;
    if (which < 0) FAIL_AT(map, "occupies is '%.*s': none, sender, receiver or both", TFC_STR_ARG(stands));
    l.occupies = (tfc_occupies)which;
  }
  if (curve) TFC_RETURN_IF_ERROR(read_curve(r, curve, m, &l));
  tfc_status s = tfc_machine_add_link(m, &l);
  return s ? tfc_status_annotate(s, "line %lu", line_of(map)) : NULL;
}

static tfc_status read_root(struct reader *r, struct tfc_machine *m) {
  static const char *const known[] = {"format", "version", "devices", "links", "name", "description", NULL};
  yaml_node_t *root = yaml_document_get_root_node(&r->document), *devices = NULL, *links = NULL;
  tfc_str format = {0};
  int64_t version = 1;
  if (!root) return tfc_status_make(TFC_INVALID_ARGUMENT, "the file is empty");
  if (root->type != YAML_MAPPING_NODE) FAIL_AT(root, "not a mapping: expected 'format: " FORMAT "'");
  TFC_RETURN_IF_ERROR(check_keys(r, root, known));
  TFC_RETURN_IF_ERROR(scalar(r, root, "format", &format));
  if (!tfc_str_is(format, FORMAT))
    FAIL_AT(root, "format is '%.*s': expected '" FORMAT "'", TFC_STR_ARG(tfc_str_sub(format, 0, 80)));
  TFC_RETURN_IF_ERROR(read_i64(r, root, "version", &version));
  if (version != 1) FAIL_AT(root, "version %lld is not known: only 1 is", (long long)version);
  TFC_RETURN_IF_ERROR(read_sequence(r, root, "devices", &devices));
  TFC_RETURN_IF_ERROR(read_sequence(r, root, "links", &links));
  if (!devices || !length_of(devices)) FAIL_AT(root, "no devices");
  for (size_t i = 0; i < length_of(devices); i++) TFC_RETURN_IF_ERROR(read_device(r, item_of(r, devices, i), m));
  for (size_t i = 0; links && i < length_of(links); i++) TFC_RETURN_IF_ERROR(read_link(r, item_of(r, links, i), m));
  return NULL;
}

tfc_status tfc_machine_parse(tfc_str text, const char *path, struct tfc_machine **out) {
  tfc_status s = NULL;
  struct tfc_machine *m = NULL;
  struct reader r = {.path = path};
  yaml_parser_t parser;
  bool parsed = false;
  s = tfc_yaml_check(text);
  if (s) return tfc_status_annotate(s, "%s", path);
  if (!yaml_parser_initialize(&parser)) return tfc_status_no_memory("YAML");
  yaml_parser_set_input_string(&parser, (const unsigned char *)(text.data ? text.data : ""), text.size);
  if (!yaml_parser_load(&parser, &r.document)) TFC_TRY(s, tfc_yaml_problem(&parser));
  parsed = true;
  TFC_TRY(s, tfc_machine_create(&m));
  TFC_TRY(s, read_root(&r, m));
  *out = m, m = NULL;
out:
  if (parsed) yaml_document_delete(&r.document);
  yaml_parser_delete(&parser);
  tfc_strmap_deinit(&r.patterns);
  tfc_machine_free(m);
  return tfc_status_annotate(s, "%s", path);
}

tfc_status tfc_machine_read(const char *path, struct tfc_machine **out) {
  struct tfc_file file = {0};
  TFC_RETURN_IF_ERROR(tfc_file_map_document(path, &file));
  tfc_status s = tfc_machine_parse((tfc_str){(const char *)file.data, file.size}, path, out);
  tfc_file_unmap(&file);
  return s;
}

// Writes a string as JSON does, because YAML reads such text as a double-quoted string. Some characters that JSON
// leaves as they are must be escaped here: libyaml refuses some of them and takes others for the end of a line, and
// tfc_yaml_check() would count brackets in a name as open ones, and "&" as an anchor.
static void add_string(struct tfc_text *t, tfc_str value) {
  struct tfc_text json = {0};
  tfc_json_add_string(&json, value);
  t->failed |= json.failed;
  for (size_t i = 0; i < json.size; i++) {
    const unsigned char *c = (const unsigned char *)json.data + i;
    unsigned code = 0;
    size_t size = 1;
    if (strchr("[]{}&\x7f", c[0]))
      code = c[0];
    else if (c[0] == 0xc2 && c[1] < 0xa0) // U+0080 to U+009F
      code = c[1], size = 2;
    else if (c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9)) // U+2028, U+2029
      code = 0x2000 + c[2] - 0x80, size = 3;
    else if (c[0] == 0xef && ((c[1] == 0xbb && c[2] == 0xbf) || (c[1] == 0xbf && c[2] >= 0xbe))) // U+FEFF, FFFE, FFFF
      code = 0xf000 + ((c[1] & 0x3fu) << 6) + (c[2] & 0x3fu), size = 3;
    if (code)
      tfc_text_printf(t, "\\u%04x", code);
    else
      tfc_text_add(t, (tfc_str){json.data + i, 1});
    i += size - 1;
  }
  tfc_text_deinit(&json);
}
static void add_field(struct tfc_text *t, const char *name, tfc_str value) {
  tfc_text_printf(t, ", %s: ", name);
  add_string(t, value);
}
static void add_number(struct tfc_text *t, const char *name, double value, const char *unit) {
  tfc_text_printf(t, ", %s: ", name);
  tfc_json_add_number(t, value);
  tfc_text_add(t, tfc_str_from(unit));
}

tfc_status tfc_machine_format(const struct tfc_machine *m, struct tfc_text *out) {
  static const char *const occupies[] = {"none", "sender", "receiver", "both"};
  struct tfc_text t = {0};
  tfc_text_add(&t, TFC_STR("format: " FORMAT "\nversion: 1\ndevices:\n"));
  for (uint32_t i = 0; i < m->device_count; i++) {
    const struct tfc_machine_device *d = &m->devices[i];
    tfc_text_add(&t, TFC_STR("  - {name: "));
    add_string(&t, d->name);
    add_field(&t, "kind", d->kind);
    if (d->memory != TFC_NO_LIMIT) tfc_text_printf(&t, ", memory: %llu", (unsigned long long)d->memory);
    if (d->host.data) add_field(&t, "host", d->host);
    if (d->tensorflow.data) add_field(&t, "tensorflow", d->tensorflow);
    if (d->flops > 0) add_number(&t, "flops", d->flops, "");
    if (d->memory_bandwidth > 0) add_number(&t, "memory_bandwidth", d->memory_bandwidth, "B/s");
    if (d->dispatch_us > 0) add_number(&t, "dispatch", d->dispatch_us, "us");
    for (uint32_t k = 0; k < d->slowdown_count; k++) {
      tfc_text_add(&t, k ? TFC_STR(", ") : TFC_STR(", slowdown: ["));
      tfc_json_add_number(&t, d->slowdown[k]);
      if (k + 1 == d->slowdown_count) tfc_text_add(&t, TFC_STR("]"));
    }
    tfc_text_add(&t, TFC_STR("}\n"));
  }
  if (m->link_count) tfc_text_add(&t, TFC_STR("links:\n"));
  for (uint32_t i = 0; i < m->link_count; i++) {
    const struct tfc_link *l = &m->links[i];
    tfc_text_add(&t, TFC_STR("  - {from: "));
    add_string(&t, l->from);
    add_field(&t, "to", l->to);
    if (l->hosts) tfc_text_printf(&t, ", hosts: %s", l->hosts == TFC_HOSTS_SAME ? "same" : "different");
    add_number(&t, "latency", l->latency_us, "us");
    if (isfinite(l->bandwidth)) add_number(&t, "bandwidth", l->bandwidth, "B/s");
    tfc_text_printf(&t, ", duplex: %s, occupies: %s", l->duplex ? "true" : "false", occupies[l->occupies]);
    if (l->wire.data) add_field(&t, "wire", l->wire);
    for (uint32_t k = 0; k < l->curve_count; k++) {
      tfc_text_printf(&t, "%s[%.0f, ", k ? ", " : ", curve: [", l->curve[k].bytes);
      tfc_json_add_number(&t, l->curve[k].time_us);
      tfc_text_add(&t, k + 1 == l->curve_count ? TFC_STR("us]]") : TFC_STR("us]"));
    }
    if (l->wake_us > 0) add_number(&t, "wake", l->wake_us, "us");
    tfc_text_add(&t, TFC_STR("}\n"));
  }
  if (t.failed) {
    tfc_text_deinit(&t);
    return tfc_status_no_memory("writing the machine");
  }
  *out = t;
  return NULL;
}

tfc_status tfc_machine_write(const struct tfc_machine *machine, const char *path) {
  struct tfc_text text = {0};
  TFC_RETURN_IF_ERROR(tfc_machine_format(machine, &text));
  tfc_status s = tfc_file_write(path, (tfc_str){text.data, text.size});
  tfc_text_deinit(&text);
  return s;
}
