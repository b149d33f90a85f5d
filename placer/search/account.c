#include "placer/search/account.h"

#include <math.h>

#include "placer/search/local.h"
#include "profiler/store_rows.h"
#include "runtime/base/units.h"

static void add_turns(struct tfc_search_turns *to, const struct tfc_search_turns *more) {
  to->count += more->count, to->wins += more->wins, to->evaluations += more->evaluations;
  to->seconds += more->seconds, to->gained += more->gained;
}

void tfc_search_account_add(struct tfc_search_account *a, const struct tfc_search_account *later) {
  const double n = (double)a->samples.count, m = (double)later->samples.count;
  if (later->samples.count) {
    if (!a->samples.count) a->before = later->before;
    a->after = later->after;
    a->samples.invalid_share = (n * a->samples.invalid_share + m * later->samples.invalid_share) / (n + m);
    a->samples.entropy = (n * a->samples.entropy + m * later->samples.entropy) / (n + m);
    a->samples.count += later->samples.count;
  }
  add_turns(&a->moves, &later->moves);
  add_turns(&a->others, &later->others);
}

struct tfc_store_policy_search tfc_search_account_row(const struct tfc_search_account *a) {
  return (struct tfc_store_policy_search){.samples = a->samples.count,
                                          .entropy = a->samples.entropy,
                                          .invalid_share = a->samples.invalid_share,
                                          .move_turns = a->moves.count,
                                          .move_wins = a->moves.wins,
                                          .move_gain = 1 - exp(-a->moves.gained),
                                          .move_s = a->moves.seconds,
                                          .other_gain = 1 - exp(-a->others.gained),
                                          .other_s = a->others.seconds};
}

void tfc_search_account_tell(const struct tfc_search_account *a, struct tfc_text *out) {
  char before[32], after[32];
  if (!a->samples.count) return;
  tfc_text_printf(out, "The learned policy: %llu placements of its own ", (unsigned long long)a->samples.count);
  if (a->before == TFC_TIME_MAX || a->after == TFC_TIME_MAX)
    tfc_text_printf(out, "after nothing that runs");
  else if (a->after < a->before)
    tfc_text_printf(out, "made the best simulated step %s instead of %s", tfc_show_us(after, 1e-6 * (double)a->after),
                    tfc_show_us(before, 1e-6 * (double)a->before));
  else
    tfc_text_printf(out, "were no better than the best simulated step before, %s",
                    tfc_show_us(before, 1e-6 * (double)a->before));
  tfc_text_printf(out, " (entropy %.2f, %.0f %% invalid)", a->samples.entropy, 100 * a->samples.invalid_share);
  if (a->moves.count)
    tfc_text_printf(out,
                    "; its moves gained %.1f %% in %u of %u turns of local search, all other methods %.1f %% in %u of "
                    "%u",
                    100 * (1 - exp(-a->moves.gained)), a->moves.wins, a->moves.count,
                    100 * (1 - exp(-a->others.gained)), a->others.wins, a->others.count);
  tfc_text_printf(out, ".\n");
}
