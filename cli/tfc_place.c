// tfc-place: finds a placement for a graph.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/place.h"
#include "cli/program.h"
#include "cli/task.h"
#include "cli/untrusted.h"
#include "placer/measure/measure.h"
#include "placer/measure/worker.h"
#include "placer/model/cost_graph_json.h"
#include "placer/placer.h"
#include "runtime/base/file.h"

#define AT(member) .offset = offsetof(struct place_options, member)

static const struct tfc_flag flags[] = {
    {.name = "graph",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(graph),
     .value = "PATH",
     .required = true,
     .help = "the graph: GraphDef (.pb, .pbtxt), MetaGraphDef (.meta), SavedModel directory, or a cost graph (.json); "
             "told apart by content"},
    {.name = "devices",
     .kind = TFC_FLAG_TEXT,
     AT(devices),
     .value = "N|LIST",
     .help = "the N best local devices of one kind, or names: cpu:0-3,gpu:0; with ',shared' after them virtual devices "
             "read each other's memory instead of copying"},
    {.name = "machine",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(machine),
     .value = "FILE",
     .help = "a modelled machine (YAML) instead of the local one"},
    {.name = "fetch",
     .kind = TFC_FLAG_TEXTS,
     AT(fetches),
     .value = "T",
     .help = "the step fetches this tensor; may be repeated; inferred when neither --fetch nor --target is given"},
    {.name = "target",
     .kind = TFC_FLAG_TEXTS,
     AT(targets),
     .value = "OP",
     .help = "the step runs this operation; may be repeated"},
    {.name = "init",
     .kind = TFC_FLAG_TEXTS,
     AT(inits),
     .value = "OP",
     .help = "the initialiser; may be repeated; inferred when absent"},
    {.name = "feed",
     .path = TFC_PATH_READ_PAIR,
     .kind = TFC_FLAG_TEXTS,
     AT(feeds),
     .value = "NAME=WHAT",
     .help = "a real feed, NAME=FILE.npy, or a synthetic one, NAME=int32[32,20]; synthetic for every placeholder when "
             "absent; may be repeated"},
    {.name = "batch",
     .kind = TFC_FLAG_COUNT,
     AT(batch),
     .value = "N",
     .minimum = 1,
     .maximum = 1 << 24,
     .help = "the size of unknown leading dimensions (default 32)"},
    {.name = "step",
     .kind = TFC_FLAG_SETTINGS,
     AT(step),
     .value = "FILE",
     .help = "fetches, targets, init, feeds, batch and checkpoint as one YAML file"},
    {.name = "checkpoint",
     .path = TFC_PATH_PREFIX,
     .kind = TFC_FLAG_TEXT,
     AT(checkpoint),
     .value = "PREFIX",
     .help = "restore variables from a TensorFlow V2 checkpoint instead of running the initialiser"},
    {.name = "algorithm",
     .kind = TFC_FLAG_TEXT,
     AT(search.algorithms),
     .value = "NAME[,NAME...]",
     .help = "default auto; 'help' lists them"},
    {.name = "objective",
     .kind = TFC_FLAG_CHOICE,
     AT(request.objective),
     .choices = "step|throughput",
     .help = "the shortest step (default), or the smallest load of the busiest device when steps are pipelined"},
    {.name = "measurements",
     .kind = TFC_FLAG_COUNT,
     AT(measurements),
     .value = "N",
     .minimum = 1,
     .maximum = 1000000,
     .help = "the budget in measured placements (default 200)"},
    {.name = "time",
     .kind = TFC_FLAG_SECONDS,
     AT(time),
     .value = "T",
     .help = "the budget in wall time, from profiling to report, with its unit: 90s, 10m, 1h (default 10m; for a cost "
             "graph 60s)"},
    {.name = "evaluations",
     .kind = TFC_FLAG_COUNT,
     AT(evaluations),
     .value = "N",
     .minimum = 1,
     .maximum = INT64_MAX,
     .help = "a budget of simulated placements, for all searches of the run together: under it, and no other, the same "
             "seed gives the same answer on any number of cores"},
    {.name = "device-strings",
     .kind = TFC_FLAG_CHOICE,
     AT(request.device_strings),
     .choices = "baseline|constrain|ignore",
     .help = "what the graph's own device strings are: a rival named 'expert' (default), a constraint, or nothing"},
    {.name = "baseline",
     .path = TFC_PATH_READ_PAIR,
     .kind = TFC_FLAG_TEXTS,
     AT(request.baselines),
     .value = "NAME=FILE",
     .help = "another rival: a placement file, or a graph whose device strings are read; may be repeated"},
    {.name = "pin",
     .kind = TFC_FLAG_TEXTS,
     AT(request.pins),
     .value = "REGEX=DEVICE",
     .help = "nodes whose whole name matches run there; may be repeated"},
    {.name = "memory",
     .kind = TFC_FLAG_TEXTS,
     AT(limits),
     .value = "DEVICE=SIZE",
     .help = "a limit: 'cpu:*=200MiB'; may be repeated"},
#define CHOICE(member, flag, values, text)                                                                             \
  {.name = flag, .kind = TFC_FLAG_CHOICE, AT(execution.member), .choices = values, .help = text},
    TFC_EXECUTION_CHOICES(CHOICE)
#undef CHOICE
        {.name = "config",
         .kind = TFC_FLAG_SETTINGS,
         AT(config),
         .value = "FILE",
         .help = "search and measuring settings (YAML; see configs/)"},
    {.name = "seed",
     .kind = TFC_FLAG_COUNT,
     AT(execution.seed),
     .value = "N",
     .help = "the seed of all random choices"},
    {.name = "policy",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(policy),
     .value = "FILE|none",
     .help = "the learned policy's weights (default: the file that tfc ships), or no learned policy"},
    {.name = "save-policy",
     .path = TFC_PATH_WRITE,
     .kind = TFC_FLAG_TEXT,
     AT(save_policy),
     .value = "FILE",
     .help = "write the policy, with what this run learned added"},
    {.name = "no-early-stop",
     .kind = TFC_FLAG_BOOL,
     AT(no_early_stop),
     .help = "measure candidates that are far too slow in full, too"},
    {.name = "wait",
     .kind = TFC_FLAG_BOOL,
     AT(wait),
     .help = "wait for another run that measures on this machine instead of ending with exit 1; the time of this one "
             "begins afterwards"},
    {.name = "threads",
     .kind = TFC_FLAG_COUNT,
     AT(execution.threads),
     .value = "N",
     .minimum = 1,
     .maximum = 4096,
     .help = "threads of the search (default: the cores that this process may use)"},
    {.name = "evaluate",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(evaluate),
     .value = "FILE",
     .help = "no search: measure a step under the placement in FILE, under the graph's own device strings (-), or "
             "with everything on one device (single:gpu:0)"},
    {.name = "db",
     .path = TFC_PATH_DATABASE,
     .kind = TFC_FLAG_TEXT,
     AT(db),
     .value = "FILE",
     .help = "profiles, SQLite (default tfc.db)"},
    {.name = "out",
     .path = TFC_PATH_WRITE,
     .kind = TFC_FLAG_TEXT,
     AT(out),
     .value = "FILE",
     .help = "the placement (default: the graph's path with .placement.json)"},
    {.name = "report",
     .path = TFC_PATH_FOLDER,
     .kind = TFC_FLAG_TEXT,
     AT(report),
     .value = "DIR",
     .help = "the report (default: the graph's path with .report/); 'none' for none"},
    {.name = "save-problem",
     .path = TFC_PATH_FOLDER,
     .kind = TFC_FLAG_TEXT,
     AT(save_problem),
     .value = "DIR",
     .help =
         "write the problem as a cost graph and a machine file, and the answer's placement of it, so that it can be "
         "solved or checked with other programs"},
    {.name = "measure-with",
     .kind = TFC_FLAG_TEXT,
     AT(measure_with),
     .value = "COMMAND",
     .help = "steps run in another program, which COMMAND starts and which is asked in lines of JSON (see the guide); "
             "needs --machine, whose modelled costs are used until measurements correct them"},
    {.name = "measure-timeout",
     .kind = TFC_FLAG_SECONDS,
     AT(measure_timeout),
     .value = "T",
     .help = "how long to wait for an answer of that program (default: ten times the longest answer, at least 60s)"},
    {.name = "model",
     .kind = TFC_FLAG_CHOICE,
     AT(model),
     .choices = "learned|prior",
     .help = "learned (default): measurements correct the costs of the search; prior: they only rank candidates"},
    {.name = "cluster",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(cluster),
     .value = "SPEC",
     .help =
         "under mpirun or srun, which process is which task: ps=1,worker=2, or a file like TensorFlow's ClusterSpec "
         "(default: all are workers); --devices then takes TensorFlow's names, with '*'"},
    {.name = "restarts",
     .kind = TFC_FLAG_COUNT,
     AT(restarts),
     .value = "N",
     .maximum = 1000000,
     .help = "with --cluster, outside of mpirun: starts mpirun itself, and again if a task dies, at most N times; the "
             "run goes on, and the placement that was being tried counts as failed"},
    {.name = "replicas",
     .kind = TFC_FLAG_TEXT,
     AT(replicas),
     .value = "N[,N...]",
     .help = "with a machine file: simulates N replicas of the step that train together, for each N (1,2,4,...,1000 "
             "goes on as it begins): batches a second, efficiency, the busiest link, how many backups pay"},
    {.name = "sync", .kind = TFC_FLAG_BOOL, AT(sync), .help = "only synchronous replicas (default: both)"},
    {.name = "async", .kind = TFC_FLAG_BOOL, AT(async), .help = "only asynchronous replicas"},
    {.name = "reduce",
     .kind = TFC_FLAG_CHOICE,
     AT(reduce),
     .choices = "both|all|ps",
     .help = "gradients are reduced by all replicas, or go to parameter servers (default: both)"},
    {.name = "backup",
     .kind = TFC_FLAG_COUNT,
     AT(backup),
     .value = "B",
     .maximum = 1000,
     .help = "so many backup workers beside synchronous replicas with parameter servers (default: what pays best)"},
    {.name = "ps",
     .kind = TFC_FLAG_COUNT,
     AT(ps),
     .value = "N",
     .maximum = 100000,
     .help = "parameter servers on so many hosts of their own (default 0: one on each host with replicas)"},
    {.name = "step-times",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(step_times),
     .value = "DB",
     .help =
         "how much the times of steps vary, from the last run of this database (default: the last run of this graph "
         "in --db, else assumed)"},
    {.name = "resume",
     .kind = TFC_FLAG_OPTIONAL,
     AT(resume),
     .value = "RUN",
     .help = "continue an interrupted run of the database, with the flags that it had (default: the last one)"},
};

static const struct tfc_program program = {
    .name = "tfc-place",
    .summary = "find out where each operation of a graph should run",
    .usage = "tfc-place --graph PATH [--devices N|LIST] [flags]",
    .examples = "  tfc-place --graph nmt.pb --devices 4\n"
                "      profile the graph on four local devices, search, learn, measure, explain\n"
                "  tfc-place --graph nmt.pb --devices 4 --time 3m --memory 'cpu:*=200MiB'\n"
                "      in three minutes, with no device holding more than 200 MiB\n"
                "  tfc-place --graph nmt.pb --devices 4 --evaluate nmt.placement.json\n"
                "      what a step takes under a given placement\n"
                "  tfc-place --graph costs.json --machine machine.yaml --time 60s\n"
                "      place a profiled graph from anywhere on a machine that is only described\n"
                "  tfc-place --graph costs.json --machine machine.yaml \\\n"
                "      --measure-with 'python3 steps.py'\n"
                "      the same, with steps measured by a program of your own\n"
                "  tfc-place --graph nmt.pb --machine configs/4xp100.yaml --devices 4 --time 60s\n"
                "      the same for a TensorFlow graph, whose operations are costed by their\n"
                "      FLOP and bytes\n"
                "  mpirun -n 2 tfc-place --graph nmt.pb \\\n"
                "      --devices '/job:worker/task:*/device:CPU:*'\n"
                "      over the devices of two tasks\n"
                "  tfc-place --graph nmt.pb --machine configs/16x8xh100.yaml \\\n"
                "      --replicas 1,2,4,...,1000\n"
                "      simulated: how many steps a second so many replicas take, and how many\n"
                "      backups pay\n",
    .flags = flags,
    .flag_count = sizeof flags / sizeof *flags,
    .exit_codes = "7    nothing found that beats the best single device by more than the noise",
};

int main(int argc, char **argv) {
  static const char db[] = "tfc.db";
  static struct place_options o = {
      .batch = 0, .backup = -1, .restarts = -1, .measurements = 200, .execution.seed = 1, .db = db};
  if (tfc_measure_is_worker(argc, argv)) return tfc_measure_worker_main(argc, argv);
  tfc_program_start("tfc-place", argv);
  for (int i = 1; i < argc; i++) // the list of algorithms needs no graph
    if (strcmp(argv[i], "--algorithm=help") == 0 ||
        (strcmp(argv[i], "--algorithm") == 0 && i + 1 < argc && strcmp(argv[i + 1], "help") == 0))
      return place_list_algorithms();
  int code = tfc_flags_parse(&program, argc, argv, &o, NULL);
  if (code >= 0) return code;
  o.db_given = o.db != db;
  if ((code = place_check_algorithms(&program, &o)) || (code = place_check_texts(&program, &o)) ||
      (code = place_check_elsewhere(&program, &o)) || (code = place_check_replicas(&program, &o)) ||
      (code = place_check_tasks(&program, &o)))
    return code;
  if (o.common.untrusted && o.measure_with)
    return tfc_flags_error(&program, "--untrusted cannot hold what --measure-with starts");
  const struct cli_untrusted_needs needs = {.programs = true, .beside = o.out && o.report ? NULL : o.graph};
  if ((code = cli_untrusted_enter(&program, &o, &needs)) >= 0) return code;
  struct stat info;
  bool directory = stat(o.graph, &info) == 0 && S_ISDIR(info.st_mode);
  bool cost_graph = false;
  if (!directory) {
    struct tfc_file file = {0};
    tfc_status s = tfc_file_map_document(o.graph, &file);
    if (s) return tfc_program_fail(s);
    cost_graph = tfc_cost_graph_sniff((tfc_str){(const char *)file.data, file.size});
    tfc_file_unmap(&file);
  }
  if (cost_graph && !o.machine) { // report a broken cost graph first
    struct tfc_cost_graph *graph = NULL;
    tfc_status s = tfc_cost_graph_read(o.graph, &graph);
    if (s) return tfc_program_fail(s);
    tfc_cost_graph_free(graph);
    return tfc_flags_error(&program, "'%s' is a cost graph: give the machine to place it on with --machine FILE.yaml",
                           o.graph);
  }
  if (cost_graph && (code = place_check_cost_graph(&program, &o))) return code;
  if (o.machine && o.execution.gpu_math) tfc_warn("--gpu-math changes nothing: nothing runs on a modelled machine");
  if (o.restarts >= 0) return tfc_program_finish(place_tasks_restarted(&o, argv));
  if (o.cluster || cli_task_started()) return tfc_program_finish(place_tasks(&o));
  if (o.replicas) return tfc_program_finish(place_replicas(&o, cost_graph));
  return tfc_program_finish(o.machine ? place_modelled(&o, cost_graph) : place_local(&o));
}
