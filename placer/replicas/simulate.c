// Simulated time advances in ticks. At the beginning of a tick the replicas that use each link are counted, which gives
// the rates at which each may read and send. Within the tick every replica proceeds independently at these rates: it
// waits, sends requests to its servers, computes piece by piece, reads parameters before it needs them, and sends
// gradients afterwards. A replica that begins to use a server or a link within a tick is not in that tick's counts. So
// it stops until the tick ends, and in the next tick it proceeds for the lost time too, at rates that include it. If it
// went on at once, each of a thousand replicas that begin together would have the whole link until the tick ends. So
// the times of each replica are exact at the given rates; only the rates change too late, by up to a tick.
#include "placer/replicas/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/statistics.h"

enum { TICKS = 250, LEAST_STEPS = 40, MOST_STEPS = 300, MOST_TICKS = 4000000, SHORTEST = 16 };
static const double bucket_bytes = 25e6;

struct times { // step times, in us
  double *us;
  uint32_t count, most;
};
static void keep(struct times *t, double us) {
  if (t->count < t->most) t->us[t->count++] = us;
}

static void tell(struct times *t, struct tfc_replicas_result *out) {
  const struct tfc_quartiles q = tfc_quartiles_of(t->us, t->count);
  out->median_us = q.median, out->q1_us = q.q1, out->q3_us = q.q3;
  out->p95_us = t->count ? t->us[(uint32_t)(0.95 * (t->count - 1) + 0.5)] : (double)NAN; // sorted by now
  out->steps = t->count;
}

static void consider_link(struct tfc_replicas_result *out, const char *link, double bytes, double bandwidth) {
  const double us = isfinite(bandwidth) ? 1e6 * bytes / bandwidth : 0;
  if (out->link && us <= out->link_share)
    return; // link_share is a time here, which tfc_replicas_simulate later divides by the step's time
  out->link = link, out->link_bytes = bytes, out->link_share = us;
}

static double per_us(double bandwidth) { // returns bytes per us
  return 1e-6 * bandwidth;
}

// How long a core takes to average `bytes` of gradients from each replica: it reads gradients once for each replica and
// writes the mean once. A copy of `bytes` reads once and writes once, so the bandwidth of copying tells how fast the
// core does that. 0: there is nothing to average, or cores do not copy what is sent, so their speed is not known.
static double average_us(const struct tfc_replicas *r, const struct tfc_hardware_link *link, double bytes) {
  if (!link->occupies || r->count < 2 || !isfinite(link->bandwidth)) return 0;
  return 1e6 * bytes / link->bandwidth * (r->count + 1.0) / 2;
}

// How many cores the devices of a host share: n busy devices do n / slowdown times the work of one, and the most of
// that is what the cores can do. INFINITY: devices do not slow each other down.
static double cores_of(const struct tfc_hardware *h) {
  double most = 0;
  for (uint32_t n = 1; n <= h->slowdown_count; n++) most = fmax(most, n / h->slowdown[n - 1]);
  return most > 0 ? most : (double)INFINITY;
}

// How much longer a message takes where a host has more tasks than cores: a task that waits sleeps there, and waking it
// is work for cores that others use. `servers`: on each host of replicas.
static double waking_us(const struct tfc_replicas *r, const struct tfc_hardware_link *link, uint32_t servers) {
  const struct tfc_hardware *h = r->hardware;
  const uint32_t workers = r->count + r->backup, tasks = (workers < h->per_host ? workers : h->per_host) + servers;
  const double cores = cores_of(h);
  return tasks > cores + 0.5 ? link->wake_us * tasks / cores : 0;
}

// --- Gradients reduced without servers -------------------------------------------------------------------------------
static double reduction_us(const struct tfc_hardware *h, uint32_t count, uint32_t hosts, double bytes) {
  const uint32_t beside = count < h->per_host ? count : h->per_host;
  double us = 0;
  // In a ring each device sends and receives at the same time, unless either occupies it.
  const double apart = h->beside.occupies ? 2 : 1;
  if (beside > 1)
    us += apart * 2e6 * (beside - 1.0) / beside * bytes / h->beside.bandwidth +
          2 * fmin(beside - 1.0, ceil(log2(beside))) * h->beside.latency_us;
  if (hosts > 1)
    us += 2e6 * (hosts - 1.0) / hosts * bytes / h->network.bandwidth +
          2 * fmin(hosts - 1.0, ceil(log2(hosts))) * h->network.latency_us;
  return us;
}

static void all_links(const struct tfc_replicas *r, struct tfc_replicas_result *out) {
  const struct tfc_hardware *h = r->hardware;
  const uint32_t beside = r->count < h->per_host ? r->count : h->per_host;
  const double bytes = r->workload->pushed;
  if (beside > 1)
    consider_link(out, "between devices of a host", 2 * (beside - 1.0) / beside * bytes, h->beside.bandwidth);
  if (out->hosts > 1)
    consider_link(out, "a host's network", 2 * (out->hosts - 1.0) / out->hosts * bytes, h->network.bandwidth);
}

static void reduce_all(const struct tfc_replicas *r, uint32_t steps, struct times *times,
                       struct tfc_replicas_result *out) {
  const struct tfc_workload *w = r->workload;
  struct tfc_random random;
  // Of N tasks, each waits for 2 N messages: the one that begins the step, a gradient from each of the N - 1 others, an
  // average from each of the others, and the one that ends the step.
  const double waking = r->count > 1 ? 2.0 * r->count * waking_us(r, &r->hardware->beside, 0) : 0;
  double all_us = 0;
  tfc_random_init(&random, r->seed);
  for (uint32_t i = 0; i < steps; i++) {
    double slowest = 0, reduced = 0, bucket = 0, not_computing = 0;
    for (uint32_t k = 0; k < r->count; k++) slowest = fmax(slowest, tfc_step_times_draw(&r->times, &random));
    for (uint32_t k = 0; k < TFC_WORKLOAD_PIECES; k++) {
      bucket += w->push[k];
      const bool last = k + 1 == TFC_WORKLOAD_PIECES;
      if (r->count == 1 || bucket <= 0 || (bucket < bucket_bytes && !last)) continue;
      const double ready = slowest * w->step_us * (k + 1.0) / TFC_WORKLOAD_PIECES;
      // each replica averages its part of the bucket
      const double us = reduction_us(r->hardware, r->count, out->hosts, bucket) +
                        average_us(r, &r->hardware->beside, bucket / r->count);
      reduced = fmax(reduced, ready) + us;
      if (r->hardware->beside.occupies) not_computing += us;
      bucket = 0;
    }
    const double step = fmax(reduced, slowest * w->step_us + not_computing) + waking;
    keep(times, step);
    all_us += step;
  }
  out->batches_per_second = 1e6 * r->count * steps / all_us;
  all_links(r, out);
  out->link_share /= all_us / steps;
}

// --- Parameter servers -----------------------------------------------------------------------------------------------
typedef enum { WAITS, ASKS, WORKS, ENDS, DONE } phase;
struct replica {
  phase phase;
  uint32_t host, piece;
  double wait_us;              // for the phases WAITS and ENDS
  double ask_us;               // phase ASKS: server time that is left
  double owed_us;              // time of earlier ticks in which the replica stood still
  double factor;               // by which computing takes longer in this step
  double left_us;              // time that is left of the current piece
  double pulled, pushed, made; // bytes; made: gradients that are computed and may be sent
  double began_us;
  uint64_t step; // the step to which the replica's gradient belongs
};
struct fleet {
  const struct tfc_replicas *r;
  struct tfc_random random;
  struct replica *replica; // [count]
  uint32_t count, hosts, servers;
  bool apart;                       // the servers have hosts of their own
  bool shares;                      // the only server uses the cores of the replicas' host
  double imbalance;                 // largest share of a server, divided by the mean share
  double need[TFC_WORKLOAD_PIECES]; // bytes that must have arrived before the piece begins
  double latency_us;                // of a message and its answer together
  double wake_us;                   // to wake a task
  // This tick.
  double now_us;
  uint32_t pulling, pushing, asking, *pulls, *pushes; // [host]
  uint32_t exchanging;                                // replicas that read or send, or do both
  double slowdown; // factor by which all work on the host's cores takes longer; 1: not `shares`
};
struct rates {
  double pull, push, ask, compute; // bytes, bytes, server time and computing time, for each us
};

// By which factor a step takes longer while so many devices of a host are busy. Where the machine has factors for fewer
// devices, each further one adds as much as the last that is given.
static double slowdown_of(const struct tfc_hardware *h, uint32_t busy) {
  const uint32_t n = h->slowdown_count;
  if (!n || !busy) return 1;
  if (busy <= n) return h->slowdown[busy - 1];
  return h->slowdown[n - 1] + (n > 1 ? (busy - n) * (h->slowdown[n - 1] - h->slowdown[n - 2]) : 0);
}

static bool shares_cores(const struct tfc_replicas *r, uint32_t hosts) {
  return r->mode != TFC_REPLICAS_ALL && !r->servers && hosts == 1 && r->hardware->to_server.occupies;
}

static bool is_pulling(const struct fleet *f, const struct replica *x) {
  return x->phase == WORKS && x->pulled < f->r->workload->pulled;
}
static bool is_pushing(const struct replica *x) {
  return x->phase == WORKS && x->pushed < x->made;
}

static bool is_computing(const struct fleet *f, const struct replica *x) {
  const struct tfc_workload *w = f->r->workload;
  const double tiny = 1e-9 * (w->pulled + w->pushed);
  const bool occupied = (is_pulling(f, x) || is_pushing(x)) && f->r->hardware->to_server.occupies;
  return x->phase == WORKS && x->piece < TFC_WORKLOAD_PIECES && x->pulled >= f->need[x->piece] - tiny && !occupied;
}

static double piece_us(const struct fleet *f, const struct replica *x) {
  const struct tfc_workload *w = f->r->workload;
  return x->factor * (w->step_us - (f->shares ? w->update_us : 0)) / TFC_WORKLOAD_PIECES;
}

static void begin_step(struct fleet *f, struct replica *x, double now_us, uint64_t step) {
  const struct tfc_workload *w = f->r->workload;
  x->phase = WAITS, x->piece = 0;
  x->wait_us = w->pulled > 0 ? f->latency_us : 0;
  x->ask_us = w->pulled > 0 ? f->r->hardware->serve_us : 0;
  x->factor = tfc_step_times_draw(&f->r->times, &f->random);
  // The server averages and updates before it is read from, or updates for one asynchronous replica after another.
  if (f->shares && f->r->mode == TFC_REPLICAS_SYNC)
    x->wait_us += average_us(f->r, &f->r->hardware->to_server, w->pushed) + w->update_us;
  if (f->shares && f->r->mode == TFC_REPLICAS_ASYNC) x->ask_us += w->update_us;
  if (f->shares) x->ask_us += 2 * f->wake_us; // to read, and to send
  x->left_us = piece_us(f, x);
  x->pulled = x->pushed = x->made = 0;
  x->began_us = now_us, x->step = step;
}

// Counts how many replicas use each link and server from now on. Returns how long the tick may be: until a replica's
// wait ends, because that replica then begins to ask and read; but not much shorter than `tick_us`, to limit the number
// of ticks.
static double count_users(struct fleet *f, double tick_us) {
  double us = tick_us;
  uint32_t computing = 0;
  f->pulling = f->pushing = f->asking = f->exchanging = 0;
  memset(f->pulls, 0, f->hosts * sizeof *f->pulls);
  memset(f->pushes, 0, f->hosts * sizeof *f->pushes);
  for (uint32_t i = 0; i < f->count; i++) {
    const struct replica *x = &f->replica[i];
    if (x->phase == ASKS) f->asking++;
    if (x->phase == WAITS && x->wait_us < us) us = x->wait_us;
    if (is_pulling(f, x)) f->pulling++, f->pulls[x->host]++;
    if (is_pushing(x)) f->pushing++, f->pushes[x->host]++;
    if (is_pulling(f, x) || is_pushing(x)) f->exchanging++;
    if (is_computing(f, x)) computing++;
  }
  // a transfer keeps the server and one replica busy; the other replicas wait for theirs
  const uint32_t busy = computing + (f->exchanging ? 2 : 0) + (f->asking > 0);
  f->slowdown = f->shares ? slowdown_of(f->r->hardware, busy) : 1;
  return fmax(us, tick_us / SHORTEST);
}

static double at_least_one(uint32_t n) {
  return n ? n : 1;
}

// Computes a replica's rates. It reads and sends over its device's link and its host's network, and shares the networks
// of its servers.
static struct rates rates_of(const struct fleet *f, const struct replica *x) {
  const struct tfc_hardware *h = f->r->hardware;
  const double turns = f->shares ? at_least_one(f->exchanging) : 1;
  const double network = per_us(h->network.bandwidth), own = per_us(h->to_server.bandwidth) / turns / f->slowdown;
  struct rates r = {own, own, 1 / (at_least_one(f->asking) * f->slowdown), 1 / f->slowdown};
  const double remote = f->apart ? 1 : (f->servers - 1.0) / f->servers; // share of the parameters
  if (remote <= 0) return r;
  const double there = network / remote, fullest = f->imbalance / f->servers;
  if (f->apart) {
    r.pull = fmin(r.pull, fmin(there / at_least_one(f->pulls[x->host]), there / (at_least_one(f->pulling) * fullest)));
    r.push = fmin(r.push, fmin(there / at_least_one(f->pushes[x->host]), there / (at_least_one(f->pushing) * fullest)));
    return r;
  }
  // A host receives what its replicas read and what other replicas send to its server; it sends what its replicas send
  // and what other replicas read from its server. All transfers have the same rate, which the server with the most
  // parameters limits.
  const double in = there / fmax(1, f->pulls[x->host] + f->pushing * fullest);
  const double out = there / fmax(1, f->pushes[x->host] + f->pulling * fullest);
  r.pull = r.push = fmin(own, fmin(in, out));
  return r;
}

static double until(double left, double rate) {
  return rate > 0 && left > 0 ? left / rate : 0;
}

// Lets a replica read, compute and send at the same time, until one of these ends or `left_us` is over. Returns the
// time that passed.
static double work(const struct fleet *f, struct replica *x, const struct rates *rate, double left_us) {
  const struct tfc_workload *w = f->r->workload;
  const double tiny = 1e-9 * (w->pulled + w->pushed);
  const bool pulls = is_pulling(f, x), pushes = is_pushing(x);
  const bool computes = is_computing(f, x);
  double us = left_us;
  if (!pulls && !pushes && x->piece == TFC_WORKLOAD_PIECES) {
    x->phase = ENDS;
    x->wait_us = w->pushed > 0 ? f->latency_us : 0;
    return 0;
  }
  if (computes) us = fmin(us, x->left_us / rate->compute);
  if (pulls && isfinite(rate->pull)) {
    const bool waits = x->piece < TFC_WORKLOAD_PIECES && x->pulled < f->need[x->piece] - tiny;
    const double next = waits ? f->need[x->piece] : w->pulled;
    us = fmin(us, until(next - x->pulled, rate->pull));
  }
  if (pushes && isfinite(rate->push)) us = fmin(us, until(x->made - x->pushed, rate->push));
  if (pulls) x->pulled = isfinite(rate->pull) ? x->pulled + us * rate->pull : w->pulled;
  if (pushes) x->pushed = isfinite(rate->push) ? x->pushed + us * rate->push : x->made;
  if (x->pulled >= w->pulled - tiny) x->pulled = w->pulled;
  if (x->pushed >= x->made - tiny) x->pushed = x->made;
  if (computes && (x->left_us -= us * rate->compute) <= 1e-9 * w->step_us) {
    x->made += w->push[x->piece++];
    x->left_us = piece_us(f, x);
  }
  return us;
}

// Lets a replica proceed for up to `us` plus its `owed_us`. Returns how much of this time is left when the replica's
// step ends; below 0: the step has not ended.
static double go_on(const struct fleet *f, struct replica *x, double us) {
  const struct rates rate = rates_of(f, x);
  us += x->owed_us, x->owed_us = 0;
  while (us >= 0) {
    double took = 0;
    bool joins = false; // the replica begins to use a server or a link
    switch (x->phase) {
    case WAITS:
    case ENDS:
      took = fmin(us, x->wait_us);
      x->wait_us -= took;
      if (x->wait_us > 0) break;
      joins = x->phase == WAITS && x->ask_us > 0;
      x->phase = x->phase == WAITS ? ASKS : DONE;
      break;
    case ASKS:
      took = fmin(us, x->ask_us / rate.ask);
      x->ask_us -= took * rate.ask;
      if (x->ask_us > 1e-9 * f->r->hardware->serve_us) break;
      x->phase = WORKS;
      joins = is_pulling(f, x);
      break;
    case WORKS:
      joins = !is_pushing(x);
      took = work(f, x, &rate, us);
      joins = joins && is_pushing(x);
      break;
    case DONE: return us;
    }
    us -= took;
    if (joins) {
      x->owed_us = fmax(us, 0);
      return -1;
    }
    if (us <= 0 && x->phase != DONE) return -1;
  }
  return -1;
}

struct arrival {
  double us;
  uint32_t replica;
};
static int by_time(const void *a, const void *b) {
  const struct arrival *x = a, *y = b;
  if (x->us != y->us) return x->us < y->us ? -1 : 1;
  return (x->replica > y->replica) - (x->replica < y->replica);
}

// Runs one tick of synchronous replicas. `arrived`: number of gradients of this step that have arrived. *step_end_us:
// when the step ended; below 0: the step has not ended.
static void tick_sync(struct fleet *f, double us, uint64_t step, uint32_t *arrived, struct arrival *list,
                      double *step_end_us, uint64_t *dropped) {
  uint32_t n = 0;
  *step_end_us = -1;
  for (uint32_t i = 0; i < f->count; i++) {
    struct replica *x = &f->replica[i];
    double left = x->phase == DONE ? -1 : go_on(f, x, us);
    // the replica's gradient is too late and is dropped, and the replica begins the current step
    while (left >= 0 && x->step != step) {
      ++*dropped;
      begin_step(f, x, f->now_us + us - left, step);
      left = go_on(f, x, left);
    }
    if (left >= 0) list[n++] = (struct arrival){f->now_us + us - left, i};
  }
  qsort(list, n, sizeof *list, by_time);
  if (*arrived + n < f->r->count) {
    *arrived += n;
    return;
  }
  *step_end_us = list[f->r->count - *arrived - 1].us;
  *dropped += n - (f->r->count - *arrived); // gradients beyond the number needed, which arrived in the same tick
}

static tfc_status serve_sync(struct fleet *f, uint32_t steps, double tick_us, struct times *times,
                             struct tfc_replicas_result *out) {
  struct arrival *list = calloc(f->count + 1u, sizeof *list);
  uint64_t step = 0, dropped = 0;
  uint32_t arrived = 0;
  double began = 0;
  if (!list) return tfc_status_no_memory("replicas");
  for (uint32_t i = 0; i < f->count; i++) begin_step(f, &f->replica[i], 0, step);
  for (uint32_t t = 0; t < MOST_TICKS && step < steps; t++) {
    double end;
    const double us = count_users(f, tick_us);
    tick_sync(f, us, step, &arrived, list, &end, &dropped);
    if (end < 0) {
      f->now_us += us;
      continue;
    }
    keep(times, end - began);
    // All replicas that have ended begin the next step at once, in the rest of the tick.
    const double left = f->now_us + us - end;
    began = end, step++, arrived = 0;
    for (uint32_t i = 0; i < f->count; i++) {
      struct replica *x = &f->replica[i];
      if (x->phase != DONE) continue;
      begin_step(f, x, end, step);
      if (go_on(f, x, left) >= 0) arrived++; // a step shorter than a tick
    }
    f->now_us += us;
  }
  out->batches_per_second = 1e6 * f->r->count * (double)step / began;
  out->dropped = step ? (double)dropped / (double)step : 0;
  free(list);
  return NULL;
}

static void serve_async(struct fleet *f, uint32_t steps, double tick_us, struct times *times,
                        struct tfc_replicas_result *out) {
  const uint64_t warm = (uint64_t)f->count * (steps / 5), all = (uint64_t)f->count * steps;
  uint64_t done = 0, before = 0;
  double from = -1;
  for (uint32_t i = 0; i < f->count; i++) {
    begin_step(f, &f->replica[i], 0, 0);
    // Asynchronous replicas do not begin together: each starts with a random delay of up to a step.
    f->replica[i].wait_us += tfc_random_unit(&f->random) * f->r->workload->step_us;
  }
  for (uint32_t t = 0; t < MOST_TICKS && done < all; t++) {
    const double us = count_users(f, tick_us);
    for (uint32_t i = 0; i < f->count; i++) {
      struct replica *x = &f->replica[i];
      for (double left = go_on(f, x, us); left >= 0; left = go_on(f, x, left)) {
        const double now = f->now_us + us - left;
        if (from >= 0) keep(times, now - x->began_us);
        begin_step(f, x, now, 0);
        done++;
      }
    }
    f->now_us += us;
    if (from < 0 && done >= warm) from = f->now_us, before = done;
  }
  out->batches_per_second = from >= 0 && f->now_us > from ? 1e6 * (double)(done - before) / (f->now_us - from) : 0;
}

static void server_links(const struct fleet *f, struct tfc_replicas_result *out) {
  const struct tfc_hardware *h = f->r->hardware;
  const struct tfc_workload *w = f->r->workload;
  const uint32_t beside = f->r->count < h->per_host ? f->r->count : h->per_host;
  const double most = fmax(w->pulled, w->pushed), served = f->count * f->imbalance / f->servers;
  consider_link(out, "a device's link to its host", most, h->to_server.bandwidth);
  if (f->apart) {
    consider_link(out, "a server's network", served * most, h->network.bandwidth);
    consider_link(out, "a host's network", beside * most, h->network.bandwidth);
  } else if (f->servers > 1) {
    // A host's network card carries what the replicas on the host exchange with servers on other hosts, and what the
    // server on the host exchanges with replicas on other hosts.
    const double remote = (f->servers - 1.0) / f->servers;
    const double pulls = remote * (beside * w->pulled + served * w->pushed);
    const double pushes = remote * (beside * w->pushed + served * w->pulled);
    consider_link(out, "a host's network", fmax(pulls, pushes), h->network.bandwidth);
  }
}

static tfc_status serve(const struct tfc_replicas *r, uint32_t steps, struct times *times,
                        struct tfc_replicas_result *out) {
  tfc_status s = NULL;
  const struct tfc_workload *w = r->workload;
  const struct tfc_hardware *h = r->hardware;
  struct fleet f = {.r = r, .count = r->count + r->backup, .servers = out->servers, .apart = r->servers > 0};
  TFC_TRY(s, tfc_hardware_hosts(h, f.count, &f.hosts));
  f.shares = shares_cores(r, f.hosts);
  f.imbalance = tfc_workload_imbalance(w, f.servers);
  const struct tfc_hardware_link *link = f.apart || f.servers > 1 ? &h->network : &h->to_server;
  // A message wakes its receiver, and so does its answer. A server that shares the replicas' cores is woken for one
  // replica after another.
  f.wake_us = waking_us(r, link, f.apart ? 0 : 1);
  f.latency_us = 2 * link->latency_us + (f.shares ? 1 : 2) * f.wake_us;
  tfc_random_init(&f.random, r->seed);
  f.replica = calloc(f.count + 1u, sizeof *f.replica);
  f.pulls = calloc(f.hosts + 1u, sizeof *f.pulls);
  f.pushes = calloc(f.hosts + 1u, sizeof *f.pushes);
  if (!f.replica || !f.pulls || !f.pushes) {
    s = tfc_status_no_memory("replicas");
    goto out;
  }
  for (uint32_t i = 0; i < f.count; i++) f.replica[i].host = i / h->per_host;
  double need = 0;
  for (uint32_t k = 0; k < TFC_WORKLOAD_PIECES; k++) f.need[k] = need += w->pull[k];
  server_links(&f, out);
  // Estimates the step's time, to divide it into ticks.
  const double about = w->step_us + 4 * f.latency_us + f.count * h->serve_us + out->link_share;
  const double tick_us = fmax(about, 1e-3) / TICKS;
  if (r->mode == TFC_REPLICAS_SYNC)
    TFC_TRY(s, serve_sync(&f, steps, tick_us, times, out));
  else
    serve_async(&f, steps, tick_us, times, out);
  out->link_share *= out->batches_per_second / r->count * 1e-6;
out:
  free(f.replica), free(f.pulls), free(f.pushes);
  return s;
}

tfc_status tfc_replicas_simulate(const struct tfc_replicas *replicas, struct tfc_replicas_result *out) {
  tfc_status s = NULL;
  struct tfc_workload slowed = *replicas->workload;
  struct tfc_hardware hardware = *replicas->hardware;
  struct tfc_replicas changed = *replicas;
  const struct tfc_replicas *r = &changed;
  const uint32_t workers = replicas->count + replicas->backup;
  uint32_t hosts;
  TFC_RETURN_IF_ERROR(tfc_hardware_hosts(&hardware, workers, &hosts));
  // With a server that uses the host's cores, the number of busy devices changes within a step.
  const double factor = shares_cores(replicas, hosts)
                            ? 1
                            : slowdown_of(&hardware, workers < hardware.per_host ? workers : hardware.per_host);
  slowed.step_us *= factor;
  if (hardware.beside.occupies) hardware.beside.bandwidth /= factor; // a busy device copies more slowly, too
  if (hardware.to_server.occupies) hardware.to_server.bandwidth /= factor;
  changed.workload = &slowed, changed.hardware = &hardware;
  struct tfc_replicas_result result = {0};
  struct times times = {0};
  uint32_t steps = r->steps;
  if (!steps) { // with many replicas, fewer steps give the same number of samples
    steps = 20000 / r->count;
    steps = steps < LEAST_STEPS ? LEAST_STEPS : steps > MOST_STEPS ? MOST_STEPS : steps;
  }
  TFC_TRY(s, tfc_hardware_hosts(r->hardware, r->count, &result.hosts));
  result.servers = r->mode == TFC_REPLICAS_ALL ? 0 : r->servers ? r->servers : result.hosts;
  times.most = r->mode == TFC_REPLICAS_ASYNC ? steps * r->count : steps;
  if (!(times.us = malloc((times.most + 1u) * sizeof *times.us))) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (r->mode == TFC_REPLICAS_ALL)
    reduce_all(r, steps, &times, &result);
  else
    TFC_TRY(s, serve(r, steps, &times, &result));
  tell(&times, &result);
  if (!result.link) result.link = "none";
  result.efficiency = 1e-6 * result.batches_per_second * replicas->workload->step_us / r->count;
  *out = result;
out:
  free(times.us);
  return s;
}
