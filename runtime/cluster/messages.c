#include "runtime/cluster/messages.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/graph/kept_buffer.h"

const char *tfc_message_kind_name(uint32_t kind) {
  static const char *const names[] = {
#define NAME(name, text) text,
      TFC_MESSAGE_KINDS(NAME)
#undef NAME
  };
  return kind < TFC_KINDS ? names[kind] : "unknown";
}

tfc_status tfc_message_of(uint32_t kind, const void *head, size_t head_size, tfc_str rest, struct tfc_message **out) {
  if (rest.size > TFC_MESSAGE_MOST_HEAD - head_size) rest.size = TFC_MESSAGE_MOST_HEAD - head_size;
  TFC_RETURN_IF_ERROR(tfc_message_create(kind, (uint32_t)(head_size + rest.size), out));
  memcpy((*out)->head, head, head_size);
  if (rest.size) memcpy((*out)->head + head_size, rest.data, rest.size);
  return NULL;
}

tfc_status tfc_message_read(const struct tfc_message *m, void *head, size_t head_size, tfc_str *out_rest) {
  if (m->head_size < head_size || (!out_rest && m->head_size != head_size))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a message '%s' of %u bytes, which has %zu",
                           tfc_message_kind_name(m->kind), m->head_size, head_size);
  memcpy(head, m->head, head_size);
  if (out_rest) *out_rest = (tfc_str){(const char *)m->head + head_size, m->head_size - head_size};
  return NULL;
}

bool tfc_message_text(const char *text, size_t size) {
  return memchr(text, 0, size) != NULL;
}

// --- Tensors ---------------------------------------------------------------------------------------------------------
// A tensor of strings is sent as the lengths of all strings, then their bytes.
static tfc_status pack_strings(const struct tfc_tensor *t, struct tfc_buffer **out) {
  const int64_t count = tfc_tensor_elements(t);
  size_t size = (size_t)count * sizeof(uint64_t);
  for (int64_t i = 0; i < count; i++) size += tfc_tensor_get_string(t, i).size;
  TFC_RETURN_IF_ERROR(tfc_buffer_create_host(size ? size : 1, out));
  uint64_t *lengths = (*out)->data;
  char *at = (char *)(lengths + count);
  for (int64_t i = 0; i < count; i++) {
    const tfc_str s = tfc_tensor_get_string(t, i);
    lengths[i] = s.size;
    if (s.size) memcpy(at, s.data, s.size);
    at += s.size;
  }
  return NULL;
}

static tfc_status unpack_strings(const struct tfc_message *m, struct tfc_tensor *t) {
  const uint64_t count = (uint64_t)tfc_tensor_elements(t);
  if (!count) return NULL;
  const uint64_t *lengths = m->body->data;
  const char *at = (const char *)(lengths + count);
  uint64_t left = m->body_size - count * sizeof(uint64_t);
  for (uint64_t i = 0; i < count; i++) {
    if (lengths[i] > left) return tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor's strings are longer than it says");
    TFC_RETURN_IF_ERROR(tfc_tensor_set_string(t, (int64_t)i, (tfc_str){at, lengths[i]}));
    at += lengths[i], left -= lengths[i];
  }
  return left ? tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor's strings are shorter than it says") : NULL;
}

tfc_status tfc_message_of_tensor(const struct tfc_head_tensor *key, const struct tfc_tensor *value,
                                 struct tfc_message **out) {
  struct tfc_head_tensor head = {
      .step = key->step, .sent_ns = key->sent_ns, .iteration = key->iteration, .edge = key->edge};
  struct tfc_buffer *body = NULL;
  size_t body_size = 0;
  if (!value) {
    head.dead = 1;
  } else if (value->dtype == TFC_STRING) {
    TFC_RETURN_IF_ERROR(pack_strings(value, &body));
    body_size = body->size;
    if (tfc_tensor_elements(value) == 0) body_size = 0;
  } else if (!tfc_dtype_is_plain(value->dtype)) {
    return tfc_status_make(TFC_UNIMPLEMENTED, "a %s cannot leave its task", tfc_dtype_name(value->dtype));
  } else if (value->size && value->buffer && value->data == value->buffer->data && value->size <= value->buffer->size) {
    tfc_buffer_retain(body = value->buffer);
    body_size = value->size;
  } else if (value->size) {
    TFC_RETURN_IF_ERROR(tfc_buffer_create_kept(value->size, &body));
    memcpy(body->data, value->data, value->size);
    body_size = value->size;
  }
  if (value) {
    head.dtype = (uint32_t)value->dtype;
    head.rank = value->shape.rank;
    for (int32_t d = 0; d < head.rank; d++) head.dims[d] = value->shape.dims[d];
    head.bytes = body_size;
  }
  tfc_status s = tfc_message_of(TFC_KIND_TENSOR, &head, sizeof head, (tfc_str){0}, out);
  if (s || !body_size) {
    tfc_buffer_release(body);
    return s;
  }
  (*out)->body = body;
  (*out)->body_size = body_size;
  return NULL;
}

tfc_status tfc_message_tensor(struct tfc_message *m, struct tfc_head_tensor *out_key, struct tfc_tensor *out) {
  struct tfc_head_tensor head;
  size_t bytes = 0;
  TFC_RETURN_IF_ERROR(tfc_message_read(m, &head, sizeof head, NULL));
  if (head.bytes != m->body_size || head.dead > 1 || head.rank < 0 || head.rank > TFC_MAX_RANK ||
      head.dtype >= TFC_DTYPE_COUNT || (head.dead && head.bytes))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor whose description contradicts itself");
  struct tfc_tensor t = {.dtype = (tfc_dtype)head.dtype, .shape = {.rank = head.rank}};
  for (int32_t d = 0; d < head.rank; d++) t.shape.dims[d] = head.dims[d];
  *out_key = head;
  if (head.dead) return NULL;
  if (t.dtype != TFC_STRING && !tfc_dtype_is_plain(t.dtype))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor of a type that cannot leave a task");
  TFC_RETURN_IF_ERROR(tfc_tensor_bytes(t.dtype, &t.shape, &bytes));
  if (t.dtype != TFC_STRING && bytes != head.bytes)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor of %zu bytes comes with %llu", bytes,
                           (unsigned long long)head.bytes);
  if (t.dtype == TFC_STRING && (uint64_t)tfc_tensor_elements(&t) > m->body_size / sizeof(uint64_t))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor's strings have no lengths");
  if (t.dtype == TFC_STRING || !m->body) {
    TFC_RETURN_IF_ERROR(tfc_tensor_create(t.dtype, &t.shape, out));
    tfc_status s = t.dtype == TFC_STRING ? unpack_strings(m, out) : NULL;
    if (s) tfc_tensor_release(out);
    return s;
  }
  t.buffer = m->body;
  t.data = m->body->data;
  t.size = bytes;
  m->body = NULL;
  *out = t;
  return NULL;
}
