// Credit: what each method of a search has gained, and which one gets the next free turn: a bandit whose arms are the
// methods, the learned policy's moves among them. A method's worth is what it improved the best placement by, per
// second or, where only evaluations are limited, per evaluation; old gains count less and less, because what helps at
// the beginning of a search is not what helps at its end.
#ifndef TFC_PLACER_SEARCH_CREDIT_H
#define TFC_PLACER_SEARCH_CREDIT_H

#include "placer/search/search_job.h"

struct tfc_credit {
  double gain, effort; // sums over its turns, in which older ones count less
};
struct tfc_credits {
  struct tfc_credit of[TFC_METHOD_COUNT];
  double peak; // the greatest worth of a method lately
};

// A turn has ended. gain: log(best before / what it found), 0: nothing better; effort: seconds or evaluations, the same
// for all turns of a search.
void tfc_credits_add(struct tfc_credits *credits, enum tfc_search_method method, double gain, double effort);
// Draws a method of the list in proportion to its worth; every method of the list has some probability.
enum tfc_search_method tfc_credits_draw(struct tfc_credits *credits, const enum tfc_search_method *list, uint32_t count,
                                        struct tfc_random *random);

#endif
