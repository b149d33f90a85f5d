// Calls. The names of a call are looked up once. The call keeps a plan for each of the last few sets of feed shapes;
// the call's lock guards these plans. The session makes sure that steps do not disturb each other.
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libtfc/array.h"
#include "libtfc/model.h"
#include "libtfc/profile.h"
#include "runtime/base/str.h"

enum { MOST_PLANS = 8 };

struct planned { // a plan for feeds of these shapes
  struct tfc_plan *plan;
  struct tfc_shape *shapes; // [feed_count]
  uint32_t users;           // number of threads that are running it
  uint64_t last_use;
};

struct tfc_call {
  struct tfc_model *model;
  struct tfc_output *feeds, *fetches;
  uint32_t *targets;
  char **feed_names, **fetch_names;
  uint32_t feed_count, fetch_count, target_count;
  pthread_mutex_t lock;
  struct planned plans[MOST_PLANS];
  uint32_t plan_count;
  uint64_t uses;
  _Atomic double last_us;
};

// --- Preparing -----------------------------------------------------------------------------------------------------
static tfc_status find_outputs(const struct tfc_graph *g, const char *what, const char *const *names, uint32_t count,
                               char ***out_names, struct tfc_output **out) {
  if (count && !names)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "there are %u names of %ss, and no array of them", count, what);
  char **copies = calloc(count + 1u, sizeof *copies);
  struct tfc_output *outputs = calloc(count + 1u, sizeof *outputs);
  *out_names = copies, *out = outputs;
  if (!copies || !outputs) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < count; i++) {
    if (!names[i]) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s %u has no name", what, i);
    tfc_status s = tfc_graph_parse_output(g, tfc_str_from(names[i]), &outputs[i]);
    if (s) return tfc_status_annotate(s, "%s '%s'", what, names[i]);
    if (!(copies[i] = tfc_str_dup(tfc_str_from(names[i])))) return tfc_status_no_memory(NULL);
  }
  return NULL;
}

static tfc_status find_targets(const struct tfc_graph *g, const tfc_call_spec *spec, struct tfc_call *call) {
  if (spec->target_count && !spec->targets)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "there are %d names of targets, and no array of them",
                           (int)spec->target_count);
  call->targets = calloc((size_t)spec->target_count + 1, sizeof *call->targets);
  if (!call->targets) return tfc_status_no_memory(NULL);
  for (int32_t i = 0; i < spec->target_count; i++) {
    const char *name = spec->targets[i] ? spec->targets[i] : "";
    call->targets[i] = tfc_graph_find(g, tfc_str_from(name));
    if (call->targets[i] == TFC_NONE)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "target '%s': the graph has no such operation", name);
  }
  return NULL;
}

tfc_error *tfc_call_prepare(tfc_model *model, const tfc_call_spec *spec, tfc_call **out) {
  tfc_status s = NULL;
  if (!model || !spec || !out) return tfc_error_missing("tfc_call_prepare", "a model, a spec, or a place for the call");
  const struct tfc_graph *g = model->graph;
  struct tfc_call *call = calloc(1, sizeof *call);
  if (!call) return tfc_error_of(tfc_status_no_memory(NULL));
  pthread_mutex_init(&call->lock, NULL);
  call->model = model;
  atomic_init(&call->last_us, (double)NAN);
  if (spec->feed_count < 0 || spec->fetch_count < 0 || spec->target_count < 0)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "a call's counts are not negative");
  if (!spec->fetch_count && !spec->target_count)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "a call needs a fetch or a target: there is nothing to run");
  call->feed_count = (uint32_t)spec->feed_count;
  call->fetch_count = (uint32_t)spec->fetch_count;
  call->target_count = (uint32_t)spec->target_count;
  TFC_TRY(s, find_outputs(g, "feed", spec->feeds, call->feed_count, &call->feed_names, &call->feeds));
  TFC_TRY(s, find_outputs(g, "fetch", spec->fetches, call->fetch_count, &call->fetch_names, &call->fetches));
  TFC_TRY(s, find_targets(g, spec, call));
  *out = call, call = NULL;
out:
  tfc_call_free(call);
  return tfc_error_of(s);
}

static void free_plan(struct planned *p) {
  tfc_plan_free(p->plan);
  free(p->shapes);
}

void tfc_call_free(tfc_call *call) {
  if (!call) return;
  for (uint32_t i = 0; i < call->plan_count; i++) free_plan(&call->plans[i]);
  for (uint32_t i = 0; call->feed_names && i < call->feed_count; i++) free(call->feed_names[i]);
  for (uint32_t i = 0; call->fetch_names && i < call->fetch_count; i++) free(call->fetch_names[i]);
  free(call->feed_names), free(call->fetch_names), free(call->feeds), free(call->fetches), free(call->targets);
  pthread_mutex_destroy(&call->lock);
  free(call);
}

// --- Plans by shape ------------------------------------------------------------------------------------------------
static bool same_shapes(const struct tfc_call *call, const struct planned *p, const struct tfc_tensor *feeds) {
  for (uint32_t i = 0; i < call->feed_count; i++)
    if (!tfc_shape_equal(&p->shapes[i], &feeds[i].shape)) return false;
  return true;
}

static tfc_status make_plan(const struct tfc_call *call, const struct tfc_tensor *feeds, struct planned *out) {
  const struct tfc_model *m = call->model;
  struct planned p = {.shapes = calloc(call->feed_count + 1u, sizeof *p.shapes)};
  if (!p.shapes) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < call->feed_count; i++) p.shapes[i] = feeds[i].shape;
  struct tfc_run_spec spec = {.feeds = call->feeds,
                              .feed_count = call->feed_count,
                              .feed_shapes = p.shapes,
                              .fetches = call->fetches,
                              .fetch_count = call->fetch_count,
                              .targets = call->targets,
                              .target_count = call->target_count,
                              .placement = m->placement,
                              .order = m->order,
                              .adapt = TFC_ADAPT_WHERE_FASTER};
  tfc_status s = tfc_plan_create(m->session, &spec, &p.plan);
  if (s)
    free_plan(&p);
  else
    *out = p;
  return s;
}

// Makes room for one more plan: of the plans that are not running, drops the one that was used longest ago. The caller
// must hold the lock.
static bool make_room(struct tfc_call *call) {
  if (call->plan_count < MOST_PLANS) return true;
  uint32_t oldest = MOST_PLANS;
  for (uint32_t i = 0; i < call->plan_count; i++)
    if (!call->plans[i].users && (oldest == MOST_PLANS || call->plans[i].last_use < call->plans[oldest].last_use))
      oldest = i;
  if (oldest == MOST_PLANS) return false;
  free_plan(&call->plans[oldest]);
  call->plans[oldest] = call->plans[--call->plan_count];
  return true;
}

// Finds or makes a plan for these feeds, which is in use until it is given back. If every plan that is kept is in use,
// the new plan is not kept: it belongs to this call alone (*out_own) and is freed after it.
static tfc_status take_plan(struct tfc_call *call, const struct tfc_tensor *feeds, struct tfc_plan **out,
                            bool *out_own) {
  tfc_status s = NULL;
  pthread_mutex_lock(&call->lock);
  struct planned *p = NULL, made = {0};
  for (uint32_t i = 0; i < call->plan_count && !p; i++)
    if (same_shapes(call, &call->plans[i], feeds)) p = &call->plans[i];
  *out_own = false;
  if (!p) {
    TFC_TRY(s, make_plan(call, feeds, &made));
    if (make_room(call)) {
      p = &call->plans[call->plan_count++];
      *p = made;
    } else {
      *out = made.plan, *out_own = true;
      free(made.shapes);
      goto out;
    }
  }
  p->users++;
  p->last_use = ++call->uses;
  *out = p->plan;
out:
  pthread_mutex_unlock(&call->lock);
  return s;
}

static void give_back(struct tfc_call *call, struct tfc_plan *plan, bool own) {
  if (own) {
    tfc_plan_free(plan);
    return;
  }
  pthread_mutex_lock(&call->lock);
  for (uint32_t i = 0; i < call->plan_count; i++)
    if (call->plans[i].plan == plan) call->plans[i].users--;
  pthread_mutex_unlock(&call->lock);
}

// --- Running -------------------------------------------------------------------------------------------------------
static tfc_status deliver(const struct tfc_call *call, struct tfc_tensor *values, tfc_array *fetches) {
  for (uint32_t i = 0; i < call->fetch_count; i++)
    TFC_RETURN_IF_ERROR(tfc_array_check_room(&values[i], call->fetch_names[i], &fetches[i]));
  for (uint32_t i = 0; i < call->fetch_count; i++)
    TFC_RETURN_IF_ERROR(tfc_array_from_tensor(&values[i], call->fetch_names[i], &fetches[i]));
  return NULL;
}

static tfc_status run(struct tfc_call *call, const tfc_array *feeds, tfc_array *fetches, tfc_profile **out_profile) {
  tfc_status s = NULL;
  struct tfc_plan *plan = NULL;
  bool own = false;
  struct tfc_tensor few[16] = {{0}};
  uint32_t count = call->feed_count + call->fetch_count;
  struct tfc_tensor *values = count <= 16 ? few : calloc(count, sizeof *values), *results;
  if (!values) return tfc_status_no_memory(NULL);
  results = values + call->feed_count;
  if ((call->feed_count && !feeds) || (call->fetch_count && !fetches))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the call has %u feeds and %u fetches, and no arrays for them were given",
             call->feed_count, call->fetch_count);
  for (uint32_t i = 0; i < call->feed_count; i++)
    TFC_TRY(s, tfc_array_to_tensor(&feeds[i], call->feed_names[i], &values[i]));
  TFC_TRY(s, take_plan(call, values, &plan, &own));
  if (out_profile)
    TFC_TRY(s, tfc_profile_run(call->model, plan, values, results, out_profile));
  else
    TFC_TRY(s, tfc_plan_run(plan, values, results, NULL));
  atomic_store(&call->last_us, tfc_plan_last_step_us(plan));
  s = deliver(call, results, fetches);
  if (s && out_profile) {
    tfc_profile_free(*out_profile);
    *out_profile = NULL;
  }
out:
  if (plan) give_back(call, plan, own);
  for (uint32_t i = 0; i < count; i++) tfc_tensor_release(&values[i]);
  if (values != few) free(values);
  return s;
}

tfc_error *tfc_call_run(tfc_call *call, const tfc_array *feeds, tfc_array *fetches) {
  if (!call) return tfc_error_missing("tfc_call_run", "a call");
  return tfc_error_of(run(call, feeds, fetches, NULL));
}

tfc_error *tfc_call_profile(tfc_call *call, const tfc_array *feeds, tfc_array *fetches, tfc_profile **out) {
  if (!call || !out) return tfc_error_missing("tfc_call_profile", "a call, or a place for the profile");
  tfc_profile *profile = NULL;
  tfc_status s = run(call, feeds, fetches, &profile);
  if (!s) *out = profile;
  return tfc_error_of(s);
}

double tfc_call_step_us(const tfc_call *call) {
  if (!call) return (double)NAN;
  return atomic_load(&((struct tfc_call *)(uintptr_t)call)->last_us);
}
