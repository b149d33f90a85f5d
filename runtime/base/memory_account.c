#include "runtime/base/memory_account.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/memory_left.h"
#include "runtime/base/no_memory.h"
#include "runtime/base/units.h"

static struct tfc_memory_account host = {.limit = UINT64_MAX, .open = true};
static struct tfc_memory_account *accounts; // all except the host's
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct tfc_memory_account *current;

static uint64_t on(const struct tfc_memory_account *a) {
  return atomic_load_explicit(&a->taken, memory_order_relaxed) +
         atomic_load_explicit(&a->scratch, memory_order_relaxed);
}

tfc_status tfc_account_open(const char *name, uint64_t limit, struct tfc_memory_account **out) {
  pthread_mutex_lock(&lock);
  struct tfc_memory_account *a = accounts;
  while (a && (a->open || on(a))) a = a->next;
  if (!a && (a = calloc(1, sizeof *a))) a->next = accounts, accounts = a;
  if (a) {
    snprintf(a->name, sizeof a->name, "%s", name);
    a->limit = limit;
    a->open = true;
    atomic_store(&a->peak, 0);
  }
  pthread_mutex_unlock(&lock);
  if (!a) return tfc_status_no_memory_for("opening %s", name);
  *out = a;
  return NULL;
}

void tfc_account_close(struct tfc_memory_account *a) {
  if (!a) return;
  pthread_mutex_lock(&lock);
  a->open = false;
  a->room = NULL;
  pthread_mutex_unlock(&lock);
}

void tfc_account_keeps(struct tfc_memory_account *a, tfc_account_room *room, void *keeper) {
  pthread_mutex_lock(&lock);
  a->room = room, a->keeper = keeper;
  pthread_mutex_unlock(&lock);
}

static bool reserve_what_is_kept(struct tfc_memory_account *a, size_t bytes) {
  pthread_mutex_lock(&lock);
  const bool done = a->room && a->room(a->keeper, bytes);
  pthread_mutex_unlock(&lock);
  return done;
}

struct tfc_memory_account *tfc_account_current(void) {
  return current ? current : &host;
}

struct tfc_memory_account *tfc_account_enter(struct tfc_memory_account *a) {
  struct tfc_memory_account *before = current;
  current = a;
  return before;
}

struct tfc_memory_account *tfc_account_host(void) {
  return &host;
}

static void note_peak(struct tfc_memory_account *a) {
  uint64_t now = on(a), peak = atomic_load_explicit(&a->peak, memory_order_relaxed);
  while (now > peak &&
         !atomic_compare_exchange_weak_explicit(&a->peak, &peak, now, memory_order_relaxed, memory_order_relaxed)) {
  }
}

bool tfc_account_reserve(struct tfc_memory_account *a, size_t bytes) {
  uint64_t before = atomic_fetch_add_explicit(&a->taken, bytes, memory_order_relaxed);
  if (bytes > a->limit || before > a->limit - bytes) {
    atomic_fetch_sub_explicit(&a->taken, bytes, memory_order_relaxed);
    return false;
  }
  note_peak(a);
  return true;
}

void tfc_account_unreserve(struct tfc_memory_account *a, size_t bytes) {
  atomic_fetch_sub_explicit(&a->taken, bytes, memory_order_relaxed);
}

bool tfc_account_take(struct tfc_memory_account *a, size_t bytes) {
  if (!tfc_account_reserve(a, bytes) && !reserve_what_is_kept(a, bytes)) return false;
  if (tfc_memory_grant(bytes)) return true;
  tfc_account_unreserve(a, bytes);
  return false;
}

void tfc_account_give(struct tfc_memory_account *a, size_t bytes) {
  tfc_account_unreserve(a, bytes);
  tfc_memory_give_back(bytes);
}

bool tfc_account_take_scratch(struct tfc_memory_account *a, size_t bytes) {
  if (!tfc_memory_grant(bytes)) return false;
  atomic_fetch_add_explicit(&a->scratch, bytes, memory_order_relaxed);
  note_peak(a);
  return true;
}

void tfc_account_give_scratch(struct tfc_memory_account *a, size_t bytes) {
  atomic_fetch_sub_explicit(&a->scratch, bytes, memory_order_relaxed);
  tfc_memory_give_back(bytes);
}

tfc_status tfc_account_exhausted(const struct tfc_memory_account *a, size_t bytes) {
  char wanted[32], used[32], limit[32], left[32];
  uint64_t taken = atomic_load_explicit(&a->taken, memory_order_relaxed);
  const char *colon = a->name[0] ? ": " : "";
  tfc_show_bytes(wanted, (double)bytes);
  uint64_t room = a->limit > taken ? a->limit - taken : 0;
  // The account's limit is also the reason if less than 64 bytes, one block, would be left.
  if (a->limit != UINT64_MAX && (bytes >= room || room - bytes < 64))
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED,
                           "%s%sout of memory: %s asked for, %s in use, limit %s, largest free block %s", a->name,
                           colon, wanted, tfc_show_bytes(used, (double)taken), tfc_show_bytes(limit, (double)a->limit),
                           tfc_show_bytes(left, (double)room));
  struct tfc_memory_bound bound;
  tfc_memory_bound(&bound);
  tfc_show_bytes(used, (double)bound.used);
  if (bound.left == UINT64_MAX)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "%s%sout of memory: %s asked for, %s in use", a->name, colon, wanted,
                           used);
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "%s%sout of memory: %s asked for, %s in use, limit %s (%s), %s left",
                         a->name, colon, wanted, used, tfc_show_bytes(limit, (double)bound.limit), bound.what,
                         tfc_show_bytes(left, (double)bound.left));
}

uint64_t tfc_account_peak(const struct tfc_memory_account *a) {
  return atomic_load_explicit(&a->peak, memory_order_relaxed);
}

void tfc_account_restart(struct tfc_memory_account *a) {
  atomic_store_explicit(&a->peak, on(a), memory_order_relaxed);
}
