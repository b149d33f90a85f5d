// Declarations for the files of libtfc: the model, to which the public handle points.
#ifndef TFC_LIBTFC_MODEL_H
#define TFC_LIBTFC_MODEL_H

#include "libtfc/tfc.h"
#include "runtime/exec/session.h"

struct tfc_model {
  struct tfc_graph *graph; // the graph, in which functions are lowered
  struct tfc_device_set devices;
  struct tfc_session *session;
  uint16_t *placement; // [node]; NULL: everything on the first device
  double *order;       // [node]; NULL: none
};

// A public error is the same record as a status, and has the same rules of ownership.
static inline tfc_error *tfc_error_of(tfc_status status) {
  return (tfc_error *)status;
}
// Returns the error of a function that was given NULL where it needs `what`.
tfc_error *tfc_error_missing(const char *function, const char *what);

#endif
