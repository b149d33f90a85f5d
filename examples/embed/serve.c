/* Serves a SavedModel: a line of token numbers in, the signature's outputs out. One thread per request would share the
 * model as it is.
 *
 *   cc serve.c $(pkg-config --cflags --libs tfc) -o serve && echo 3 1 4 1 5 | ./serve saved_model
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfc.h>

enum { LENGTH = 12 };

int main(int argc, char **argv) {
  const char *feeds[] = {"serving_default_tokens:0"}, *fetches[] = {"StatefulPartitionedCall:0"};
  tfc_call_spec spec = {.feeds = feeds, .feed_count = 1, .fetches = fetches, .fetch_count = 1};
  tfc_model *model = NULL;
  tfc_call *call = NULL;
  char line[1024];
  if (argc != 2) return fprintf(stderr, "usage: serve MODEL < lines of token numbers\n"), 2;

  tfc_error *error = tfc_model_open(argv[1], NULL, &model);
  if (!error) error = tfc_call_prepare(model, &spec, &call);
  while (!error && fgets(line, sizeof line, stdin)) {
    int32_t tokens[LENGTH] = {0};
    int count = 0;
    for (char *word = strtok(line, " \n"); word && count < LENGTH; word = strtok(NULL, " \n"))
      tokens[count++] = atoi(word);
    tfc_array in = {.dtype = TFC_ARRAY_INT32, .rank = 2, .dims = {1, LENGTH}, .data = tokens, .bytes = sizeof tokens};
    tfc_array out = {0}; /* the library allocates: its size depends on the model */
    error = tfc_call_run(call, &in, &out);
    for (size_t i = 0; !error && i < out.bytes / sizeof(float); i++)
      printf("%s%.6g", i ? " " : "", ((const float *)out.data)[i]);
    if (!error) printf("\n");
    tfc_array_clear(&out);
  }

  if (error) fprintf(stderr, "serve: %s\n", tfc_error_text(error));
  int code = error != NULL;
  tfc_error_free(error);
  tfc_call_free(call);
  tfc_model_close(model);
  return code;
}
