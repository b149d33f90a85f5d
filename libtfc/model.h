// What libtfc's files share: the model behind the public handle.
#ifndef TFC_LIBTFC_MODEL_H
#define TFC_LIBTFC_MODEL_H

#include "libtfc/tfc.h"
#include "runtime/exec/session.h"

struct tfc_model {
  struct tfc_graph *graph; // with its functions lowered
  struct tfc_device_set devices;
  struct tfc_session *session;
  uint16_t *placement; // [node]; NULL: everything on the first device
  double *order;       // [node]; NULL: none
};

// A public error is a status: the same record, owned in the same way.
static inline tfc_error *tfc_error_of(tfc_status status) {
  return (tfc_error *)status;
}

#endif
