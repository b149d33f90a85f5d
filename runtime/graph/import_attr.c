// Reads AttrValue, TensorShapeProto, TensorProto and NameAttrList.
#include <stdlib.h>

#include "runtime/graph/import_internal.h"

struct tfc_import_limits tfc_import_limits = {.expanded_bytes = (size_t)1 << 30, .depth = 32};

static tfc_status bad(const char *what) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "%s", what);
}
tfc_status tfc_read_entry(tfc_str bytes, tfc_str *out_key, tfc_str *out_value) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  tfc_str key = TFC_STR(""), value = TFC_STR("");
  while (tfc_wire_next(&w, &f)) {
    if (f.type != TFC_WIRE_BYTES) continue;
    if (f.number == 1) key = f.bytes;
    if (f.number == 2) value = f.bytes;
  }
  if (w.error) return bad(w.error);
  *out_key = key;
  *out_value = value;
  return NULL;
}

tfc_status tfc_read_shape(tfc_str bytes, struct tfc_shape *out) {
  struct tfc_wire w = tfc_wire_of(bytes), d;
  struct tfc_field f, e;
  struct tfc_shape shape = TFC_SHAPE_SCALAR;
  bool unknown = false;
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 3 && f.type == TFC_WIRE_VARINT) unknown = f.value != 0;
    if (f.number != 2 || f.type != TFC_WIRE_BYTES) continue;
    int64_t size = 0;
    d = tfc_wire_of(f.bytes);
    while (tfc_wire_next(&d, &e))
      if (e.number == 1 && e.type == TFC_WIRE_VARINT) size = (int64_t)e.value;
    if (d.error) return bad(d.error);
    if (size < -1) return tfc_status_make(TFC_INVALID_ARGUMENT, "a shape has the dimension %lld", (long long)size);
    if (shape.rank == TFC_MAX_RANK)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "a shape has more than %d dimensions", (int)TFC_MAX_RANK);
    shape.dims[shape.rank++] = size;
  }
  if (w.error) return bad(w.error);
  *out = unknown ? TFC_SHAPE_UNKNOWN : shape;
  return NULL;
}

// --- Tensors -------------------------------------------------------------------------------------------------------
// The field that holds a type's values, the wire type of its numbers, and how many numbers make one element.
struct value_field {
  uint32_t number;
  enum tfc_wire_type type;
  uint32_t per_element;
};
static struct value_field field_of(tfc_dtype t) {
  switch ((int)t) {
  case TFC_FLOAT: return (struct value_field){5, TFC_WIRE_32, 1};
  case TFC_DOUBLE: return (struct value_field){6, TFC_WIRE_64, 1};
  case TFC_COMPLEX64: return (struct value_field){9, TFC_WIRE_32, 2};
  case TFC_COMPLEX128: return (struct value_field){12, TFC_WIRE_64, 2};
  case TFC_INT64: return (struct value_field){10, TFC_WIRE_VARINT, 1};
  case TFC_BOOL: return (struct value_field){11, TFC_WIRE_VARINT, 1};
  case TFC_HALF:
  case TFC_BFLOAT16: return (struct value_field){13, TFC_WIRE_VARINT, 1};
  case TFC_UINT32: return (struct value_field){16, TFC_WIRE_VARINT, 1};
  case TFC_UINT64: return (struct value_field){17, TFC_WIRE_VARINT, 1};
  default: return (struct value_field){7, TFC_WIRE_VARINT, 1}; // int_val
  }
}

static void *aligned(struct tfc_graph *g, size_t bytes) {
  if (bytes < 256) return tfc_arena_alloc(&g->arena, bytes + 1);
  char *p = bytes > SIZE_MAX / 2 ? NULL : tfc_arena_alloc(&g->arena, bytes + 64);
  return p ? p + (-(uintptr_t)p & 63) : NULL;
}

static tfc_status count_expanded(struct tfc_attr_reader *r, size_t more) {
  if (more > tfc_import_limits.expanded_bytes - r->expanded)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "constants written as one repeated value take more than %zu bytes all together",
                           tfc_import_limits.expanded_bytes);
  r->expanded += more;
  return NULL;
}

// Writes number `index` of a value field; both file and machine are little-endian.
static void put_number(char *data, size_t index, size_t size, uint64_t value) {
  memcpy(data + index * size, &value, size);
}

// Reads numbers, single or packed, as many as fit; *out_count is how many the file has.
static tfc_status read_numbers(tfc_str bytes, struct value_field vf, char *data, size_t room, size_t size,
                               size_t *out_count) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  size_t n = 0;
  while (tfc_wire_next(&w, &f)) {
    if (f.number != vf.number) continue;
    if (f.type == vf.type) {
      if (n < room) put_number(data, n, size, f.value);
      n++;
    } else if (f.type == TFC_WIRE_BYTES && vf.type == TFC_WIRE_VARINT) {
      struct tfc_wire p = tfc_wire_of(f.bytes);
      uint64_t value;
      while (p.at != p.end) {
        if (!tfc_wire_varint(&p, &value)) return bad(p.error);
        if (n < room) put_number(data, n, size, value);
        n++;
      }
    } else if (f.type == TFC_WIRE_BYTES) {
      if (f.bytes.size % size) return bad("packed numbers are cut off");
      size_t more = f.bytes.size / size, fit = n < room ? (more < room - n ? more : room - n) : 0;
      if (fit) memcpy(data + n * size, f.bytes.data, fit * size);
      n += more;
    }
  }
  if (w.error) return bad(w.error);
  *out_count = n;
  return NULL;
}

static bool has_values(tfc_str bytes, uint32_t number) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f))
    if (f.number == number && (f.type != TFC_WIRE_BYTES || f.bytes.size)) return true;
  return false;
}

// Reads all lengths and then all bytes.
static tfc_status read_string_content(tfc_str content, struct tfc_string *strings, size_t elements) {
  struct tfc_wire lengths = tfc_wire_of(content), w;
  uint64_t size;
  for (size_t i = 0; i < elements; i++)
    if (!tfc_wire_varint(&lengths, &size)) return bad(lengths.error);
  w = lengths;
  lengths = tfc_wire_of(content);
  for (size_t i = 0; i < elements; i++) {
    tfc_str s;
    if (!tfc_wire_varint(&lengths, &size) || !tfc_wire_take(&w, size, &s)) return bad("strings are cut off");
    strings[i] = (struct tfc_string){s.size ? (char *)s.data : NULL, s.size};
  }
  return w.at == w.end ? NULL : bad("strings have bytes left over");
}

static tfc_status read_strings(struct tfc_attr_reader *r, tfc_str bytes, tfc_str content, struct tfc_tensor *t) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  size_t elements = (size_t)tfc_tensor_elements(t), n = 0;
  if (t->size > bytes.size) TFC_RETURN_IF_ERROR(count_expanded(r, t->size));
  struct tfc_string *strings = tfc_arena_array(&r->graph->arena, elements + 1, sizeof *strings);
  if (!strings) return tfc_status_no_memory("reading a graph");
  t->data = strings;
  if (content.size) return read_string_content(content, strings, elements);
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 8 || f.type != TFC_WIRE_BYTES || n == elements) continue;
    strings[n++] = (struct tfc_string){f.bytes.size ? (char *)f.bytes.data : NULL, f.bytes.size};
  }
  for (size_t i = n; n && i < elements; i++) strings[i] = strings[n - 1];
  return w.error ? bad(w.error) : NULL;
}

static tfc_status read_tensor(struct tfc_attr_reader *r, tfc_str bytes, struct tfc_tensor *out) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  struct tfc_tensor t = {.shape = TFC_SHAPE_SCALAR};
  tfc_str content = {0};
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 1 && f.type == TFC_WIRE_VARINT) t.dtype = (tfc_dtype)(f.value < 256 ? f.value : 0);
    if (f.number == 2 && f.type == TFC_WIRE_BYTES) TFC_RETURN_IF_ERROR(tfc_read_shape(f.bytes, &t.shape));
    if (f.number == 4 && f.type == TFC_WIRE_BYTES) content = f.bytes;
  }
  if (w.error) return bad(w.error);
  if (!tfc_dtype_valid(t.dtype) || tfc_dtype_is_ref(t.dtype))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a constant has the unknown element type %d", (int)t.dtype);
  TFC_RETURN_IF_ERROR(tfc_tensor_bytes(t.dtype, &t.shape, &t.size));
  if (t.dtype == TFC_STRING) {
    TFC_RETURN_IF_ERROR(read_strings(r, bytes, content, &t));
    *out = t;
    return NULL;
  }
  if (!tfc_dtype_is_plain(t.dtype)) // a handle has a meaning only in the process that made it
    return tfc_status_make(TFC_UNIMPLEMENTED, "a constant of type %s", tfc_dtype_name(t.dtype));
  if (content.size) {
    if (content.size != t.size)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "a constant has %zu bytes where its shape needs %zu", content.size,
                             t.size);
    t.data = aligned(r->graph, t.size);
    if (!t.data) return tfc_status_no_memory("reading a graph");
    memcpy(t.data, content.data, t.size);
    *out = t;
    return NULL;
  }
  struct value_field vf = field_of(t.dtype);
  if (t.size > bytes.size * 8) TFC_RETURN_IF_ERROR(count_expanded(r, t.size));
  if (!has_values(bytes, vf.number)) { // all zeros: memory that the system zeroes when it is first touched
    t.data = t.size < 65536 ? aligned(r->graph, t.size) : calloc(t.size + 64, 1);
    if (!t.data) return tfc_status_no_memory("reading a graph");
    if (t.size < 65536) {
      memset(t.data, 0, t.size);
    } else {
      if (!tfc_graph_own(r->graph, t.data)) return tfc_status_no_memory("reading a graph");
      t.data = (char *)t.data + (-(uintptr_t)t.data & 63);
    }
    *out = t;
    return NULL;
  }
  t.data = aligned(r->graph, t.size);
  if (!t.data) return tfc_status_no_memory("reading a graph");
  size_t size = tfc_dtype_size(t.dtype) / vf.per_element, room = t.size / size, n = 0;
  TFC_RETURN_IF_ERROR(read_numbers(bytes, vf, t.data, room, size, &n));
  if (n < vf.per_element) {
    memset(t.data, 0, t.size);
  } else if (n < room) { // the last value is repeated until the tensor is full
    size_t element = tfc_dtype_size(t.dtype), last = (n / vf.per_element - 1) * element;
    for (size_t at = last + element; at < t.size; at += element)
      memcpy((char *)t.data + at, (char *)t.data + last, element);
  }
  *out = t;
  return NULL;
}

// --- Attribute values ----------------------------------------------------------------------------------------------
static tfc_status read_func(struct tfc_attr_reader *r, tfc_str bytes, struct tfc_func_attr *out) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  struct tfc_func_attr func = {.name = TFC_STR("")};
  uint32_t count = 0;
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 1 && f.type == TFC_WIRE_BYTES) func.name = f.bytes;
    count += f.number == 2 && f.type == TFC_WIRE_BYTES;
  }
  if (w.error) return bad(w.error);
  struct tfc_attr *attrs = TFC_ARENA_ARRAY(&r->graph->arena, struct tfc_attr, (size_t)count + 1);
  if (!attrs) return tfc_status_no_memory("reading a graph");
  if (count && r->depth >= tfc_import_limits.depth) return bad("attributes are nested too deeply");
  r->depth++;
  w = tfc_wire_of(bytes);
  while (tfc_wire_next(&w, &f)) {
    tfc_str value;
    if (f.number != 2 || f.type != TFC_WIRE_BYTES) continue;
    TFC_RETURN_IF_ERROR(tfc_read_entry(f.bytes, &attrs[func.attr_count].name, &value));
    TFC_RETURN_IF_ERROR(tfc_read_attr_value(r, value, &attrs[func.attr_count]));
    func.attr_count++;
  }
  r->depth--;
  func.attrs = attrs;
  *out = func;
  return NULL;
}

static bool is_number(tfc_attr_kind kind) {
  return kind == TFC_ATTR_LIST_INT || kind == TFC_ATTR_LIST_FLOAT || kind == TFC_ATTR_LIST_BOOL ||
         kind == TFC_ATTR_LIST_TYPE;
}

static void put_item(tfc_attr_kind kind, void *items, uint32_t i, uint64_t value) {
  switch (kind) {
  case TFC_ATTR_LIST_INT: ((int64_t *)items)[i] = (int64_t)value; break;
  case TFC_ATTR_LIST_FLOAT: ((double *)items)[i] = (double)tfc_wire_float(value); break;
  case TFC_ATTR_LIST_BOOL: ((bool *)items)[i] = value != 0; break;
  default: ((tfc_dtype *)items)[i] = (tfc_dtype)(value < 256 ? value : 0); break;
  }
}

static tfc_status read_list(struct tfc_attr_reader *r, tfc_str bytes, struct tfc_attr *out) {
  static const struct {
    tfc_attr_kind kind;
    size_t size;
    enum tfc_wire_type type;
  } kinds[] = {[2] = {TFC_ATTR_LIST_STRING, sizeof(tfc_str), TFC_WIRE_BYTES},
               [3] = {TFC_ATTR_LIST_INT, sizeof(int64_t), TFC_WIRE_VARINT},
               [4] = {TFC_ATTR_LIST_FLOAT, sizeof(double), TFC_WIRE_32},
               [5] = {TFC_ATTR_LIST_BOOL, sizeof(bool), TFC_WIRE_VARINT},
               [6] = {TFC_ATTR_LIST_TYPE, sizeof(tfc_dtype), TFC_WIRE_VARINT},
               [7] = {TFC_ATTR_LIST_SHAPE, sizeof(struct tfc_shape), TFC_WIRE_BYTES},
               [8] = {TFC_ATTR_LIST_TENSOR, sizeof(struct tfc_tensor), TFC_WIRE_BYTES},
               [9] = {TFC_ATTR_LIST_FUNC, sizeof(struct tfc_func_attr), TFC_WIRE_BYTES}};
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  uint32_t number = 0;
  size_t count = 0;
  while (tfc_wire_next(&w, &f)) { // first pass: find the kind of the list, and the most items that it can have
    if (f.number < 2 || f.number > 9) continue;
    if (number && f.number != number) return bad("a list mixes kinds of values");
    number = f.number;
    if (f.type == TFC_WIRE_BYTES && is_number(kinds[number].kind))
      count += kinds[number].type == TFC_WIRE_32 ? f.bytes.size / 4 : f.bytes.size;
    else if (f.type == kinds[number].type)
      count++;
    else
      return bad("a list holds a value of the wrong wire type");
  }
  if (w.error) return bad(w.error);
  out->kind = number ? kinds[number].kind : TFC_ATTR_LIST_INT;
  out->count = 0;
  out->ints = NULL;
  r->empty_list |= !number;
  if (!number) return NULL;
  void *items = tfc_arena_array(&r->graph->arena, count + 1, kinds[number].size);
  if (!items || count > UINT32_MAX / 2) return tfc_status_no_memory("reading a graph");
  if (r->depth >= tfc_import_limits.depth) return bad("attributes are nested too deeply");
  uint32_t n = 0;
  w = tfc_wire_of(bytes);
  while (tfc_wire_next(&w, &f)) {
    if (f.number != number) continue;
    if (is_number(out->kind) && f.type == TFC_WIRE_BYTES) {
      struct tfc_wire p = tfc_wire_of(f.bytes);
      uint64_t value;
      tfc_str raw;
      while (p.at != p.end) {
        if (kinds[number].type == TFC_WIRE_32) {
          if (!tfc_wire_take(&p, 4, &raw)) return bad(p.error);
          uint32_t u;
          memcpy(&u, raw.data, 4);
          value = u;
        } else if (!tfc_wire_varint(&p, &value)) {
          return bad(p.error);
        }
        put_item(out->kind, items, n++, value);
      }
    } else if (is_number(out->kind)) {
      put_item(out->kind, items, n++, f.value);
    } else if (number == 2) {
      ((tfc_str *)items)[n++] = f.bytes;
    } else if (number == 7) {
      TFC_RETURN_IF_ERROR(tfc_read_shape(f.bytes, &((struct tfc_shape *)items)[n++]));
    } else if (number == 8) {
      TFC_RETURN_IF_ERROR(read_tensor(r, f.bytes, &((struct tfc_tensor *)items)[n++]));
    } else {
      r->depth++;
      TFC_RETURN_IF_ERROR(read_func(r, f.bytes, &((struct tfc_func_attr *)items)[n++]));
      r->depth--;
    }
  }
  out->count = n;
  out->ints = items; // the list members of the union all have this address
  return NULL;
}

tfc_status tfc_read_attr_value(struct tfc_attr_reader *r, tfc_str bytes, struct tfc_attr *out) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  out->kind = TFC_ATTR_NONE;
  out->count = 0;
  out->i = 0;
  while (tfc_wire_next(&w, &f)) {
    static const uint8_t types[11] = {
        [1] = 2, [2] = 2, [5] = 0, [4] = 5, [3] = 0, [6] = 0, [7] = 2, [8] = 2, [9] = 2, [10] = 2};
    if (f.number > 10) continue;
    if (f.type != types[f.number]) return bad("a value has the wrong wire type");
    switch (f.number) {
    case 1: TFC_RETURN_IF_ERROR(read_list(r, f.bytes, out)); break;
    case 2: out->kind = TFC_ATTR_STRING, out->s = f.bytes; break;
    case 3: out->kind = TFC_ATTR_INT, out->i = (int64_t)f.value; break;
    case 4: out->kind = TFC_ATTR_FLOAT, out->f = (double)tfc_wire_float(f.value); break;
    case 5: out->kind = TFC_ATTR_BOOL, out->b = f.value != 0; break;
    case 6: out->kind = TFC_ATTR_TYPE, out->type = (tfc_dtype)(f.value < 256 ? f.value : 0); break;
    case 7: {
      struct tfc_shape *shape = tfc_arena_alloc(&r->graph->arena, sizeof *shape);
      if (!shape) return tfc_status_no_memory("reading a graph");
      TFC_RETURN_IF_ERROR(tfc_read_shape(f.bytes, shape));
      out->kind = TFC_ATTR_SHAPE, out->shape = shape;
      break;
    }
    case 8: {
      struct tfc_tensor *t = tfc_arena_alloc(&r->graph->arena, sizeof *t);
      if (!t) return tfc_status_no_memory("reading a graph");
      tfc_status s = read_tensor(r, f.bytes, t);
      if (s && tfc_status_code(s) == TFC_UNIMPLEMENTED) { // such a constant can be loaded, but has no value
        tfc_status_free(s);
        break;
      }
      if (s) return s;
      out->kind = TFC_ATTR_TENSOR, out->tensor = t;
      break;
    }
    case 9: out->kind = TFC_ATTR_PLACEHOLDER, out->s = f.bytes; break;
    case 10: {
      struct tfc_func_attr *func = tfc_arena_alloc(&r->graph->arena, sizeof *func);
      if (!func) return tfc_status_no_memory("reading a graph");
      TFC_RETURN_IF_ERROR(read_func(r, f.bytes, func));
      out->kind = TFC_ATTR_FUNC, out->func = func;
      break;
    }
    default: break;
    }
  }
  return w.error ? bad(w.error) : NULL;
}

// Reads nearly all attributes fast: those that are a name and one short value, in the form that the protocol buffers
// library writes.
static bool read_short(tfc_str bytes, struct tfc_attr *out) {
  const uint8_t *p = (const uint8_t *)bytes.data;
  enum { KEY = 1 << 3 | TFC_WIRE_BYTES, VALUE = 2 << 3 | TFC_WIRE_BYTES, FIRST_LONG = 0x80 };
  if (bytes.size < 6 || p[0] != KEY || p[1] >= FIRST_LONG || (size_t)p[1] + 6 > bytes.size) return false;
  out->name = (tfc_str){bytes.data + 2, p[1]};
  p += 2 + p[1]; // skips tag and size of the value, then the tag and the number (or size) in it
  size_t size = bytes.size - 4 - out->name.size;
  if (p[0] != VALUE || p[1] != size || p[1] >= FIRST_LONG || p[3] >= FIRST_LONG) return false;
  out->count = 0;
  switch (p[2]) {
  case 2 << 3 | TFC_WIRE_BYTES:
    out->kind = TFC_ATTR_STRING, out->s = (tfc_str){(const char *)p + 4, p[3]};
    return size == 2u + p[3];
  case 3 << 3 | TFC_WIRE_VARINT: out->kind = TFC_ATTR_INT, out->i = p[3]; return size == 2;
  case 5 << 3 | TFC_WIRE_VARINT: out->kind = TFC_ATTR_BOOL, out->i = 0, out->b = p[3] != 0; return size == 2;
  case 6 << 3 | TFC_WIRE_VARINT: out->kind = TFC_ATTR_TYPE, out->i = 0, out->type = (tfc_dtype)p[3]; return size == 2;
  default: return false;
  }
}

tfc_status tfc_read_attr(struct tfc_attr_reader *r, tfc_str bytes, struct tfc_attr *out) {
  tfc_str value;
  if (read_short(bytes, out)) return NULL;
  out->name = TFC_STR("");
  tfc_status s = tfc_read_entry(bytes, &out->name, &value);
  if (!s) s = tfc_read_attr_value(r, value, out);
  return tfc_status_annotate(s, "attribute '%.*s'", TFC_STR_ARG(out->name));
}
