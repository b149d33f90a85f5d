#include "tests/common/source.h"

#include <stdlib.h>

const char *test_source_dir(void) {
  const char *given = getenv("TFC_SOURCE_ROOT");
  return given && *given ? given : TFC_SOURCE_DIR;
}
