// For --save-problem: writes the measured problem as files, and the answer as a placement for it, so that other
// programs can solve the problem or check the answer.
#include "placer/job/saved_problem.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "placer/model/cost_graph_json.h"
#include "placer/model/machine_yaml.h"
#include "placer/model/placement_json.h"

tfc_status tfc_job_save_problem(const struct tfc_job_model *m, const struct tfc_job_clock *clock) {
  tfc_status s = NULL;
  if (!m->o->save_problem) return NULL;
  if (!m->profiled) { // without measured times the problem would be another one
    tfc_job_say(clock, true, "%s: nothing is written: the profile did not end, no operation's time is known",
                m->o->save_problem);
    return NULL;
  }
  char *graph = tfc_format("%s/graph.json", m->o->save_problem);
  char *machine = tfc_format("%s/machine.yaml", m->o->save_problem);
  if (!graph || !machine) TFC_TRY(s, tfc_status_no_memory(NULL));
  mkdir(m->o->save_problem, 0777); // any error but EEXIST shows again when the files are written
  TFC_TRY(s, tfc_cost_graph_write(m->cost_graph, graph));
  struct tfc_machine written = *m->machine; // with the real limits, which searches may not use up
  written.devices = malloc((written.device_count + 1u) * sizeof *written.devices);
  if (!written.devices) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t d = 0; d < written.device_count; d++) {
    written.devices[d] = m->machine->devices[d];
    written.devices[d].memory = m->bare->devices[d].memory;
  }
  s = tfc_machine_write(&written, machine);
  free(written.devices);
out:
  free(graph);
  free(machine);
  return s;
}

// Leaves out the nodes that the step does not run, because they are not in the problem.
tfc_status tfc_job_save_placement(const struct tfc_job_model *m, const struct tfc_placement *document) {
  tfc_status s = NULL;
  if (!m->o->save_problem || !m->profiled || !document) return NULL;
  struct tfc_placement part = *document;
  char *path = tfc_format("%s/placement.json", m->o->save_problem);
  char *graph = tfc_format("%s/graph.json", m->o->save_problem);
  part.nodes = malloc((part.node_count + 1u) * sizeof *part.nodes);
  part.node_count = 0;
  if (!path || !graph || !part.nodes) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < document->node_count; i++) {
    uint32_t node;
    tfc_status absent = tfc_cost_graph_find(m->cost_graph, document->nodes[i].name, &node);
    if (!absent) part.nodes[part.node_count++] = document->nodes[i];
    tfc_status_free(absent);
  }
  part.graph_file = tfc_str_from(graph), part.graph_sha256 = (tfc_str){0};
  part.graph_nodes = m->cost_graph->node_count;
  TFC_TRY(s, tfc_placement_write(&part, path));
out:
  free(path);
  free(graph);
  free(part.nodes);
  return s;
}
