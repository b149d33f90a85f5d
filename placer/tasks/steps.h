// Steps: runs placements over all tasks of a job, and times their steps. A placement is a cluster session of the graph
// with its device strings; before each reading it runs the initialiser, so that every placement begins with the same
// variables. The time of a step is the time from the request to the first task until the answer of the last task.
//
//   TFC_TRY(s, tfc_task_steps_create(&options, &steps));
//   TFC_TRY(s, tfc_task_steps_ask(steps, document, 1, 5, &answer)); // as tfc_command_ask
//   tfc_task_steps_free(steps);
//
// Only one thread may use it, in the task that is the client.
#ifndef TFC_PLACER_TASKS_STEPS_H
#define TFC_PLACER_TASKS_STEPS_H

#include "placer/measure/command.h"
#include "placer/subject/subject.h"
#include "runtime/cluster/client.h"
#include "runtime/pass/step.h"

struct tfc_task_steps_options { // borrowed as long as the steps exist
  struct tfc_member *member;
  const char *graph; // path
  const struct tfc_execution *execution;
  const struct tfc_step_spec *step;            // by the nodes of `subject`'s graph
  const struct tfc_tensor *feeds, *init_feeds; // values
  const struct tfc_subject *subject;
  const struct tfc_problem *problem;
  const struct tfc_machine *machine; // its devices have TensorFlow names
  const atomic_bool *cancel;
};
struct tfc_task_steps;
TFC_MUST_USE tfc_status tfc_task_steps_create(const struct tfc_task_steps_options *options,
                                              struct tfc_task_steps **out);
void tfc_task_steps_free(struct tfc_task_steps *steps); // NULL is fine
// Runs the placement that the document describes. An error of the step is the answer's; the status is for the end of
// the job (UNAVAILABLE) and for CANCELLED.
tfc_status tfc_task_steps_ask(void *steps, const struct tfc_placement *placement, uint32_t warmup, uint32_t count,
                              struct tfc_command_answer *answer);

#endif
