#include "placer/job/outcome.h"

#include <stdlib.h>
#include <string.h>

const struct tfc_job_row *tfc_job_outcome_answer(const struct tfc_job_outcome *out) {
  for (uint32_t i = 0; i < out->row_count; i++)
    if (strcmp(out->rows[i].kind, "answer") == 0) return &out->rows[i];
  return NULL;
}

void tfc_job_outcome_deinit(struct tfc_job_outcome *out) {
  tfc_placement_free(out->placement);
  for (uint32_t i = 0; i < out->row_count; i++) {
    free(out->rows[i].name);
    free(out->rows[i].note);
  }
  free(out->rows);
  for (uint32_t i = 0; i < out->pair_count; i++) {
    free(out->pairs[i].algorithm);
    free(out->pairs[i].measured_us);
  }
  free(out->pairs);
  free(out->peak);
  free(out->limit);
  free(out->crossing);
  free(out->path);
  free(out->first_line);
  free(out->learning);
  *out = (struct tfc_job_outcome){0};
}
