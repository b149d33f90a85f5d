// Hardware: what a machine offers to replicas of a step. Each replica has a device of one kind; each host's network
// card is shared by its devices. Hosts beyond those of the machine are taken to be like its first one.
#ifndef TFC_PLACER_REPLICAS_HARDWARE_H
#define TFC_PLACER_REPLICAS_HARDWARE_H

#include "placer/model/problem.h"

struct tfc_hardware_link {
  double latency_us, bandwidth; // bandwidth: bytes per second in each direction; INFINITY: no limit
};
struct tfc_hardware {
  uint32_t device;   // the first replica's device, an index in the problem
  tfc_str kind;      // of the replicas' devices
  uint32_t per_host; // such devices of a host
  uint32_t hosts;    // number of hosts in the machine; 1 if only the first replica's host has such devices
  uint32_t server;   // the device of a host that serves parameters: the first of kind "cpu", else `device`
  double serve_us;   // the server's time for the requests of one replica in a step: the device's dispatch time
  struct tfc_hardware_link to_server; // between a replica's device and its own host's server
  struct tfc_hardware_link beside;    // between the devices of two replicas on one host
  struct tfc_hardware_link network;   // between hosts; a host's devices share it
};
// `device`: the first replica's; its kind is that of all. INVALID_ARGUMENT: a link is missing.
TFC_MUST_USE tfc_status tfc_hardware_of(const struct tfc_problem *problem, uint32_t device, struct tfc_hardware *out);
// The device on which the step is shortest: one of each kind is tried.
TFC_MUST_USE tfc_status tfc_hardware_fastest(const struct tfc_problem *problem, uint32_t *out_device);
// How many hosts the replicas need. INVALID_ARGUMENT: the machine has only one host, and too few devices in it.
TFC_MUST_USE tfc_status tfc_hardware_hosts(const struct tfc_hardware *hardware, uint32_t replicas, uint32_t *out);

#endif
