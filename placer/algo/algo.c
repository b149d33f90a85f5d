#include "placer/algo/algo.h"

#include "placer/algo/list.h"

#define TFC_ALGO_DECLARE(name) extern const struct tfc_algo tfc_algo_##name;
TFC_ALGOS(TFC_ALGO_DECLARE)
#undef TFC_ALGO_DECLARE

static const struct tfc_algo *const algos[] = {
#define TFC_ALGO_ADDRESS(name) &tfc_algo_##name,
    TFC_ALGOS(TFC_ALGO_ADDRESS)
#undef TFC_ALGO_ADDRESS
        NULL};

const struct tfc_algo *const *tfc_algos(void) {
  return algos;
}

const struct tfc_algo *tfc_algo_find(tfc_str name) {
  for (size_t i = 0; algos[i]; i++)
    if (tfc_str_is(name, algos[i]->name)) return algos[i];
  return NULL;
}
