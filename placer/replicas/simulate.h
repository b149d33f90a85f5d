// The simulation of N replicas that train together.
//
// - TFC_REPLICAS_ALL: synchronous, no servers. Gradients are reduced in buckets while back-propagation still runs,
//   within each host, then between hosts (rings for bandwidth, trees where latency counts). A step ends when the
//   slowest replica's last bucket is reduced.
// - TFC_REPLICAS_SYNC: synchronous with parameter servers. Replicas read parameters when they need them and
//   send gradients when they are computed. A step ends when N gradients of it have arrived; with B backups there are N
//   + B workers, and what arrives later is dropped (Chen et al., "Revisiting Distributed Synchronous SGD", 2016).
// - TFC_REPLICAS_ASYNC: no replica waits for another one.
//
// Servers are on the replicas' own hosts, one on each, or on hosts of their own. If there is one host, and copying
// occupies both ends, the server has no cores of its own: it copies for one replica after another, averages
// gradients and updates the parameters. Meanwhile it is one more busy device of the host, so all devices are slower.
// The users of a link share it equally at each moment. Replicas are simulated in small steps of time, and exactly
// within each step.
#ifndef TFC_PLACER_REPLICAS_SIMULATE_H
#define TFC_PLACER_REPLICAS_SIMULATE_H

#include "placer/replicas/hardware.h"
#include "placer/replicas/step_times.h"
#include "placer/replicas/workload.h"

typedef enum tfc_replicas_mode { TFC_REPLICAS_ALL, TFC_REPLICAS_SYNC, TFC_REPLICAS_ASYNC } tfc_replicas_mode;

struct tfc_replicas {
  const struct tfc_workload *workload;
  const struct tfc_hardware *hardware;
  struct tfc_step_times times;
  tfc_replicas_mode mode;
  uint32_t count, backup; // N; and B, of TFC_REPLICAS_SYNC
  uint32_t servers;       // number of hosts that only serve parameters; 0: each host with replicas has a server
  uint32_t steps;         // steps to simulate for each replica; 0: chosen by the number of replicas
  uint64_t seed;
};
struct tfc_replicas_result {
  uint32_t hosts, servers;
  double batches_per_second; // steps of single replicas whose gradients are used
  double efficiency; // batches_per_second divided by that of N devices that exchange nothing and have no late steps
  double median_us, q1_us, q3_us, p95_us; // of a step; asynchronous: of one replica's
  uint32_t steps;                         // number of steps from which these figures come
  double dropped;                         // number of gradients per step that came too late
  // The link that is busy for the longest time: its name, the bytes that this link carries in one direction in a step
  // (for asynchronous replicas: while every replica does one step), and the share of the time in which this link is
  // busy.
  const char *link;
  double link_bytes, link_share;
};
// RESOURCE_EXHAUSTED: out of memory. Otherwise, the errors are those of tfc_hardware_hosts.
TFC_MUST_USE tfc_status tfc_replicas_simulate(const struct tfc_replicas *replicas, struct tfc_replicas_result *out);

#endif
