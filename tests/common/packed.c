#include "tests/common/packed.h"

#include <zlib.h>

#include "runtime/graph/import.h"

tfc_status packed_read(const char *path, struct tfc_text *out) {
  enum { PIECE = 1 << 16 };
  tfc_status s = NULL;
  char piece[PIECE];
  int n, code = Z_OK;
  gzFile in = gzopen(path, "rb");
  if (!in) return tfc_status_make(TFC_NOT_FOUND, "%s: no such file", path);
  while ((n = gzread(in, piece, PIECE)) > 0) tfc_text_add(out, (tfc_str){piece, (size_t)n});
  // gzread() hands on a file that is not packed as it is, and says nothing of one that is cut off before it is closed.
  const bool plain = gzdirect(in);
  if ((code = gzclose_r(in)) != Z_OK || n < 0 || plain)
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "%s: not packed, or cut off (zlib %d)", path, code);
  return s;
}

tfc_status packed_graph_load(const char *path, struct tfc_graph **out) {
  struct tfc_text bytes = {0};
  tfc_status s = packed_read(path, &bytes);
  if (!s) s = tfc_graph_parse((tfc_str){bytes.data, bytes.size}, path, NULL, out);
  tfc_text_deinit(&bytes);
  return s;
}
