#include "placer/learned/errors.h"

#include <math.h>
#include <stdlib.h>

#include "profiler/statistics.h"

enum { FEWEST = 10 };

void tfc_learned_tell_trust(double share, struct tfc_text *out) {
  if (share < 0.95)
    tfc_text_printf(
        out,
        "What was learned counts for %.0f %%: with more of it, placements that had not been seen would have "
        "been predicted worse.\n",
        100 * share);
}

void tfc_learned_tell_errors(const struct tfc_learned_predictions *p, struct tfc_text *out) {
  const size_t n = p->list.count;
  double error[2], tau[2];
  double *x = malloc((3 * n + 1) * sizeof *x), *y = x + n, *left = y + n;
  if (!x) out->failed = true;
  for (int given = 0; given < 2 && x && n >= FEWEST; given++) {
    for (size_t i = 0; i < n; i++) {
      x[i] = log(given ? p->list.data[i].given : p->list.data[i].learned), y[i] = log(p->list.data[i].measured);
      left[i] = fabs(x[i] - y[i]);
    }
    error[given] = exp(tfc_quartiles_of(left, n).median) - 1;
    tau[given] = tfc_kendall_tau(x, y, NULL, n, NULL);
  }
  if (x && n >= FEWEST)
    tfc_text_printf(out,
                    "Before each of %zu readings the learned model was %.1f %% off in the median (the given one %.1f "
                    "%%), Kendall's tau %.2f (%.2f).\n",
                    n, 100 * error[0], 100 * error[1], tau[0], tau[1]);
  free(x);
}
