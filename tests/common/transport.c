#include "tests/common/transport.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"

// Sizes around those at which a transport may change its protocol, and sometimes a large one.
static uint64_t body_size(uint32_t i) {
  static const uint64_t sizes[] = {0, 1, 8, 4096, 16383, 16384, 16385, 100000, 0, 300000};
  return sizes[i % (sizeof sizes / sizeof *sizes)];
}
static uint32_t head_size(uint32_t i) {
  return 12 + i * i * 7 % 3000;
}
static unsigned char byte_of(uint32_t from, uint32_t to, uint32_t i, uint64_t at, uint64_t seed) {
  return (unsigned char)((from * 31 + to * 17 + i * 7 + at * 13 + (at >> 9) + seed) & 255);
}

static tfc_status send_all(struct tfc_transport *t, uint32_t i, uint64_t seed) {
  for (uint32_t to = 0; to < t->count; to++) {
    struct tfc_message *m = NULL;
    TFC_RETURN_IF_ERROR(tfc_message_create(100 + i, head_size(i), &m));
    memset(m->head, (int)(i & 255), m->head_size);
    memcpy(m->head, (uint32_t[]){t->rank, to, i}, 12);
    m->body_size = body_size(i);
    if (m->body_size) TFC_RETURN_IF_ERROR(tfc_buffer_create_host(m->body_size, &m->body));
    for (uint64_t k = 0; k < m->body_size; k++) ((unsigned char *)m->body->data)[k] = byte_of(t->rank, to, i, k, seed);
    TFC_RETURN_IF_ERROR(t->type->send(t, to, m));
  }
  return NULL;
}

static tfc_status check(const struct tfc_transport *t, const struct tfc_message *m, uint32_t i, uint64_t seed) {
  uint32_t told[3];
  if (m->kind != 100 + i || m->head_size != head_size(i) || m->body_size != body_size(i))
    return tfc_status_make(TFC_ABORTED, "of task %u: message %u has other sizes, or is message %u", m->peer, i,
                           m->kind - 100);
  memcpy(told, m->head, sizeof told);
  if (told[0] != m->peer || told[1] != t->rank || told[2] != i)
    return tfc_status_make(TFC_ABORTED, "of task %u: message %u has another head", m->peer, i);
  for (uint32_t k = 12; k < m->head_size; k++)
    if (m->head[k] != (i & 255)) return tfc_status_make(TFC_ABORTED, "of task %u: head %u is broken", m->peer, i);
  for (uint64_t k = 0; k < m->body_size; k++)
    if (((const unsigned char *)m->body->data)[k] != byte_of(m->peer, t->rank, i, k, seed))
      return tfc_status_make(TFC_ABORTED, "of task %u: body %u is broken", m->peer, i);
  return NULL;
}

tfc_status tfc_test_exchange(struct tfc_transport *t, uint32_t count, uint64_t seed) {
  tfc_status s = NULL;
  uint32_t sent = 0, left = count * t->count;
  uint32_t *next = calloc(t->count, sizeof *next);
  const int64_t until = tfc_now_ns() + 60000000000;
  if (!next) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  while (left || sent < count) {
    struct tfc_message *m = NULL;
    if (sent < count) TFC_TRY(s, send_all(t, sent++, seed));
    TFC_TRY(s, t->type->progress(t, sent < count ? 0 : 1000000));
    for (;;) {
      TFC_TRY(s, t->type->receive(t, &m));
      if (!m) break;
      if (m->peer >= t->count || next[m->peer] >= count)
        s = tfc_status_make(TFC_ABORTED, "a message that nobody sent");
      else
        s = check(t, m, next[m->peer]++, seed);
      tfc_message_free(m);
      if (s) goto out;
      left--;
    }
    if (tfc_now_ns() > until) TFC_FAIL(s, TFC_DEADLINE_EXCEEDED, "%u messages did not come", left);
  }
out:
  free(next);
  return s;
}
