#include "placer/search/credit.h"

#define KEPT 0.8 // each newer turn of a method multiplies the weight of its older turns by this
#define FLOOR                                                                                                          \
  0.1 // share of the peak that is added to every worth: every method can be drawn, and all are equal once none gains
#define LASTING 0.97 // factor of the peak from one draw to the next

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
  const double peak = credits->peak > 0 ? credits->peak : 1; // nothing has gained anything yet: all alike
  for (uint32_t i = 0; i < count; i++) {
    if (worth[i] < 0) worth[i] = peak; // not tried yet
    worth[i] += FLOOR * peak;
    sum += worth[i];
  }
  double at = tfc_random_unit(random) * sum;
  for (uint32_t i = 0; i + 1 < count; i++)
    if ((at -= worth[i]) < 0) return list[i];
  return list[count - 1];
}
