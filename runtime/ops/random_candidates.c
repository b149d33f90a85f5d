// Candidate samplers choose the classes that a sampled softmax or noise-contrastive estimation uses, and compute how
// often each class is expected. The distributions, and how numbers are made from the stream, are TensorFlow's.
//
// true_classes [batch, num_true] -> sampled [n], expected counts [batch, num_true] and [n]
#include <float.h>
#include <pthread.h>
#include <stdlib.h>
#include <tgmath.h>

#include "runtime/base/file.h"
#include "runtime/base/line.h"
#include "runtime/base/map.h"
#include "runtime/base/no_memory.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"
#include "runtime/ops/saved.h"

enum { WORDS_PER_SAMPLE = 2048, MOST_TRIES_PER_SAMPLE = 1 << 20 };

enum sampler_kind { UNIFORM, LOG_UNIFORM, LEARNED, FIXED, EVERY };
struct sampler {
  enum sampler_kind kind;
  int64_t num_true, count, range;
  bool unique;
  // for FIXED, the alias method (Walker 1977): gives class i with probability `keep[i]`, otherwise class `other[i]`
  float *weights, *keep;
  int32_t *other;
  double total;
  int64_t known; // how many weights are known
  void *random;  // the state that tfc_random_prepare made
};

static uint64_t word64(struct tfc_philox_words *w) {
  uint64_t low = tfc_philox_word(w);
  return low | (uint64_t)tfc_philox_word(w) << 32;
}
static uint64_t below64(struct tfc_philox_words *w, uint64_t n) {
  if ((n & (n - 1)) == 0) return word64(w) & (n - 1);
  uint64_t rest = UINT64_MAX % n + 1, v;
  do v = word64(w);
  while (v < rest);
  return v % n;
}

// --- Classes that a learned distribution has counted ---------------------------------------------------------------
struct learned {
  struct tfc_object object;
  pthread_mutex_t lock;
  int64_t range;           // number of classes
  int32_t total, *weights; // of each class: 1 plus how often it was a true class
};
static void learned_destroy(struct tfc_object *o) {
  struct learned *l = (struct learned *)o;
  pthread_mutex_destroy(&l->lock);
  free(l->weights);
  free(l);
}
static tfc_status learned_save(struct tfc_object *self, struct tfc_text *out) {
  struct learned *l = (struct learned *)self;
  pthread_mutex_lock(&l->lock);
  tfc_saved_add_number(out, l->total);
  tfc_saved_add_bytes(out, (tfc_str){(const char *)l->weights, (size_t)l->range * sizeof *l->weights});
  pthread_mutex_unlock(&l->lock);
  return NULL;
}
static tfc_status learned_load(struct tfc_object *self, tfc_str words) {
  struct learned *l = (struct learned *)self;
  struct tfc_saved in = {.words = words};
  size_t size;
  const int64_t total = tfc_saved_number(&in, 0, INT32_MAX);
  char *weights = tfc_saved_bytes(&in, &size);
  int64_t sum = 0;
  if (!in.failure && size != (size_t)l->range * sizeof *l->weights)
    in.failure = tfc_status_make(TFC_INVALID_ARGUMENT, "it had weights of %zu bytes, and has %lld classes", size,
                                 (long long)l->range);
  for (int64_t i = 0; i < l->range && !in.failure; i++) {
    const int32_t weight = ((const int32_t *)(void *)weights)[i];
    sum += weight;
    if (weight < 1 || sum > total) in.failure = tfc_status_make(TFC_INVALID_ARGUMENT, "its weights make no sense");
  }
  if (!in.failure && sum != total) in.failure = tfc_status_make(TFC_INVALID_ARGUMENT, "its weights make no sense");
  tfc_status s = tfc_saved_end(&in);
  if (!s) {
    pthread_mutex_lock(&l->lock);
    memcpy(l->weights, weights, size);
    l->total = (int32_t)total;
    pthread_mutex_unlock(&l->lock);
  }
  free(weights);
  return s;
}
static const struct tfc_object_type learned_type = {
    .name = "learned unigram distribution", .destroy = learned_destroy, .save = learned_save, .load = learned_load};
static tfc_status learned_create(void *arg, struct tfc_object **out) {
  const struct sampler *s = arg;
  struct learned *l = calloc(1, sizeof *l);
  if (l) l->weights = malloc((size_t)s->range * sizeof *l->weights);
  if (!l || !l->weights) {
    free(l);
    return tfc_status_no_memory_for("the weights of %lld classes", (long long)s->range);
  }
  l->object = (struct tfc_object){.type = &learned_type, .references = 1};
  pthread_mutex_init(&l->lock, NULL);
  for (int64_t i = 0; i < s->range; i++) l->weights[i] = 1;
  l->range = s->range;
  l->total = (int32_t)s->range;
  *out = &l->object;
  return NULL;
}

// --- One sample and its probability --------------------------------------------------------------------------------
static int64_t sample(const struct sampler *s, const struct learned *l, struct tfc_philox_words *w) {
  switch (s->kind) {
  case UNIFORM: return (int64_t)below64(w, (uint64_t)s->range);
  case LOG_UNIFORM: {
    uint32_t x0 = tfc_philox_word(w), x1 = tfc_philox_word(w);
    return ((int64_t)exp(tfc_bits_to_double(x0, x1) * log1p((double)s->range)) - 1) % s->range;
  }
  case LEARNED: {
    int64_t at = tfc_philox_below(w, (uint32_t)l->total), i = 0;
    while (at >= l->weights[i]) at -= l->weights[i++];
    return i;
  }
  default: {
    float keep = tfc_bits_to_float(tfc_philox_word(w));
    uint32_t i = tfc_philox_below(w, (uint32_t)s->known);
    return keep < s->keep[i] ? (int64_t)i : s->other[i];
  }
  }
}
static float probability(const struct sampler *s, const struct learned *l, int64_t value) {
  switch (s->kind) {
  case UNIFORM: return (float)(1.0 / (double)s->range);
  case LOG_UNIFORM: return (float)(log(((double)value + 2.0) / ((double)value + 1.0)) / log1p((double)s->range));
  case LEARNED: return (float)l->weights[value] / (float)l->total;
  default: return value < 0 || value >= s->known ? 0 : (float)(s->weights[value] / s->total);
  }
}
static float expected(float p, int64_t count, int64_t tries) {
  if (tries == count) return p * (float)count;
  return -expm1f((float)tries * log1pf(-p)); // equals 1 - (1 - p)^tries
}

static tfc_status draw(const struct sampler *s, struct learned *l, struct tfc_philox_words *words,
                       const struct tfc_tensor *truth, int64_t *sampled, float *true_count, float *sampled_count) {
  int64_t tries = s->count, n = tfc_tensor_elements(truth);
  const int64_t *classes = truth->data;
  if (s->kind == EVERY) {
    for (int64_t i = 0; i < s->count; i++) sampled[i] = i, sampled_count[i] = 1;
    for (int64_t i = 0; i < n; i++) true_count[i] = 1;
    return NULL;
  }
  if (s->unique) {
    struct tfc_intmap seen = {0};
    int64_t picked = 0,
            most = s->count < INT32_MAX / MOST_TRIES_PER_SAMPLE ? s->count * MOST_TRIES_PER_SAMPLE : INT32_MAX;
    bool memory = tfc_intmap_reserve(&seen, (size_t)s->count);
    for (tries = 0; memory && picked < s->count && tries < most; tries++) {
      bool found = false;
      int64_t v = sample(s, l, words);
      memory = tfc_intmap_put(&seen, (uint64_t)v, 0, &found) != NULL;
      if (!found) sampled[picked++] = v;
    }
    tfc_intmap_deinit(&seen);
    if (!memory) return tfc_status_no_memory(NULL);
    TFC_KERNEL_CHECK(picked == s->count, "only %lld of %lld different classes came in %lld draws: too few have weight",
                     (long long)picked, (long long)s->count, (long long)tries);
  } else {
    for (int64_t i = 0; i < s->count; i++) sampled[i] = sample(s, l, words);
  }
  for (int64_t i = 0; i < s->count; i++) sampled_count[i] = expected(probability(s, l, sampled[i]), s->count, tries);
  for (int64_t i = 0; i < n; i++) true_count[i] = expected(probability(s, l, classes[i]), s->count, tries);
  if (s->kind == LEARNED)
    for (int64_t i = 0; i < n && l->total < INT32_MAX; i++) l->weights[classes[i]]++, l->total++;
  return NULL;
}

static tfc_status candidates(struct tfc_kernel_ctx *ctx) {
  const struct sampler *s = ctx->state;
  const struct tfc_tensor *truth = ctx->inputs[0];
  struct tfc_tensor *sampled = NULL, *true_count = NULL, *sampled_count = NULL;
  struct tfc_object *object = NULL;
  TFC_KERNEL_CHECK(truth->shape.rank == 2, "true_classes must be a matrix");
  TFC_KERNEL_CHECK(truth->shape.dims[1] == s->num_true,
                   "true_classes must have num_true columns, expected: %lld was: %lld", (long long)truth->shape.dims[1],
                   (long long)s->num_true);
  TFC_KERNEL_CHECK(!s->unique || s->count <= s->range, "Sampler's range is too small.");
  if (s->kind == LEARNED)
    for (int64_t i = 0; i < tfc_tensor_elements(truth); i++) {
      int64_t v = ((const int64_t *)truth->data)[i];
      TFC_KERNEL_CHECK(v >= 0 && v < s->range, "true class %lld is not in [0, %lld)", (long long)v,
                       (long long)s->range);
    }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE(s->count), &sampled));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_FLOAT, &truth->shape, &true_count));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, TFC_FLOAT, &TFC_SHAPE(s->count), &sampled_count));
  struct tfc_kernel_ctx stream = *ctx;
  stream.state = s->random;
  struct tfc_philox p = tfc_random_reserve(&stream, (uint64_t)s->count * WORDS_PER_SAMPLE / 4);
  struct tfc_philox_words words = tfc_philox_words(&p);
  if (s->kind == LEARNED)
    TFC_RETURN_IF_ERROR(tfc_resources_find_or_create(ctx->env->resources, TFC_STR("candidates"), ctx->node->name,
                                                     &learned_type, learned_create, (void *)(uintptr_t)s, &object));
  struct learned *l = (struct learned *)object;
  if (l) pthread_mutex_lock(&l->lock);
  tfc_status status = draw(s, l, &words, truth, sampled->data, true_count->data, sampled_count->data);
  if (l) pthread_mutex_unlock(&l->lock);
  tfc_object_release(object);
  return status;
}

// --- Preparing a sampler -------------------------------------------------------------------------------------------
static void make_alias(struct sampler *s, double *p, int32_t *high, int32_t *low) {
  int64_t highs = 0, lows = 0, n = s->known;
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (double)s->weights[i], s->other[i] = -1;
  for (int64_t i = 0; i < n; i++) {
    p[i] = (double)(s->weights[i] * (float)n) / sum;
    if (p[i] < 1)
      low[lows++] = (int32_t)i;
    else
      high[highs++] = (int32_t)i;
  }
  while (highs && lows) {
    int32_t l = low[--lows], h = high[--highs];
    s->other[l] = h;
    p[h] -= 1 - p[l];
    if (p[h] < 1)
      low[lows++] = h;
    else
      high[highs++] = h;
  }
  for (int64_t i = 0; i < n; i++) s->keep[i] = (float)p[i];
  while (highs) s->keep[high[--highs]] = 1, s->other[high[highs]] = high[highs];
  while (lows) s->keep[low[--lows]] = 1, s->other[low[lows]] = low[lows];
}

// Reads the weight at the end of each line ("word,weight").
static tfc_status read_weights(tfc_str name, double **out, int64_t *out_count) {
  tfc_str text = {0};
  char *path = tfc_str_dup(name);
  struct tfc_file view = {0};
  tfc_status s = NULL;
  double *weights = NULL;
  int64_t count = 0, room = 0;
  if (!path) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_file_map(path, &view));
  text = (tfc_str){(const char *)view.data, view.size};
  for (tfc_str line; tfc_line_next(&text, &line);) {
    size_t from = line.size;
    while (from && line.data[from - 1] != ',') from--;
    char number[64] = {0}, *stop = NULL;
    size_t size = line.size - from < sizeof number - 1 ? line.size - from : sizeof number - 1;
    if (size) memcpy(number, line.data + from, size);
    float w = strtof(number, &stop);
    if (stop == number) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: line %lld has no weight", path, (long long)count + 1);
    if (count == room) {
      room = room ? 2 * room : 1024;
      double *more = realloc(weights, (size_t)room * sizeof *weights);
      if (!more) TFC_TRY(s, tfc_status_no_memory(NULL));
      weights = more;
    }
    weights[count++] = (double)w;
  }
  *out = weights, *out_count = count;
  weights = NULL;
out:
  free(weights);
  free(path);
  tfc_file_unmap(&view);
  return s;
}

static tfc_status prepare_fixed(struct tfc_prepare_ctx *ctx, struct sampler *s) {
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  const struct tfc_attr *given = tfc_node_attr(g, n, "unigrams");
  tfc_str file = tfc_node_attr_string(g, n, "vocab_file", "");
  int64_t reserved = tfc_node_attr_int(g, n, "num_reserved_ids", 0), shards = tfc_node_attr_int(g, n, "num_shards", 1);
  int64_t shard = tfc_node_attr_int(g, n, "shard", 0), count = given ? given->count : 0;
  float distortion = (float)tfc_node_attr_float(g, n, "distortion", 1);
  double *read = NULL, *p = NULL;
  tfc_status status = NULL;
  if ((file.size == 0) == (count == 0))
    TFC_FAIL(status, TFC_INVALID_ARGUMENT, "Must provide either vocab_file or unigrams.");
  if (shards < 1 || shard < 0 || shard >= shards || reserved < 0 || reserved > INT32_MAX)
    TFC_FAIL(status, TFC_INVALID_ARGUMENT, "shard %lld of %lld, %lld reserved: not possible", (long long)shard,
             (long long)shards, (long long)reserved);
  const double *weights = given ? given->floats : NULL;
  if (file.size) {
    TFC_TRY(status, read_weights(file, &read, &count));
    weights = read;
  }
  size_t most = (size_t)(reserved + count + 1);
  s->weights = tfc_arena_alloc(ctx->arena, most * sizeof(float));
  s->keep = tfc_arena_alloc(ctx->arena, most * sizeof(float));
  s->other = tfc_arena_alloc(ctx->arena, most * sizeof(int32_t));
  p = malloc(most * (sizeof(double) + 2 * sizeof(int32_t)));
  if (!s->weights || !s->keep || !s->other || !p) TFC_TRY(status, tfc_status_no_memory(NULL));
  for (int64_t id = 0; id < reserved; id++)
    if (id % shards == shard) s->weights[s->known++] = 0;
  for (int64_t i = 0; i < count; i++) {
    if ((reserved + i) % shards != shard) continue;
    float w = powf((float)weights[i], distortion);
    s->weights[s->known++] = w;
    s->total += (double)w;
  }
  if (s->known != s->range)
    TFC_FAIL(status, TFC_INVALID_ARGUMENT, "range is %lld must be equal to weights size %lld", (long long)s->range,
             (long long)s->known);
  if (!(s->total > 0)) TFC_FAIL(status, TFC_INVALID_ARGUMENT, "no class has a positive weight");
  make_alias(s, p, (int32_t *)(p + most), (int32_t *)(p + most) + most);
out:
  free(read);
  free(p);
  return status;
}

static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  struct sampler *s = TFC_ARENA_NEW(ctx->arena, struct sampler);
  if (!s) return tfc_status_no_memory(NULL);
  TFC_RETURN_IF_ERROR(tfc_random_prepare(ctx));
  s->random = ctx->state;
  s->kind = tfc_str_starts(n->op, "Uniform")      ? UNIFORM
            : tfc_str_starts(n->op, "LogUniform") ? LOG_UNIFORM
            : tfc_str_starts(n->op, "Fixed")      ? FIXED
            : tfc_str_starts(n->op, "All")        ? EVERY
                                                  : LEARNED;
  s->num_true = tfc_node_attr_int(g, n, "num_true", 1);
  s->count = tfc_node_attr_int(g, n, "num_sampled", 1);
  s->unique = tfc_node_attr_bool(g, n, "unique", false);
  s->range = tfc_node_attr_int(g, n, "range_max", s->count);
  if (s->count < 1 || s->count > INT32_MAX || s->range < 1 || (s->kind == LEARNED && s->range >= INT32_MAX))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%lld samples of %lld classes: not possible", (long long)s->count,
                           (long long)s->range);
  ctx->state = s;
  return s->kind == FIXED ? prepare_fixed(ctx, s) : NULL;
}

static tfc_status shape_candidates(struct tfc_shape_ctx *ctx) {
  struct tfc_shape truth;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &truth));
  int64_t n = tfc_node_attr_int(ctx->graph, ctx->node, "num_sampled", TFC_DIM_UNKNOWN);
  ctx->outputs[0] = ctx->outputs[2] = TFC_SHAPE(n);
  ctx->outputs[1] = TFC_SHAPE(truth.dims[0], tfc_node_attr_int(ctx->graph, ctx->node, "num_true", TFC_DIM_UNKNOWN));
  return NULL;
}

// --- Accidental hits: true classes that are among the candidates -----------------------------------------------------
static tfc_status accidental_hits(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *truth = ctx->inputs[0], *sampled = ctx->inputs[1];
  struct tfc_tensor *rows = NULL, *ids = NULL, *weights = NULL;
  struct tfc_intmap places = {0};
  tfc_status s = NULL;
  int64_t num_true = tfc_node_attr_int(ctx->graph, ctx->node, "num_true", 0), hits = 0;
  TFC_KERNEL_CHECK(truth->shape.rank == 2 && truth->shape.dims[1] == num_true,
                   "true_candidates must be a batch_size * num_true matrix");
  TFC_KERNEL_CHECK(sampled->shape.rank == 1,
                   "sampled_candidates must be a vector, which is typically an output from CandidateSampler");
  const int64_t *classes = truth->data, *candidate = sampled->data;
  int64_t n = tfc_tensor_elements(truth), count = tfc_tensor_elements(sampled);
  if (!tfc_intmap_reserve(&places, (size_t)count)) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (int64_t i = 0; i < count; i++) {
    uint64_t *place = tfc_intmap_put(&places, (uint64_t)candidate[i], (uint64_t)i, NULL);
    if (!place) TFC_TRY(s, tfc_status_no_memory(NULL));
    *place = (uint64_t)i; // of equal candidates, the last one counts
  }
  for (int64_t i = 0; i < n; i++) hits += tfc_intmap_get(&places, (uint64_t)classes[i]) != NULL;
  TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE(hits), &rows));
  TFC_TRY(s, tfc_kernel_output(ctx, 1, TFC_INT64, &TFC_SHAPE(hits), &ids));
  TFC_TRY(s, tfc_kernel_output(ctx, 2, TFC_FLOAT, &TFC_SHAPE(hits), &weights));
  for (int64_t i = 0, k = 0; i < n; i++) {
    const uint64_t *place = tfc_intmap_get(&places, (uint64_t)classes[i]);
    if (!place) continue;
    ((int32_t *)rows->data)[k] = (int32_t)(i / num_true);
    ((int64_t *)ids->data)[k] = (int64_t)*place;
    ((float *)weights->data)[k++] = -FLT_MAX;
  }
out:
  tfc_intmap_deinit(&places);
  return s;
}
static tfc_status shape_hits(struct tfc_shape_ctx *ctx) {
  struct tfc_shape s;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &s));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &s));
  for (int i = 0; i < 3; i++) ctx->outputs[i] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  return NULL;
}

// --- Rows ----------------------------------------------------------------------------------------------------------
#define SAMPLER                                                                                                        \
  .inputs = "true_classes: int64",                                                                                     \
  .outputs = "sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",                   \
  .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST, .node_state = TFC_RANDOM_NODE_STATE,             \
  .shape = shape_candidates, .prepare = prepare, .kernel = candidates
#define COMMON "num_true: int >= 1, num_sampled: int >= 1, unique: bool, "
#define RANGE "range_max: int >= 1, "
#define SEEDS "seed: int = 0, seed2: int = 0"
#define SAMPLES "int64[3,2]=[1,2,3,4,0,1] {num_true=2,num_sampled=4,unique=true,range_max=9}"
static const struct tfc_op_def random_candidates_rows[] = {
    {.name = "UniformCandidateSampler", SAMPLER, .attrs = COMMON RANGE SEEDS, .samples = SAMPLES},
    {.name = "LogUniformCandidateSampler", SAMPLER, .attrs = COMMON RANGE SEEDS, .samples = SAMPLES},
    {.name = "LearnedUnigramCandidateSampler", SAMPLER, .attrs = COMMON RANGE SEEDS, .samples = SAMPLES},
    {.name = "ThreadUnsafeUnigramCandidateSampler", SAMPLER, .attrs = COMMON RANGE SEEDS, .samples = SAMPLES},
    {.name = "FixedUnigramCandidateSampler",
     SAMPLER,
     .file_attr = "vocab_file",
     .attrs = COMMON RANGE "vocab_file: string = '', distortion: float = 1.0, num_reserved_ids: int = 0, num_shards: "
                           "int >= 1 = 1, shard: int >= 0 = 0, unigrams: list(float) = [], " SEEDS},
    {.name = "AllCandidateSampler", SAMPLER, .attrs = COMMON SEEDS},
    {.name = "ComputeAccidentalHits",
     .inputs = "true_classes: int64, sampled_candidates: int64",
     .outputs = "indices: int32, ids: int64, weights: float",
     .attrs = "num_true: int, " SEEDS,
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .shape = shape_hits,
     .kernel = accidental_hits},
};
TFC_REGISTER_OPS(random_candidates_rows);
