// tfc-run: runs a graph.
#include <stdlib.h>
#include <string.h>

#include "cli/device_list.h"
#include "cli/json.h"
#include "cli/measuring.h"
#include "cli/program.h"
#include "cli/run.h"
#include "cli/run_kinds.h"
#include "cli/untrusted.h"

#define AT(member) .offset = offsetof(struct run_options, member)
static const struct tfc_flag flags[] = {
    {.name = "graph",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(graph),
     .value = "PATH",
     .help = "the graph: .pb, .pbtxt, .meta or a SavedModel"},
    {.name = "fetch",
     .path = TFC_PATH_WRITE_PAIR,
     .kind = TFC_FLAG_TEXTS,
     AT(fetches),
     .value = "T[=FILE.npy]",
     .help = "a tensor to fetch, and the file that its value of the last step goes to; may be repeated"},
    {.name = "target",
     .kind = TFC_FLAG_TEXTS,
     AT(targets),
     .value = "OP",
     .help = "an operation to run; may be repeated; inferred when neither --fetch nor --target is given"},
    {.name = "init",
     .kind = TFC_FLAG_TEXTS,
     AT(inits),
     .value = "OP",
     .help = "the operation that initialises variables before the first step; inferred when absent"},
    {.name = "feed",
     .path = TFC_PATH_READ_PAIR,
     .kind = TFC_FLAG_TEXTS,
     AT(feeds),
     .value = "NAME=FILE.npy|NAME=DTYPE[SHAPE]",
     .help = "a real or a synthetic feed; synthetic for every placeholder that is not given"},
    {.name = "batch",
     .kind = TFC_FLAG_COUNT,
     AT(batch),
     .value = "N",
     .minimum = 1,
     .maximum = 1 << 24,
     .help = "the size of unknown leading dimensions (default 32)"},
    {.name = "steps",
     .kind = TFC_FLAG_COUNT,
     AT(steps),
     .value = "N",
     .minimum = 1,
     .maximum = 10000000,
     .help = "steps that are timed (default 10)"},
    {.name = "warmup",
     .kind = TFC_FLAG_COUNT,
     AT(warmup),
     .value = "N",
     .maximum = 10000000,
     .help = "steps before these, not timed (default 2; on GPUs at least until CUDA graphs are captured)"},
    {.name = "devices",
     .kind = TFC_FLAG_TEXT,
     AT(devices),
     .value = "LIST",
     .help = "devices to open, as 'cpu:0-3' or '4' (default: one CPU device of all allowed cores, or those of "
             "--placement); ',shared' after them as for tfc-place"},
    {.name = "placement",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(placement),
     .value = "FILE",
     .help = "run as this placement file says; with --cluster, one that tfc-place made over tasks"},
    {.name = "threads",
     .kind = TFC_FLAG_COUNT,
     AT(execution.threads),
     .value = "N",
     .minimum = 1,
     .maximum = 4096,
     .help = "use at most this many cores"},
#define CHOICE(member, flag, values, text)                                                                             \
  {.name = flag, .kind = TFC_FLAG_CHOICE, AT(execution.member), .choices = values, .help = text},
    TFC_EXECUTION_CHOICES(CHOICE)
#undef CHOICE
        {.name = "seed",
         .kind = TFC_FLAG_COUNT,
         AT(execution.seed),
         .value = "N",
         .help = "the seed of synthetic feeds and of random operations without a seed"},
    {.name = "profile",
     .kind = TFC_FLAG_BOOL,
     AT(profile),
     .help = "time every operation of every step and keep it in the database"},
    {.name = "wait",
     .kind = TFC_FLAG_BOOL,
     AT(wait),
     .help = "with --profile: wait until no other run measures on this machine and no other process writes to the "
             "database"},
    {.name = "db",
     .path = TFC_PATH_DATABASE,
     .kind = TFC_FLAG_TEXT,
     AT(db),
     .value = "FILE",
     .help = "the database (default tfc.db)"},
    {.name = "checkpoint",
     .path = TFC_PATH_PREFIX,
     .kind = TFC_FLAG_TEXT,
     AT(checkpoint),
     .value = "PREFIX",
     .help = "restore variables from a TensorFlow V2 checkpoint; with --supervise, only until that has saved them"},
    {.name = "save-checkpoint",
     .path = TFC_PATH_WRITE,
     .kind = TFC_FLAG_TEXT,
     AT(save_checkpoint),
     .value = "PREFIX",
     .help = "write variables to a TensorFlow V2 checkpoint at the end"},
    {.name = "run",
     .path = TFC_PATH_BESIDE,
     .kind = TFC_FLAG_TEXT,
     AT(script),
     .value = "SCRIPT.json",
     .help = "several runs in one session, in order; no initialiser is inferred, but those of --init run before"},
    {.name = "out",
     .path = TFC_PATH_FOLDER,
     .kind = TFC_FLAG_TEXT,
     AT(out),
     .value = "DIR",
     .help = "where the fetches of --run go: DIR/<run>/<tensor>.npy"},
    {.name = "cluster",
     .path = TFC_PATH_READ,
     .kind = TFC_FLAG_TEXT,
     AT(cluster),
     .value = "SPEC",
     .help = "under mpirun or srun, this process is one task of a job: SPEC lists the tasks in the order of ranks, as "
             "'ps=1,worker=2' or as a file like TensorFlow's ClusterSpec; --graph may contain {job} and {task}; a task "
             "without a file only serves the others"},
    {.name = "replicas",
     .kind = TFC_FLAG_COUNT,
     AT(replicas),
     .value = "N",
     .minimum = 2,
     .maximum = 4096,
     .help = "with --cluster, without --run: data parallelism of a graph of one device, on N tasks whose job is not "
             "ps; each computes the gradients of its part of the feeds, whose first dimension is N times the graph's "
             "batch"},
    {.name = "reduce",
     .kind = TFC_FLAG_CHOICE,
     AT(reduce),
     .choices = "auto|all|ps",
     .help = "where the variables of --replicas are: all, each task has its own and gets all averaged gradients; ps, "
             "in the tasks of the job ps (auto: if there are any)"},
    {.name = "sync",
     .kind = TFC_FLAG_BOOL,
     AT(sync),
     .help = "--replicas take their steps together, each with the mean of all gradients (default)"},
    {.name = "async",
     .kind = TFC_FLAG_BOOL,
     AT(async),
     .help = "each of --replicas takes its own steps on the variables of the job ps"},
    {.name = "backup",
     .kind = TFC_FLAG_COUNT,
     AT(backup),
     .value = "B",
     .minimum = 1,
     .maximum = 4095,
     .help = "with --replicas N and a job ps: a step takes the gradients of the first N - B replicas that have them; "
             "those of the others, which are of an older step when they come, are dropped"},
    {.name = "supervise",
     .path = TFC_PATH_FOLDER,
     .kind = TFC_FLAG_TEXT,
     AT(supervise),
     .value = "DIR",
     .help = "with --cluster, without --run: variables are saved in DIR while training goes on (the last five "
             "checkpoints are kept), and restored from there when it begins again; --steps counts from the first "
             "beginning; an events file there has every task's steps a second and the fetched scalars"},
    {.name = "save-every",
     .kind = TFC_FLAG_SECONDS,
     AT(save_every),
     .value = "T",
     .help = "how often --supervise saves (default 10m)"},
    {.name = "restarts",
     .kind = TFC_FLAG_COUNT,
     AT(restarts),
     .value = "N",
     .maximum = 1000000,
     .help = "with --cluster, outside of mpirun: starts mpirun itself, and again after a failure, at most N times"},
    {.name = "list-ops",
     .kind = TFC_FLAG_BOOL,
     AT(list_ops),
     .help = "print the operations that the runtime knows, with types, and which types each kind of device has kernels "
             "for"},
    {.name = "shapes", .kind = TFC_FLAG_BOOL, AT(shapes), .help = "print the shapes that are inferred for the graph"},
};
static const struct tfc_program program = {
    .name = "tfc-run",
    .summary = "run a TensorFlow graph",
    .usage = "tfc-run --graph PATH [flags]",
    .examples = "  tfc-run --graph examples/nmt.pb --fetch loss:0 --target train_op --steps 20\n"
                "      20 training steps with synthetic feeds, timed\n"
                "  tfc-run --graph nmt.pb --placement nmt.placement.json --steps 100 --profile\n"
                "      as tfc-place found it, every operation timed into tfc.db\n"
                "  tfc-run --graph nmt.pb --run script.json --out results\n"
                "      several runs in one session: {\"runs\": [{\"targets\": [\"init\"]},\n"
                "      {\"feeds\": {\"x:0\": \"x.npy\"}, \"fetches\": [\"loss:0\"]}]}\n"
                "  mpirun -n 3 tfc-run --graph 'train.{job}.{task}.meta' \\\n"
                "      --cluster ps=1,worker=2 --run script.json --out results\n"
                "      three tasks: script.worker.0.json and script.worker.1.json say what the\n"
                "      workers run\n"
                "  tfc-run --list-ops\n"
                "      what the runtime can do\n",
    .flags = flags,
    .flag_count = sizeof flags / sizeof *flags,
};

// Stores what was recorded of a script, also if a signal ended it (`s`). Returns `s`, or why nothing could be stored.
static tfc_status store_script(const struct run_setup *setup, tfc_status s) {
  if (!setup->kinds || (s && tfc_status_code(s) != TFC_CANCELLED)) return s;
  tfc_status lost = run_kinds_store(setup->kinds, setup, s != NULL);
  if (!lost) return s;
  tfc_status_free(s);
  return lost;
}

static tfc_status run(const struct run_options *o) {
  if (o->list_ops) return run_list_ops(o);
  if (o->shapes) return run_shapes(o);
  struct run_setup setup = {0};
  struct tfc_lock *lock = NULL;
  tfc_status s = NULL;
  TFC_TRY(s, run_setup_open(o, &setup));
  if (o->script && o->wait) TFC_TRY(s, cli_measuring_lock(true, &lock));
  if (o->script && o->profile) TFC_TRY(s, run_kinds_open(&setup, true, &setup.kinds));
  if (o->script || o->checkpoint) TFC_TRY(s, run_initialise(&setup));
  TFC_TRY(s, run_restore(&setup, o->checkpoint));
  s = o->script ? run_script(&setup) : run_measure(&setup);
  if (!s && o->save_checkpoint)
    s = run_save(&setup, o->save_checkpoint);
  else if (o->save_checkpoint && tfc_status_code(s) == TFC_CANCELLED && atomic_load(tfc_program_cancel()))
    s = run_save_stopped(&setup, o->save_checkpoint, s);
  s = store_script(&setup, s);
out:
  tfc_lock_release(lock);
  run_setup_close(&setup);
  return s;
}

// Finds usage errors that concern several flags. Returns -1 if there are none, else the exit code.
static int check(const struct run_options *o) {
  if (!o->graph && !o->list_ops) return tfc_flags_error(&program, "--graph is missing");
  if (o->wait && !o->profile) return tfc_flags_error(&program, "--wait goes with --profile");
  for (uint32_t i = 0; i < o->feeds.count; i++) {
    size_t equals = strcspn(o->feeds.items[i], "=");
    if (equals == 0 || !o->feeds.items[i][equals] || !o->feeds.items[i][equals + 1])
      return tfc_flags_error(&program, "--feed needs NAME=FILE.npy or NAME=DTYPE[SHAPE], not '%s'", o->feeds.items[i]);
  }
  char *error = o->devices ? cli_device_list_error(o->devices, false) : NULL;
  int code = error ? tfc_flags_error(&program, "--devices %s: %s", o->devices, error) : -1;
  free(error);
  if (code >= 0) return code;
  if (o->cluster && o->common.untrusted) return tfc_flags_error(&program, "--cluster does not go with --untrusted");
  if (o->placement && o->replicas)
    return tfc_flags_error(&program, "--placement does not go with --replicas: towers are in the tasks of the job");
  if (!o->cluster && (o->supervise || o->restarts >= 0))
    return tfc_flags_error(&program, "--supervise and --restarts go with --cluster");
  if (o->save_every > 0 && !o->supervise)
    return tfc_flags_error(&program, "--save-every says how often --supervise DIR saves, which is missing");
  if (o->supervise && o->script) return tfc_flags_error(&program, "--supervise and --run do not go together");
  if (o->replicas && (!o->cluster || o->script))
    return tfc_flags_error(&program, "--replicas goes with --cluster, and not with --run");
  if (!o->replicas && (o->reduce || o->sync || o->async))
    return tfc_flags_error(&program, "--reduce, --sync and --async go with --replicas");
  if (o->async && (o->sync || o->reduce == RUN_REDUCE_ALL))
    return tfc_flags_error(&program, "--async goes neither with --sync nor with --reduce all");
  if (o->backup && (!o->replicas || o->async || o->reduce == RUN_REDUCE_ALL))
    return tfc_flags_error(&program, "--backup goes with --replicas, and neither with --async nor with --reduce all");
  if (o->backup && o->backup >= o->replicas)
    return tfc_flags_error(&program, "--backup has to be less than --replicas: a step needs a gradient");
  if (o->backup && o->profile) return tfc_flags_error(&program, "--profile does not go with --backup");
  if (o->script && !o->out) return tfc_flags_error(&program, "--run needs --out DIR for what it fetches");
  return -1;
}

// The folder without the slashes at its end, as in "run/"; the caller frees it. NULL: none was given, or out of memory.
static char *folder_of(const char *path) {
  size_t size = path ? strlen(path) : 0;
  while (size > 1 && path[size - 1] == '/') size--;
  return size ? tfc_format("%.*s", (int)size, path) : NULL;
}

int main(int argc, char **argv) {
  tfc_program_start("tfc-run", argv);
  struct run_options o = {.db = "tfc.db", .steps = 10, .warmup = 2, .restarts = -1};
  int code = tfc_flags_parse(&program, argc, argv, &o, NULL);
  char *folder = folder_of(o.supervise);
  if (folder) o.supervise = folder;
  if (code < 0) {
    tfc_program_set_output(o.common.quiet, o.common.verbose, (tfc_color)o.common.color);
    code = check(&o);
    if (o.save_every <= 0) o.save_every = 600;
    if (!o.profile) o.db = NULL; // nothing is stored, so --untrusted need not allow the database
    if (code < 0) code = cli_untrusted_enter(&program, &o, &(struct cli_untrusted_needs){.ends_with_time = true});
  }
  if (code < 0 && o.cluster && !o.list_ops && !o.shapes) {
    code = tfc_program_finish(run_cluster(&o, argv));
  } else if (code < 0) {
    tfc_status s = run(&o);
    if (s && o.common.json && !cli_json_printed()) {
      json_t *document = json_pack("{s:o, s:o}", "graph", cli_json_string(o.graph), "error", cli_json_error(s));
      s = tfc_status_join(s, cli_json_print(document));
      json_decref(document);
    }
    code = tfc_program_finish(tfc_program_fail(s));
  }
  free(folder), free(o.fetches.items), free(o.targets.items), free(o.inits.items), free(o.feeds.items);
  return code;
}
