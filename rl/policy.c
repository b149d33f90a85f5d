#include "rl/policy.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rl/guidance.h"
#include "rl/tuner.h"
#include "runtime/base/file.h"

static const char *const gate_names[] = {
#define TFC_GATE_NAME(name, text) #name,
    TFC_GATES(TFC_GATE_NAME)
#undef TFC_GATE_NAME
};
static const char *const feature_names[] = {
#define TFC_FEATURE_NAME(name, text) #name,
    TFC_FEATURES(TFC_FEATURE_NAME)
#undef TFC_FEATURE_NAME
};

tfc_status tfc_policy_create(uint32_t head_count, struct tfc_policy **out) {
  struct tfc_policy *p = calloc(1, sizeof *p);
  if (p) p->head = calloc(head_count + 1u, sizeof *p->head), p->notes = calloc(1, sizeof *p->notes);
  if (!p || !p->head || !p->notes) {
    if (p) free(p->head), free(p->notes);
    free(p);
    return tfc_status_no_memory("a policy");
  }
  pthread_mutex_init(&p->notes->lock, NULL);
  p->guide = tfc_guidance_guide;
  p->head_count = head_count;
  for (int i = 0; i < TFC_WEIGHTS; i++) p->spread[i] = 1;
  *out = p;
  return NULL;
}

tfc_status tfc_policy_untrained(uint64_t seed, struct tfc_policy **out) {
  struct tfc_random random;
  TFC_RETURN_IF_ERROR(tfc_policy_create(20, out));
  tfc_random_init(&random, seed);
  for (uint32_t h = 0; h < (*out)->head_count; h++)
    for (int i = 0; i < TFC_WEIGHTS; i++) (*out)->head[h][i] = (float)tfc_random_normal(&random);
  return NULL;
}

void tfc_policy_free(struct tfc_policy *p) {
  if (!p) return;
  for (uint32_t i = 0; i < p->seen_count; i++) free(p->seen[i].name), free(p->seen[i].sha256);
  pthread_mutex_destroy(&p->notes->lock);
  free(p->notes->head), free(p->notes);
  free(p->seen), free(p->without), free(p->head);
  free(p);
}

tfc_status tfc_policy_add_seen(struct tfc_policy *p, const char *name, const char *sha256) {
  struct tfc_policy_seen *seen = realloc(p->seen, (p->seen_count + 1u) * sizeof *seen);
  if (seen) p->seen = seen;
  if (!seen) return tfc_status_no_memory("a policy");
  seen[p->seen_count] = (struct tfc_policy_seen){strdup(name), strdup(sha256)};
  p->seen_count++;
  if (!seen[p->seen_count - 1].name || !seen[p->seen_count - 1].sha256) return tfc_status_no_memory("a policy");
  return NULL;
}

tfc_status tfc_policy_learn(const struct tfc_policy *p, const struct tfc_tuner *t) {
  enum { BEST = 4 };
  struct tfc_policy_notes *notes = p->notes;
  tfc_status s = NULL;
  const uint32_t count = t->elite_count < BEST ? t->elite_count : BEST;
  pthread_mutex_lock(&notes->lock);
  float(*more)[TFC_WEIGHTS] = realloc(notes->head, (notes->head_count + count + 1u) * sizeof *more);
  if (more) {
    notes->head = more;
    for (uint32_t i = count; i-- > 0;) memcpy(more[notes->head_count++], t->elite[i].weights, sizeof *more);
  } else {
    s = tfc_status_no_memory("a policy");
  }
  pthread_mutex_unlock(&notes->lock);
  return s;
}

void tfc_policy_archive_notes(const struct tfc_policy *p, struct tfc_archive *a) {
  enum { MOST = 1 << 20 };
  struct tfc_policy_notes *notes = p->notes;
  pthread_mutex_lock(&notes->lock);
  uint32_t count = notes->head_count;
  if (tfc_archive_count(a, &count, MOST) && !a->out) {
    float(*head)[TFC_WEIGHTS] = calloc(count + 1u, sizeof *head);
    a->broken |= !head;
    if (head) free(notes->head), notes->head = head, notes->head_count = count;
  }
  if (!a->broken) tfc_archive_bytes(a, notes->head, count * sizeof *notes->head);
  pthread_mutex_unlock(&notes->lock);
}

tfc_status tfc_policy_learned(const struct tfc_policy *p, struct tfc_policy **out) {
  enum { NEW = 16 };
  tfc_status s = NULL;
  struct tfc_policy *q = NULL;
  pthread_mutex_lock(&p->notes->lock);
  const uint32_t fresh = p->notes->head_count < NEW ? p->notes->head_count : NEW;
  const uint32_t old = p->head_count + fresh > TFC_MAX_HEADS ? TFC_MAX_HEADS - fresh : p->head_count;
  TFC_TRY(s, tfc_policy_create(old + fresh, &q));
  for (uint32_t i = 0; i < fresh; i++)
    memcpy(q->head[i], p->notes->head[p->notes->head_count - 1 - i], sizeof *q->head);
  memcpy(q->head + fresh, p->head, old * sizeof *q->head);
  memcpy(q->spread, p->spread, sizeof q->spread);
  for (uint32_t i = 0; i < p->seen_count; i++) TFC_TRY(s, tfc_policy_add_seen(q, p->seen[i].name, p->seen[i].sha256));
  if (p->without && !(q->without = strdup(p->without))) TFC_TRY(s, tfc_status_no_memory("a policy"));
  *out = q, q = NULL;
out:
  pthread_mutex_unlock(&p->notes->lock);
  tfc_policy_free(q);
  return s;
}

static tfc_status check_names(const json_t *list, const char *what, const char *const *names, size_t count,
                              const char *path) {
  if (!json_is_array(list) || json_array_size(list) != count)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "%s: this tfc has %zu %s, the policy has %zu: train one with scripts/train_policy", path,
                           count, what, json_is_array(list) ? json_array_size(list) : 0);
  for (size_t i = 0; i < count; i++) {
    const char *name = json_string_value(json_array_get(list, i));
    if (!name || strcmp(name, names[i]) != 0)
      return tfc_status_make(
          TFC_INVALID_ARGUMENT,
          "%s: %s[%zu] is '%s' and not '%s', as this tfc has it: train one with scripts/train_policy", path, what, i,
          name ? name : "no text", names[i]);
  }
  return NULL;
}

static tfc_status read_weights(const json_t *list, const char *what, size_t index, const char *path, bool positive,
                               float *out) {
  if (!json_is_array(list) || json_array_size(list) != TFC_WEIGHTS)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: %s %zu has not %d weights", path, what, index, TFC_WEIGHTS);
  for (size_t i = 0; i < TFC_WEIGHTS; i++) {
    const json_t *x = json_array_get(list, i);
    const double value = json_number_value(x);
    if (!json_is_number(x) || !(fabs(value) <= 1e6) || (positive && value < 0))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: %s %zu: weight %zu is not a number %s", path, what, index, i,
                             positive ? "from 0 to a million" : "of at most a million");
    out[i] = (float)value;
  }
  return NULL;
}

static tfc_status read_seen(struct tfc_policy *p, const json_t *list, const char *path) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *x = json_array_get(list, i);
    const char *name = json_string_value(json_object_get(x, "graph")),
               *hash = json_string_value(json_object_get(x, "sha256"));
    if (!name || !hash)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: seen[%zu] needs a graph and its sha256", path, i);
    TFC_RETURN_IF_ERROR(tfc_policy_add_seen(p, name, hash));
  }
  return NULL;
}

tfc_status tfc_policy_parse(tfc_str text, const char *path, struct tfc_policy **out) {
  tfc_status s = NULL;
  struct tfc_policy *p = NULL;
  json_error_t error;
  json_t *root = json_loadb(text.data ? text.data : "", text.size, JSON_REJECT_DUPLICATES, &error);
  if (!root) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s:%d: not a policy: %s", path, error.line, error.text);
  const char *format = json_string_value(json_object_get(root, "format"));
  if (!format || strcmp(format, "tfc-policy") != 0)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: not a policy: its \"format\" is not \"tfc-policy\"", path);
  if (json_integer_value(json_object_get(root, "version")) != 1)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: a policy of another version; this tfc reads version 1", path);
  TFC_TRY(s, check_names(json_object_get(root, "gates"), "gates", gate_names, TFC_GATE_COUNT, path));
  TFC_TRY(s, check_names(json_object_get(root, "features"), "features", feature_names, TFC_FEATURE_COUNT, path));
  const json_t *heads = json_object_get(root, "heads");
  const size_t count = json_array_size(heads);
  if (count < 1 || count > TFC_MAX_HEADS)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: \"heads\" must be 1 to %u lists of weights", path, TFC_MAX_HEADS);
  TFC_TRY(s, tfc_policy_create((uint32_t)count, &p));
  for (size_t h = 0; h < count; h++)
    TFC_TRY(s, read_weights(json_array_get(heads, h), "head", h, path, false, p->head[h]));
  TFC_TRY(s, read_weights(json_object_get(root, "spread"), "spread", 0, path, true, p->spread));
  TFC_TRY(s, read_seen(p, json_object_get(root, "seen"), path));
  const char *without = json_string_value(json_object_get(root, "without"));
  if (without && !(p->without = strdup(without))) TFC_TRY(s, tfc_status_no_memory("a policy"));
  *out = p, p = NULL;
out:
  json_decref(root);
  tfc_policy_free(p);
  return s;
}

tfc_status tfc_policy_read(const char *path, struct tfc_policy **out) {
  struct tfc_file file = {0};
  TFC_RETURN_IF_ERROR(tfc_file_map_document(path, &file));
  tfc_status s = tfc_policy_parse((tfc_str){(const char *)file.data, file.size}, path, out);
  tfc_file_unmap(&file);
  return s;
}

static void write_names(struct tfc_text *t, const char *what, const char *const *names, size_t count) {
  tfc_text_printf(t, "  \"%s\": [", what);
  for (size_t i = 0; i < count; i++) tfc_text_printf(t, "%s\"%s\"", i ? ", " : "", names[i]);
  tfc_text_printf(t, "],\n");
}
static void write_weights(struct tfc_text *t, const float *weights) {
  tfc_text_printf(t, "[");
  for (int i = 0; i < TFC_WEIGHTS; i++) tfc_text_printf(t, "%s%.9g", i ? "," : "", (double)weights[i]);
  tfc_text_printf(t, "]");
}

tfc_status tfc_policy_format(const struct tfc_policy *p, struct tfc_text *out) {
  struct tfc_text t = {0};
  tfc_text_printf(&t, "{\n  \"format\": \"tfc-policy\",\n  \"version\": 1,\n");
  if (p->without) tfc_text_printf(&t, "  \"without\": \"%s\",\n", p->without);
  tfc_text_printf(&t, "  \"seen\": [");
  for (uint32_t i = 0; i < p->seen_count; i++)
    tfc_text_printf(&t, "%s\n    {\"graph\": \"%s\", \"sha256\": \"%s\"}", i ? "," : "", p->seen[i].name,
                    p->seen[i].sha256);
  tfc_text_printf(&t, "%s],\n", p->seen_count ? "\n  " : "");
  write_names(&t, "gates", gate_names, TFC_GATE_COUNT);
  write_names(&t, "features", feature_names, TFC_FEATURE_COUNT);
  tfc_text_printf(&t, "  \"spread\": ");
  write_weights(&t, p->spread);
  tfc_text_printf(&t, ",\n  \"heads\": [");
  for (uint32_t h = 0; h < p->head_count; h++) {
    tfc_text_printf(&t, "%s\n    ", h ? "," : "");
    write_weights(&t, p->head[h]);
  }
  tfc_text_printf(&t, "\n  ]\n}\n");
  if (t.failed) {
    tfc_text_deinit(&t);
    return tfc_status_no_memory("a policy");
  }
  *out = t;
  return NULL;
}

tfc_status tfc_policy_write(const struct tfc_policy *p, const char *path) {
  struct tfc_text t = {0};
  TFC_RETURN_IF_ERROR(tfc_policy_format(p, &t));
  tfc_status s = tfc_file_write(path, (tfc_str){t.data, t.size});
  tfc_text_deinit(&t);
  return s;
}
