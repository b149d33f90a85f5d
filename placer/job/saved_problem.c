// --save-problem: the measured problem as files, and the answer as a placement of it, so that both can be solved or
// checked elsewhere.
#include <stdlib.h>
#include <sys/stat.h>

#include "placer/job/private.h"

tfc_status tfc_job_save_problem(struct tfc_job *j) {
  tfc_status s = NULL;
  if (!j->o->save_problem) return NULL;
  if (!j->profiled) { // without times it would be another problem
    tfc_job_say(j, true, "%s: nothing is written: the profile did not end, no operation's time is known",
                j->o->save_problem);
    return NULL;
  }
  char *graph = tfc_format("%s/graph.json", j->o->save_problem);
  char *machine = tfc_format("%s/machine.yaml", j->o->save_problem);
  if (!graph || !machine) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  mkdir(j->o->save_problem, 0777); // there already: fine; otherwise the write below says why not
  TFC_TRY(s, tfc_cost_graph_write(j->cost_graph, graph));
  for (uint32_t d = 0; d < j->machine->device_count; d++) j->machine->devices[d].memory = j->bare->devices[d].memory;
  TFC_TRY(s, tfc_machine_write(j->machine, machine));
out:
  free(graph);
  free(machine);
  return s;
}

// What the step does not run is not in the problem.
tfc_status tfc_job_save_placement(const struct tfc_job *j) {
  tfc_status s = NULL;
  if (!j->o->save_problem || !j->profiled || !j->out->placement) return NULL;
  struct tfc_placement part = *j->out->placement;
  char *path = tfc_format("%s/placement.json", j->o->save_problem);
  char *graph = tfc_format("%s/graph.json", j->o->save_problem);
  part.nodes = malloc((part.node_count + 1u) * sizeof *part.nodes);
  part.node_count = 0;
  if (!path || !graph || !part.nodes) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < j->out->placement->node_count; i++) {
    uint32_t node;
    tfc_status absent = tfc_cost_graph_find(j->cost_graph, j->out->placement->nodes[i].name, &node);
    if (!absent) part.nodes[part.node_count++] = j->out->placement->nodes[i];
    tfc_status_free(absent);
  }
  part.graph_file = tfc_str_from(graph), part.graph_sha256 = (tfc_str){0};
  part.graph_nodes = j->cost_graph->node_count;
  TFC_TRY(s, tfc_placement_write(&part, path));
out:
  free(path);
  free(graph);
  free(part.nodes);
  return s;
}
