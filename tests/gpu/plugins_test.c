// Tests the two plug-ins on any machine: they load with every symbol resolved, they do not load NVIDIA's driver, and
// they take tfc's functions from its shared libraries. If the user names a GPU that is not there, programs exit with
// code 4 and the reason. If the user only says how many devices, and there is no driver, no plug-in is loaded. Builds
// without the plug-ins (no toolkit, or sanitizers) say so, with the same exit code.
#include "tests/common/test.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/device/driver.h"
#include "tests/common/command.h"

static int is_of_cuda(struct dl_phdr_info *info, size_t size, void *found) {
  (void)size;
  const char *name = strrchr(info->dlpi_name, '/');
  if (!name || (!strstr(name, "libtfc_cuda") && !strstr(name, "libcudart") && !strstr(name, "libcudnn"))) return 0;
  snprintf(found, 256, "%s", name);
  return 1;
}

static void a_number_loads_nothing_without_a_driver(void **state) {
  (void)state;
  struct tfc_device_set set = {0};
  char found[256] = "";
  assert_ok(tfc_devices_open("2", NULL, 0, &set));
  assert_int_equal(set.count, 2);
  tfc_devices_close(&set);
  if (dlopen("libcuda.so.1", RTLD_LAZY)) skip(); // this machine has the driver
  if (dl_iterate_phdr(is_of_cuda, found)) fail_msg("%s is loaded", found);
}

static bool there(const char *name, char *path, size_t size) {
  snprintf(path, size, "%s/lib/%s", TFC_BINARY_DIR, name);
  return access(path, R_OK) == 0;
}

static void load(const char *name, const char *const *symbols) {
  char path[512];
  if (!there(name, path, sizeof path)) {
    print_message("no %s in this build\n", name);
    return;
  }
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  for (; *symbols; symbols++)
    if (!dlsym(library, *symbols)) fail_msg("%s has no %s", name, *symbols);
  // loading the plug-in did not load the driver's library
  if (!driver) assert_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
  Dl_info ours;
  // It must be the function of the library that this test uses, not a copy in the plug-in.
  void *shared = dlsym(library, "tfc_status_make");
  assert_true(shared && dladdr(shared, &ours) && strstr(ours.dli_fname, "libtfc_runtime"));
  assert_ptr_equal(shared, (void *)(uintptr_t)&tfc_status_make);
}

static void plugins_load(void **state) {
  (void)state;
#ifdef TFC_SANITIZED
  char path[512];
  assert_false(there("libtfc_cuda.so", path, sizeof path) || there("libtfc_cupti.so", path, sizeof path));
#endif
  load("libtfc_cupti.so", (const char *const[]){"tfc_gpu_profiler", NULL});
  load("libtfc_cuda.so", (const char *const[]){"tfc_driver_gpu", "tfc_driver_vgpu", NULL});
}

static void no_device(void **state) {
  (void)state;
  const struct tfc_device_driver *gpu = NULL;
  struct tfc_device_info *infos = NULL;
  uint32_t count = 0;
  tfc_status s = tfc_driver_find("gpu", &gpu);
  if (!s) s = gpu->discover(&(struct tfc_driver_options){0}, &infos, &count);
  free(infos);
  if (!s) skip(); // this machine has a GPU
  assert_int_equal(tfc_status_code(s), TFC_UNAVAILABLE);
  tfc_status_free(s);
  static const char *const lists[] = {"gpu:0", "gpu:0-3", "vgpu:0-3", "vgpu:0-3,shared", "cpu:0,gpu:0"};
  char out[] = "/tmp/tfc-plugins-XXXXXX";
  assert_non_null(mkdtemp(out));
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    assert_exit(4, "no GPU", "tfc-run --graph %s/examples/mlp.pb --devices %s --steps 1", TFC_SOURCE_DIR, lists[i]);
    assert_exit(4, "no GPU",
                "tfc-place --graph %s/examples/mlp.pb --devices %s --db %s/x.db --out %s/x.json --report none",
                TFC_SOURCE_DIR, lists[i], out, out);
  }
  assert_exit(4, "no GPU", "tfc-run --graph %s/examples/mlp.pb --devices gpu:0 --steps 1 --profile --db %s/x.db",
              TFC_SOURCE_DIR, out);
  assert_exit(4, "'shared'", "tfc-run --graph %s/examples/mlp.pb --devices shared", TFC_SOURCE_DIR);
  command("rm -rf %s", out);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_number_loads_nothing_without_a_driver),
                                     cmocka_unit_test(plugins_load), cmocka_unit_test(no_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
