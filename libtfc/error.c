// Errors. A public error is a status under another name. The public numbers must not change, so they are written here
// as numbers.
#include "libtfc/model.h"

static tfc_status status_of(const tfc_error *error) {
  return (tfc_status)(uintptr_t)error;
}

const char *tfc_library_version(void) {
  return TFC_VERSION;
}

int tfc_error_code(const tfc_error *error) {
  static const int kinds[] = {
      [TFC_OK] = 0,
      [TFC_CANCELLED] = TFC_ERROR_CANCELLED,
      [TFC_INVALID_ARGUMENT] = TFC_ERROR_INVALID_ARGUMENT,
      [TFC_UNIMPLEMENTED] = TFC_ERROR_UNIMPLEMENTED,
      [TFC_NOT_FOUND] = TFC_ERROR_NOT_FOUND,
      [TFC_OUT_OF_RANGE] = TFC_ERROR_OUT_OF_RANGE,
      [TFC_FAILED_PRECONDITION] = TFC_ERROR_FAILED_PRECONDITION,
      [TFC_RESOURCE_EXHAUSTED] = TFC_ERROR_RESOURCE_EXHAUSTED,
      [TFC_DEADLINE_EXCEEDED] = TFC_ERROR_DEADLINE_EXCEEDED,
      [TFC_UNAVAILABLE] = TFC_ERROR_UNAVAILABLE,
      [TFC_DATA_LOSS] = TFC_ERROR_DATA_LOSS,
      [TFC_ABORTED] = TFC_ERROR_ABORTED,
      [TFC_INTERNAL] = TFC_ERROR_INTERNAL,
  };
  return kinds[tfc_status_code(status_of(error))];
}

const char *tfc_error_text(const tfc_error *error) {
  return tfc_status_message(status_of(error));
}

void tfc_error_free(tfc_error *error) {
  tfc_status_free(status_of(error));
}

tfc_error *tfc_error_missing(const char *function, const char *what) {
  return tfc_error_of(tfc_status_make(TFC_INVALID_ARGUMENT, "%s was given NULL instead of %s", function, what));
}
