// A team: the threads of one CPU device, which run loops together. The caller is the leader; the others are pinned
// threads that spin for a while after work and then sleep. A team runs one loop at a time. A second caller, or a caller
// inside a loop, runs its loop alone.
//
// Each thread begins with its own share of a loop's pieces. A thread's share is the same fraction of every loop, so its
// data is often still in its cache from the loop before. Then it takes pieces from other threads' shares.
#ifndef TFC_RUNTIME_DEVICE_CPU_TEAM_H
#define TFC_RUNTIME_DEVICE_CPU_TEAM_H

#include <pthread.h>

#include "runtime/base/memory_account.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"

struct tfc_team_times {   // ticks, totals since the team was made
  _Atomic uint64_t split; // from the begin to the end of each loop, measured by the leader
  _Atomic uint64_t work;  // that all threads together have spent on the loops' pieces
};
enum { TFC_TEAM_SHARES = 16 };
struct tfc_team_share {
  _Alignas(64) _Atomic int64_t next; // the next piece to take
  int64_t end;
};
struct tfc_team_worker {
  pthread_t thread;
  struct tfc_team *team;
  int index;
};
struct tfc_team {
  int size;  // threads, the leader included
  int index; // the leader's number in the team
  int64_t spin_ns;
  struct tfc_team_worker *workers; // [size - 1]
  int started;
  _Atomic bool stop, taken;
  // Low 24 bits: how many threads work on the current loop; bit 24: more may join; above: the number of the loop, which
  // sleeping workers watch.
  _Alignas(64) _Atomic uint32_t state;
  _Atomic uint32_t sleepers;
  _Alignas(64) void (*fn)(void *arg, int64_t begin, int64_t end);
  void *arg;
  struct tfc_memory_account *account; // the leader's account: memory that workers allocate in the loop is counted there
  int64_t total, grain, chunk;
  int share_count;
  struct tfc_team_share shares[TFC_TEAM_SHARES];
  struct tfc_team_times times;
};
// `cpus` [size] are the threads' logical processors, the leader's first. Starts size - 1 threads.
TFC_MUST_USE tfc_status tfc_team_init(struct tfc_team *t, int size, const int *cpus, int64_t spin_ns);
void tfc_team_deinit(struct tfc_team *t);
// Calls fn(arg, begin, end) for the pieces [i * grain, (i + 1) * grain) of [0, total). The pieces are always the same,
// but any thread may run a piece.
void tfc_team_for(struct tfc_team *t, int64_t total, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end),
                  void *arg);
// As tfc_team_for, but if another caller uses the team, it returns false at once and does not call fn.
bool tfc_team_try_for(struct tfc_team *t, int64_t total, int64_t grain,
                      void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);
// The calling thread, which does not belong to the team, works in the team's loops until *ended >= value. It begins
// with the share of thread `index`.
void tfc_team_help(struct tfc_team *t, int index, const _Atomic uint32_t *ended, uint32_t value);
// As tfc_team_help, but works in one loop: the one that is open now, unless it is *loop, in which the caller worked
// last. Sets *loop. False: no other loop is open.
bool tfc_team_help_once(struct tfc_team *t, int index, uint32_t *loop);

#endif
