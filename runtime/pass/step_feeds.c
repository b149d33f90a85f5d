// Synthetic feeds. To find a range of values that the graph accepts, follows an integer feed forward, through
// operations that only move it, to the places at which it is used as an index. Then makes a tensor of such values.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/random.h"
#include "runtime/pass/step_internal.h"

struct trail { // an output that has the feed's values, divided by `divisor`
  struct tfc_output output;
  int64_t divisor;
};
struct search {
  const struct tfc_graph *g;
  const struct tfc_shapes *shapes;
  const bool *needed;
  struct trail *queue;
  uint32_t count, capacity;
  bool *seen;     // by output number
  int64_t below;  // values must be less than this; INT64_MAX: no limit was found
  bool is_length; // the feed is used as a length, so values start at 1
  tfc_str cause;  // the node that limits the values
  const char *how;
};

static const struct tfc_shape *shape_of(const struct search *f, struct tfc_output o) {
  return &f->shapes->shapes[f->g->nodes[o.node].output_begin + (uint32_t)o.index];
}
static const struct tfc_tensor *value_of(const struct search *f, struct tfc_output o) {
  if (o.index < 0 || !f->shapes->values) return NULL;
  return f->shapes->values[f->g->nodes[o.node].output_begin + (uint32_t)o.index];
}
static bool constant_int(const struct search *f, struct tfc_output o, int64_t *out) {
  const struct tfc_tensor *t = value_of(f, o);
  if (!t || !tfc_dtype_is_integer(t->dtype) || tfc_tensor_elements(t) != 1) return false;
  *out = tfc_tensor_int(t, 0);
  return true;
}

static void follow(struct search *f, struct tfc_output o, int64_t divisor) {
  uint32_t number = f->g->nodes[o.node].output_begin + (uint32_t)o.index;
  if (f->seen[number] || f->count == f->capacity) return;
  f->seen[number] = true;
  f->queue[f->count++] = (struct trail){o, divisor};
}

static void limit(struct search *f, const struct tfc_node *n, int64_t size, int64_t divisor, const char *how) {
  if (size <= 0 || size > INT64_MAX / divisor || size * divisor >= f->below) return;
  f->below = size * divisor;
  f->cause = n->name;
  f->how = how;
}

// Handles one use of the values, as input `index` of a node.
static void use(struct search *f, const struct tfc_node *n, uint32_t id, int32_t index, int64_t divisor) {
  const tfc_index_use how = n->def ? n->def->index_use : TFC_INDEX_NONE;
  const struct tfc_graph *g = f->g;
  const struct tfc_output *in = tfc_node_inputs(g, n);
  int64_t number;
  if (how == TFC_INDEX_ROWS || how == TFC_INDEX_ROWS_OF_HANDLE) {
    // rows are gathered from this input, so the output has its values
    if (index == 0) follow(f, (struct tfc_output){id, 0}, divisor);
    if (index != 1) return;
    struct tfc_shape params = *shape_of(f, in[0]);
    if (how == TFC_INDEX_ROWS_OF_HANDLE && f->shapes->handles)
      params = f->shapes->handles[g->nodes[in[0].node].output_begin + (uint32_t)in[0].index].shape;
    int64_t axis = 0;
    if (n->input_count > 2 && constant_int(f, in[2], &axis) && axis < 0) axis += params.rank;
    if (params.rank > axis && axis >= 0) limit(f, n, params.dims[axis], divisor, "rows of what it is gathered from");
    return;
  }
  if (how == TFC_INDEX_CLASSES && index == 1) {
    const struct tfc_shape *logits = shape_of(f, in[0]);
    if (logits->rank > 0) limit(f, n, logits->dims[logits->rank - 1], divisor, "classes of the logits");
    return;
  }
  if (how == TFC_INDEX_TOP && index == 1) {
    const struct tfc_shape *logits = shape_of(f, in[0]);
    if (logits->rank == 2) limit(f, n, logits->dims[1], divisor, "classes");
    return;
  }
  if (how == TFC_INDEX_ONE_HOT && index == 0) {
    if (constant_int(f, in[1], &number)) limit(f, n, number, divisor, "depth of the one-hot vectors");
    return;
  }
  if (how == TFC_INDEX_SEGMENTS && index == 1) {
    if (constant_int(f, in[2], &number)) limit(f, n, number, divisor, "segments");
    return;
  }
  if (how == TFC_INDEX_PARTITIONS && index == 1) {
    limit(f, n, tfc_node_attr_int(g, n, "num_partitions", 0), divisor, "partitions");
    return;
  }
  if (how == TFC_INDEX_LENGTHS && index == 1) {
    const struct tfc_shape *data = shape_of(f, in[0]);
    int64_t axis = tfc_node_attr_int(g, n, "seq_dim", 0);
    if (axis >= 0 && axis < data->rank && tfc_dim_known(data->dims[axis])) {
      limit(f, n, data->dims[axis] + 1, divisor, "steps in time");
      f->is_length = true;
    }
    return;
  }
  if (how == TFC_INDEX_COMPARED && n->input_count == 2) { // a length is compared with a range of times
    const struct tfc_shape *other = shape_of(f, in[index == 0]);
    if (other->rank > 0 && other->dims[other->rank - 1] > 1) {
      limit(f, n, other->dims[other->rank - 1] + 1, divisor, "steps in time");
      f->is_length = true;
    }
    return;
  }
  if (how == TFC_INDEX_IN_PIECES && index == 0) { // the result is the row within one piece of a partitioned table
    if (constant_int(f, in[1], &number) && number > 0 && number < 1 << 20)
      follow(f, (struct tfc_output){id, 0}, divisor * number);
    return;
  }
  if (how == TFC_INDEX_MOVED)
    for (uint32_t k = 0; k < n->output_count; k++)
      if (tfc_dtype_is_integer(tfc_dtype_base(tfc_output_dtype(g, (struct tfc_output){id, (int32_t)k}))))
        follow(f, (struct tfc_output){id, (int32_t)k}, divisor);
}

void tfc_step_feed_range(const struct tfc_graph *g, const struct tfc_shapes *shapes, const bool *needed,
                         struct tfc_arena *arena, struct tfc_step_feed *feed) {
  if (tfc_dtype_is_floating(feed->dtype) || tfc_dtype_is_complex(feed->dtype)) {
    bool scalar = feed->shape.rank == 0; // a scalar is likely a rate or a probability
    feed->low = scalar ? 0.1 : -1, feed->high = scalar ? 0.1 : 1;
    feed->why = scalar ? TFC_STR("0.1") : TFC_STR("values in [-1, 1)");
    return;
  }
  if (feed->dtype == TFC_BOOL) {
    feed->low = feed->shape.rank == 0 ? 1 : 0, feed->high = 2;
    feed->why = feed->shape.rank == 0 ? TFC_STR("true") : TFC_STR("either value");
    return;
  }
  struct search f = {
      .g = g, .shapes = shapes, .needed = needed, .below = INT64_MAX, .how = "", .capacity = g->output_total};
  f.queue = calloc((size_t)g->output_total + 1, sizeof *f.queue);
  f.seen = calloc((size_t)g->output_total + 1, sizeof *f.seen);
  if (f.queue && f.seen) {
    follow(&f, feed->output, 1);
    for (uint32_t i = 0; i < f.count; i++) {
      struct trail t = f.queue[i];
      for (uint32_t c = g->consumer_begin[t.output.node]; c < g->consumer_begin[t.output.node + 1]; c++) {
        const struct tfc_consumer *k = &g->consumers[c];
        if (k->output == t.output.index && k->input != TFC_CONTROL && needed[k->node])
          use(&f, &g->nodes[k->node], k->node, k->input, t.divisor);
      }
    }
  }
  free(f.queue);
  free(f.seen);
  if (f.below != INT64_MAX) {
    feed->low = f.is_length ? 1 : 0, feed->high = (double)f.below;
    if (feed->high <= feed->low) feed->low = 0;
    // Of a name that would fill most of a line of 80 columns by itself, only the end is shown.
    const size_t longest = 60, from = f.cause.size > longest ? f.cause.size - longest : 0;
    feed->why = tfc_arena_printf(arena, "values in [%.0f, %.0f): %s ('%s%.*s')", feed->low, feed->high, f.how,
                                 from ? ".." : "", TFC_STR_ARG(tfc_str_sub(f.cause, from, SIZE_MAX)));
  } else if (feed->dtype == TFC_UINT8 && feed->shape.rank > 1) { // it is likely an image
    feed->low = 0, feed->high = 256;
    feed->why = TFC_STR("any byte");
  } else {
    feed->low = feed->shape.rank == 0 ? 1 : 0, feed->high = 2;
    feed->why = feed->shape.rank == 0 ? TFC_STR("1") : TFC_STR("values 0 and 1 (nothing in the graph says more)");
  }
}

static void put_real(struct tfc_tensor *t, int64_t i, double value) {
  switch (t->dtype) {
  case TFC_FLOAT: ((float *)t->data)[i] = (float)value; break;
  case TFC_DOUBLE: ((double *)t->data)[i] = value; break;
  case TFC_HALF: ((uint16_t *)t->data)[i] = tfc_float_to_half((float)value); break;
  case TFC_BFLOAT16: ((uint16_t *)t->data)[i] = tfc_float_to_bfloat16((float)value); break;
  case TFC_COMPLEX64: ((float *)t->data)[2 * i] = (float)value, ((float *)t->data)[2 * i + 1] = 0; break;
  case TFC_COMPLEX128: ((double *)t->data)[2 * i] = value, ((double *)t->data)[2 * i + 1] = 0; break;
  default: break;
  }
}

static void put_integer(struct tfc_tensor *t, int64_t i, int64_t value) {
  switch (tfc_dtype_size(t->dtype)) {
  case 1: ((uint8_t *)t->data)[i] = (uint8_t)value; break;
  case 2: ((uint16_t *)t->data)[i] = (uint16_t)value; break;
  case 4: ((uint32_t *)t->data)[i] = (uint32_t)value; break;
  default: ((uint64_t *)t->data)[i] = (uint64_t)value; break;
  }
}

tfc_status tfc_step_synthetic(const struct tfc_step_feed *feed, uint64_t seed, struct tfc_tensor *out) {
  tfc_status s = NULL;
  struct tfc_tensor t = {0};
  struct tfc_random random;
  TFC_TRY(
      s, tfc_status_annotate(tfc_tensor_create(feed->dtype, &feed->shape, &t), "feed '%.*s'", TFC_STR_ARG(feed->name)));
  uint64_t mixed = seed;
  for (size_t i = 0; i < feed->name.size; i++) mixed = (mixed ^ (uint8_t)feed->name.data[i]) * 0x100000001b3u;
  tfc_random_init(&random, mixed);
  int64_t n = tfc_tensor_elements(&t), low = (int64_t)feed->low;
  uint64_t span = feed->high > feed->low ? (uint64_t)(feed->high - feed->low) : 1;
  // A small type cannot hold the whole range.
  if (tfc_dtype_is_integer(t.dtype) && tfc_dtype_size(t.dtype) == 1 && t.dtype != TFC_UINT8 && span > 127) span = 127;
  if (t.dtype == TFC_UINT8 && span > 256) span = 256;
  if (tfc_dtype_is_integer(t.dtype) && tfc_dtype_size(t.dtype) == 2 && span > 32767) span = 32767;
  for (int64_t i = 0; i < n; i++) {
    if (t.dtype == TFC_BOOL)
      ((uint8_t *)t.data)[i] = (uint8_t)(low + (int64_t)tfc_random_below(&random, span));
    else if (tfc_dtype_is_integer(t.dtype))
      put_integer(&t, i, low + (int64_t)tfc_random_below(&random, span));
    else
      put_real(&t, i, feed->low + (feed->high - feed->low) * tfc_random_unit(&random));
  }
  *out = t;
  t = (struct tfc_tensor){0};
out:
  tfc_tensor_release(&t);
  return s;
}
