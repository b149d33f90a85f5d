// The most memory that a device of tfc-run has held.
#include "cli/run.h"
#include "runtime/base/memory_account.h"

uint64_t run_peak(const struct run_setup *setup, const struct tfc_plan_info *info, uint32_t d) {
  struct tfc_device **devices = setup->devices.devices;
  uint64_t host = tfc_account_peak(tfc_account_host()) - setup->host_before, planned = 0;
  bool first = devices[d]->info.address_space == 0;
  for (uint32_t i = 0; i < d; i++) first = first && devices[i]->info.address_space != 0;
  if (info && info->peak_bytes) planned = info->peak_bytes[d];
  return (devices[d]->driver->peak ? devices[d]->driver->peak(devices[d], false) : planned) + (first ? host : 0);
}
