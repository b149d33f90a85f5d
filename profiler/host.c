#include "profiler/host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ops/blas_core.h"

void tfc_host_describe(struct tfc_host *out) {
  *out = (struct tfc_host){.blas_core = tfc_blas_core()};
  gethostname(out->name, sizeof out->name - 1);
  FILE *f = fopen("/proc/cpuinfo", "r");
  char line[256];
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
      snprintf(out->cpu_model, sizeof out->cpu_model, "%.150s", strchr(line, ':') + 2);
      out->cpu_model[strcspn(out->cpu_model, "\n")] = 0;
      break;
    }
  if (f) fclose(f);
}
