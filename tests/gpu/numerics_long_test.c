// Compares every op that has sample inputs on a device and on the CPU: float32 within 1e-4 of a tensor's largest
// magnitude, integers exactly. Also compares the small examples' losses with TensorFlow's. Prints which ops ran on the
// host, because there is no kernel for the device.
//
//   gpu_numerics_long_test gpu:0 [pattern...] [-pattern...] [seconds=N] [tuning=FILE]
//   gpu_numerics_long_test gpu:0 losses=NAME [tuning=FILE]
//
// A pattern selects ops by name, and -pattern excludes them. After N seconds no further op is begun, and the test says
// that time was up. FILE is a database of tfc's: the algorithms that the device's libraries chose are read from it, so
// that they are not measured again; they are written to it every few seconds, so that what a test has measured is known
// even if the test is stopped. With any of these arguments, the losses are not tested. The second form tests only the
// losses of one example, which may be a large one.
//
// The work is done in child processes: an op that loses the device, or hangs, is counted as wrong, and the next process
// continues with the op after it. Without a GPU and without arguments, the test says so and passes; if the device in
// the first argument is not there, it exits with 4.
#include "tests/common/test.h"

#include <fnmatch.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/store.h"
#include "profiler/store_rows.h"
#include "runtime/base/clock.h"
#include "runtime/exec/session.h"
#include "tests/common/sample.h"
#include "tests/common/train.h"

#define KEEP_NS 2000000000
enum { OP_SECONDS = 120, LOSS_SECONDS = 120, NO_DEVICE = 4, LOST = 5 };
struct progress { // shared by the parent and its child processes
  size_t next;    // index of the next op
  int wrong, ran, ops, on_host, convolutions;
  int64_t until_ns; // after this time no op is begun; 0: no limit
  bool late;
};
// On a slow machine an op gets as much more time as scripts/gpu_check says, in percent.
static unsigned patience(unsigned seconds) {
  const char *percent = getenv("GPU_CHECK_PATIENCE");
  return percent ? seconds * (unsigned)atoi(percent) / 100 : seconds;
}
static struct progress *progress;
static const char *device_name = "gpu:0";
static char **only;
static struct tfc_device_set cpu, gpu;

struct outcome {
  tfc_status status;
  struct tfc_tensor outputs[8];
  uint32_t count;
};

static void outcome_deinit(struct outcome *o) {
  tfc_status_free(o->status);
  for (uint32_t i = 0; i < o->count; i++) tfc_tensor_release(&o->outputs[i]);
  *o = (struct outcome){0};
}

// Inputs that kernels read on the device are fed, so that the op is not folded into a constant. Inputs in host memory
// stay constants.
static void run(const struct tfc_graph *g, uint32_t node, const struct tfc_device_set *set, struct outcome *out) {
  const struct tfc_node *n = &g->nodes[node];
  struct tfc_output feeds[32], fetches[8];
  struct tfc_tensor values[32];
  struct tfc_shape shapes[32];
  uint32_t feed_count = 0;
  struct tfc_session *session = NULL;
  for (uint32_t i = 0; i < n->input_count && i < 32; i++) {
    struct tfc_output o = tfc_node_inputs(g, n)[i];
    const struct tfc_attr *value = tfc_node_attr(g, &g->nodes[o.node], "value");
    bool twice = false;
    for (uint32_t k = 0; k < feed_count; k++) twice |= feeds[k].node == o.node;
    if (twice || n->def->host_inputs >> i & 1 || !value || value->kind != TFC_ATTR_TENSOR) continue;
    if (!tfc_dtype_is_plain(value->tensor->dtype)) continue;
    feeds[feed_count] = o;
    values[feed_count] = *value->tensor;
    shapes[feed_count++] = value->tensor->shape;
  }
  out->count = 0;
  for (uint32_t i = 0; i < n->output_count && i < 8; i++)
    if (tfc_dtype_is_plain(tfc_dtype_base(g->output_dtypes[n->output_begin + i])))
      fetches[out->count++] = (struct tfc_output){node, (int32_t)i};
  struct tfc_run_spec spec = {.feeds = feeds,
                              .feed_count = feed_count,
                              .feed_shapes = shapes,
                              .fetches = fetches,
                              .fetch_count = out->count,
                              .targets = &node,
                              .target_count = 1};
  out->status = tfc_session_create(g, &(struct tfc_session_options){.devices = set, .no_rewrites = true}, &session);
  if (!out->status) out->status = tfc_session_run(session, &spec, values, out->outputs, NULL);
  if (out->status) out->count = 0;
  tfc_session_free(session);
}

static double element(const struct tfc_tensor *t, int64_t i) {
  switch (t->dtype) {
  case TFC_FLOAT: return ((const float *)t->data)[i];
  case TFC_DOUBLE: return ((const double *)t->data)[i];
  case TFC_HALF: return (double)tfc_half_to_float(((const uint16_t *)t->data)[i]);
  case TFC_BFLOAT16: return (double)tfc_bfloat16_to_float(((const uint16_t *)t->data)[i]);
  case TFC_BOOL: return ((const bool *)t->data)[i];
  default: return (double)tfc_tensor_int(t, i);
  }
}

static bool is_number(tfc_dtype t) {
  return tfc_dtype_is_plain(t) && !tfc_dtype_is_complex(t) && t != TFC_UINT64;
}
// Returns the tolerance, relative to the largest magnitude in a tensor.
static double tolerance_of(tfc_dtype t) {
  return t == TFC_FLOAT ? 1e-4 : t == TFC_DOUBLE ? 1e-9 : t == TFC_HALF ? 2e-3 : t == TFC_BFLOAT16 ? 1.6e-2 : 0;
}

// Returns what differs, or NULL.
static const char *compare(const struct outcome *want, const struct outcome *got) {
  static char text[256];
  for (uint32_t k = 0; k < want->count; k++) {
    const struct tfc_tensor *w = &want->outputs[k], *g = &got->outputs[k];
    if (w->dtype != g->dtype || !tfc_shape_equal(&w->shape, &g->shape)) return "type or shape";
    if (!is_number(w->dtype)) {
      if (w->size != g->size) return "size";
      continue;
    }
    int64_t n = tfc_tensor_elements(w);
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
      if (isfinite(element(w, i))) largest = fmax(largest, fabs(element(w, i)));
    double tolerance = tolerance_of(w->dtype) * largest + (tolerance_of(w->dtype) > 0 ? 1e-12 : 0);
    for (int64_t i = 0; i < n; i++) {
      double a = element(w, i), b = element(g, i);
      if (a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance) continue;
      snprintf(text, sizeof text, "output %u element %lld: %.9g, the CPU has %.9g (largest %.9g)", k, (long long)i, b,
               a, largest);
      return text;
    }
  }
  return NULL;
}

static bool wanted(const char *op) {
  bool named = false;
  for (char **o = only; o && *o; o++) {
    if (**o == '-' && fnmatch(*o + 1, op, 0) == 0) return false;
    if (**o != '-' && !strchr(*o, '=') && fnmatch(*o, op, 0) == 0) return true;
    named |= **o != '-' && !strchr(*o, '=');
  }
  return !named;
}

// More samples, in addition to those of the ops: sizes larger than a block, a vector or a warp, and missing types.
static const struct {
  const char *op, *samples;
} extra[] = {
#include "tests/cuda_kernels/extra.inc"
};

// --- Tuning ----------------------------------------------------------------------------------------------------------
static const char *tuning_file(void) {
  for (char **o = only; o && *o; o++)
    if (!strncmp(*o, "tuning=", 7)) return *o + 7;
  return NULL;
}
static const struct tfc_device_driver *driver; // of the device that is tested

static tfc_status write_tuning(const char *lines) {
  tfc_status s = NULL;
  struct tfc_store *store = NULL;
  TFC_TRY(s, tfc_store_open(tuning_file(), &(struct tfc_store_options){.write = true, .purpose = "numerics"}, &store));
  TFC_TRY(s, tfc_store_begin(store));
  TFC_TRY(s, tfc_store_put_tuning(store, lines));
  TFC_TRY(s, tfc_store_commit(store));
out:
  tfc_store_close(store);
  return s;
}
static tfc_status keep_tuning(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static size_t kept; // characters
  tfc_status s = NULL;
  pthread_mutex_lock(&lock);
  char *lines = tuning_file() && driver->tuning ? driver->tuning() : NULL;
  if (lines && strlen(lines) > kept && !(s = write_tuning(lines))) kept = strlen(lines);
  free(lines);
  pthread_mutex_unlock(&lock);
  return s;
}
static void *go_on_keeping(void *unused) { // until the process ends
  for (;;) {
    tfc_sleep_ns(KEEP_NS);
    tfc_status_free(keep_tuning());
  }
  return unused;
}
static void take_tuning(void) {
  struct tfc_store *store = NULL;
  char *lines = NULL;
  pthread_t keeper;
  if (tuning_file() && !pthread_create(&keeper, NULL, go_on_keeping, NULL)) pthread_detach(keeper);
  if (!tuning_file() || access(tuning_file(), R_OK) || !driver->set_tuning) return;
  assert_ok(tfc_store_open(tuning_file(), &(struct tfc_store_options){0}, &store));
  assert_ok(tfc_store_get_tuning(store, &lines));
  int count = 0;
  for (const char *line = lines; (line = strchr(line, '\n')); line++) count++;
  print_message("%d algorithms are known from %s\n", count, tuning_file());
  driver->set_tuning(lines);
  free(lines);
  tfc_store_close(store);
}

static void run_samples(const struct tfc_op_def *def, const char *list) {
  for (int k = 0; k < sample_count(list); k++) {
    struct tfc_graph *g = NULL;
    uint32_t node = 0;
    struct outcome want = {0}, got = {0};
    assert_ok(sample_graph(def, list, k, 1, &g, &node));
    run(g, node, &cpu, &want);
    run(g, node, &gpu, &got);
    progress->ran++;
    const char *difference = NULL;
    if (!want.status != !got.status)
      difference = tfc_status_message(got.status ? got.status : want.status);
    else if (!want.status)
      difference = compare(&want, &got);
    if (difference) {
      progress->wrong++;
      print_error("%s, sample %d of '%.40s': %s\n", def->name, k, list, difference);
    }
    outcome_deinit(&want);
    outcome_deinit(&got);
    tfc_graph_release(g);
  }
}

static void samples(void **state) {
  (void)state;
  size_t count = 0;
  const struct tfc_op_def *const *list = tfc_op_list(&count);
  take_tuning();
  while (progress->next < count) {
    const struct tfc_op_def *def = list[progress->next++];
    const uint32_t never = TFC_OP_HOST | TFC_OP_ASYNC | TFC_OP_SAVES | TFC_OP_FUNCTIONAL | TFC_OP_NOP |
                           TFC_OP_PLACEHOLDER | TFC_OP_VARIABLE | TFC_OP_UPDATE;
    if (!def->samples || !def->kernel || def->flags & never || !wanted(def->name)) continue;
    progress->late = progress->until_ns && tfc_now_ns() > progress->until_ns;
    if (progress->late) break;
    alarm(patience(OP_SECONDS));
    uint64_t bytes = 0,
             before = gpu.devices[0]->driver->fallbacks ? gpu.devices[0]->driver->fallbacks(gpu.devices[0], &bytes) : 0;
    run_samples(def, def->samples);
    for (size_t x = 0; x < sizeof extra / sizeof *extra; x++)
      if (!strcmp(extra[x].op, def->name)) run_samples(def, extra[x].samples);
    progress->ops++;
    tfc_status lost = gpu.devices[0]->driver->synchronize(gpu.devices[0]);
    if (lost) {
      print_error("%s: the device is lost: %s\n", def->name, tfc_status_message(lost));
      progress->wrong++;
      fflush(NULL);
      _exit(LOST);
    }
    if (gpu.devices[0]->driver->fallbacks && gpu.devices[0]->driver->fallbacks(gpu.devices[0], &bytes) > before) {
      progress->on_host++;
      print_message("on the host: %s\n", def->name);
    }
  }
  char *tuning = driver->tuning ? driver->tuning() : NULL;
  for (const char *line = tuning; line && (line = strchr(line, '\n')); line++) progress->convolutions++;
  free(tuning);
  assert_ok(keep_tuning());
}

static const struct loss {
  const char *name;
  struct train_options options;
  bool large;
} losses[] = {{"mlp", {0}, false},        {"mlp", {.dynamic = true}, false}, {"rnnlm", {.steps = 20}, false},
              {"nmt", {0}, true},         {"nmt_while", {0}, true},          {"nmt_while_v2", {0}, true},
              {"transformer", {0}, true}, {"resnet50", {0}, true},           {"inception_v3", {0}, true}};
enum { LOSSES = sizeof losses / sizeof *losses };
static size_t loss_index;
static void loss(void **state) {
  (void)state;
  alarm(patience(LOSS_SECONDS));
  struct train_options with = losses[loss_index].options;
  with.devices = device_name;
  with.tolerance = 1e-3;
  take_tuning();
  train_example(losses[loss_index].name, &with);
  assert_ok(keep_tuning());
}

// --- Processes -----------------------------------------------------------------------------------------------------
static bool open_devices(void) {
  tfc_status s = tfc_devices_open(device_name, NULL, 0, &gpu);
  if (!s) s = tfc_devices_open("cpu:0", NULL, 0, &cpu);
  if (!s) return true;
  print_message("no device: %s\n", tfc_status_message(s));
  tfc_status_free(s);
  return false;
}

static void close_devices(void) {
  tfc_devices_close(&gpu);
  tfc_devices_close(&cpu);
}

static int child(const char *what) {
  if (!open_devices()) return NO_DEVICE;
  driver = gpu.devices[0]->driver;
  if (strcmp(what, "samples") != 0) { // the losses: train_example opens its own devices
    close_devices();
    loss_index = (size_t)atoi(what);
    const struct CMUnitTest tests[] = {cmocka_unit_test(loss)};
    return cmocka_run_group_tests_name(losses[loss_index].name, tests, NULL, NULL) ? 1 : 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  close_devices();
  return failed ? 1 : 0;
}

// Returns the exit status of the child; 128 + n: it was ended by signal n.
static int start(char **argv, const char *what) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    setenv("GPU_NUMERICS_CHILD", what, 1);
    execv("/proc/self/exe", argv);
    _exit(127);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int parent(int argc, char **argv) {
  size_t count = 0;
  const char *example = NULL;
  bool plain = true; // no argument selects ops, limits the time or names a file
  int code = 0, failed = 0, ran = 0;
  for (int i = 2; i < argc; i++)
    if (!strncmp(argv[i], "losses=", 7)) example = argv[i] + 7;
  for (int i = 2; i < argc; i++)
    plain &= example && (!strncmp(argv[i], "losses=", 7) || !strncmp(argv[i], "tuning=", 7));
  const struct tfc_op_def *const *list = tfc_op_list(&count);
  while (progress->next < count && !example) {
    size_t from = progress->next;
    code = start(argv, "samples");
    if (code == NO_DEVICE && from == 0) return argc > 1 ? NO_DEVICE : 0;
    if (code <= 1) break;
    if (progress->next == from) progress->next++; // the child ended before it took an op: skip one
    if (code != LOST) {
      print_error("%s: %s\n", list[progress->next - 1]->name, code == 142 ? "hangs" : "ends the process");
      progress->wrong++;
    }
  }
  if (code == 1 && !progress->wrong) progress->wrong++;
  if (!example)
    print_message("%d ops, %d samples on %s: %d differ, %d ops ran on the host, %d convolutions through cuDNN%s\n",
                  progress->ops, progress->ran, device_name, progress->wrong, progress->on_host, progress->convolutions,
                  progress->late ? "; time was up before the last op" : "");
  ran = progress->ran;
  for (size_t i = 0; i < LOSSES && plain; i++) {
    if (example ? strcmp(losses[i].name, example) != 0 : losses[i].large) continue;
    char text[16];
    snprintf(text, sizeof text, "%zu", i);
    code = start(argv, text);
    if (code == NO_DEVICE && !ran) return NO_DEVICE;
    ran++;
    if (code) print_error("%s: exit %d\n", losses[i].name, code);
    failed += code != 0;
  }
  return progress->wrong || failed || !ran;
}

int main(int argc, char **argv) {
  const char *what = getenv("GPU_NUMERICS_CHILD"), *fd = getenv("GPU_NUMERICS_FD");
  char text[16];
  if (argc > 1) device_name = argv[1];
  if (argc > 2) only = argv + 2;
  int file = what && fd ? atoi(fd) : memfd_create("progress", 0);
  if (file < 0 || ftruncate(file, sizeof *progress)) return 1;
  progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (progress == MAP_FAILED) return 1;
  if (what) return child(what);
  for (int i = 2; i < argc; i++)
    if (!strncmp(argv[i], "seconds=", 8)) progress->until_ns = tfc_now_ns() + atoi(argv[i] + 8) * (int64_t)1000000000;
  snprintf(text, sizeof text, "%d", file);
  setenv("GPU_NUMERICS_FD", text, 1);
  return parent(argc, argv);
}
