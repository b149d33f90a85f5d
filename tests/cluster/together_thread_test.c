// Clients that stand still together: votes at barriers, queue runners of all clients that rest, and lines that each
// client keeps with the saved state.
#include "tests/common/cluster.h"
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

static void run_job(tfc_status (*script)(struct tfc_member *, void *)) {
  struct tfc_test_job job = {.cluster = "ps=1,worker=2", .script = script, .serves = "ps"};
  tfc_test_job_succeed(&job);
}

static tfc_status vote(struct tfc_member *member, void *arg) {
  const uint32_t own = 1u << tfc_member_rank(member);
  uint32_t votes = 0;
  tfc_status s = NULL;
  (void)arg;
  WANT(tfc_member_clients(member) == 2);
  for (int i = 0; i < 20; i++) {
    TFC_TRY(s, tfc_member_vote(member, "all", own, NULL, &votes));
    WANT(votes == 6);
    TFC_TRY(s, tfc_member_vote(member, "all", i % 2 ? own & 4 : 0, NULL, &votes));
    WANT(votes == (i % 2 ? 4u : 0u)); // the votes of the round before do not count again
    TFC_TRY(s, tfc_member_barrier(member, "none", NULL));
  }
out:
  return s;
}
static void votes(void **state) {
  (void)state;
  run_job(vote);
}

// All tasks know how many steps each has taken, also those that hear of it only from task 0.
static tfc_status steps_are_told(struct tfc_member *member, void *arg) {
  const uint32_t rank = tfc_member_rank(member);
  tfc_status s = NULL;
  int64_t ns = 0;
  (void)arg;
  tfc_member_took_steps(member, 7 * rank);
  WANT(tfc_member_steps(member, rank, &ns) == 7 * rank && ns > 0);
  while (tfc_member_steps(member, 3 - rank, &ns) != 7 * (3 - rank)) {
    WANT(!tfc_member_has_failed(member));
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  WANT(ns > 0 && ns <= tfc_now_ns());
  TFC_TRY(s, tfc_member_barrier(member, "told", NULL));
out:
  return s;
}
static void told(void **state) {
  (void)state;
  run_job(steps_are_told);
}

static tfc_status run_node(struct tfc_cluster_session *session, const struct tfc_graph *g, const char *name) {
  uint32_t node;
  TFC_RETURN_IF_ERROR(tfc_graph_parse_node(g, tfc_str_from(name), &node));
  return tfc_cluster_session_run(session, &(struct tfc_run_spec){.targets = &node, .target_count = 1}, NULL, NULL,
                                 NULL);
}

// Two workers, each with a queue runner that fills the worker's own queue (a graph that TensorFlow wrote).
static tfc_status rest(struct tfc_member *member, void *arg) {
  const uint32_t rank = tfc_member_rank(member);
  const bool chief = rank == 1;
  const char *moves[] = {"\nruns\t", "\nwaits\t", "\nthreads\t"};
  struct tfc_graph *g = NULL;
  struct tfc_cluster_session *session = NULL;
  struct tfc_text unsaved = {0}, first = {0}, second = {0}, lost = {0};
  char own[64], *kept = NULL;
  tfc_status s = NULL;
  (void)arg;
  TFC_TRY(s, tfc_graph_load(chief ? TFC_SOURCE_DIR "/tests/cluster/golden/input_queue_runner/graph.worker.0.meta"
                                  : TFC_SOURCE_DIR "/tests/cluster/golden/input_queue_runner/graph.worker.1.meta",
                            NULL, &g));
  TFC_TRY(s, tfc_lower_loaded(&g));
  TFC_TRY(s, tfc_cluster_session_create(member, g, &(struct tfc_execution){0}, &session));
  if (chief) TFC_TRY(s, run_node(session, g, "init_1"));
  TFC_TRY(s, tfc_member_barrier(member, "initialised", NULL));
  TFC_TRY(s, run_node(session, g, "init"));
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 5; i++) TFC_TRY(s, run_node(session, g, "GradientDescent"));
    tfc_cluster_session_pause(session);
    TFC_TRY(s, tfc_member_barrier(member, "paused", NULL));
    if (chief) TFC_TRY(s, tfc_cluster_session_rest(session, true, NULL, &unsaved));
    WANT(!unsaved.size);
    snprintf(own, sizeof own, "variable\tmine\t%u.%d\n", rank, round);
    TFC_TRY(s, tfc_cluster_session_keep(session, tfc_str_from(own)));
    TFC_TRY(s, tfc_member_barrier(member, "rested", NULL));
    first.size = second.size = 0;
    if (chief) TFC_TRY(s, tfc_cluster_session_save_state(session, NULL, &first));
    if (chief) TFC_TRY(s, tfc_cluster_session_save_state(session, NULL, &second));
    if (chief) {
      WANT(first.size == second.size && !memcmp(first.data, second.data, first.size)); // nothing moves
      for (uint32_t r = 1; r < 3; r++) {
        char line[64];
        snprintf(line, sizeof line, "\nvariable\tmine\t%u.%d\n", r, round);
        WANT(strstr(first.data, line));
      }
      WANT(strstr(first.data, "\nobject\t")); // the rows in the queues
      for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) WANT(!strstr(first.data, moves[i]));
      TFC_TRY(s, tfc_cluster_session_restore_state(
                     session, TFC_STR("task\t/job:worker/task:1\nvariable\tmine\tbefore\n"), NULL, &lost));
    }
    TFC_TRY(s, tfc_member_barrier(member, "saved", NULL));
    kept = tfc_cluster_session_kept(session); // what was restored for this task, once
    WANT(chief ? !kept : kept && !strcmp(kept, "variable\tmine\tbefore\n"));
    free(kept);
    kept = tfc_cluster_session_kept(session);
    WANT(!kept);
    tfc_cluster_session_go_on(session);
  }
out:
  free(kept);
  tfc_text_deinit(&unsaved);
  tfc_text_deinit(&first);
  tfc_text_deinit(&second);
  tfc_text_deinit(&lost);
  tfc_cluster_session_free(session);
  tfc_graph_release(g);
  return s;
}
static void runners_of_all_rest(void **state) {
  (void)state;
  run_job(rest);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(votes), cmocka_unit_test(told),
                                     cmocka_unit_test(runners_of_all_rest)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
