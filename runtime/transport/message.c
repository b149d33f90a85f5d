// Makes and frees messages between tasks (struct tfc_message in transport.h).
#include <stdlib.h>

#include "runtime/base/no_memory.h"
#include "runtime/transport/transport.h"

tfc_status tfc_message_create(uint32_t kind, uint32_t head_size, struct tfc_message **out) {
  if (head_size > TFC_MESSAGE_MOST_HEAD)
    return tfc_status_make(TFC_INTERNAL, "a message of kind %u has a head of %u bytes", kind, head_size);
  struct tfc_message *m = calloc(1, sizeof *m + head_size);
  if (!m) return tfc_status_no_memory_for("a message of %u bytes", head_size);
  m->kind = kind;
  m->head_size = head_size;
  *out = m;
  return NULL;
}

void tfc_message_free(struct tfc_message *m) {
  if (!m) return;
  tfc_buffer_release(m->body);
  free(m);
}

void tfc_transport_close(struct tfc_transport *t) {
  if (t) t->type->close(t);
}
