// Lists the ideals of a graph's runs, each made of a smaller one and one more run, up to a largest number.
#include <stdlib.h>
#include <string.h>

#include "placer/algo/dp_ideals.h"
#include "runtime/base/map.h"

#define LARGEST_IDEALS 2500

tfc_status tfc_dp_find_ideals(const struct tfc_dp *q, struct tfc_dp_ideals *x, bool *out_all) {
  const struct tfc_problem *p = q->p;
  const uint32_t runs = q->run_count, words = (runs + 63) / 64;
  tfc_status s = NULL;
  struct tfc_intmap seen = {0}; // ideals by hash; on equal hashes the bits are compared
  uint64_t *before = calloc((size_t)runs * words + 1, sizeof *before), *next = calloc(words + 1u, sizeof *next);
  TFC_ARRAY(struct tfc_dp_step) up = {0}; // (ideal, run): adding the run to the ideal gives the new one
  TFC_ARRAY(uint32_t) reach = {0};
  *out_all = false;
  if (!before || !next) TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
  for (uint32_t i = 0; i < p->net_count; i++) {
    const uint32_t a = q->run[p->unit[p->graph->producer[p->net_tensor[i]]]];
    for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
      const uint32_t b = q->run[p->net_unit[j]];
      if (a < b) before[(size_t)b * words + a / 64] |= UINT64_C(1) << (a % 64);
    }
  }
  x->words = words;
  if (!tfc_array_resize(&x->bits, words)) TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
  x->count = 1;
  for (uint32_t i = 0; i < x->count; i++)
    for (uint32_t r = 0; r < runs; r++) {
      const uint64_t *bits = x->bits.data + (size_t)i * words;
      if (bits[r / 64] >> (r % 64) & 1) continue;
      bool can = true;
      for (uint32_t w = 0; w < words && can; w++) can = !(before[(size_t)r * words + w] & ~bits[w]);
      if (!can) continue;
      memcpy(next, bits, sizeof *next * words);
      next[r / 64] |= UINT64_C(1) << (r % 64);
      uint64_t hash = tfc_hash_bytes(next, sizeof *next * words);
      bool found;
      uint64_t *place;
      while ((place = tfc_intmap_put(&seen, hash, x->count, &found)) && found &&
             memcmp(x->bits.data + *place * words, next, sizeof *next * words) != 0)
        hash++;
      if (!place) TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
      if (!found) {
        if (x->count >= LARGEST_IDEALS) goto out;
        if (!tfc_array_resize(&x->bits, ((size_t)x->count + 1) * words))
          TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
        memcpy(x->bits.data + (size_t)x->count * words, next, sizeof *next * words);
        x->count++;
      }
      if (!tfc_array_push(&up, (struct tfc_dp_step){i, r}) || !tfc_array_push(&reach, (uint32_t)*place))
        TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
    }
  if (!tfc_array_resize(&x->first_step, (size_t)x->count + 2) || !tfc_array_resize(&x->steps, up.count))
    TFC_TRY(s, tfc_status_no_memory("dynamic programming"));
  for (size_t k = 0; k < reach.count; k++) x->first_step.data[reach.data[k] + 2]++;
  for (uint32_t i = 0; i < x->count; i++) x->first_step.data[i + 2] += x->first_step.data[i + 1];
  for (size_t k = 0; k < reach.count; k++) x->steps.data[x->first_step.data[reach.data[k] + 1]++] = up.data[k];
  *out_all = true;
out:
  tfc_intmap_deinit(&seen);
  tfc_array_free(&up);
  tfc_array_free(&reach);
  free(before), free(next);
  return s;
}

tfc_status tfc_dp_linear_ideals(const struct tfc_dp *q, struct tfc_dp_ideals *x) {
  x->count = q->run_count + 1;
  x->first_step.count = x->steps.count = 0;
  if (!tfc_array_resize(&x->first_step, (size_t)x->count + 2) || !tfc_array_resize(&x->steps, q->run_count))
    return tfc_status_no_memory("dynamic programming");
  for (uint32_t i = 0; i < x->count; i++) {
    x->first_step.data[i] = i ? i - 1 : 0;
    if (i) x->steps.data[i - 1] = (struct tfc_dp_step){i - 1, i - 1};
  }
  x->first_step.data[x->count] = q->run_count;
  return NULL;
}
