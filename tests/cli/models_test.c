// SavedModels that TensorFlow made (tests/conformance/made_models.py --commit), run by tfc-run: restored and
// initialised by their own operations, with their assets; the results are those of TensorFlow.
#include "tests/common/test.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/io/npy.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"
#include "tests/common/golden.h"

static char folder[64];
static int set_up(void **state) {
  (void)state;
  return test_folder_make(folder, "models");
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

static void compare(const char *model, size_t run, const char *tensor, const char *file) {
  char path[1024], why[300];
  struct tfc_tensor want = {0}, got = {0};
  snprintf(path, sizeof path, TFC_SOURCE_DIR "/tests/cli/models/%s/%s", model, file);
  assert_ok(tfc_npy_read(path, &want));
  snprintf(path, sizeof path, "%s/%s/%zu/%s.npy", folder, model, run, tensor);
  for (char *c = path + strlen(path) - strlen(tensor) - 4; *c; c++)
    if (*c == ':' || *c == '/') *c = '_';
  assert_ok(tfc_npy_read(path, &got));
  if (!golden_compare(&got, &want, "relative:1e-5", why, sizeof why))
    fail_msg("%s: run %zu: %s: %s", model, run, tensor, why);
  tfc_tensor_release(&want);
  tfc_tensor_release(&got);
}

static void run_model(const char *model, const char *flags) {
  char path[1024];
  assert_exit(0, "loaded",
              "tfc-run %s --graph " TFC_SOURCE_DIR "/tests/cli/models/%s/model --run " TFC_SOURCE_DIR
              "/tests/cli/models/%s/script.json --out %s/%s",
              flags, model, model, folder, model);
  snprintf(path, sizeof path, TFC_SOURCE_DIR "/tests/cli/models/%s/script.json", model);
  json_t *script = json_load_file(path, 0, NULL);
  assert_non_null(script);
  size_t i, compared = 0;
  json_t *run, *file;
  const char *tensor;
  json_array_foreach(json_object_get(script, "runs"), i, run)
      json_object_foreach(json_object_get(run, "expected"), tensor, file)
          compare(model, i, tensor, json_string_value(file)),
      compared++;
  assert_true(compared > 0);
  json_decref(script);
}

static void all(const char *flags) {
  DIR *d = opendir(TFC_SOURCE_DIR "/tests/cli/models");
  int models = 0;
  assert_non_null(d);
  for (const struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.') run_model(e->d_name, flags), models++;
  closedir(d);
  assert_true(models >= 3);
}
static void on_one_device(void **state) {
  (void)state, all("");
}
static void on_emulated_devices(void **state) {
  (void)state, all("--devices emu:0-1");
}

static void damage_is_told(void **state) {
  (void)state;
  const char *model = TFC_SOURCE_DIR "/tests/cli/models/vocabulary_file";
  assert_int_equal(command("cp -r %s/model %s/broken && rm %s/broken/assets/*", model, folder, folder)->code, 0);
  assert_exit(3, "/broken/assets/", "tfc-run --graph %s/broken --run %s/script.json --out %s/o", folder, model, folder);
  assert_int_equal(command("cp -r %s/model %s/cut && truncate -s 20 %s/cut/variables/variables.data-00000-of-00001",
                           model, folder, folder)
                       ->code,
                   0);
  assert_exit(3, "ends before the tensor does", "tfc-run --graph %s/cut --run %s/script.json --out %s/o", folder, model,
              folder);
  // Values for variables may come from a checkpoint instead; without any values it is an error.
  const char *trained = TFC_SOURCE_DIR "/tests/cli/models/module_that_trains";
  assert_int_equal(
      command("cp -r %s/model %s/bare && mv %s/bare/variables %s/values", trained, folder, folder, folder)->code, 0);
  assert_exit(3, "/bare/variables/variables.index is missing",
              "tfc-run --graph %s/bare --run %s/script.json --out %s/o", folder, trained, folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_one_device), cmocka_unit_test(on_emulated_devices),
                                     cmocka_unit_test(damage_is_told)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
