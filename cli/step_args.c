#include "cli/step_args.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/units.h"
#include "runtime/io/npy.h"

// Parses "float32[2,3]"; false: the text is something else.
static bool parse_typed_shape(tfc_str text, tfc_dtype *out_dtype, struct tfc_shape *out_shape) {
  size_t open = tfc_str_find(text, '[');
  struct tfc_shape shape = {0};
  if (open == SIZE_MAX || !tfc_str_ends(text, "]")) return false;
  tfc_dtype dtype = tfc_dtype_parse(tfc_str_sub(text, 0, open));
  tfc_str dims = tfc_str_sub(text, open + 1, text.size - 1);
  if (dtype == TFC_DTYPE_NONE) return false;
  while (dims.size > 0) {
    size_t comma = tfc_str_find(dims, ',');
    tfc_status s = NULL;
    if (shape.rank == TFC_MAX_RANK) return false;
    s = tfc_parse_i64(tfc_str_sub(dims, 0, comma), &shape.dims[shape.rank]);
    if (s || shape.dims[shape.rank] < 0) {
      tfc_status_free(s);
      return false;
    }
    shape.rank++;
    dims = comma == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(dims, comma + 1, SIZE_MAX);
  }
  *out_dtype = dtype, *out_shape = shape;
  return true;
}

static tfc_status find_nodes(const struct tfc_graph *g, const struct tfc_texts *texts, const char *flag,
                             uint32_t *out) {
  tfc_status s = NULL;
  for (uint32_t i = 0; i < texts->count; i++) {
    tfc_str name = tfc_str_from(texts->items[i]);
    TFC_TRY(s, tfc_status_annotate(tfc_graph_parse_node(g, name, &out[i]), "--%s %s", flag, texts->items[i]));
  }
out:
  return s;
}

static tfc_status find_output(const struct tfc_graph *g, tfc_str name, const char *flag, struct tfc_output *out) {
  return tfc_status_annotate(tfc_graph_parse_output(g, name, out), "--%s %.*s", flag, TFC_STR_ARG(name));
}

tfc_status cli_step_infer(const struct tfc_graph *graph, const struct cli_step_args *args, struct cli_step *out) {
  struct cli_step step = {0};
  tfc_status s = NULL;
  struct tfc_output *fetches = TFC_ARENA_ARRAY(&step.arena, struct tfc_output, (size_t)args->fetches.count + 1);
  uint32_t *targets = TFC_ARENA_ARRAY(&step.arena, uint32_t, (size_t)args->targets.count + 1);
  uint32_t *inits = TFC_ARENA_ARRAY(&step.arena, uint32_t, (size_t)args->inits.count + 1);
  struct tfc_step_feed_request *feeds =
      TFC_ARENA_ARRAY(&step.arena, struct tfc_step_feed_request, (size_t)args->feeds.count + 1);
  step.values = TFC_ARENA_ARRAY(&step.arena, struct tfc_tensor, (size_t)args->feeds.count + 1);
  if (!fetches || !targets || !inits || !feeds || !step.values) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < args->fetches.count; i++) // "loss:0=loss.npy": only the caller uses the file's name
    TFC_TRY(s, find_output(graph,
                           tfc_str_sub(tfc_str_from(args->fetches.items[i]), 0, strcspn(args->fetches.items[i], "=")),
                           "fetch", &fetches[i]));
  TFC_TRY(s, find_nodes(graph, &args->targets, "target", targets));
  TFC_TRY(s, find_nodes(graph, &args->inits, "init", inits));
  step.request = (struct tfc_step_request){.fetches = fetches,
                                           .fetch_count = args->fetches.count,
                                           .targets = targets,
                                           .target_count = args->targets.count,
                                           .inits = inits,
                                           .init_count = args->inits.count,
                                           .no_init = args->no_init,
                                           .feeds = feeds,
                                           .batch = args->batch};
  for (uint32_t i = 0; i < args->feeds.count; i++) {
    const char *text = args->feeds.items[i];
    size_t equals = strcspn(text, "=");
    struct tfc_step_feed_request *feed = &feeds[i];
    if (equals == 0 || !text[equals] || !text[equals + 1])
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "--feed %s: give NAME=FILE.npy or NAME=DTYPE[SHAPE]", text);
    TFC_TRY(s, find_output(graph, (tfc_str){text, equals}, "feed", &feed->output));
    feed->has_shape = true;
    step.request.feed_count = i + 1;
    if (parse_typed_shape(tfc_str_from(text + equals + 1), &feed->dtype, &feed->shape)) continue;
    tfc_str value = tfc_str_from(text + equals + 1);
    if (!tfc_str_ends(value, ".npy") && access(value.data, F_OK) != 0)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT,
               "--feed %s: '%s' is neither a file nor a type with a shape, such as float32[32,784]", text, value.data);
    s = tfc_npy_read(value.data, &step.values[i]);
    if (s) {
      s = tfc_status_annotate(s, "--feed %.*s", (int)equals, text);
      goto out;
    }
    feed->dtype = step.values[i].dtype, feed->shape = step.values[i].shape;
  }
  TFC_TRY(s, tfc_step_infer(graph, &step.request, &step.spec));
  *out = step;
  step = (struct cli_step){0};
out:
  cli_step_deinit(&step);
  return s;
}

void cli_step_deinit(struct cli_step *step) {
  for (uint32_t i = 0; step->values && i < step->request.feed_count; i++) tfc_tensor_release(&step->values[i]);
  tfc_step_spec_deinit(&step->spec);
  tfc_arena_deinit(&step->arena);
  *step = (struct cli_step){0};
}
