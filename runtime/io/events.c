#include "runtime/io/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/graph/wire.h"
#include "runtime/io/crc32c.h"

struct tfc_events {
  char *path;
  int fd;
};

static double wall_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Writes wall_time and step of an Event; the caller adds what happened.
static void begin_event(struct tfc_text *event, int64_t step) {
  double now = wall_time();
  tfc_wire_put_varint(event, 1 << 3 | TFC_WIRE_64);
  tfc_text_add(event, (tfc_str){(const char *)&now, 8});
  if (step) tfc_wire_put_int(event, 2, (uint64_t)step);
}

// A record is the length, its checksum, the content, its checksum. It is written at once, so that readers see whole
// records.
static tfc_status put_record(struct tfc_events *e, tfc_str content) {
  struct tfc_text record = {0};
  tfc_status s = NULL;
  uint64_t length = content.size;
  uint32_t length_crc = tfc_crc32c_mask(tfc_crc32c(0, &length, 8));
  uint32_t content_crc = tfc_crc32c_mask(tfc_crc32c(0, content.data, content.size));
  tfc_text_add(&record, (tfc_str){(const char *)&length, 8});
  tfc_text_add(&record, (tfc_str){(const char *)&length_crc, 4});
  tfc_text_add(&record, content);
  tfc_text_add(&record, (tfc_str){(const char *)&content_crc, 4});
  if (record.failed) s = tfc_status_no_memory(e->path);
  for (size_t at = 0; !s && at < record.size;) {
    ssize_t n = tfc_os.write(e->fd, record.data + at, record.size - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      s = tfc_status_make(TFC_DATA_LOSS, "%s: cannot be written: %s", e->path, n < 0 ? strerror(errno) : "disk full");
    else
      at += (size_t)n;
  }
  tfc_text_deinit(&record);
  return s;
}

tfc_status tfc_events_create(const char *directory, struct tfc_events **out) {
  return tfc_events_create_named(directory, "", out);
}

tfc_status tfc_events_create_named(const char *directory, const char *suffix, struct tfc_events **out) {
  tfc_status s = NULL;
  struct tfc_text event = {0};
  char host[64] = "localhost";
  struct tfc_events *e = calloc(1, sizeof *e);
  gethostname(host, sizeof host - 1);
  if (e)
    e->fd = -1,
    e->path = tfc_format("%s/events.out.tfevents.%010lld.%s%s", directory, (long long)wall_time(), host, suffix);
  if (!e || !e->path) TFC_TRY(s, tfc_status_no_memory(directory));
  TFC_TRY(s, tfc_file_make_parents(e->path));
  e->fd = tfc_os.open(e->path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (e->fd < 0) TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: %s", e->path, strerror(errno));
  begin_event(&event, 0);
  tfc_wire_put_bytes(&event, 3, TFC_STR("brain.Event:2")); // the version that readers look for
  TFC_TRY(s, put_record(e, tfc_text_view(&event)));
  *out = e, e = NULL;
out:
  tfc_text_deinit(&event);
  tfc_status_free(tfc_events_close(e));
  return s;
}

static tfc_status put_event(struct tfc_events *events, int64_t step, uint32_t field, tfc_str content) {
  struct tfc_text event = {0};
  begin_event(&event, step);
  tfc_wire_put_bytes(&event, field, content);
  tfc_status s = event.failed ? tfc_status_no_memory(events->path) : put_record(events, tfc_text_view(&event));
  tfc_text_deinit(&event);
  return s;
}

tfc_status tfc_events_scalar(struct tfc_events *events, int64_t step, tfc_str tag, float value) {
  struct tfc_text summary = {0}, item = {0};
  tfc_wire_put_bytes(&item, 1, tag);
  tfc_wire_put_float(&item, 2, value);
  tfc_wire_put_bytes(&summary, 1, tfc_text_view(&item));
  tfc_status s = summary.failed || item.failed ? tfc_status_no_memory(events->path)
                                               : tfc_events_summary(events, step, tfc_text_view(&summary));
  tfc_text_deinit(&summary);
  tfc_text_deinit(&item);
  return s;
}

tfc_status tfc_events_summary(struct tfc_events *events, int64_t step, tfc_str summary) {
  return put_event(events, step, 5, summary);
}

tfc_status tfc_events_event(struct tfc_events *events, tfc_str event) {
  return put_record(events, event);
}

tfc_status tfc_events_graph(struct tfc_events *events, int64_t step, tfc_str graph) {
  return put_event(events, step, 4, graph);
}

tfc_status tfc_events_close(struct tfc_events *events) {
  tfc_status s = NULL;
  if (!events) return NULL;
  if (events->fd >= 0 && close(events->fd) != 0)
    s = tfc_status_make(TFC_DATA_LOSS, "%s: cannot be written: %s", events->path, strerror(errno));
  free(events->path);
  free(events);
  return s;
}
