// Tests simulated replicas: what a replica exchanges, the hardware that a machine file describes (with its hosts), how
// much step times vary, and step times that were worked out by hand.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "placer/model/machine_yaml.h"
#include "placer/replicas/sweep.h"
#include "tests/placer/instances.h"
#include "tests/placer/links.h"

static bool near(double a, double b, double share) {
  return fabs(a - b) <= share * fmax(fabs(a), fabs(b));
}

// --- Hosts -----------------------------------------------------------------------------------------------------------
static void test_hosts_of_a_file(void **state) {
  (void)state;
  struct tfc_machine *m = NULL, *again = NULL;
  struct tfc_text text = {0};
  uint32_t host[256];
  assert_ok(tfc_machine_read(TFC_SOURCE_DIR "/configs/16x8xh100.yaml", &m));
  assert_int_equal(m->device_count, 144);
  assert_int_equal(tfc_machine_hosts(m, host), 16);
  const uint32_t first = tfc_machine_find(m, TFC_STR("gpu:0")), last = tfc_machine_find(m, TFC_STR("gpu:127"));
  assert_int_equal(host[first], 0);
  assert_int_equal(host[last], 15);
  assert_true(tfc_str_is(m->devices[last].tensorflow, "/job:worker/task:15/device:GPU:7"));
  assert_true(tfc_str_is(m->devices[last].host, "host:15"));
  assert_true(link_between(m, first, first + 1)->bandwidth > 4e11); // NVLink
  assert_true(link_between(m, first, last)->bandwidth < 6e10);
  assert_ok(tfc_machine_format(m, &text));
  assert_ok(tfc_machine_parse((tfc_str){text.data, text.size}, "again", &again));
  uint32_t host_again[256];
  assert_int_equal(tfc_machine_hosts(again, host_again), 16);
  assert_memory_equal(host, host_again, 144 * sizeof *host);
  for (uint32_t d = 0; d < 144; d += 13)
    for (uint32_t e = 0; e < 144; e += 7)
      if (d != e) assert_true(link_between(m, d, e)->hosts == link_between(again, d, e)->hosts);
  tfc_text_deinit(&text);
  tfc_machine_free(m);
  tfc_machine_free(again);
}

static void test_wire_of_a_host(void **state) {
  (void)state;
  static const char yaml[] =
      "format: tfc-machine\nversion: 1\ndevices:\n"
      "  - {name: \"a:0\", host: \"h:0\", hosts: 2, count: 2, kind: acc}\n"
      "links:\n  - {from: \"*\", to: \"*\", hosts: different, bandwidth: 1GB/s, wire: \"card of {host}\"}\n"
      "  - {from: \"*\", to: \"*\", hosts: same, bandwidth: 10GB/s}\n";
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t kind, node;
  assert_ok(tfc_machine_parse(tfc_str_from(yaml), "m.yaml", &i.machine));
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &kind));
  assert_ok(tfc_cost_builder_node(b, TFC_STR("n"), &node));
  assert_ok(tfc_cost_builder_time(b, node, kind, 1));
  assert_ok(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  const struct tfc_problem *p = i.problem;
  assert_int_equal(p->host_count, 2);
  const uint32_t card = tfc_problem_pair(p, 0, 2)->wire; // the wire of everything that leaves the first host
  assert_int_equal(tfc_problem_pair(p, 0, 3)->wire, card);
  assert_int_equal(tfc_problem_pair(p, 1, 2)->wire, card);
  assert_int_not_equal(tfc_problem_pair(p, 2, 0)->wire, card);
  assert_int_equal(tfc_problem_pair(p, 3, 1)->wire, tfc_problem_pair(p, 2, 0)->wire);
  assert_int_not_equal(tfc_problem_pair(p, 0, 1)->wire, card);
  assert_int_equal(p->twin[1], 0);
  assert_int_equal(p->twin[3], 2); // not 0, which has another card
  instance_free(&i);
}

static void test_hosts_that_make_no_sense(void **state) {
  (void)state;
  static const struct {
    const char *device, *link, *says;
  } cases[] = {
      {"{name: \"a:0\", kind: x, hosts: 2}", "", "needs host"},
      {"{name: \"a:0\", kind: x, host: \"h\", hosts: 2}", "", "end of host"},
      {"{name: \"a\", kind: x, host: \"h:0\", hosts: 2}", "", "end of the name"},
      {"{name: \"a:0\", kind: x, host: \"h:0\", hosts: 0}", "", "hosts is a number"},
      {"{name: \"a:0\", kind: x, host: \"h:0\", hosts: 1024, count: 1024}", "", "more than 1024 devices"},
      {"{name: \"a:0\", kind: x}", "  - {from: \"*\", to: \"*\", hosts: other}\n", "same or different"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    char text[512];
    struct tfc_machine *m = NULL;
    snprintf(text, sizeof text, "format: tfc-machine\nversion: 1\ndevices:\n  - %s\n%s%s", cases[k].device,
             cases[k].link[0] ? "links:\n" : "", cases[k].link);
    assert_fails(tfc_machine_parse(tfc_str_from(text), "m.yaml", &m), TFC_INVALID_ARGUMENT, cases[k].says);
  }
}

// --- What a replica exchanges ----------------------------------------------------------------------------------------
// The node `forward` (100 us) reads w (1 MB). `backward` (200 us) sends the gradient of w in two tensors to a sum that
// is in the group of w, and the update there takes 20 us. The group also has a slot variable. e is a table; a step
// reads 1 kB of it and sends 2 kB to it.
static struct tfc_cost_graph *training_graph(void) {
  struct tfc_cost_builder *b = NULL;
  struct tfc_cost_graph *g = NULL;
  static const char *const names[] = {"w", "slot", "forward", "backward", "sum", "update", "e", "rows", "scatter"};
  static const double us[] = {0, 0, 100, 200, 0, 20, 0, 0, 0};
  static const char *const groups[] = {"w", "w", NULL, NULL, "w", "w", "e", "e", "e"};
  static const uint64_t memory[] = {1000000, 1000000, 0, 0, 0, 0, 50000000, 0, 0};
  static const struct {
    uint32_t from, to;
    uint64_t bytes;
  } edges[] = {{0, 2, 1000000}, {2, 3, 64},       {3, 4, 1000000}, {3, 4, 1000000}, {4, 5, 1000000},
               {1, 5, 1000000}, {6, 7, 50000000}, {7, 2, 1000},    {3, 8, 2000}};
  uint32_t acc, node;
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < 9; n++) {
    assert_ok(tfc_cost_builder_node(b, tfc_str_from(names[n]), &node));
    assert_ok(tfc_cost_builder_time(b, node, acc, us[n]));
    tfc_cost_builder_memory(b, node, memory[n]);
    if (groups[n]) assert_ok(tfc_cost_builder_group(b, node, tfc_str_from(groups[n])));
  }
  for (uint32_t e = 0; e < sizeof edges / sizeof *edges; e++)
    assert_ok(tfc_cost_builder_edge(b, edges[e].from, (int32_t)e, edges[e].to, edges[e].bytes, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_finish(b, &g));
  tfc_cost_builder_free(b);
  return g;
}

static const char hosts_of_two[] = "format: tfc-machine\nversion: 1\ndevices:\n"
                                   "  - {name: \"acc:0\", host: \"h:0\", hosts: 4, count: 2, kind: acc}\n"
                                   "links:\n  - {from: \"*\", to: \"*\", hosts: different, latency: 10us, bandwidth: "
                                   "1GB/s, wire: \"card of {host}\"}\n"
                                   "  - {from: \"*\", to: \"*\", hosts: same, latency: 2us, bandwidth: 20GB/s}\n";

static void test_workload(void **state) {
  (void)state;
  struct instance i = {.graph = training_graph()};
  struct tfc_workload w = {0};
  struct tfc_hardware h;
  uint32_t device, hosts;
  assert_ok(tfc_machine_parse(tfc_str_from(hosts_of_two), "m.yaml", &i.machine));
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  assert_ok(tfc_hardware_fastest(i.problem, &device));
  assert_ok(tfc_workload_make(i.problem, device, &w));
  assert_true(near(w.step_us, 320, 1e-9) && near(w.update_us, 20, 1e-9));
  assert_true(near(w.pulled, 1001000, 1e-9)); // w, and rows of e
  assert_true(near(w.pushed, 1002000, 1e-9)); // the two tensors count as one gradient of w; the rest are rows of e
  assert_true(near(w.pull[0], w.pulled, 1e-9));
  assert_true(near(w.push[30], w.pushed, 1e-9)); // backward ends after 300 of 320 us, in piece 30 of 32
  assert_int_equal(w.parameter_count, 2);
  assert_true(w.parameter[0] > w.parameter[1]);
  assert_ok(tfc_hardware_of(i.problem, device, &w, &h));
  assert_int_equal(h.per_host, 2);
  assert_int_equal(h.hosts, 4);
  assert_true(near(h.network.bandwidth, 1e9, 1e-6) && near(h.network.latency_us, 10, 1e-3));
  assert_true(near(h.beside.bandwidth, 20e9, 1e-6) && near(h.beside.latency_us, 2, 1e-3));
  // There are more replicas than the machine's hosts can hold: further hosts of the same kind are assumed.
  assert_ok(tfc_hardware_hosts(&h, 11, &hosts));
  assert_int_equal(hosts, 6);
  h.hosts = 1;
  assert_fails(tfc_hardware_hosts(&h, 3, &hosts), TFC_INVALID_ARGUMENT, "one host with 2");
  tfc_workload_deinit(&w);
  instance_free(&i);
}

static void test_imbalance(void **state) {
  (void)state;
  double even[] = {4, 2, 2}, odd[] = {6, 1, 1};
  assert_true(
      near(tfc_workload_imbalance(&(struct tfc_workload){.parameter_count = 3, .parameter = even}, 2), 1, 1e-12));
  assert_true(
      near(tfc_workload_imbalance(&(struct tfc_workload){.parameter_count = 3, .parameter = odd}, 2), 1.5, 1e-12));
  assert_true(near(tfc_workload_imbalance(&(struct tfc_workload){0}, 2), 1, 1e-12));
}

// --- Times -----------------------------------------------------------------------------------------------------------
static void test_step_times(void **state) {
  (void)state;
  enum { N = 4000 };
  static double ratio[N];
  struct tfc_random random;
  const struct tfc_step_times truth = {.sigma = 0.08, .late_share = 0.03, .late_factor = 2};
  struct tfc_step_times fitted;
  tfc_random_init(&random, 7);
  for (int i = 0; i < N; i++) ratio[i] = tfc_step_times_draw(&truth, &random);
  assert_ok(tfc_step_times_fit(ratio, N, &fitted));
  assert_true(near(fitted.sigma, 0.08, 0.1));
  assert_true(near(fitted.late_share, 0.03, 0.25));
  assert_true(near(fitted.late_factor, 2, 0.05));
  for (int i = 0; i < 30; i++) ratio[i] = 1; // all equal: nothing varies, and no step is late
  assert_ok(tfc_step_times_fit(ratio, 30, &fitted));
  assert_true(fitted.sigma <= 0 && fitted.late_share <= 0 && near(fitted.late_factor, 1, 1e-12));
  assert_fails(tfc_step_times_fit(ratio, 19, &fitted), TFC_INVALID_ARGUMENT, "too few");
}

// A replica computes for 1 ms; it reads 1 MB before the first piece and sends 1 MB after the last one.
static struct tfc_workload plain_workload(double *parameter) {
  struct tfc_workload w = {
      .step_us = 1000, .pulled = 1e6, .pushed = 1e6, .parameter_count = 16, .parameter = parameter};
  w.pull[0] = 1e6, w.push[TFC_WORKLOAD_PIECES - 1] = 1e6;
  for (int i = 0; i < 16; i++) parameter[i] = 1e6 / 16;
  return w;
}
static struct tfc_hardware plain_hardware(void) {
  return (struct tfc_hardware){.per_host = 1,
                               .hosts = 64,
                               .to_server = {0, INFINITY},
                               .beside = {0, INFINITY},
                               .network = {5, 1e9}}; // 1 MB in 1 ms
}

static struct tfc_replicas_result run(const struct tfc_replicas *r) {
  struct tfc_replicas_result x = {0};
  assert_ok(tfc_replicas_simulate(r, &x));
  return x;
}

static void test_times_by_hand(void **state) {
  (void)state;
  double parameter[16];
  const struct tfc_workload w = plain_workload(parameter);
  const struct tfc_hardware h = plain_hardware();
  struct tfc_replicas r = {.workload = &w, .hardware = &h, .times.late_factor = 1, .count = 1, .seed = 1};
  struct tfc_replicas_result x = run(&r);
  assert_true(near(x.median_us, 1000, 1e-9) && near(x.efficiency, 1, 1e-9)); // alone, nothing is exchanged
  r.count = 4; // a ring of four replicas takes 2 * 3/4 of 1 ms; trees have two transfers in each direction
  x = run(&r);
  assert_true(near(x.median_us, 1000 + 1500 + 4 * 5, 1e-9));
  assert_true(near(x.link_bytes, 1.5e6, 1e-9) && near(x.link_share, 1500 / 2520.0, 1e-9));
  // Two servers have hosts of their own: the 4 MB that four replicas read pass the two servers' cards in 2 ms, and so
  // do the 4 MB that they send.
  r.mode = TFC_REPLICAS_SYNC, r.servers = 2;
  x = run(&r);
  assert_true(near(x.median_us, 10 + 2000 + 1000 + 2000 + 10, 0.01));
  assert_true(near(x.batches_per_second, 4 / 5.02e-3, 0.01));
  assert_string_equal(x.link, "a server's network");
  assert_true(near(x.link_bytes, 2e6, 1e-9));
  r.servers = 16; // with 16 servers, the replicas' own network cards are the bottleneck
  x = run(&r);
  assert_true(near(x.median_us, 10 + 1000 + 1000 + 1000 + 10, 0.01));
  // Four replicas on one host, whose cores are those of two: a step takes twice as long. Where transfers occupy both
  // ends, nothing is computed meanwhile, sending and receiving take turns, and a busy core copies half as fast; and
  // each replica averages a quarter of the gradients, which reads four of them and writes one, where a copy reads and
  // writes one.
  static const double slowdown[] = {1, 1, 1.5, 2};
  struct tfc_hardware crowded = h;
  crowded.per_host = 4, crowded.beside = (struct tfc_hardware_link){.latency_us = 5, .bandwidth = 1e9};
  crowded.slowdown = slowdown, crowded.slowdown_count = 4;
  r.hardware = &crowded, r.mode = TFC_REPLICAS_ALL, r.servers = 0;
  x = run(&r);
  assert_true(near(x.median_us, 2 * 1000 + 1500 + 4 * 5, 1e-9) && near(x.efficiency, 1000 / 3520.0, 1e-9));
  crowded.beside.occupies = true;
  assert_true(near(run(&r).median_us, 2 * 1000 + 2 * 2 * 1500 + 4 * 5 + 2 * 625, 1e-9));
  r.count = 2;
  assert_true(near(run(&r).median_us, 1000 + 2 * 1000 + 2 * 5 + 750, 1e-9));
  r.count = 1;
  assert_true(near(run(&r).median_us, 1000, 1e-9));
  // With a server beside them.
  crowded.slowdown_count = 0, crowded.to_server = (struct tfc_hardware_link){.bandwidth = 1e9, .occupies = true};
  r.count = 2, r.mode = TFC_REPLICAS_SYNC;
  const double without = run(&r).median_us;
  struct tfc_workload early = w; // what is read last can be read while the device computes, unless that occupies it
  early.pull[0] = 0, early.pull[TFC_WORKLOAD_PIECES - 1] = 1e6;
  r.workload = &early;
  assert_true(near(run(&r).median_us, without, 0.01));
  crowded.to_server.occupies = false;
  assert_true(run(&r).median_us < 0.9 * without);
  // The server copies for one replica after another, at 1 ms for each transfer of 1 MB; it and one replica are busy
  // then. Meanwhile nobody computes, and then all do. A tenth of the step is the update, once for all,
  // after the server has averaged the gradients.
  crowded.to_server.occupies = true, crowded.slowdown = slowdown, crowded.slowdown_count = 4;
  struct tfc_workload updates = w;
  updates.update_us = 100;
  r.workload = &updates, r.count = 2;
  assert_true(near(run(&r).median_us, 1500 + 100 + 2 * 1000 + 900 + 2 * 1000, 0.01));
  r.count = 4;
  assert_true(near(run(&r).median_us, 2500 + 100 + 4 * 1000 + 2 * 900 + 4 * 1000, 0.01));
  // Tasks that wait sleep where there are more of them than cores: with a server, four times in a step a message has to
  // wake one. Two replicas and their server are three tasks on two cores, so that takes half as long again; and the
  // server is woken twice for each of them. Two replicas alone do not sleep. Each of four waits for the step's begin,
  // three gradients, three averages and the step's end.
  crowded.to_server.wake_us = crowded.beside.wake_us = 500, r.count = 2;
  assert_true(near(run(&r).median_us, 1500 + 100 + 2 * 1000 + 900 + 2 * 1000 + (2 + 2 * 2) * 750, 0.01));
  r.mode = TFC_REPLICAS_ALL;
  assert_true(near(run(&r).median_us, 1000 + 2 * 1000 + 2 * 5 + 750, 1e-9));
  r.count = 4;
  assert_true(near(run(&r).median_us, 2 * 1000 + 2 * 2 * 1500 + 4 * 5 + 2 * 625 + 8 * 500 * 2, 1e-9));
  crowded.to_server.wake_us = crowded.beside.wake_us = 0;
  // One asynchronous replica waits only for the server. Of two that exchange nothing each computes while the server
  // updates for the other one, which makes three busy devices at most; the server's updates come one after another.
  r.mode = TFC_REPLICAS_ASYNC, r.count = 1;
  assert_true(near(run(&r).median_us, 100 + 1000 + 900 + 1000, 0.01));
  updates.pulled = updates.pushed = updates.pull[0] = updates.push[TFC_WORKLOAD_PIECES - 1] = 1;
  updates.update_us = 900, r.count = 4;
  x = run(&r);
  assert_true(near(x.batches_per_second, 1 / 900e-6, 0.02)); // the server is busy all the time, and one replica
  r.workload = &w, r.hardware = &h, r.servers = 16, r.count = 4;
  // A single asynchronous replica takes as long with its reading, computing and sending.
  r.mode = TFC_REPLICAS_ASYNC, r.count = 1;
  x = run(&r);
  assert_true(near(x.median_us, 3020, 0.01) && near(x.batches_per_second, 1 / 3.02e-3, 0.01));
  // The servers are on the hosts of the four replicas: a replica reads three quarters of the parameters from other
  // hosts, so its card receives 0.75 MB; later it sends as much.
  r.mode = TFC_REPLICAS_SYNC, r.count = 4, r.servers = 0;
  x = run(&r);
  assert_int_equal(x.servers, 4);
  assert_true(near(x.median_us, 10 + 750 + 1000 + 750 + 10, 0.01));
  // Each server answers the requests of the four replicas one after another, in 100 us each.
  struct tfc_hardware slow = h;
  slow.serve_us = 100;
  r.hardware = &slow, r.servers = 16;
  x = run(&r);
  assert_true(near(x.median_us, 10 + 400 + 3000 + 10, 0.01));
  // A hundred replicas that compute nothing: all send their requests at the same moment.
  const struct tfc_workload nothing = {.pulled = 1, .pushed = 1, .pull[0] = 1, .push[0] = 1};
  r.workload = &nothing, r.count = 100;
  x = run(&r);
  assert_true(near(x.median_us, 10 + 10000 + 10, 0.01));
  // A thousand replicas that all begin at one moment share the servers' cards: 62.5 MB for each card, there and back.
  r.workload = &w, r.hardware = &h, r.count = 1000;
  assert_true(near(run(&r).median_us, 10 + 62500 + 1000 + 62500 + 10, 0.01));
}

// All replicas wait for a late one, unless there are backups.
static void test_late_steps_and_backups(void **state) {
  (void)state;
  double parameter[16];
  const struct tfc_workload w = plain_workload(parameter);
  struct tfc_hardware h = plain_hardware();
  h.network.bandwidth = 1e12; // the network is so fast that nothing waits for it
  struct tfc_replicas r = {.workload = &w,
                           .hardware = &h,
                           .times = {.late_share = 0.02, .late_factor = 3},
                           .mode = TFC_REPLICAS_SYNC,
                           .count = 40,
                           .servers = 16,
                           .steps = 400,
                           .seed = 3};
  const struct tfc_replicas_result sync = run(&r);
  // A share of 1 - 0.98^40 = 0.554 of the steps waits for a late replica.
  const double mean = 20 + 1000 * (1 + 2 * (1 - pow(0.98, 40)));
  assert_true(near(40e6 / sync.batches_per_second, mean, 0.06));
  r.backup = 3; // it is rare that four or more of 43 replicas are late
  const struct tfc_replicas_result backed = run(&r);
  assert_true(backed.batches_per_second > 1.4 * sync.batches_per_second);
  assert_true(near(backed.dropped, 3, 0.35)); // a late replica is late for two more steps
  r.backup = 0, r.mode = TFC_REPLICAS_ASYNC;
  const struct tfc_replicas_result async = run(&r);
  assert_true(near(async.batches_per_second, 40e6 / (20 + 1000 * 1.04), 0.03)); // no replica waits for another one
  r.mode = TFC_REPLICAS_ALL;
  const struct tfc_replicas_result all = run(&r);
  assert_true(all.batches_per_second < 0.6 * async.batches_per_second);
  const struct tfc_replicas_result again = run(&r);
  assert_memory_equal(&again, &all, sizeof all);
}

static void test_sweep(void **state) {
  (void)state;
  double parameter[16];
  const struct tfc_workload w = plain_workload(parameter);
  struct tfc_hardware h = plain_hardware();
  struct tfc_sweep sweep = {0};
  const uint32_t counts[] = {1, 40};
  h.network.bandwidth = 1e12;
  struct tfc_sweep_options o = {.workload = &w,
                                .hardware = &h,
                                .times = {.late_share = 0.02, .late_factor = 3},
                                .counts = counts,
                                .count_count = 2,
                                .modes = {true, true, false},
                                .backup = -1,
                                .servers = 16,
                                .seed = 1};
  assert_ok(tfc_sweep_run(&o, &sweep));
  assert_int_equal(sweep.row[0].backup, 0); // with one replica, no other one can be late
  assert_true(sweep.row[1].backup >= 2 && sweep.row[1].backup <= 8 && sweep.row[1].gain > 1.2);
  assert_int_equal(sweep.row[1].result[TFC_REPLICAS_ASYNC].hosts, 0); // asynchronous replicas were not requested
  tfc_sweep_deinit(&sweep);
  o.times = (struct tfc_step_times){.late_factor = 1};
  assert_ok(tfc_sweep_run(&o, &sweep));
  assert_int_equal(sweep.row[1].backup, 0); // no step is late, so backups do not help
  tfc_sweep_deinit(&sweep);
  o.backup = 10; // a given number of backups is used even if it makes steps slower
  assert_ok(tfc_sweep_run(&o, &sweep));
  assert_int_equal(sweep.row[1].backup, 10);
  assert_true(near(sweep.row[1].gain, 40.0 / 50, 0.02));
  tfc_sweep_deinit(&sweep);
  atomic_bool cancel = true;
  o.cancel = &cancel;
  assert_fails(tfc_sweep_run(&o, &sweep), TFC_CANCELLED, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_hosts_of_a_file),
      cmocka_unit_test(test_wire_of_a_host),
      cmocka_unit_test(test_hosts_that_make_no_sense),
      cmocka_unit_test(test_workload),
      cmocka_unit_test(test_imbalance),
      cmocka_unit_test(test_step_times),
      cmocka_unit_test(test_times_by_hand),
      cmocka_unit_test(test_late_steps_and_backups),
      cmocka_unit_test(test_sweep),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
