// The policy proposes some placements first, then blocks of them, until a block says that more of them are not worth
// their evaluations. In a long search the policy begins anew when it is stuck.
#include "placer/search/rollouts.h"

#include <math.h>

#include "runtime/base/parallel.h"

// Before the rounds a learned policy may propose ROLLOUTS placements, or LONG_SHARE of the evaluations that are left if
// that is more, but at most MOST_ROLLOUTS placements and at most ROLLOUT_SHARE of the evaluations that are left.
#define ROLLOUTS 1000
#define LONG_SHARE 0.3
#define MOST_ROLLOUTS 10000
#define ROLLOUT_SHARE 0.6
#define TRIED 48        // number of its first proposals: with fewer it has hardly learned anything of the problem
#define BLOCK 16        // the other proposals follow in blocks of this size, as long as they may lead to something
#define SHORT_STEP 4    // in a short search the policy learns after each group of this many proposals
#define HEADS_TRIED 32  // after this many proposals each head of the policy has had its turn
#define WORTHWHILE 0.01 // the policy is ahead if its best step is shorter by this share than the best of the heuristics
// A long search goes on with a policy that is behind until this share of the search is over, because the policy's moves
// use what its proposals have taught it.
#define PATIENCE 0.05
#define PATIENT_FROM 10000 // a search is long in this sense if it has at least this many evaluations
#define BEHIND 0.05        // the policy is far behind if its best step is longer by this share
#define PROGRESS 0.005     // it is learning if the last half of its proposals made its best step shorter by this share
#define SHORT_WINDOW 32    // in a short search, this many of its last proposals count instead of the last half
#define STUCK 256          // it begins anew if this many proposals did not make its best step shorter by PROGRESS,
#define STUCK_LEFT 640     // and if it may propose at least this many more

// What the policy has proposed so far.
struct proposals {
  struct tfc_finder *f;
  struct tfc_score best;                             // of its own placements
  struct tfc_score after[MOST_ROLLOUTS / BLOCK + 2]; // `best` after each block; in a long search the first has TRIED
  uint32_t count;                                    // of `after`
  // Since the policy began anew, or since the first proposal if it did not:
  struct tfc_score here; // the best of its placements
  struct tfc_score mark; // `here` when it had last become shorter by PROGRESS
  uint64_t marked;       // number of all proposals at that time
  bool patient;          // less than PATIENCE of the search is over
  bool small;            // the problem is so small that annealing on units needs no starts of a policy
};

// Whether a step is at least this share shorter than another one; with a negative share, at most that much longer.
static bool gains(struct tfc_score before, struct tfc_score after, double share) {
  if (before.value == TFC_TIME_MAX || after.value == TFC_TIME_MAX || before.excess != after.excess)
    return tfc_score_better(after, before);
  return (double)after.value <= (1 - share) * (double)before.value;
}

// Whether more proposals of the policy are worth their evaluations. Yes, if its best step is shorter than that of the
// heuristics (`before`): it becomes still shorter with the logarithm of the number of proposals, and no other method
// finds such starts. No, if it is much longer. In between, and on a small problem, only if the last half of the
// proposals made it shorter; a short search looks back only SHORT_WINDOW proposals, and gives up a policy that is far
// behind as soon as each head had its turn, while a long one is patient.
static bool may_lead(const struct proposals *o, struct tfc_score before) {
  const bool is_short = tfc_finder_is_short(o->f);
  const uint32_t last = o->count - 1, used = is_short ? o->count * BLOCK : TRIED + last * BLOCK;
  const uint32_t half = used / 2 > TRIED ? used / 2 : TRIED, window = is_short ? SHORT_WINDOW : half;
  const uint32_t back = (window + BLOCK - 1) / BLOCK;
  const bool far = !gains(before, o->best, -BEHIND);
  if (used < TRIED) return used < HEADS_TRIED || !far;
  if (o->patient) return true;
  if (gains(before, o->best, WORTHWHILE) && !o->small) return true;
  if (far) return false;
  return last < back || gains(o->after[last - back], o->best, PROGRESS);
}

// The policy calls it for each placement that it proposes: the placement joins the elite.
static tfc_status proposed(void *user, const struct tfc_solution *solution, struct tfc_score score) {
  struct proposals *o = user;
  if (tfc_score_better(score, o->best)) o->best = score;
  if (tfc_score_better(score, o->here)) o->here = score;
  TFC_RETURN_IF_ERROR(tfc_finder_keep(o->f, solution, score, "auto: policy"));
  return tfc_elite_join(&o->f->course.elite, o->f->p, solution, score);
}
// Asks it for placements on another thread, while the calling one watches for the end.
struct asking {
  struct proposals *own;
  struct tfc_budget budget;
  uint64_t step; // number of proposals after which the policy learns from them; 0: the policy itself decides when
  uint64_t used;
  tfc_status status;
};
static void ask(void *user, uint32_t i) {
  struct asking *a = user;
  const struct tfc_finder *f = a->own->f;
  const uint64_t end = a->used + a->budget.evaluations;
  uint64_t before;
  (void)i;
  do {
    struct tfc_budget part = a->budget;
    before = a->used;
    part.evaluations = end - a->used;
    if (a->step && a->step < part.evaluations) part.evaluations = a->step;
    a->status = f->o->settings.guide->propose(f->guidance, &part, TFC_ELITE / 2, proposed, a->own, &a->used);
  } while (!a->status && a->used > before && a->used < end && !tfc_budget_over(&a->budget));
}

// What a policy learns of a problem leads it to placements that are like each other, and its later proposals hardly
// ever leave these. So a policy that makes no more progress begins anew. That costs little in a long search, and the
// best of several attempts is better than one. `used`: number of proposals so far; `left`: how many more there will be.
static void begin_anew_if_stuck(struct proposals *o, uint64_t used, uint64_t left) {
  const struct tfc_guide *guide = o->f->o->settings.guide;
  if (gains(o->mark, o->here, PROGRESS)) {
    o->mark = o->here, o->marked = used;
  } else if (guide->begin_anew && used - o->marked >= STUCK && left >= STUCK_LEFT) {
    guide->begin_anew(o->f->guidance);
    o->here = o->mark = TFC_SCORE_NONE, o->marked = used;
  }
}

// Returns how many placements the policy may propose.
static uint64_t most_of(const struct tfc_finder *f) {
  if (!f->limit) return MOST_ROLLOUTS;
  const double left = (double)(f->limit - tfc_finder_spent(f));
  return (uint64_t)fmin(ROLLOUT_SHARE * left, fmin(MOST_ROLLOUTS, fmax(ROLLOUTS, LONG_SHARE * left)));
}

tfc_status tfc_rollouts_ask(struct tfc_finder *f) {
  if (tfc_finder_is_over(f)) return NULL;
  const uint64_t most = most_of(f);
  if (!most) return NULL;
  const double begin = tfc_now_s();
  const struct tfc_score before = f->course.best;
  struct proposals own = {.f = f, .best = TFC_SCORE_NONE, .here = TFC_SCORE_NONE, .mark = TFC_SCORE_NONE};
  own.small = f->limit && tfc_finder_is_small(f, f->limit - tfc_finder_spent(f));
  struct asking a = {.own = &own, .step = tfc_finder_is_short(f) ? SHORT_STEP : 0};
  a.budget = (struct tfc_budget){.seed = f->o->seed ^ 0x706f6c, .threads = f->threads, .cancel = &f->stop};
  if (f->deadline > 0) {
    a.budget.deadline = begin + 0.1 * (f->deadline - begin);
    a.budget.found = tfc_finder_found, a.budget.found_user = f;
  }
  f->at_work = "policy";
  f->out->learned.before = before.value;
  do {
    const uint64_t next = own.count || tfc_finder_is_short(f) ? BLOCK : TRIED, used = a.used;
    a.budget.evaluations = next < most - used ? next : most - used;
    tfc_parallel_watched(1, 1, ask, &a, tfc_finder_tick, f);
    f->out->evaluations += a.used - used;
    own.after[own.count++] = own.best;
    const double now = tfc_now_s();
    double left = (double)(most - a.used), share = f->limit ? (double)a.used / (double)f->limit : 0;
    if (f->deadline > 0 && now > begin) {
      left = fmin(left, (double)a.used * (a.budget.deadline - now) / (now - begin));
      share = fmax(share, (now - begin) / (f->deadline - begin));
    }
    own.patient = share < PATIENCE && (!f->limit || f->limit >= PATIENT_FROM);
    begin_anew_if_stuck(&own, a.used, (uint64_t)fmax(0, left));
  } while (!a.status && a.used < most && own.count < sizeof own.after / sizeof *own.after &&
           !tfc_budget_over(&a.budget) && may_lead(&own, before));
  f->out->learned.after = f->course.best.value;
  f->o->settings.guide->samples(f->guidance, &f->out->learned.samples);
  return a.status;
}

bool tfc_rollouts_led(const struct tfc_finder *f) {
  return (double)f->out->learned.after <= (1 - WORTHWHILE) * (double)f->out->learned.before;
}

bool tfc_rollouts_gained(const struct tfc_finder *f) {
  return f->out->learned.after < f->out->learned.before;
}
