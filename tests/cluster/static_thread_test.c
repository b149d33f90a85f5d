// Steps over several tasks that run by static plans: random graphs of products and sums with variables in three tasks
// give the bits of one process, also when messages are late and operations run in lanes; the plans are taken; a receive
// in a fixed order ends when the step does.
#include "tests/common/cluster.h"
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/random.h"
#include "runtime/graph/import.h"

#ifdef TFC_SANITIZED
enum { GRAPHS = 6, LATE = 2, SIDE = 16 };
#else
enum { GRAPHS = 40, LATE = 8, SIDE = 48 };
#endif
enum { VARIABLES = 4, INNER = 40, FETCHES = 4, STEPS = 9 };

static const char *const tasks[] = {"/job:chief/task:0", "/job:worker/task:0", "/job:worker/task:1"};

// Of between-graph replication: each of two workers has a graph of its own, and the ps has a part of each.
static const char *const workers[2][3] = {{"/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:0"},
                                          {"/job:ps/task:0", "/job:worker/task:1", "/job:worker/task:1"}};

struct trial {
  const char *const *tasks;
  struct tfc_random random;
  bool spread; // the nodes have tasks; false: all are here
  struct tfc_text text;
  int fetched[FETCHES];
  float *bits; // [STEPS][FETCHES][SIDE * SIDE]
  float x[SIDE * SIDE];
};

static void put_device(struct trial *t) {
  const uint64_t task = tfc_random_below(&t->random, 3);
  if (t->spread) tfc_text_printf(&t->text, " device: \"%s\"", t->tasks[task]);
}
static void put_node(struct trial *t, const char *name, int number, const char *op, const int *inputs, int count) {
  tfc_text_printf(&t->text, "node { name: \"%s%d\" op: \"%s\"", name, number, op);
  for (int k = 0; k < count; k++) tfc_text_printf(&t->text, " input: \"n%d\"", inputs[k]);
  put_device(t);
  tfc_text_printf(&t->text, " attr { key: \"T\" value { type: DT_FLOAT } }");
  if (!strcmp(op, "AddN")) tfc_text_printf(&t->text, " attr { key: \"N\" value { i: %d } }", count);
  if (!strcmp(op, "MatMul") && tfc_random_below(&t->random, 2))
    tfc_text_printf(&t->text, " attr { key: \"transpose_a\" value { b: true } }");
  tfc_text_printf(&t->text, " }\n");
}

// Writes the graph. n0 is fed; the first nodes after it read variables; the others compute. Each variable is updated
// when all have been read, so the results do not depend on who is faster. In ready order, what is read from a reference
// changes with it, so with parts in ready order the updates wait for all.
static void write_graph(struct trial *t) {
  tfc_text_printf(
      &t->text,
      "node { name: \"n0\" op: \"Placeholder\" device: \"%s\" attr { key: \"dtype\" value { type: DT_FLOAT } } "
      "attr { key: \"shape\" value { shape { dim { size: %d } dim { size: %d } } } } }\n",
      t->spread ? t->tasks[0] : "", SIDE, SIDE);
  for (int v = 0; v < VARIABLES; v++) {
    const char *task = t->spread ? t->tasks[tfc_random_below(&t->random, 3)] : (tfc_random_below(&t->random, 3), "");
    tfc_text_printf(
        &t->text,
        "node { name: \"v%d\" op: \"VariableV2\" device: \"%s\" attr { key: \"dtype\" value { type: DT_FLOAT } } "
        "attr { key: \"shared_name\" value { s: \"of%s/%d\" } } "
        "attr { key: \"shape\" value { shape { dim { size: %d } dim { size: %d } } } } }\n",
        v, task, t->tasks[1], v, SIDE, SIDE);
    tfc_text_printf(
        &t->text,
        "node { name: \"n%d\" op: \"Identity\" input: \"v%d\" device: \"%s\" attr { key: \"T\" value { type: "
        "DT_FLOAT } } }\n",
        v + 1, v, task);
    tfc_text_printf(
        &t->text,
        "node { name: \"init%d\" op: \"Assign\" input: \"v%d\" input: \"n0\" device: \"%s\" attr { key: \"T\" "
        "value { type: DT_FLOAT } } }\n",
        v, v, task);
    const int from = VARIABLES + 1 + INNER - 1 - (int)tfc_random_below(&t->random, INNER / 2);
    tfc_text_printf(&t->text, "node { name: \"update%d\" op: \"AssignSub\" input: \"v%d\" input: \"n%d\"", v, v, from);
    for (int k = 0; k < VARIABLES + (t->tasks == tasks ? 0 : INNER); k++)
      tfc_text_printf(&t->text, " input: \"^n%d\"", k + 1);
    tfc_text_printf(&t->text, " device: \"%s\" attr { key: \"T\" value { type: DT_FLOAT } } }\n", task);
  }
  for (int i = 0; i < INNER; i++) {
    const int number = VARIABLES + 1 + i;
    int in[4];
    for (int k = 0; k < 4; k++) {
      // some are read often, as weights are; most come from nearby
      const bool often = tfc_random_below(&t->random, 3) == 0;
      const uint64_t back = tfc_random_below(&t->random, 8);
      in[k] = often ? 1 + (int)tfc_random_below(&t->random, VARIABLES) : number - 1 - (int)back;
      if (in[k] < 0) in[k] = 0;
    }
    switch (tfc_random_below(&t->random, 6)) {
    case 0:
    case 1:
      put_node(t, "m", number, "MatMul", in, 2);
      tfc_text_printf(&t->text, "node { name: \"n%d\" op: \"Tanh\" input: \"m%d\"", number, number);
      put_device(t);
      tfc_text_printf(&t->text, " attr { key: \"T\" value { type: DT_FLOAT } } }\n");
      break;
    case 2: put_node(t, "n", number, "AddN", in, 2 + (int)tfc_random_below(&t->random, 3)); break;
    case 3: put_node(t, "n", number, "Mul", in, 2); break;
    case 4: put_node(t, "n", number, "Sub", in, 2); break;
    default: put_node(t, "n", number, "Tanh", in, 1);
    }
  }
  for (int i = 0; i < FETCHES; i++) t->fetched[i] = 1 + VARIABLES + (int)tfc_random_below(&t->random, INNER);
}

typedef tfc_status (*run_step)(void *session, const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                               struct tfc_tensor *fetches);

static tfc_status run_trial(struct trial *t, const struct tfc_graph *g, run_step run, void *session) {
  struct tfc_output feed = {0, 0}, fetches[FETCHES];
  struct tfc_tensor x = {0}, got[FETCHES] = {0};
  uint32_t targets[VARIABLES];
  tfc_status s = NULL;
  char name[32];
  TFC_TRY(s, tfc_graph_parse_output(g, TFC_STR("n0"), &feed));
  TFC_TRY(s, tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(SIDE, SIDE), &x));
  memcpy(x.data, t->x, sizeof t->x);
  for (int update = 0; update < 2; update++) {
    struct tfc_run_spec spec = {.feeds = &feed, .feed_count = 1, .targets = targets, .target_count = VARIABLES};
    for (int v = 0; v < VARIABLES; v++) {
      snprintf(name, sizeof name, "%s%d", update ? "update" : "init", v);
      TFC_TRY(s, tfc_graph_parse_node(g, tfc_str_from(name), &targets[v]));
    }
    for (int i = 0; i < FETCHES; i++) {
      snprintf(name, sizeof name, "n%d", t->fetched[i]);
      TFC_TRY(s, tfc_graph_parse_output(g, tfc_str_from(name), &fetches[i]));
    }
    if (update) spec.fetches = fetches, spec.fetch_count = FETCHES;
    for (int step = 0; step < (update ? STEPS : 1); step++) {
      TFC_TRY(s, run(session, &spec, &x, got));
      for (int i = 0; update && i < FETCHES; i++) {
        memcpy(t->bits + ((size_t)step * FETCHES + (size_t)i) * SIDE * SIDE, got[i].data, got[i].size);
        tfc_tensor_release(&got[i]);
      }
    }
  }
out:
  tfc_tensor_release(&x);
  return s;
}

static tfc_status run_here(void *session, const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                           struct tfc_tensor *fetches) {
  return tfc_session_run(session, spec, feeds, fetches, NULL);
}
static tfc_status run_over_tasks(void *session, const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                                 struct tfc_tensor *fetches) {
  return tfc_cluster_session_run(session, spec, feeds, fetches, NULL);
}

static tfc_status in_tasks(struct tfc_member *member, void *arg) {
  struct trial *t = arg;
  struct tfc_graph *g = NULL;
  struct tfc_cluster_session *session = NULL;
  tfc_status s = tfc_graph_parse((tfc_str){t->text.data, t->text.size}, "graph", NULL, &g);
  if (!s) s = tfc_cluster_session_create(member, g, &(struct tfc_execution){0}, &session);
  if (!s) s = run_trial(t, g, run_over_tasks, session);
  tfc_cluster_session_free(session);
  tfc_graph_release(g);
  return s;
}

static void make_trial(struct trial *t, uint64_t seed, bool spread, const char *const *on) {
  *t = (struct trial){.spread = spread, .tasks = on};
  tfc_random_init(&t->random, seed);
  t->bits = calloc(STEPS * FETCHES * SIDE * SIDE, sizeof *t->bits);
  assert_non_null(t->bits);
  for (int i = 0; i < SIDE * SIDE; i++) t->x[i] = (float)((double)tfc_random_below(&t->random, 2001) / 8000 - 0.125);
  write_graph(t);
  assert_false(t->text.failed);
}
static void free_trial(struct trial *t) {
  tfc_text_deinit(&t->text);
  free(t->bits);
}

// Runs a trial whose nodes have no tasks.
static void run_in_one(struct trial *one) {
  struct tfc_graph *g = NULL;
  struct tfc_device_set devices = {0};
  struct tfc_session *session = NULL;
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &devices));
  assert_ok(tfc_graph_parse((tfc_str){one->text.data, one->text.size}, "graph", NULL, &g));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &devices}, &session));
  assert_ok(run_trial(one, g, run_here, session));
  tfc_session_free(session);
  tfc_graph_release(g);
  tfc_devices_close(&devices);
}

static void like_one_process(uint64_t seed, int64_t most_delay_ns) {
  struct trial one, many;
  make_trial(&one, seed, false, tasks);
  make_trial(&many, seed, true, tasks);
  run_in_one(&one);
  const struct tfc_faults faults = {.seed = seed, .most_delay_ns = most_delay_ns};
  struct tfc_test_job job = {.cluster = "chief=1,worker=2",
                             .script = in_tasks,
                             .arg = &many,
                             .serves = "worker",
                             .static_us = 1e-9,
                             .faults = most_delay_ns ? &faults : NULL};
  tfc_test_job_run(&job);
  for (int r = 0; r < 3; r++) {
    if (job.status[r]) fail_msg("graph %d: task %d: %s", (int)seed, r, tfc_status_message(job.status[r]));
    assert_true(job.static_parts[r] >= STEPS); // it ran as it should
  }
  if (memcmp(one.bits, many.bits, STEPS * FETCHES * SIDE * SIDE * sizeof *one.bits) != 0)
    print_message("graph %d: other bits\n", (int)seed);
  assert_memory_equal(one.bits, many.bits, STEPS * FETCHES * SIDE * SIDE * sizeof *one.bits);
  free_trial(&one);
  free_trial(&many);
}

static void bits_of_one_process(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= GRAPHS; seed++) like_one_process(seed, 0);
}
static void bits_when_messages_are_late(void **state) {
  (void)state;
  for (uint64_t seed = 1001; seed <= 1000 + LATE; seed++) like_one_process(seed, 300000);
}

// Each worker runs its part by static plans, the ps runs both clients' parts in ready order.
static tfc_status of_two_workers(struct tfc_member *member, void *arg) {
  struct trial *t = arg;
  tfc_status s = in_tasks(member, &t[tfc_member_rank(member) - 1]);
  return s ? s
           : tfc_member_barrier(member, "both have taken their steps", NULL); // else the slower one is alone at last
}
static void two_clients(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    struct trial one[2], many[2];
    for (uint64_t k = 0; k < 2; k++) {
      make_trial(&one[k], 100 * seed + k, false, workers[k]);
      make_trial(&many[k], 100 * seed + k, true, workers[k]);
      run_in_one(&one[k]);
    }
    struct tfc_test_job job = {
        .cluster = "ps=1,worker=2", .script = of_two_workers, .arg = many, .serves = "ps", .static_us = 1e-9};
    tfc_test_job_succeed(&job);
    assert_int_equal(job.static_parts[0], 0);
    for (int r = 1; r < 3; r++) assert_true(job.static_parts[r] >= STEPS);
    for (int k = 0; k < 2; k++) {
      assert_memory_equal(one[k].bits, many[k].bits, STEPS * FETCHES * SIDE * SIDE * sizeof *one[k].bits);
      free_trial(&one[k]);
      free_trial(&many[k]);
    }
  }
}

// Tasks whose scripts end with no session open only serve from then on. So steps of the one that is left run by static
// plans in all tasks, also those of others that are known as clients.
static tfc_status while_others_have_ended(struct tfc_member *member, void *arg) {
  struct trial *t = arg;
  struct tfc_graph *g = NULL;
  struct tfc_cluster_session *session = NULL;
  tfc_status s = tfc_graph_parse((tfc_str){t->text.data, t->text.size}, "graph", NULL, &g);
  if (!s) s = tfc_cluster_session_create(member, g, &(struct tfc_execution){0}, &session);
  tfc_cluster_session_free(session);
  tfc_graph_release(g);
  if (!s) s = tfc_member_barrier(member, "all are there", NULL);
  if (s || tfc_member_rank(member)) return s;
  s = tfc_member_wait_alone(member, NULL);
  return s ? s : in_tasks(member, arg);
}
static void clients_that_have_ended(void **state) {
  (void)state;
  struct trial one, many;
  make_trial(&one, 7, false, tasks);
  make_trial(&many, 7, true, tasks);
  run_in_one(&one);
  struct tfc_test_job job = {
      .cluster = "chief=1,worker=2", .script = while_others_have_ended, .arg = &many, .static_us = 1e-9};
  tfc_test_job_succeed(&job);
  for (int r = 0; r < 3; r++) assert_true(job.static_parts[r] >= STEPS);
  assert_memory_equal(one.bits, many.bits, STEPS * FETCHES * SIDE * SIDE * sizeof *one.bits);
  free_trial(&one);
  free_trial(&many);
}

// A step that ends while its tasks wait in a fixed order, because messages are too late for its deadline, leaves them
// usable.
static tfc_status too_late(struct tfc_member *member, void *arg) {
  struct trial *t = arg;
  struct tfc_graph *g = NULL;
  struct tfc_cluster_session *session = NULL;
  struct tfc_output feed;
  struct tfc_tensor x = {0};
  uint32_t targets[VARIABLES];
  char name[32];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_graph_parse((tfc_str){t->text.data, t->text.size}, "graph", NULL, &g));
  TFC_TRY(s, tfc_cluster_session_create(member, g, &(struct tfc_execution){0}, &session));
  TFC_TRY(s, tfc_graph_parse_output(g, TFC_STR("n0"), &feed));
  TFC_TRY(s, tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(SIDE, SIDE), &x));
  memcpy(x.data, t->x, sizeof t->x);
  for (int update = 0; update < 2; update++) {
    for (int v = 0; v < VARIABLES; v++) {
      snprintf(name, sizeof name, "%s%d", update ? "update" : "init", v);
      TFC_TRY(s, tfc_graph_parse_node(g, tfc_str_from(name), &targets[v]));
    }
    const struct tfc_run_spec spec = {.feeds = &feed, .feed_count = 1, .targets = targets, .target_count = VARIABLES};
    TFC_TRY(s, tfc_cluster_session_run(session, &spec, &x, NULL, NULL));
    int late = 0;
    for (int i = 0; update && i < 6; i++) {
      tfc_status e =
          tfc_cluster_session_run(session, &spec, &x, NULL, &(struct tfc_run_options){.deadline_ns = 3000000});
      late += e != NULL;
      if (e && tfc_status_code(e) != TFC_DEADLINE_EXCEEDED && tfc_status_code(e) != TFC_CANCELLED) TFC_TRY(s, e);
      tfc_status_free(e);
    }
    if (update && !late) TFC_FAIL(s, TFC_ABORTED, "every step was in time");
    TFC_TRY(s, tfc_cluster_session_run(session, &spec, &x, NULL, NULL));
  }
out:
  tfc_tensor_release(&x);
  tfc_cluster_session_free(session);
  tfc_graph_release(g);
  return s;
}
static void steps_that_are_too_late(void **state) {
  (void)state;
  struct trial t;
  make_trial(&t, 5, true, tasks);
  const struct tfc_faults faults = {.seed = 3, .most_delay_ns = 20000000};
  struct tfc_test_job job = {.cluster = "chief=1,worker=2",
                             .script = too_late,
                             .arg = &t,
                             .serves = "worker",
                             .static_us = 1e-9,
                             .faults = &faults};
  tfc_test_job_succeed(&job);
  for (int r = 0; r < 3; r++) assert_true(job.static_parts[r] >= 3);
  free_trial(&t);
}

// A task that falls silent in the middle of such steps ends the job, and what waits for it.
static tfc_status without_end(struct tfc_member *member, void *arg) {
  tfc_status s = NULL;
  while (!s) s = in_tasks(member, arg);
  return s;
}
static void silence_in_a_fixed_order(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    struct trial t;
    make_trial(&t, seed, true, tasks);
    const struct tfc_faults faults = {.seed = seed, .silent_after = 20 + 37 * seed};
    const int64_t begin = tfc_now_ns();
    struct tfc_test_job job = {.cluster = "chief=1,worker=2",
                               .script = without_end,
                               .arg = &t,
                               .serves = "worker",
                               .static_us = 1e-9,
                               .faults = &faults,
                               .faulty_rank = 2,
                               .silence_ns = 2000000000};
    tfc_test_job_run(&job);
    assert_true(tfc_now_ns() - begin < 60000000000);
    bool said = false;
    for (int r = 0; r < 3; r++) {
      assert_non_null(job.status[r]);
      said |= strstr(tfc_status_message(job.status[r]), "has said nothing for") != NULL;
      tfc_status_free(job.status[r]);
    }
    assert_true(said && job.static_parts[0] > 0);
    free_trial(&t);
  }
}

int main(int argc, char **argv) {
  if (argc >= 3) { // FIRST COUNT [DELAY_NS]
    for (int i = 0; i < atoi(argv[2]); i++)
      like_one_process(strtoull(argv[1], NULL, 10) + (uint64_t)i, argc > 3 ? atoll(argv[3]) : 0);
    return 0;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bits_of_one_process),
      cmocka_unit_test(bits_when_messages_are_late),
      cmocka_unit_test(two_clients),
      cmocka_unit_test(clients_that_have_ended),
      cmocka_unit_test(steps_that_are_too_late),
      cmocka_unit_test(silence_in_a_fixed_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
