// Computes the rivals' networks again, in doubles and by the plain formulas. The runtime's output for a state has to be
// the same, and so has the sign of each weight's update (by finite differences).
#ifndef TFC_TESTS_RL_PLAIN_NETWORK_H
#define TFC_TESTS_RL_PLAIN_NETWORK_H

#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rl/rival_network.h"

struct plain_weight {
  char name[32];
  int64_t rows, columns;
  double *value;
};
struct plain_network {
  struct plain_weight weight[TFC_RIVAL_WEIGHTS];
  uint32_t count;
};

static inline void plain_read(const struct tfc_rival_network *n, struct plain_network *out) {
  out->count = n->weight_count;
  for (uint32_t i = 0; i < n->weight_count; i++) {
    struct plain_weight *w = &out->weight[i];
    struct tfc_tensor value = {0};
    assert_ok(tfc_session_get_variable(n->session, tfc_str_from(n->weights[i].name), &value));
    snprintf(w->name, sizeof w->name, "%s", n->weights[i].name);
    w->rows = n->weights[i].shape.dims[0], w->columns = n->weights[i].shape.dims[1];
    w->value = calloc((size_t)(w->rows * w->columns), sizeof *w->value);
    for (int64_t k = 0; k < w->rows * w->columns; k++) w->value[k] = (double)((const float *)value.data)[k];
    tfc_tensor_release(&value);
  }
}
static inline void plain_free(struct plain_network *p) {
  for (uint32_t i = 0; i < p->count; i++) free(p->weight[i].value);
  *p = (struct plain_network){0};
}
static inline const struct plain_weight *plain_find(const struct plain_network *p, const char *name) {
  for (uint32_t i = 0; i < p->count; i++)
    if (strcmp(p->weight[i].name, name) == 0) return &p->weight[i];
  fail_msg("the network has no weights '%s'", name);
  return NULL;
}
// out [w->columns] = x [w->rows] W (+ the weights `bias`, if any)
static inline void plain_dense(const struct plain_network *p, const char *name, const char *bias, const double *x,
                               double *out) {
  const struct plain_weight *w = plain_find(p, name);
  for (int64_t c = 0; c < w->columns; c++) {
    out[c] = bias ? plain_find(p, bias)->value[c] : 0;
    for (int64_t r = 0; r < w->rows; r++) out[c] += x[r] * w->value[r * w->columns + c];
  }
}
static inline void plain_tanh(double *x, size_t count) {
  for (size_t i = 0; i < count; i++) x[i] = tanh(x[i]);
}
static inline void plain_log_softmax(double *x, size_t count) {
  double most = -INFINITY, sum = 0;
  for (size_t i = 0; i < count; i++) most = fmax(most, x[i]);
  for (size_t i = 0; i < count; i++) sum += exp(x[i] - most);
  for (size_t i = 0; i < count; i++) x[i] -= most + log(sum);
}
static inline void plain_equal(double x, double y, double tolerance, const char *what) {
  if (!(fabs(x - y) <= tolerance * fmax(1, fabs(y)))) fail_msg("%s: %.9g, not %.9g", what, x, y);
}

// The first update of Adam moves each weight by `rate` against the sign of its derivative of `loss` (whose size has to
// be well above Adam's epsilon). `before` has the weights before the update, the network those after it.
static inline void plain_first_update(struct plain_network *before, const struct tfc_rival_network *n, double rate,
                                      double (*loss)(const struct plain_network *p, const void *user),
                                      const void *user) {
  struct plain_network after = {0};
  uint32_t looked_at = 0;
  double norm = 0;
  plain_read(n, &after);
  for (uint32_t i = 0; i < before->count; i++) {
    struct plain_weight *w = &before->weight[i];
    const int64_t count = w->rows * w->columns;
    for (int64_t k = 0; k < count; k += 1 + count / 7) {
      const double x = w->value[k], h = 1e-4;
      w->value[k] = x + h;
      const double up = loss(before, user);
      w->value[k] = x - h;
      const double down = loss(before, user), slope = (up - down) / (2 * h);
      w->value[k] = x;
      norm += slope * slope;
      if (fabs(slope) < 3e-4) continue; // too small to be seen in float32
      const double wanted = x - (slope > 0 ? rate : -rate);
      if (!(fabs(after.weight[i].value[k] - wanted) < 0.02 * rate))
        fail_msg("%s[%d]: slope %g, moved by %g", w->name, (int)k, slope, after.weight[i].value[k] - x);
      looked_at++;
    }
  }
  assert_true(looked_at > 20 && norm > 0);
  plain_free(&after);
}

#endif
