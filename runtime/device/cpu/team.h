// A team: the cores of one CPU device. The caller is its leader; the others are pinned threads that spin for a while
// after work and then sleep. One loop at a time; a second caller, or one inside a loop, works alone.
//
// Each thread begins with its own share of a loop's pieces, which is the same part of the whole in every loop, so that
// the data is often in its cache from the loop before. Then it takes pieces from other threads' shares.
#ifndef TFC_RUNTIME_DEVICE_CPU_TEAM_H
#define TFC_RUNTIME_DEVICE_CPU_TEAM_H

#include <pthread.h>

#include "runtime/base/memory_account.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"

struct tfc_team_times {   // ticks, since the team began
  _Atomic uint64_t split; // in loops, by the leader's clock
  _Atomic uint64_t work;  // of all threads in them
};
enum { TFC_TEAM_SHARES = 16 };
struct tfc_team_share {
  _Alignas(64) _Atomic int64_t next; // piece
  int64_t end;
};
struct tfc_team_worker {
  pthread_t thread;
  struct tfc_team *team;
  int index;
};
struct tfc_team {
  int size;  // threads, the leader included
  int index; // of the leader
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
  struct tfc_memory_account *account; // of the thread that leads the loop: what its helpers take is counted there too
  int64_t total, grain, chunk;
  int share_count;
  struct tfc_team_share shares[TFC_TEAM_SHARES];
  struct tfc_team_times times;
};
// `cpus` [size]: logical processors; the leader's is the first. Starts size - 1 threads.
TFC_MUST_USE tfc_status tfc_team_init(struct tfc_team *t, int size, const int *cpus, int64_t spin_ns);
void tfc_team_deinit(struct tfc_team *t);
// fn(arg, begin, end) over [0, total) in pieces [i * grain, (i + 1) * grain). The pieces are always the same, but any
// thread may run a piece.
void tfc_team_for(struct tfc_team *t, int64_t total, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end),
                  void *arg);
// The same, but where the team is taken false is returned at once and nothing is called.
bool tfc_team_try_for(struct tfc_team *t, int64_t total, int64_t grain,
                      void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);
// A thread that is not of the team works in its loops, as its thread `index`, until *ended is at least `value`.
void tfc_team_help(struct tfc_team *t, int index, const _Atomic uint32_t *ended, uint32_t value);
// The same for one loop, where one is open that is not *loop, which it then is. False: there is none.
bool tfc_team_help_once(struct tfc_team *t, int index, uint32_t *loop);

#endif
