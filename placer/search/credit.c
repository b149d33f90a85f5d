#include "placer/search/credit.h"

#define KEPT 0.8 // each newer turn of a method multiplies the weight of its older turns by this
#define FLOOR                                                                                                          \
  0.1 // this share of the peak is added to every worth: so every method can be drawn, and when none gains any more, all
      // have the same chance
#define LASTING 0.97 // the peak is multiplied by this at each draw

void tfc_credits_add(struct tfc_credits *credits, enum tfc_search_method method, double gain, double effort) {
  struct tfc_credit *c = &credits->of[method];
  c->gain = KEPT * c->gain + gain, c->effort = KEPT * c->effort + effort;
}

enum tfc_search_method tfc_credits_draw(struct tfc_credits *credits, const enum tfc_search_method *list, uint32_t count,
                                        struct tfc_random *random) {
  double worth[TFC_METHOD_COUNT] = {0}, sum = 0;
  credits->peak *= LASTING;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_credit *c = &credits->of[list[i]];
    worth[i] = c->effort > 0 ? c->gain / c->effort : -1;
    if (worth[i] > credits->peak) credits->peak = worth[i];
  }
  const double peak = credits->peak > 0 ? credits->peak : 1; // nothing has gained anything yet: all methods have the
                                                             // same chance
  for (uint32_t i = 0; i < count; i++) {
    if (worth[i] < 0) worth[i] = peak; // a method that was not tried yet
    worth[i] += FLOOR * peak;
    sum += worth[i];
  }
  double at = tfc_random_unit(random) * sum;
  for (uint32_t i = 0; i + 1 < count; i++)
    if ((at -= worth[i]) < 0) return list[i];
  return list[count - 1];
}
