// Checks the colours of reports: which colour a device and a type of operation have, and that no two colours look
// alike, on a light page and on a dark one, for readers who see all colours and for those who do not.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "reports/palette.h"

static void test_families(void **state) {
  (void)state;
  static const struct {
    const char *op;
    uint32_t family;
  } ops[] = {{"MatMul", 0},
             {"BatchMatMulV2", 0},
             {"_FusedMatMul", 0},
             {"Conv2DBackpropInput", 1},
             {"MaxPoolGrad", 1},
             {"AddV2", 2},
             {"ReluGrad", 2},
             {"Exp", 2},
             {"Softmax", 3},
             {"AddN", 3},
             {"BiasAddGrad", 3},
             {"ConcatV2", 4},
             {"Reshape", 4},
             {"ApplyAdam", 5},
             {"AssignAddVariableOp", 5},
             {"Switch", 6},
             {"TensorListStack", 6},
             {"RandomUniform", 7},
             {"StatelessRandomNormal", 7},
             {"Nonsense", 8},
             {"", 8},
             {"Switches", 8},
             {"XSwitch", 8}};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (tfc_palette_family(tfc_str_from(ops[i].op)) != ops[i].family)
      fail_msg("'%s' is of family %u", ops[i].op, tfc_palette_family(tfc_str_from(ops[i].op)));
}

static void test_devices(void **state) {
  (void)state;
  assert_int_equal(tfc_palette_device(TFC_STR("cpu:0")), 0);
  assert_int_equal(tfc_palette_device(TFC_STR("cpu:7")), 7);
  assert_int_equal(tfc_palette_device(TFC_STR("cpu:13")), 13);
  assert_int_equal(tfc_palette_device(TFC_STR("host")), 0);
  assert_int_equal(tfc_palette_device(TFC_STR("gpu:0")), 8);
  assert_int_equal(tfc_palette_device(TFC_STR("gpu:10")), 2);
  assert_int_equal(tfc_palette_device(TFC_STR("acc:1")), 5);
  static const char *const kinds[] = {"cpu", "gpu", "vgpu", "acc"};
  for (size_t k = 0; k < 4; k++) { // sixteen devices of a kind have sixteen colours
    uint32_t seen = 0;
    for (int i = 0; i < 16; i++) {
      char name[16];
      snprintf(name, sizeof name, "%s:%d", kinds[k], i);
      seen |= 1u << tfc_palette_device(tfc_str_from(name));
    }
    assert_int_equal(seen, 0xffff);
  }
}

// --- Distances -------------------------------------------------------------------------------------------------------

enum { ACCENT = TFC_DEVICE_COLOURS + TFC_OP_FAMILIES, ALL, FIRST = 8 };
enum { FULL, NO_RED, NO_GREEN, NO_BLUE, SIGHTS };

// What an eye without one kind of cone makes of a colour's linear red, green and blue (Machado, Oliveira and Fernandes
// 2009, severity 1).
static const double sights[SIGHTS][3][3] = {
    [FULL] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
    [NO_RED] = {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
    [NO_GREEN] = {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
    [NO_BLUE] = {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};

// Writes a colour as lightness and two opponent colours (CIE 1976 L*a*b*, D65), in which distances are about what
// people see.
static void lab_of(uint32_t rgb, int sight, double out[3]) {
  static const double xyz[3][3] = {{0.4339, 0.3762, 0.1899}, {0.2126, 0.7152, 0.0722}, {0.0177, 0.1095, 0.8728}};
  double linear[3], seen[3], f[3];
  for (int k = 0; k < 3; k++) {
    const double c = (double)(rgb >> (16 - 8 * k) & 255) / 255;
    linear[k] = c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
  }
  for (int k = 0; k < 3; k++) {
    seen[k] = 0;
    for (int i = 0; i < 3; i++) seen[k] += sights[sight][k][i] * linear[i];
    seen[k] = fmin(fmax(seen[k], 0), 1);
  }
  for (int i = 0; i < 3; i++) {
    double sum = 0;
    for (int k = 0; k < 3; k++) sum += xyz[i][k] * seen[k];
    f[i] = sum > 0.008856 ? cbrt(sum) : 7.787 * sum + 16.0 / 116;
  }
  out[0] = 116 * f[1] - 16, out[1] = 500 * (f[0] - f[1]), out[2] = 200 * (f[1] - f[2]);
}

// Returns the colour of a family on a dark page, from the style sheet.
static uint32_t dark_rgb(uint32_t family) {
  struct tfc_text css = {0};
  char name[32];
  tfc_palette_css(&css);
  snprintf(name, sizeof name, " --f%u: #", family);
  const char *dark = strstr(css.data, "prefers-color-scheme: dark"), *at = dark ? strstr(dark, name) : NULL;
  assert_non_null(at);
  const uint32_t rgb = (uint32_t)strtoul(at + strlen(name), NULL, 16);
  tfc_text_deinit(&css);
  return rgb;
}

// Colours that a reader meets most, those of eight devices, of the families and the accent, are farther apart than the
// others. (About 2.3 is the least difference that people see.)
static void test_distances(void **state) {
  (void)state;
  static const double least[SIGHTS] = {13, 5, 5, 5}, least_first[SIGHTS] = {20, 10, 10, 8.5};
  for (int dark = 0; dark < 2; dark++)
    for (int sight = 0; sight < SIGHTS; sight++) {
      double lab[ALL][3];
      for (uint32_t i = 0; i < ALL; i++)
        lab_of(i == ACCENT              ? (dark ? TFC_PALETTE_DARK_ACCENT : TFC_PALETTE_ACCENT)
               : i < TFC_DEVICE_COLOURS ? tfc_palette_device_rgb(i)
               : dark                   ? dark_rgb(i - TFC_DEVICE_COLOURS)
                                        : tfc_palette_family_rgb(i - TFC_DEVICE_COLOURS),
               sight, lab[i]);
      for (uint32_t i = 0; i < ALL; i++)
        for (uint32_t k = 0; k < i; k++) {
          double sum = 0;
          const bool first = k < FIRST && (i < FIRST || i >= TFC_DEVICE_COLOURS);
          const bool families = k >= TFC_DEVICE_COLOURS;
          for (int c = 0; c < 3; c++) sum += (lab[i][c] - lab[k][c]) * (lab[i][c] - lab[k][c]);
          if (sqrt(sum) < (first || families || i == ACCENT ? least_first : least)[sight])
            fail_msg("%s, sight %d: colours %u and %u differ by %.1f", dark ? "dark" : "light", sight, k, i, sqrt(sum));
        }
    }
}

// No colour disappears in the page that it is on.
static void test_papers(void **state) {
  (void)state;
  for (uint32_t i = 0; i < ALL; i++) {
    const uint32_t f = i - TFC_DEVICE_COLOURS;
    double light[3], dark[3];
    if (i == ACCENT) {
      lab_of(TFC_PALETTE_ACCENT, FULL, light);
      lab_of(TFC_PALETTE_DARK_ACCENT, FULL, dark);
    }
    if (i != ACCENT)
      lab_of(i < TFC_DEVICE_COLOURS ? tfc_palette_device_rgb(i) : tfc_palette_family_rgb(f), FULL, light);
    if (i != ACCENT) lab_of(i < TFC_DEVICE_COLOURS ? tfc_palette_device_rgb(i) : dark_rgb(f), FULL, dark);
    if (light[0] > 88) fail_msg("colour %u is as light as paper: %.1f", i, light[0]);
    if (dark[0] < 34) fail_msg("colour %u is as dark as a dark page: %.1f", i, dark[0]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_families), cmocka_unit_test(test_devices),
                                     cmocka_unit_test(test_distances), cmocka_unit_test(test_papers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
