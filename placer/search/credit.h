// Credit: how much each method of a search has gained, and which method gets the next free turn. It is a bandit whose
// arms are the methods; the moves of the learned policy are one of them. A method's worth is how much it improved the
// best placement per second or, if only evaluations are limited, per evaluation. Old gains count less and less, because
// the method that finds most at the beginning of a search is not the one that does at its end.
#ifndef TFC_PLACER_SEARCH_CREDIT_H
#define TFC_PLACER_SEARCH_CREDIT_H

#include "placer/search/search_job.h"

struct tfc_credit {
  double gain, effort; // sums over its turns, in which older ones count less
};
struct tfc_credits {
  struct tfc_credit of[TFC_METHOD_COUNT];
  double peak; // the greatest worth that a method had lately
};

// Counts a turn that has ended. gain: log(best before / best that the turn found), 0: the turn found nothing better;
// effort: seconds or evaluations, the same unit for all turns of a search.
void tfc_credits_add(struct tfc_credits *credits, enum tfc_search_method method, double gain, double effort);
// Draws a method of the list in proportion to its worth; every method of the list has some probability.
enum tfc_search_method tfc_credits_draw(struct tfc_credits *credits, const enum tfc_search_method *list, uint32_t count,
                                        struct tfc_random *random);

#endif
