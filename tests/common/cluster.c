#include "tests/common/cluster.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/common/test.h"

struct one {
  struct tfc_test_job *job;
  const struct tfc_cluster_spec *spec;
  struct tfc_transport *transport;
  pthread_t thread;
};

static void *run(void *arg) {
  struct one *o = arg;
  struct tfc_test_job *job = o->job;
  const uint32_t rank = o->transport->rank;
  struct tfc_device_set devices = {0};
  struct tfc_member *member = NULL;
  const bool serves = !job->script || (job->serves && !strcmp(job->serves, o->spec->tasks.data[rank].job));
  tfc_status s = tfc_devices_open("cpu:0", NULL, 0, &devices);
  for (uint32_t d = 0; d < devices.count; d++) {
    struct tfc_device_info *i = &devices.devices[d]->info;
    if (job->model) snprintf(i->model, sizeof i->model, "%s", job->model);
    if (job->label) snprintf(i->label, sizeof i->label, "%s", job->label);
  }
  const struct tfc_member_options options = {.spec = o->spec,
                                             .transport = o->transport,
                                             .devices = &devices,
                                             .has_script = !serves,
                                             .static_us = job->static_us,
                                             .silence_ns = job->silence_ns};
  if (!s) s = tfc_member_join(&options, &member);
  if (!s && !serves) {
    s = job->script(member, job->arg);
    if (s) tfc_member_fail(member, 1, tfc_status_message(s));
  }
  if (!s) s = tfc_member_end(member, NULL);
  if (!s) s = tfc_member_leave(member);
  if (member) job->static_parts[rank] = tfc_member_static_parts(member);
  tfc_member_free(member);
  tfc_devices_close(&devices);
  job->status[rank] = s;
  return NULL;
}

void tfc_test_job_run(struct tfc_test_job *job) {
  struct tfc_cluster_spec spec = {0};
  struct tfc_transport *transports[16];
  struct one ones[16];
  assert_ok(tfc_cluster_spec_parse(tfc_str_from(job->cluster), &spec));
  const uint32_t count = (uint32_t)spec.tasks.count;
  assert_true(count <= 16);
  assert_ok(tfc_transport_local(count, transports));
  for (uint32_t r = 0; r < count; r++) {
    struct tfc_faults faults = job->faults ? *job->faults : (struct tfc_faults){0};
    faults.seed = faults.seed * 16 + r;
    if (r != job->faulty_rank) faults.silent_after = faults.garbled_after = 0;
    if (r != job->cut_ranks[0] && r != job->cut_ranks[1]) faults.cut_after = 0;
    faults.cut_to = job->cut_ranks[r == job->cut_ranks[0]];
    if (job->faults) assert_ok(tfc_transport_faulty(transports[r], &faults, &transports[r]));
    ones[r] = (struct one){.job = job, .spec = &spec, .transport = transports[r]};
  }
  for (uint32_t r = 0; r < count; r++) assert_int_equal(pthread_create(&ones[r].thread, NULL, run, &ones[r]), 0);
  for (uint32_t r = 0; r < count; r++) pthread_join(ones[r].thread, NULL);
  tfc_cluster_spec_deinit(&spec);
}

void tfc_test_job_succeed(struct tfc_test_job *job) {
  tfc_test_job_run(job);
  for (size_t r = 0; r < sizeof job->status / sizeof *job->status; r++) {
    if (job->status[r]) fail_msg("task %zu: %s", r, tfc_status_message(job->status[r]));
  }
}
