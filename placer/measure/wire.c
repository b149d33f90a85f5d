#include "placer/measure/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/memory_account.h"

static const uint64_t largest = (uint64_t)8 << 30; // a larger message is malformed

// Feeds can make a message as large as the graph's tensors. So its memory is counted before it is taken: the system
// would give out the addresses, and then end the process that writes there.
static bool reserve(tfc_wire_buffer *buffer, size_t wanted) {
  if (wanted <= buffer->capacity) return true;
  const size_t more = wanted - buffer->capacity;
  if (!tfc_account_take(tfc_account_host(), more)) return false;
  char *grown = realloc(buffer->data, wanted);
  if (!grown) {
    tfc_account_give(tfc_account_host(), more);
    return false;
  }
  buffer->data = grown, buffer->capacity = wanted;
  return true;
}

void tfc_wire_free(tfc_wire_buffer *buffer) {
  tfc_account_give(tfc_account_host(), buffer->capacity);
  tfc_array_free(buffer);
}

void tfc_pack_bytes(struct tfc_pack *p, const void *data, size_t size) {
  if (p->failed || size == 0) return;
  const size_t wanted = p->bytes.count + size;
  const bool large = size >= 1 << 20; // a feed: nothing of its size follows
  if (wanted > p->bytes.capacity && !reserve(&p->bytes, large ? wanted : wanted + wanted / 2)) {
    p->failed = wanted;
    return;
  }
  memcpy(p->bytes.data + p->bytes.count, data, size);
  p->bytes.count = wanted;
}
void tfc_pack_u32(struct tfc_pack *p, uint32_t x) {
  tfc_pack_bytes(p, &x, sizeof x);
}
void tfc_pack_u64(struct tfc_pack *p, uint64_t x) {
  tfc_pack_bytes(p, &x, sizeof x);
}
void tfc_pack_f64(struct tfc_pack *p, double x) {
  tfc_pack_bytes(p, &x, sizeof x);
}
void tfc_pack_str(struct tfc_pack *p, tfc_str text) {
  tfc_pack_array(p, text.data, text.size, 1);
}
void tfc_pack_array(struct tfc_pack *p, const void *data, size_t count, size_t size) {
  tfc_pack_u64(p, count);
  tfc_pack_bytes(p, data, count * size);
}

static void unpack(struct tfc_unpack *u, void *out, size_t size) {
  if (u->failed || (size_t)(u->end - u->at) < size) {
    u->failed = true;
    memset(out, 0, size);
    return;
  }
  memcpy(out, u->at, size);
  u->at += size;
}
uint32_t tfc_unpack_u32(struct tfc_unpack *u) {
  uint32_t x;
  unpack(u, &x, sizeof x);
  return x;
}
uint64_t tfc_unpack_u64(struct tfc_unpack *u) {
  uint64_t x;
  unpack(u, &x, sizeof x);
  return x;
}
double tfc_unpack_f64(struct tfc_unpack *u) {
  double x;
  unpack(u, &x, sizeof x);
  return x;
}
const void *tfc_unpack_array(struct tfc_unpack *u, size_t size, size_t *out_count) {
  uint64_t count = tfc_unpack_u64(u);
  *out_count = 0;
  if (u->failed || count > (uint64_t)(u->end - u->at) / size) {
    u->failed = true;
    return u->at;
  }
  const void *data = u->at;
  u->at += count * size;
  *out_count = (size_t)count;
  return data;
}
tfc_str tfc_unpack_str(struct tfc_unpack *u) {
  tfc_str text;
  text.data = tfc_unpack_array(u, 1, &text.size);
  return text;
}

tfc_status tfc_wire_send(int fd, enum tfc_wire_type type, const struct tfc_pack *body) {
  if (body && body->failed)
    return tfc_status_annotate(tfc_account_exhausted(tfc_account_host(), body->failed),
                               "a message for the measuring process, which contains the feeds");
  uint64_t head[2] = {type, body ? body->bytes.count : 0};
  for (int part = 0; part < 2; part++) {
    const char *data = part ? (body ? body->bytes.data : NULL) : (const char *)head;
    size_t left = part ? (size_t)head[1] : sizeof head;
    while (left) {
      ssize_t n = send(fd, data, left, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return tfc_status_make(TFC_UNAVAILABLE, "the measuring process is gone: %s", strerror(errno));
      data += n, left -= (size_t)n;
    }
  }
  return NULL;
}

// *left_ns: how long to wait, < 0: without limit; on return, how much of that is left. Time in which this process was
// stopped (by Ctrl-Z, or because the machine was suspended) does not count, because the other process was stopped, too.
static tfc_status receive(int fd, int64_t *left_ns, const atomic_bool *cancel, char *to, size_t size) {
  const int64_t slice = 250000000;
  while (size) {
    if (cancel && atomic_load(cancel)) return tfc_status_make(TFC_CANCELLED, "interrupted");
    if (*left_ns == 0) return tfc_status_make(TFC_DEADLINE_EXCEEDED, "the measuring process does not answer");
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t wait = *left_ns < 0 || *left_ns > slice ? slice : *left_ns, begin = tfc_now_ns();
    int rc = poll(&p, 1, (int)(wait / 1000000) + 1);
    int64_t waited = tfc_now_ns() - begin;
    if (waited > 2 * slice) waited = slice;
    if (*left_ns > 0) *left_ns = waited < *left_ns ? *left_ns - waited : 0;
    if (rc < 0 && errno != EINTR) return tfc_status_make(TFC_INTERNAL, "poll: %s", strerror(errno));
    if (rc <= 0) continue;
    ssize_t n = recv(fd, to, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return tfc_status_make(TFC_UNAVAILABLE, "the measuring process is gone");
    to += n, size -= (size_t)n;
  }
  return NULL;
}

static tfc_status skip(int fd, int64_t *left_ns, const atomic_bool *cancel, uint64_t size) {
  char rest[16384];
  for (uint64_t n; size; size -= n) {
    n = size < sizeof rest ? size : sizeof rest;
    TFC_RETURN_IF_ERROR(receive(fd, left_ns, cancel, rest, (size_t)n));
  }
  return NULL;
}

tfc_status tfc_wire_receive(int fd, int64_t timeout_ns, const atomic_bool *cancel, uint32_t *out_type,
                            tfc_wire_buffer *buffer) {
  uint64_t head[2];
  int64_t left = timeout_ns < 0 ? -1 : timeout_ns;
  TFC_RETURN_IF_ERROR(receive(fd, &left, cancel, (char *)head, sizeof head));
  if (head[1] > largest)
    return tfc_status_make(TFC_UNAVAILABLE, "the measuring process sent a message of %llu bytes",
                           (unsigned long long)head[1]);
  if (!reserve(buffer, head[1] + 1)) {
    TFC_RETURN_IF_ERROR(skip(fd, &left, cancel, head[1]));
    return tfc_status_annotate(tfc_account_exhausted(tfc_account_host(), head[1] + 1), "reading a message");
  }
  TFC_RETURN_IF_ERROR(receive(fd, &left, cancel, buffer->data, (size_t)head[1]));
  buffer->count = (size_t)head[1];
  *out_type = (uint32_t)head[0];
  return NULL;
}
