// Loads the MPI plug-in. Looks for it in the directory of tfc's library, then in the dynamic loader's search path.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"
#include "runtime/transport/transport.h"

typedef tfc_status (*opener)(struct tfc_transport **out);

tfc_status tfc_transport_mpi(struct tfc_transport **out) {
  char *beside = NULL;
  Dl_info where;
  if (dladdr((const void *)&tfc_message_free, &where) && where.dli_fname) {
    const char *slash = strrchr(where.dli_fname, '/');
    if (slash) beside = tfc_format("%.*s/libtfc_mpi.so", (int)(slash - where.dli_fname), where.dli_fname);
  }
  // RTLD_GLOBAL, because MPI loads further libraries, which must find MPI's symbols.
  void *library = beside ? dlopen(beside, RTLD_NOW | RTLD_GLOBAL) : NULL;
  free(beside);
  if (!library) library = dlopen("libtfc_mpi.so", RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return tfc_status_make(TFC_UNAVAILABLE,
                           "several tasks need MPI, and this build has no plug-in for it, or it cannot be loaded: %s "
                           "(Debian: libopenmpi-dev, openmpi-bin; then build again)",
                           dlerror());
  opener open;
  *(void **)&open = dlsym(library, "tfc_transport_mpi_open");
  if (!open) return tfc_status_make(TFC_UNAVAILABLE, "the MPI plug-in has no tfc_transport_mpi_open");
  return open(out);
}
