// A queue with its own thread, on which a device computes or copies. The thread runs an entry when the semaphores that
// the entry waits for are reached, and then sets the entry's signals. Any thread may submit. Entries of one stream run
// in the order of submission; entries of different streams do not wait for each other (struct tfc_step).
#ifndef TFC_RUNTIME_DEVICE_QUEUE_H
#define TFC_RUNTIME_DEVICE_QUEUE_H

#include <pthread.h>

#include "runtime/base/array.h"
#include "runtime/base/float_mode.h"
#include "runtime/device/driver.h"

struct tfc_queue_entry {
  // Runs on the queue's thread. `waited_from` is when the last semaphore that the entry waits for was signalled (or
  // when the thread began to wait, if that was later); `waited_to` is when the thread went on. Both are ticks.
  void (*run)(struct tfc_device *device, struct tfc_queue_entry *entry, uint64_t waited_from, uint64_t waited_to);
  union {
    struct tfc_prepared *prepared;
    struct tfc_copy copy;
    struct tfc_task *task;
    void *data;
  };
  const struct tfc_timepoint *points; // the entry's points, set before `run` if options.by_itself
  struct tfc_step *step;
  uint32_t wait_count, signal_count;
  size_t first_point; // index of the entry's points in the batch: first waits, then signals
  uint32_t stream;    // the step's stream when it was submitted
};

struct tfc_queue_batch {
  TFC_ARRAY(struct tfc_queue_entry) entries;
  TFC_ARRAY(struct tfc_timepoint) points;
};

struct tfc_queue_options {
  const char *name; // the thread's name
  const int *cpus;  // logical processors that the thread may use, NULL: not bound
  int cpu_count;
  int64_t spin_ns; // how long the thread spins for work before it sleeps
  // How long the thread spins for a semaphore that an entry waits for; 0: spin_ns. A longer time is worth it in virtual
  // machines: if the thread sleeps, their host may give the core to another machine, and the thread wakes up late.
  int64_t wait_spin_ns;
  bool by_itself; // `run` does the waiting and signalling, not the queue (for a device with streams)
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
  uint64_t ended;             // number of entries that have ended; only the queue's thread uses it
  struct tfc_semaphore *done; // reaches the number of entries that have ended
};
TFC_MUST_USE tfc_status tfc_queue_init(struct tfc_queue *q, struct tfc_device *device,
                                       const struct tfc_queue_options *options); // starts the thread
void tfc_queue_deinit(struct tfc_queue *q);                                      // after all entries have run
TFC_MUST_USE tfc_status tfc_queue_submit(struct tfc_queue *q, const struct tfc_queue_entry *entry,
                                         const struct tfc_timepoint *waits, const struct tfc_timepoint *signals);
// Runs the task on the queue's thread, as an entry that waits for nothing.
TFC_MUST_USE tfc_status tfc_queue_post(struct tfc_queue *q, struct tfc_task *task);
void tfc_queue_drain(struct tfc_queue *q); // returns when all entries that were submitted before have ended

// Every thread that runs kernels calls this first. It makes the thread flush denormals to zero, and limits libraries
// that use OpenMP to one thread.
void tfc_thread_prepare(void);

#endif
