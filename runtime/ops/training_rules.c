// How each optimizer updates an element, in the order of arithmetic of TensorFlow's training_ops kernels.
#include "runtime/ops/training_rules.h"

// v, a, b, c: the variable and its slots; g: the gradient.
#define RULE(name, ...) RULE_FOR(name, OPS_FLOATS, __VA_ARGS__)
#define RULE_WITH_COMPLEX(name, ...) RULE_FOR(name, OPS_FLOATS_COMPLEX, __VA_ARGS__)
#define RULE_FOR(name, LIST, ...)                                                                                      \
  OPS_CLONES static void name(const struct tfc_rule_span *s) {                                                         \
    const double _Complex *h = s->scalars;                                                                             \
    OPS_SWITCH(LIST, s->dtype, {                                                                                       \
      S *restrict v = s->var, *restrict a = s->slots[0], *restrict b = s->slots[1], *restrict c = s->slots[2];         \
      const S *g = s->grad;                                                                                            \
      (void)h, (void)a, (void)b, (void)c;                                                                              \
      __VA_ARGS__                                                                                                      \
    })                                                                                                                 \
  }
#define EACH for (int64_t i = 0; i < s->count; i++)
#define SIGN(x) ((C)((x) > (C)0) - (C)((x) < (C)0))

RULE_WITH_COMPLEX(gradient_descent, {
  const C alpha = (C)h[0];
  EACH OPS_PUT(v[i], OPS_GET(v[i]) - OPS_GET(g[i]) * alpha);
})

RULE_WITH_COMPLEX(momentum, {
  const C lr = (C)h[0], momentum_ = (C)h[1];
  if (s->flag) EACH {
      C m = OPS_GET(a[i]) * momentum_ + OPS_GET(g[i]);
      OPS_PUT(a[i], m);
      OPS_PUT(v[i], OPS_GET(v[i]) - (OPS_GET(g[i]) * lr + m * momentum_ * lr));
    }
  else
    EACH {
      C m = OPS_GET(a[i]) * momentum_ + OPS_GET(g[i]);
      OPS_PUT(a[i], m);
      OPS_PUT(v[i], OPS_GET(v[i]) - m * lr);
    }
})

RULE_WITH_COMPLEX(keras_momentum, {
  const C lr = (C)h[0], momentum_ = (C)h[1];
  EACH {
    C m = OPS_GET(a[i]) * momentum_ - OPS_GET(g[i]) * lr;
    OPS_PUT(a[i], m);
    OPS_PUT(v[i], s->flag ? OPS_GET(v[i]) + (m * momentum_ - OPS_GET(g[i]) * lr) : OPS_GET(v[i]) + m);
  }
})

RULE_WITH_COMPLEX(adam, {
  const C beta1_power = (C)h[0], beta2_power = (C)h[1], lr = (C)h[2], beta1 = (C)h[3], beta2 = (C)h[4], eps = (C)h[5];
  const C one = 1, alpha = lr * sqrt(one - beta2_power) / (one - beta1_power);
  const C keep1 = one - beta1, keep2 = one - beta2;
  if (s->flag) EACH {
      C x = OPS_GET(g[i]), m = OPS_GET(a[i]), u = OPS_GET(b[i]);
      m += (x - m) * keep1;
      u += (x * x - u) * keep2;
      OPS_PUT(a[i], m);
      OPS_PUT(b[i], u);
      OPS_PUT(v[i], OPS_GET(v[i]) - ((x * keep1 + beta1 * m) * alpha) / (sqrt(u) + eps));
    }
  else
    EACH {
      C x = OPS_GET(g[i]), m = OPS_GET(a[i]), u = OPS_GET(b[i]);
      m += (x - m) * keep1;
      u += (x * x - u) * keep2;
      OPS_PUT(a[i], m);
      OPS_PUT(b[i], u);
      OPS_PUT(v[i], OPS_GET(v[i]) - (m * alpha) / (sqrt(u) + eps));
    }
})

RULE(adamax, {
  const C beta1_power = (C)h[0], lr = (C)h[1], beta1 = (C)h[2], beta2 = (C)h[3], eps = (C)h[4];
  const C one = 1, rate = lr / (one - beta1_power);
  EACH {
    C x = OPS_GET(g[i]), m = OPS_GET(a[i]), u = OPS_GET(b[i]) * beta2, ax = fabs(x);
    m += (x - m) * (one - beta1);
    u = u < ax ? ax : u;
    OPS_PUT(a[i], m);
    OPS_PUT(b[i], u);
    OPS_PUT(v[i], OPS_GET(v[i]) - rate * (m / (u + eps)));
  }
})

RULE_WITH_COMPLEX(adagrad, {
  const C lr = (C)h[0];
  EACH {
    C x = OPS_GET(g[i]), acc = OPS_GET(a[i]);
    if (s->flag) acc += x * x, OPS_PUT(a[i], acc);
    OPS_PUT(v[i], OPS_GET(v[i]) - x * lr * ((C)1 / sqrt(acc)));
  }
})

RULE_WITH_COMPLEX(adagrad_v2, {
  const C lr = (C)h[0], eps = (C)h[1];
  EACH {
    C x = OPS_GET(g[i]), acc = OPS_GET(a[i]);
    if (s->flag) acc += x * x, OPS_PUT(a[i], acc);
    OPS_PUT(v[i], OPS_GET(v[i]) - x * lr / (sqrt(acc) + eps));
  }
})

RULE_WITH_COMPLEX(adadelta, {
  const C lr = (C)h[0], rho = (C)h[1], eps = (C)h[2], one = 1;
  EACH {
    C x = OPS_GET(g[i]), acc = OPS_GET(a[i]) * rho + x * x * (one - rho), past = OPS_GET(b[i]);
    C update = sqrt(past + eps) * (one / sqrt(acc + eps)) * x;
    OPS_PUT(a[i], acc);
    OPS_PUT(v[i], OPS_GET(v[i]) - update * lr);
    OPS_PUT(b[i], past * rho + update * update * (one - rho));
  }
})

RULE_WITH_COMPLEX(rms_prop, {
  const C lr = (C)h[0], rho = (C)h[1], momentum_ = (C)h[2], eps = (C)h[3], one = 1;
  EACH {
    C x = OPS_GET(g[i]), ms = OPS_GET(a[i]), mom = OPS_GET(b[i]);
    if (s->sparse) {
      ms = ms * rho + x * x * (one - rho);
      mom = mom * momentum_ + (one / sqrt(ms + eps)) * lr * x;
    } else {
      ms += (x * x - ms) * (one - rho);
      mom = mom * momentum_ + (x * lr) / sqrt(ms + eps);
    }
    OPS_PUT(a[i], ms);
    OPS_PUT(b[i], mom);
    OPS_PUT(v[i], OPS_GET(v[i]) - mom);
  }
})

RULE_WITH_COMPLEX(centered_rms_prop, { // slots: mg, ms, mom
  const C lr = (C)h[0], rho = (C)h[1], momentum_ = (C)h[2], eps = (C)h[3], one = 1;
  EACH {
    C x = OPS_GET(g[i]), mg = OPS_GET(a[i]), ms = OPS_GET(b[i]), mom = OPS_GET(c[i]);
    if (s->sparse) {
      ms = ms * rho + x * x * (one - rho);
      mg = mg * rho + x * (one - rho);
      mom = mom * momentum_ + (one / sqrt(ms - mg * mg + eps)) * lr * x;
    } else {
      ms += (x * x - ms) * (one - rho);
      mg += (x - mg) * (one - rho);
      mom = mom * momentum_ + (x * lr) / sqrt((ms - mg * mg) + eps);
    }
    OPS_PUT(a[i], mg);
    OPS_PUT(b[i], ms);
    OPS_PUT(c[i], mom);
    OPS_PUT(v[i], OPS_GET(v[i]) - mom);
  }
})

RULE(add_sign, {
  const C lr = (C)h[0], alpha = (C)h[1], sign_decay = (C)h[2], beta = (C)h[3], one = 1;
  EACH {
    C x = OPS_GET(g[i]), m = OPS_GET(a[i]) * beta + x * (one - beta);
    OPS_PUT(a[i], m);
    OPS_PUT(v[i], OPS_GET(v[i]) - lr * (alpha + sign_decay * (SIGN(x) * SIGN(m))) * x);
  }
})

RULE(power_sign, {
  const C lr = (C)h[0], logbase = (C)h[1], sign_decay = (C)h[2], beta = (C)h[3], one = 1;
  EACH {
    C x = OPS_GET(g[i]), m = OPS_GET(a[i]) * beta + x * (one - beta);
    OPS_PUT(a[i], m);
    OPS_PUT(v[i], OPS_GET(v[i]) - lr * exp(logbase * sign_decay * (SIGN(x) * SIGN(m))) * x);
  }
})

RULE(proximal_gradient_descent, {
  const C alpha = (C)h[0], l1 = (C)h[1], l2 = (C)h[2], one = 1;
  EACH {
    C prox = OPS_GET(v[i]) - OPS_GET(g[i]) * alpha;
    if (l1 > (C)0) {
      C shrunk = fabs(prox) - alpha * l1;
      prox = SIGN(prox) * (shrunk > (C)0 ? shrunk : (C)0);
    }
    OPS_PUT(v[i], prox / (one + l2 * alpha));
  }
})

RULE(proximal_adagrad, {
  const C lr = (C)h[0], l1 = (C)h[1], l2 = (C)h[2], one = 1;
  EACH {
    C x = OPS_GET(g[i]), acc = OPS_GET(a[i]) + x * x, rate = (one / sqrt(acc)) * lr;
    C prox = OPS_GET(v[i]) - x * rate;
    OPS_PUT(a[i], acc);
    if (l1 > (C)0) {
      C shrunk = fabs(prox) - rate * l1;
      prox = SIGN(prox) * (shrunk > (C)0 ? shrunk : (C)0);
    }
    OPS_PUT(v[i], prox / (one + l2 * rate));
  }
})

// McMahan et al. 2013, "Ad click prediction"; slots: accum, linear. V2 adds a shrinkage term to the gradient.
#define FTRL(shrinkage, power)                                                                                         \
  const C lr = (C)h[0], l1 = (C)h[1], l2 = (C)h[2], two = 2, l2_shrinkage = (C)(shrinkage), lr_power = (C)(power);     \
  const bool root = lr_power == (C)-0.5, scaled = s->flag;                                                             \
  const C bound = scaled ? l1 * lr : l1;                                                                               \
  EACH {                                                                                                               \
    C x = OPS_GET(g[i]), w = OPS_GET(v[i]), acc = OPS_GET(a[i]), z = OPS_GET(b[i]), next = acc + x * x;                \
    C shrunk = l2_shrinkage != (C)0 ? x + two * l2_shrinkage * w : x;                                                  \
    C p1 = root ? sqrt(next) : pow(next, -lr_power), p0 = root ? sqrt(acc) : pow(acc, -lr_power);                      \
    z += scaled ? shrunk * lr - (p1 - p0) * w : shrunk - (p1 - p0) / lr * w;                                           \
    C y = scaled ? p1 + two * l2 * lr : p1 / lr + two * l2;                                                            \
    C clipped = z < bound ? z : bound;                                                                                 \
    clipped = clipped > -bound ? clipped : -bound;                                                                     \
    OPS_PUT(a[i], next);                                                                                               \
    OPS_PUT(b[i], z);                                                                                                  \
    OPS_PUT(v[i], (clipped - z) / y);                                                                                  \
  }
RULE(ftrl, {FTRL(0, h[3])})
RULE(ftrl_v2, {FTRL(h[3], h[4])})

// Duchi et al. 2011, dual averaging; slots: sums of gradients and of their squares.
RULE(adagrad_da, {
  const C lr = (C)h[0], l1 = (C)h[1], l2 = (C)h[2], step = (C)h[3];
  EACH {
    C x = OPS_GET(g[i]), sum = OPS_GET(a[i]) + x, squares = OPS_GET(b[i]) + x * x, shrunk = sum;
    OPS_PUT(a[i], sum);
    OPS_PUT(b[i], squares);
    if (l1 > (C)0) {
      C left = fabs(sum) - l1 * step;
      shrunk = SIGN(sum) * (left > (C)0 ? left : (C)0);
    }
    OPS_PUT(v[i], (-lr * shrunk) / (l2 * step * lr + sqrt(squares)));
  }
})

RULE(adam_with_amsgrad, { // slots: m, v, vhat
  const C beta1_power = (C)h[0], beta2_power = (C)h[1], lr = (C)h[2], beta1 = (C)h[3], beta2 = (C)h[4], eps = (C)h[5];
  const C one = 1, alpha = lr * sqrt(one - beta2_power) / (one - beta1_power);
  EACH {
    C x = OPS_GET(g[i]), m = OPS_GET(a[i]), u = OPS_GET(b[i]), most = OPS_GET(c[i]);
    m += (x - m) * (one - beta1);
    u += (x * x - u) * (one - beta2);
    most = most < u ? u : most;
    OPS_PUT(a[i], m);
    OPS_PUT(b[i], u);
    OPS_PUT(c[i], most);
    OPS_PUT(v[i], OPS_GET(v[i]) - (m * alpha) / (sqrt(most) + eps));
  }
})

static const struct tfc_rule rules[] = {
    {"AdagradDA", 2, "lr l1 l2 global_step", "grad", NULL, 12, adagrad_da},
    {"AdamWithAmsgrad", 3, "beta1_power beta2_power lr beta1 beta2 epsilon", "grad", NULL, 14, adam_with_amsgrad},
    {"GradientDescent", 0, "alpha", "delta", NULL, 2, gradient_descent},
    {"Momentum", 1, "lr momentum", "grad", "use_nesterov", 4, momentum},
    {"KerasMomentum", 1, "lr momentum", "grad", "use_nesterov", 4, keras_momentum},
    {"Adam", 2, "beta1_power beta2_power lr beta1 beta2 epsilon", "grad", "use_nesterov", 12, adam},
    {"AdaMax", 2, "beta1_power lr beta1 beta2 epsilon", "grad", NULL, 9, adamax},
    {"Adagrad", 1, "lr", "grad", "update_slots", 6, adagrad},
    {"AdagradV2", 1, "lr epsilon", "grad", "update_slots", 7, adagrad_v2},
    {"Adadelta", 2, "lr rho epsilon", "grad", NULL, 16, adadelta},
    {"RMSProp", 2, "lr rho momentum epsilon", "grad", NULL, 11, rms_prop},
    {"CenteredRMSProp", 3, "lr rho momentum epsilon", "grad", NULL, 16, centered_rms_prop},
    {"AddSign", 1, "lr alpha sign_decay beta", "grad", NULL, 10, add_sign},
    {"PowerSign", 1, "lr logbase sign_decay beta", "grad", NULL, 11, power_sign},
    {"ProximalGradientDescent", 0, "alpha l1 l2", "delta", NULL, 8, proximal_gradient_descent},
    {"ProximalAdagrad", 1, "lr l1 l2", "grad", NULL, 12, proximal_adagrad},
    {"Ftrl", 2, "lr l1 l2 lr_power", "grad", "multiply_linear_by_lr", 16, ftrl},
    {"FtrlV2", 2, "lr l1 l2 l2_shrinkage lr_power", "grad", "multiply_linear_by_lr", 19, ftrl_v2},
};

const struct tfc_rule *tfc_rule_find(tfc_str op) {
  static const char *const prefixes[] = {"Resource", "Sparse", "Apply"};
  for (size_t i = 0; i < 3; i++)
    if (tfc_str_starts(op, prefixes[i])) op = tfc_str_sub(op, strlen(prefixes[i]), op.size);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (tfc_str_is(op, rules[i].op)) return &rules[i];
  return NULL;
}
