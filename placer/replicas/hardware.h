// Hardware: what a machine offers to replicas of a step. All replicas have devices of the same kind, one each; the
// devices of a host share the host's network card. If more hosts are needed than the machine has, the others are like
// the machine's first host.
#ifndef TFC_PLACER_REPLICAS_HARDWARE_H
#define TFC_PLACER_REPLICAS_HARDWARE_H

#include "placer/replicas/workload.h"

struct tfc_hardware_link {
  double latency_us, bandwidth; // bandwidth: bytes per second in each direction; INFINITY: no limit
  bool occupies;  // a replica's device does not compute while it sends or receives (occupies: both of the machine file)
  double wake_us; // how much longer a message takes if its receiver sleeps; 0: not known
};
struct tfc_hardware {
  uint32_t device;   // the first replica's device, an index in the problem
  tfc_str kind;      // of the replicas' devices
  uint32_t per_host; // number of devices of this kind on a host
  uint32_t hosts;    // number of hosts in the machine; 1 if only the first replica's host has devices of this kind
  uint32_t server;   // the device of a host that holds parameters: the first one of kind "cpu", or, if there is none,
                     // `device`
  // The kind's slowdown (placer/model/machine.h), by the number of devices that are busy on one host: they share the
  // host's cores and memory. Borrowed from the machine; slowdown_count 0: there is none.
  const double *slowdown;
  uint32_t slowdown_count;
  double serve_us; // the server's time for the requests of one replica in a step: the device's dispatch time
  struct tfc_hardware_link to_server; // between a replica's device and its own host's server
  struct tfc_hardware_link beside;    // between the devices of two replicas on one host
  struct tfc_hardware_link network;   // the link between hosts; all devices of a host share it
};
// `device`: the device of the first replica; all replicas have devices of its kind. `workload`: bandwidths are those at
// the sizes of its parameters, each of which travels as one message. INVALID_ARGUMENT: a link is missing.
TFC_MUST_USE tfc_status tfc_hardware_of(const struct tfc_problem *problem, uint32_t device,
                                        const struct tfc_workload *workload, struct tfc_hardware *out);
// Finds the device on which the step is shortest; tries one device of each kind.
TFC_MUST_USE tfc_status tfc_hardware_fastest(const struct tfc_problem *problem, uint32_t *out_device);
// Computes how many hosts the replicas need. INVALID_ARGUMENT: the machine has only one host, with too few devices.
TFC_MUST_USE tfc_status tfc_hardware_hosts(const struct tfc_hardware *hardware, uint32_t replicas, uint32_t *out);

#endif
