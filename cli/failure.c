#include "cli/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/program.h"
#include "runtime/base/file.h"

static bool comes_again(int code) {
  return code == 2 || code == 3 || code == 5;
}

static char *path_in(const char *folder) {
  return tfc_format("%s/failure", folder);
}

void cli_failure_leave(const char *folder, int code, const char *name, const char *message) {
  if (!folder || !comes_again(code)) return;
  tfc_status s = NULL;
  char *path = path_in(folder), *text = tfc_format("%d %s%s%s\n", code, name, name[0] ? ": " : "", message);
  if (!path || !text) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_file_make_parents(path));
  TFC_TRY(s, tfc_file_write(path, tfc_str_from(text)));
out:
  if (s) tfc_warn("%s; the job may be started again, though it would only fail again", tfc_status_message(s));
  tfc_status_free(s);
  free(path), free(text);
}

void cli_failure_forget(const char *folder) {
  char *path = folder ? path_in(folder) : NULL;
  if (path) unlink(path);
  free(path);
}

int cli_failure_read(const char *folder) {
  int code = 0;
  char *path = folder ? path_in(folder) : NULL;
  FILE *f = path ? fopen(path, "re") : NULL;
  const bool any = f && fscanf(f, "%d", &code) == 1 && comes_again(code);
  if (f) fclose(f);
  free(path);
  return any ? code : 0;
}
