// Decides which steps of a session run at the same time. One lock guards the gate. A step takes it when it begins, when
// it ends, and when it can only wait, but not for each operation.
#include "runtime/exec/gate.h"

#include <stdlib.h>

void tfc_gate_init(struct tfc_gate *g, uint32_t callers) {
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->changed, NULL);
  g->callers = callers;
}

void tfc_gate_deinit(struct tfc_gate *g) {
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->lock);
}

bool tfc_gate_enter_static(struct tfc_gate *g) {
  pthread_mutex_lock(&g->lock);
  while (g->static_step && !g->dynamic_steps) pthread_cond_wait(&g->changed, &g->lock);
  bool may = !g->dynamic_steps;
  if (may) g->static_step = true, g->active++;
  pthread_mutex_unlock(&g->lock);
  return may;
}

void tfc_gate_enter_dynamic(struct tfc_gate *g) {
  pthread_mutex_lock(&g->lock);
  g->dynamic_steps++; // static steps that begin from now on run in ready order, so this one waits for at most one
  while (g->static_step) pthread_cond_wait(&g->changed, &g->lock);
  g->active++;
  pthread_mutex_unlock(&g->lock);
}

void tfc_gate_leave(struct tfc_gate *g, bool is_static) {
  pthread_mutex_lock(&g->lock);
  if (is_static)
    g->static_step = false;
  else
    g->dynamic_steps--;
  g->active--;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
}

static bool stuck(const struct tfc_gate *g) {
  uint32_t waiting = 0;
  for (const struct tfc_blocked *b = g->blocked; b; b = b->next) {
    if (!b->nothing_came(b)) return false;
    waiting++;
  }
  return g->callers && waiting == g->active && waiting >= g->callers + g->helpers;
}

bool tfc_gate_block(struct tfc_gate *g, struct tfc_blocked *b) {
  pthread_mutex_lock(&g->lock);
  b->next = g->blocked;
  g->blocked = b;
  bool deadlock = stuck(g);
  if (deadlock) g->blocked = b->next;
  pthread_mutex_unlock(&g->lock);
  return deadlock;
}

void tfc_gate_unblock(struct tfc_gate *g, struct tfc_blocked *b) {
  pthread_mutex_lock(&g->lock);
  for (struct tfc_blocked **at = &g->blocked; *at; at = &(*at)->next)
    if (*at == b) {
      *at = b->next;
      break;
    }
  pthread_mutex_unlock(&g->lock);
}

static void look_again(struct tfc_gate *g) {
  for (struct tfc_blocked *b = g->blocked; b; b = b->next) b->look_again(b);
}

void tfc_gate_set_callers(struct tfc_gate *g, uint32_t callers) {
  pthread_mutex_lock(&g->lock);
  g->callers = callers;
  look_again(g);
  pthread_mutex_unlock(&g->lock);
}

void tfc_gate_helpers(struct tfc_gate *g, int more) {
  pthread_mutex_lock(&g->lock);
  g->helpers += (uint32_t)more;
  look_again(g);
  pthread_mutex_unlock(&g->lock);
}
