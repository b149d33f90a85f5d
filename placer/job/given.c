#include "placer/job/given.h"

#include <stdlib.h>
#include <string.h>

#include "placer/model/placement_json.h"

tfc_status tfc_job_given(const struct tfc_job_model *m, const struct tfc_job_clock *clock, struct tfc_solution *out) {
  tfc_status s = NULL;
  const char *what = m->o->evaluate;
  struct tfc_solution solution = {0};
  struct tfc_placement *file = NULL;
  char *note = NULL;
  TFC_TRY(s, tfc_solution_init(&solution, m->problem));
  if (strcmp(what, "-") == 0) {
    TFC_TRY(s, tfc_subject_strings(m->subject, m->problem, m->o->graph, &solution, &note));
    if (note && clock) tfc_job_say(clock, true, "device strings mapped to the devices in use: %s", note);
  } else if (strncmp(what, "single:", 7) == 0) {
    TFC_TRY(s, tfc_placement_single(m->problem, tfc_str_from(what + 7), &solution));
  } else {
    TFC_TRY(s, tfc_placement_read(what, &file));
    if (clock) tfc_job_model_compare_math(m, clock, what, file);
    s = tfc_subject_resolve(m->subject, m->problem, file, &solution);
    if (s) TFC_TRY(s, tfc_status_annotate(s, "--evaluate %s", what));
  }
  *out = solution, solution = (struct tfc_solution){0};
out:
  free(note);
  tfc_placement_free(file);
  tfc_solution_deinit(&solution);
  return s;
}

tfc_status tfc_job_check_given(const struct tfc_job_model *m) {
  struct tfc_solution solution = {0};
  TFC_RETURN_IF_ERROR(tfc_job_given(m, NULL, &solution));
  tfc_solution_deinit(&solution);
  return NULL;
}

tfc_status tfc_job_check_given_devices(const struct tfc_job_model *m) {
  tfc_status s = NULL;
  const char *what = m->o->evaluate;
  struct tfc_placement *file = NULL;
  if (!what || strcmp(what, "-") == 0) return NULL;
  if (strncmp(what, "single:", 7) != 0) TFC_TRY(s, tfc_placement_read(what, &file));
  TFC_TRY(s, tfc_placement_check_devices(what, file, m->bare, true));
out:
  tfc_placement_free(file);
  return s;
}
