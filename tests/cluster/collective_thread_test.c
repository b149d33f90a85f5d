// Collective operations of three tasks: values, the same bits with and without delays, communicators, members that
// contradict each other, and members that do not come.
#include "tests/common/cluster.h"
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/import.h"
#include "runtime/graph/wire.h"

enum { ELEMENTS = 9001, STEPS = 3 };

static const char ints[] =
    "node { name: '%s' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { "
    "dtype: DT_INT32 tensor_shape {%s} %s } } } }\n";
static const char graph_text[] =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"
    "node { name: 'sum' op: 'CollectiveReduceV2' input: 'x' input: 'size' input: 'group' input: 'instance'"
    " attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'merge_op' value { s: 'Add' } }"
    " attr { key: 'final_op' value { s: 'Div' } } attr { key: 'Nordering_token' value { i: 0 } } }\n"
    "node { name: 'handle' op: 'CollectiveInitializeCommunicator' input: 'group3' input: 'rank' input: 'size' }\n"
    "node { name: 'most' op: 'CollectiveReduceV3' input: 'x' input: 'handle' input: 'none'"
    " attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'reduction' value { s: 'Max' } } }\n"
    "node { name: 'product' op: 'CollectiveReduceV3' input: 'x' input: 'handle' input: 'none' input: '^most'"
    " attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'reduction' value { s: 'Mul' } } }\n"
    "node { name: 'all' op: 'CollectiveGatherV2' input: 'x' input: 'size' input: 'group' input: 'instance2'"
    " attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'Nordering_token' value { i: 0 } } }\n"
    "node { name: 'piece' op: 'CollectiveReduceScatterV2' input: 'x' input: 'size' input: 'group' input: 'instance3'"
    " attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'merge_op' value { s: 'Add' } }"
    " attr { key: 'final_op' value { s: 'Div' } } attr { key: 'Nordering_token' value { i: 0 } } }\n"
    "node { name: 'rows' op: 'Reshape' input: 'x' input: 'by_rows' attr { key: 'T' value { type: DT_FLOAT } }"
    " attr { key: 'Tshape' value { type: DT_INT32 } } }\n"
    "node { name: 'exchanged' op: 'CollectiveAllToAllV2' input: 'rows' input: 'size' input: 'group' input: 'instance4'"
    " attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'Nordering_token' value { i: 0 } } }\n"
    "node { name: 'newest' op: 'CollectiveAllToAllV3' input: 'rows' input: 'handle' input: 'none'"
    " attr { key: 'T' value { type: DT_FLOAT } } }\n";

struct client {
  struct tfc_graph *graph;
  struct tfc_cluster_session *session;
};

static void add_int(struct tfc_text *text, const char *name, int value) {
  char number[32];
  snprintf(number, sizeof number, "int_val: %d", value);
  tfc_text_printf(text, ints, name, "", number);
}
static tfc_status open_client(struct tfc_member *member, int size, struct client *out) {
  struct tfc_text text = {0};
  tfc_status s = NULL;
  *out = (struct client){0};
  tfc_text_add(&text, tfc_str_from(graph_text));
  add_int(&text, "size", size);
  add_int(&text, "group", 1);
  add_int(&text, "group3", 3);
  add_int(&text, "instance", 7);
  add_int(&text, "instance2", 8);
  add_int(&text, "instance3", 9);
  add_int(&text, "instance4", 10);
  add_int(&text, "rank", 2 - (int)tfc_member_rank(member));
  tfc_text_printf(&text, ints, "none", "dim { size: 0 }", "");
  tfc_text_printf(&text, ints, "by_rows", "dim { size: 2 }", "int_val: 3 int_val: -1");
  TFC_TRY(s, tfc_graph_parse(tfc_text_view(&text), "graph", NULL, &out->graph));
  TFC_TRY(s, tfc_cluster_session_create(member, out->graph, &(struct tfc_execution){0}, &out->session));
out:
  tfc_text_deinit(&text);
  return s;
}
static void close_client(struct client *c) {
  tfc_cluster_session_free(c->session);
  tfc_graph_release(c->graph);
}

static float element(uint32_t rank, int step, int64_t i) {
  return 1.0f + (float)((i * 7 + step * 3 + (int64_t)rank * 5) % 101) / 3.0f;
}
static tfc_status run(struct client *c, uint32_t rank, int step, int64_t elements, const char *const *fetches,
                      uint32_t fetch_count, struct tfc_tensor *out, const struct tfc_run_options *options) {
  struct tfc_output feed, fetched[4];
  struct tfc_tensor x = {0};
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(elements), &x));
  for (int64_t i = 0; i < elements; i++) ((float *)x.data)[i] = element(rank, step, i);
  tfc_status s = tfc_graph_parse_output(c->graph, TFC_STR("x"), &feed);
  for (uint32_t i = 0; i < fetch_count && !s; i++)
    s = tfc_graph_parse_output(c->graph, tfc_str_from(fetches[i]), &fetched[i]);
  const struct tfc_run_spec spec = {.feeds = &feed, .feed_count = 1, .fetches = fetched, .fetch_count = fetch_count};
  if (!s) s = tfc_cluster_session_run(c->session, &spec, &x, out, options);
  tfc_tensor_release(&x);
  return s;
}

// Sums are (a + b) + c: in the order of the members.
static tfc_status check(uint32_t rank, int step, int64_t n, const struct tfc_tensor *got) {
  tfc_status s = NULL;
  WANT(tfc_tensor_elements(&got[0]) == n && tfc_tensor_elements(&got[1]) == n && tfc_tensor_elements(&got[2]) == n);
  WANT(got[3].shape.dims[0] == 3 * n);
  for (int64_t i = 0; i < n; i++) {
    const float a = element(0, step, i), b = element(1, step, i), c = element(2, step, i);
    const float most = a > b ? (a > c ? a : c) : (b > c ? b : c);
    WANT(((float *)got[0].data)[i] == (a + b + c) / 3.0f);
    WANT(((float *)got[1].data)[i] == most);
    WANT(((float *)got[2].data)[i] == a * b * c);
    WANT(((float *)got[3].data)[i] == a && ((float *)got[3].data)[n + i] == b &&
         ((float *)got[3].data)[2 * n + i] == c);
  }
out:
  return s ? tfc_status_annotate(s, "task %u, step %d", rank, step) : NULL;
}

static tfc_status all_values(struct tfc_member *member, void *arg) {
  static const char *const fetches[] = {"sum", "most", "product", "all"};
  // the first tensor is sent in pieces, each of the others in one message
  static const int64_t sizes[] = {ELEMENTS, 1, 4};
  const uint32_t rank = tfc_member_rank(member);
  struct client c;
  (void)arg;
  tfc_status s = open_client(member, 3, &c);
  for (int step = 0; step < STEPS && !s; step++) {
    struct tfc_tensor got[4] = {0};
    s = run(&c, rank, step, sizes[step], fetches, 4, got, NULL);
    if (!s) s = check(rank, step, sizes[step], got);
    for (int i = 0; i < 4; i++) tfc_tensor_release(&got[i]);
  }
  close_client(&c);
  return s;
}

static void values(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed <= 3; seed++) { // seed 0: no delays
    const struct tfc_faults faults = {.seed = seed, .most_delay_ns = 2000000};
    struct tfc_test_job job = {.cluster = "worker=3", .script = all_values, .faults = seed ? &faults : NULL};
    tfc_test_job_succeed(&job);
  }
}

// Pieces of a sum, and rows of all members. A communicator has an order of its own: ranks are 2, 1 and 0.
static tfc_status own_parts(struct tfc_member *member, void *arg) {
  static const char *const fetches[] = {"piece", "exchanged", "newest"};
  static const int64_t sizes[] = {ELEMENTS - ELEMENTS % 3, 3, 12, 0};
  const uint32_t rank = tfc_member_rank(member);
  struct client c;
  (void)arg;
  tfc_status s = open_client(member, 3, &c);
  struct tfc_tensor got[3] = {0};
  for (int step = 0; step < 4; step++) {
    const int64_t n = sizes[step], row = n / 3;
    if (s) goto out;
    TFC_TRY(s, run(&c, rank, step, n, fetches, n ? 3 : 1, got, NULL));
    WANT(tfc_tensor_elements(&got[0]) == row);
    for (int64_t i = 0; i < row; i++) {
      const int64_t at = rank * row + i;
      WANT(((float *)got[0].data)[i] == (element(0, step, at) + element(1, step, at) + element(2, step, at)) / 3.0f);
      for (uint32_t k = 0; k < 3; k++) {
        WANT(((float *)got[1].data)[k * row + i] == element(k, step, at));
        WANT(((float *)got[2].data)[k * row + i] == element(2 - k, step, (2 - rank) * row + i));
      }
    }
    for (int i = 0; i < 3; i++) tfc_tensor_release(&got[i]);
  }
  // What cannot be divided is an error of the member that gives it, and the others' group has ended.
  tfc_status e = run(&c, rank, 0, 4, fetches, 1, got, NULL);
  const bool refused = tfc_status_code(e) != TFC_OK && strstr(tfc_status_message(e), "cannot be divided among 3");
  tfc_status_free(e);
  WANT(refused);
out:
  for (int i = 0; i < 3; i++) tfc_tensor_release(&got[i]);
  close_client(&c);
  return s ? tfc_status_annotate(s, "task %u", rank) : NULL;
}
static void parts(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed <= 2; seed++) {
    const struct tfc_faults faults = {.seed = seed, .most_delay_ns = 2000000};
    struct tfc_test_job job = {.cluster = "worker=3", .script = own_parts, .faults = seed ? &faults : NULL};
    tfc_test_job_succeed(&job);
  }
}

static bool says(tfc_status s, tfc_code code, const char *text) {
  if (tfc_status_code(s) == code && strstr(tfc_status_message(s), text)) return true;
  print_message("not '%s': %s\n", text, tfc_status_message(s));
  return false;
}

// One member has a tensor of another shape or names another group size: all members get an error, none waits.
static tfc_status contradict(struct tfc_member *member, void *arg) {
  static const char *const fetches[] = {"sum"};
  const uint32_t rank = tfc_member_rank(member);
  const bool size = *(const bool *)arg;
  struct client c;
  struct tfc_tensor got = {0};
  tfc_status s = open_client(member, size && rank == 1 ? 2 : 3, &c);
  if (s) goto out;
  tfc_status e = run(&c, rank, 0, !size && rank == 1 ? 5 : 4, fetches, 1, &got, NULL);
  const bool right = says(e, TFC_ABORTED, size ? "its size is" : "different types or shapes");
  tfc_status_free(e);
  WANT(right);
  e = run(&c, rank, 1, 4, fetches, 1, &got, NULL); // the next call fails, too
  const bool still = says(e, TFC_ABORTED, "have ended");
  tfc_status_free(e);
  WANT(still);
out:
  tfc_tensor_release(&got);
  close_client(&c);
  return s;
}
static void contradictions(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    bool size = i;
    struct tfc_test_job job = {.cluster = "worker=3", .script = contradict, .arg = &size};
    tfc_test_job_succeed(&job);
  }
}

// The step of one member ends before the others arrive: they get an error.
static tfc_status gives_up(struct tfc_member *member, void *arg) {
  static const char *const fetches[] = {"sum"}, *const opens[] = {"x"};
  const uint32_t rank = tfc_member_rank(member);
  struct client c;
  struct tfc_tensor got = {0};
  (void)arg;
  tfc_status e = NULL, s = open_client(member, 3, &c);
  if (s) goto out;
  // runs once, so that opening the graph does not use up the time until the deadline
  TFC_TRY(s, run(&c, rank, 0, 4, opens, 1, &got, NULL));
  tfc_tensor_release(&got);
  if (rank == 0) TFC_TRY(s, tfc_member_barrier(member, "given up", NULL));
  e = run(&c, rank, 0, 4, fetches, 1, &got,
          rank == 1 ? &(struct tfc_run_options){.deadline_ns = 1000000000} : &(struct tfc_run_options){0});
  if (rank != 0) TFC_TRY(s, tfc_member_barrier(member, "given up", NULL));
  WANT(says(e, rank == 1 ? TFC_DEADLINE_EXCEEDED : TFC_ABORTED, rank == 1 ? "" : "was cancelled, or has failed"));
out:
  tfc_status_free(e);
  tfc_tensor_release(&got);
  close_client(&c);
  return s;
}
static void giving_up(void **state) {
  (void)state;
  struct tfc_test_job job = {.cluster = "worker=3", .script = gives_up};
  tfc_test_job_succeed(&job);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(parts),
                                     cmocka_unit_test(contradictions), cmocka_unit_test(giving_up)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
