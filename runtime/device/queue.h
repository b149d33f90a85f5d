// A queue with its own thread, on which a host-backed device computes or copies. An entry runs when its waits are over,
// and then its signals are set. Any thread may submit. Entries of one stream run in the order of submission; entries of
// different streams do not wait for each other (struct tfc_step).
#ifndef TFC_RUNTIME_DEVICE_QUEUE_H
#define TFC_RUNTIME_DEVICE_QUEUE_H

#include <pthread.h>

#include "runtime/base/array.h"
#include "runtime/base/float_mode.h"
#include "runtime/device/driver.h"

struct tfc_queue_entry {
  // Runs on the queue's thread. `waited_from`: when the last thing that it waits for was there (or when it began to
  // wait, if that was later); `waited_to`: when it went on. Ticks.
  void (*run)(struct tfc_device *device, struct tfc_queue_entry *entry, uint64_t waited_from, uint64_t waited_to);
  union {
    struct tfc_prepared *prepared;
    struct tfc_copy copy;
    struct tfc_task *task;
    void *data;
  };
  const struct tfc_timepoint *points; // for a queue that waits and signals itself: set before `run`
  struct tfc_step *step;
  uint32_t wait_count, signal_count;
  size_t first_point; // waits, then signals
  uint32_t stream;    // the step's stream when it was submitted
};

struct tfc_queue_batch {
  TFC_ARRAY(struct tfc_queue_entry) entries;
  TFC_ARRAY(struct tfc_timepoint) points;
};

struct tfc_queue_options {
  const char *name; // of the thread
  const int *cpus;  // logical processors to run on, NULL: not bound
  int cpu_count;
  int64_t spin_ns; // how long it spins for work before it sleeps
  // The same spin time while waiting for an input within a step; 0: the same value. The host of a virtual machine gives
  // a sleeping core to others, and it comes back late.
  int64_t wait_spin_ns;
  bool by_itself; // `run` waits and signals itself (a device with streams)
};

struct tfc_queue {
  struct tfc_device *device;
  struct tfc_queue_options options;
  pthread_t thread;
  bool started;
  pthread_mutex_t lock;
  struct tfc_queue_batch incoming, current;
  _Atomic uint32_t ready; // futex: changes with each new entry
  _Atomic uint32_t asleep;
  _Atomic bool stop;
  _Atomic uint64_t submitted;
  uint64_t ended;             // number of entries that have ended; of the thread
  struct tfc_semaphore *done; // reaches the number of entries that have ended
};
TFC_MUST_USE tfc_status tfc_queue_init(struct tfc_queue *q, struct tfc_device *device,
                                       const struct tfc_queue_options *options); // starts the thread
void tfc_queue_deinit(struct tfc_queue *q);                                      // after all entries have run
TFC_MUST_USE tfc_status tfc_queue_submit(struct tfc_queue *q, const struct tfc_queue_entry *entry,
                                         const struct tfc_timepoint *waits, const struct tfc_timepoint *signals);
void tfc_queue_drain(struct tfc_queue *q); // returns when all that was submitted before has ended

// Called first by every thread that runs kernels: flushes denormals, and limits OpenMP libraries to one thread.
void tfc_thread_prepare(void);

#endif
