/* Trains a model: feeds of this program's own memory, the loss back, variables into a checkpoint.
 *
 *   cc train.c $(pkg-config --cflags --libs tfc) -o train && ./train mlp.pb 100 trained/model
 */
#include <stdio.h>
#include <stdlib.h>
#include <tfc.h>

enum { BATCH = 32, PIXELS = 784, CLASSES = 10 };

/* Digits that anybody can tell apart: class c has bright pixels in its own tenth of the image. */
static void make_batch(unsigned *seed, float *x, int32_t *labels) {
  for (int i = 0; i < BATCH; i++) {
    *seed = *seed * 1664525u + 1013904223u;
    labels[i] = (int32_t)(*seed >> 16) % CLASSES;
    for (int p = 0; p < PIXELS; p++) x[i * PIXELS + p] = p * CLASSES / PIXELS == labels[i] ? 1.0f : 0.0f;
  }
}

int main(int argc, char **argv) {
  static float x[BATCH * PIXELS];
  static int32_t labels[BATCH];
  const char *feeds[] = {"x:0", "labels:0"}, *fetches[] = {"loss:0"}, *targets[] = {"train_op"};
  tfc_call_spec spec = {
      .feeds = feeds, .feed_count = 2, .fetches = fetches, .fetch_count = 1, .targets = targets, .target_count = 1};
  float loss = 0;
  tfc_array in[2] = {{.dtype = TFC_ARRAY_FLOAT32, .rank = 2, .dims = {BATCH, PIXELS}, .data = x, .bytes = sizeof x},
                     {.dtype = TFC_ARRAY_INT32, .rank = 1, .dims = {BATCH}, .data = labels, .bytes = sizeof labels}};
  tfc_model *model = NULL;
  tfc_call *call = NULL;
  unsigned seed = 1;
  if (argc < 3) return fprintf(stderr, "usage: train GRAPH STEPS [CHECKPOINT]\n"), 2;

  tfc_error *error = tfc_model_open(argv[1], NULL, &model);
  if (!error) error = tfc_call_prepare(model, &spec, &call);
  for (int step = 0; !error && step < atoi(argv[2]); step++) {
    tfc_array out = {.data = &loss, .bytes = sizeof loss};
    make_batch(&seed, x, labels);
    error = tfc_call_run(call, in, &out);
    if (!error && step % 10 == 0) printf("step %d: loss %.4f\n", step, loss);
  }
  if (!error) printf("last loss %.4f, %.0f us a step\n", loss, tfc_call_step_us(call));
  if (!error && argc > 3) error = tfc_model_save(model, argv[3]);

  if (error) fprintf(stderr, "train: %s\n", tfc_error_text(error));
  int code = error != NULL;
  tfc_error_free(error);
  tfc_call_free(call);
  tfc_model_close(model);
  return code;
}
