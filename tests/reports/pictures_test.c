// Compares what reports draw, and what they write for other programs, with a run of which every microsecond was chosen
// by hand (tests/reports/by_hand.h): the timeline, the map and its rival, the data that the page's script reads, the
// trace, and the sentences about how a run ended.
#include "tests/common/test.h"

#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/ending.h"
#include "reports/lists.h"
#include "reports/palette.h"
#include "reports/plot.c"
#include "reports/reports.h"
#include "runtime/base/file.h"
#include "tests/common/change.h"
#include "tests/common/folder.h"
#include "tests/common/sample_run.h"
#include "tests/reports/by_hand.h"
#include "tests/reports/gnuplot.h"
#include "tests/reports/html.h"

static char folder[64], path[96], sample_path[96];
static struct tfc_store *store;
static char *page; // the page of the run that was made by hand

static void change(const char *sql) {
  change_database(path, sql);
}

static int set_up(void **state) {
  (void)state;
  struct tfc_text html = {0};
  struct sample_run sample;
  if (test_folder_make(folder, "pictures")) return -1;
  snprintf(path, sizeof path, "%s/t.db", folder);
  snprintf(sample_path, sizeof sample_path, "%s/sample.db", folder);
  assert_ok(write_by_hand(path, "measured"));
  assert_ok(sample_run_write(sample_path, 5, &sample));
  change("INSERT INTO op_total (placement, node_id, device_id, samples, median_ns, fastest_ns, total_ns) SELECT "
         "placement, node_id, device_id, 2, duration_ns, duration_ns, 2 * duration_ns FROM"
         " op WHERE step = 0");
  change("UPDATE node SET flops = 1000 * (node_id + 1) WHERE node_id < 3");
  // The expert has a on the other device, and all else where the answer has it.
  change("INSERT INTO placement (run_id, placement_id, role, name, state, label, median_us, steps) VALUES"
         " (1, 7, 'baseline', 'expert', 'ok', 'measured', 900, 30)");
  change("INSERT INTO assignment (placement, unit_id, device_id) SELECT e.placement, a.unit_id, CASE a.unit_id WHEN 0 "
         "THEN 1 ELSE a.device_id END FROM"
         " assignment a JOIN placement p USING (placement) JOIN placement e ON e.name = 'expert' WHERE p.name ="
         " 'answer'");
  change("INSERT INTO warning (run_id, number, text) WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i "
         "WHERE n < 7) SELECT 1, n,"
         " 'load <' || n || '> on a machine of which there is so much to say that it takes two lines' FROM i");
  assert_ok(tfc_store_open(path, &(struct tfc_store_options){0}, &store));
  assert_ok(tfc_report_html(store, -1, &html));
  page = html.data;
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  free(page);
  tfc_store_close(store);
  return test_folder_remove(folder);
}

// Writes the run to a database of its own, changes it there, and returns its page (malloc'd).
static char *page_of_changed(const char *name, const char *sql) {
  char file[128];
  struct tfc_store *db = NULL;
  struct tfc_text html = {0};
  snprintf(file, sizeof file, "%s/%s.db", folder, name);
  assert_ok(write_by_hand(file, "measured"));
  change_database(file, sql);
  assert_ok(tfc_store_open(file, &(struct tfc_store_options){0}, &db));
  assert_ok(tfc_report_html(db, -1, &html));
  tfc_store_close(db);
  return html.data;
}

static void tells(const char *text, const char *expected) {
  if (!strstr(text, expected)) fail_msg("no '%s' in: %.3000s", expected, text);
}
static char *part(const char *text, const char *from, const char *to) {
  const char *begin = strstr(text, from);
  if (!begin) fail_msg("no '%s'", from);
  const char *end = strstr(begin += strlen(from), to);
  if (!end) fail_msg("no '%s' behind '%s'", to, from);
  return strndup(begin, (size_t)(end - begin));
}

// Five warnings are shown, the others when asked for; terminals are told where they are.
static void test_warnings(void **state) {
  (void)state;
  struct tfc_text text = {0};
  char *shown = part(page, "<section id=\"warnings\">", "</section>");
  tells(shown, "<p><b>Warning:</b> load &lt;1&gt; on a machine");
  tells(shown, "load &lt;5&gt;");
  tells(strstr(shown, "<details><summary>2 more warnings</summary>"), "load &lt;7&gt;");
  free(shown);
  assert_true(strstr(page, "id=\"warnings\"") < strstr(page, "id=\"summary\""));
  assert_ok(tfc_report_show(store, 1, &text));
  tells(text.data, "\n  warning: load <1> on a machine of which there is so much to say that it takes\n  two lines\n  "
                   "warning: load <2>");
  tells(text.data, "\n  and 2 more warnings (view v_warning)\n");
  assert_null(strstr(text.data, "load <6>"));
  tfc_text_deinit(&text);
  assert_ok(tfc_report_explain(store, 1, &text));
  tells(text.data, "  warning: load <1>");
  tfc_text_deinit(&text);
}

// The step takes 600 us, which is a width of 100,000: 1 us is 166.67. Lanes are 66 high.
static void test_timeline(void **state) {
  (void)state;
  char *text = part(page, "<section id=\"timeline\">", "</section>");
  // cpu:0: a, b (products), d (element by element), and nothing to do from 450 us on.
  tells(text, "<path class=\"f0\" d=\"M0 20h16667v24h-16667zM16667 20h50000v24h-50000z\"/>");
  tells(text, "<path class=\"f2\" d=\"M66667 20h8333v24h-8333z\"/>");
  tells(text, "<path class=\"gap g3\" d=\"M75000 20h25000v24h-25000z\"/>");
  tells(text, "<path class=\"arriving\" d=\"M42500 53h3333v7h-3333z\"/>"); // the transfer of c arrives
  // cpu:1: c (element by element) and e (a sum); it waits for a and d, for their transfers, and to begin.
  tells(text, "<path class=\"f2\" d=\"M25833 86h16667v24h-16667z\"/>");
  tells(text, "<path class=\"f3\" d=\"M80333 86h19667v24h-19667z\"/>");
  tells(text, "<path class=\"gap g0\" d=\"M42500 86h32500v24h-32500zM0 86h16667v24h-16667z\"/>");
  tells(text, "<path class=\"gap g1\" d=\"M75000 86h5000v24h-5000zM16667 86h8333v24h-8333z\"/>");
  tells(text, "<path class=\"gap g2\" d=\"M80000 86h333v24h-333zM25000 86h833v24h-833z\"/>");
  tells(text, "<path class=\"arriving\" d=\"M16667 119h8333v7h-8333zM75000 119h5000v7h-5000z\"/>");
  // a, b, d, d's transfer to the other lane, e.
  tells(text,
        "<path class=\"critical\" d=\"M0 46H16667L16667 46H66667L66667 46H75000L75000 122H80000L80333 112H100000\"");
  tells(text,
        "<i style=\"left:0.000%\">0 µs</i><i style=\"left:33.333%\">200</i><i style=\"left:66.667%\">400</i></div>");
  tells(text, "<i class=\"key f0\"></i>products 400.0 us</span>");
  tells(text, "<i class=\"key f2\"></i>element by element 150.0 us</span>");
  tells(text, "<i class=\"key f3\"></i>sums, normalisation 118.0 us</span>");
  tells(text, "[µs], of the traced step nearest to the median (step 0)");
  tells(text, "cpu:0 <span>busy 75 %</span>");
  tells(text, "cpu:1 <span>busy 36 %</span>"); // 218 of 600 us
  free(text);
}

struct drawn {
  uint32_t id;
  double x, y, w, h; // positions in a picture of 540 by 480
  bool leaf;
  char rest[400];
};
// Reads the boxes of a map: 'a' is the answer's, 'r' the rival's.
static uint32_t boxes_of(const char *html, char which, struct drawn *out, uint32_t most) {
  uint32_t count = 0;
  for (const char *p = html; (p = strstr(p, "<div class=\"")); p++) {
    struct drawn d = {0};
    char kind[16], letter;
    int size = 0;
    if (sscanf(p, "<div class=\"%9[a-z]\" id=\"%c%u\" style=\"left:%lf%%;top:%lfpx;width:%lf%%;height:%lfpx;%n", kind,
               &letter, &d.id, &d.x, &d.y, &d.w, &d.h, &size) != 7 ||
        letter != which)
      continue;
    d.x *= 5.4, d.w *= 5.4, d.leaf = strcmp(kind, "leaf") == 0;
    snprintf(d.rest, sizeof d.rest, "%.*s", (int)(strstr(p, "</div>") - p - size), p + size);
    assert_true(count < most);
    out[count++] = d;
  }
  return count;
}
static bool meet(const struct drawn *a, const struct drawn *b) {
  const double little = 0.2;
  return a->x + a->w > b->x + little && b->x + b->w > a->x + little && a->y + a->h > b->y + little &&
         b->y + b->h > a->y + little;
}
static bool within(const struct drawn *a, const struct drawn *b) {
  const double little = 0.2;
  return a->x >= b->x - little && a->y >= b->y - little && a->x + a->w <= b->x + b->w + little &&
         a->y + a->h <= b->y + b->h + little;
}

// Areas are in proportion to times: a 100, b 300, c 100, d 50, e 118 of 668 us.
static void test_map(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double us;
    int device, rival;
  } ops[] = {
      {"net/a", 100, 0, 1}, {"net/b", 300, 0, 0}, {"net/c", 100, 1, 1}, {"net/d", 50, 0, 0}, {"net/e", 118, 1, 1}};
  struct drawn boxes[8];
  char *text = part(page, "<section id=\"map\">", "</section>");
  for (int which = 0; which < 2; which++) {
    const uint32_t count = boxes_of(text, which ? 'r' : 'a', boxes, 8);
    assert_int_equal(count, 5);
    for (uint32_t i = 0; i < 5; i++) {
      char title[64], colour[64], label[32];
      uint32_t k = 0;
      while (k < 5 && !strstr(boxes[i].rest, (snprintf(title, sizeof title, "title=\"%s ", ops[k].name), title))) k++;
      if (k == 5) fail_msg("no operation in: %s", boxes[i].rest);
      assert_true(fabs(boxes[i].w * boxes[i].h / (540 * 480) - ops[k].us / 668) < 0.002);
      assert_true(boxes[i].w < 5 * boxes[i].h && boxes[i].h < 5 * boxes[i].w); // squarified
      snprintf(colour, sizeof colour, "90deg,var(--d%d) 0.0%% 100.0%%)", which ? ops[k].rival : ops[k].device);
      tells(boxes[i].rest, colour);
      snprintf(label, sizeof label, "<span>%s</span>", ops[k].name + 4); // the nodes are in the scope "net"
      tells(boxes[i].rest, label);
      assert_true((strstr(boxes[i].rest, "data-moved=\"100\"") != NULL) == (k == 0));
      assert_true(boxes[i].x > -0.1 && boxes[i].y > -0.1 && boxes[i].x + boxes[i].w < 540.1);
      assert_true(boxes[i].y + boxes[i].h < 480.1);
      for (uint32_t j = 0; j < i; j++) assert_false(meet(&boxes[i], &boxes[j]));
    }
  }
  tells(text, "1 operations are not where the expert has them");
  tells(text, "cpu:0 450.0 us, expert 350.0 us</span>");
  tells(text, "cpu:1 218.0 us, expert 318.0 us</span>");
  // The answer cuts a to c (1 kB), c to d (2 kB) and d to e (4 kB), each line as wide as its bytes.
  tells(text, "7.0 kB go to another device, most of it:</p>\n<ol class=\"cuts\"><li>4.0 kB of net/d to net/e</li>\n"
              "<li>2.0 kB of net/c to net/d</li>\n<li>1.0 kB of net/a to net/c</li>\n</ol>");
  tells(text, "stroke-width=\"2.3\"/>"), tells(text, "stroke-width=\"3.8\"/>"), tells(text, "stroke-width=\"6.8\"/>");
  // The expert has a and c together, and cuts a to b instead, which has 1 kB as well.
  tells(text, "<li>1.0 kB of net/a to net/b</li>");
  free(text);
}

// The map has what moved in the traced step: a tensor once for each device to which it goes, however many boxes read it
// there, and what the step received of nodes that take no time (variables).
static void test_moved_map(void **state) {
  (void)state;
  char *html = page_of_changed(
      "moved", "INSERT INTO edge (run_id, edge_id, producer, output, consumer, bytes) VALUES (1, 90, 0, 0, 4, 1000);"
               " INSERT INTO node (run_id, node_id, unit_id, name, op) VALUES (1, 90, 0, 'net/w', 'Const');"
               " INSERT INTO edge (run_id, edge_id, producer, output, consumer, bytes) VALUES (1, 91, 90, 0, 4, 9000);"
               " INSERT INTO transfer (placement, step, position, node_id, output, source, target, bytes, start_ns,"
               " duration_ns) SELECT DISTINCT placement, step, 900, 90, 0, 0, 1, 9000, 1000, 1000 FROM op;"
               " INSERT INTO op_total (placement, node_id, device_id, samples, median_ns, fastest_ns, total_ns) SELECT "
               "placement, node_id, device_id, 2, duration_ns, duration_ns, 2 * duration_ns FROM"
               " op WHERE step = 0");
  char *map = part(html, "<section id=\"map\">", "</section>");
  tells(map, "16.0 kB go to another device, most of it:</p>\n<ol class=\"cuts\"><li>9.0 kB of net/w to net/e</li>\n");
  tells(map, "<li>1.0 kB of net/a to net/c</li>");
  if (strstr(map, "of net/a to net/e")) fail_msg("a tensor counts twice in: %s", map);
  free(map);
  free(html);
}

// Tests a map of many scopes: boxes overlap only where one is a scope and the other is inside it.
static void test_nested_map(void **state) {
  (void)state;
  struct tfc_store *db = NULL;
  struct tfc_text html = {0};
  static struct drawn boxes[400];
  assert_ok(tfc_store_open(sample_path, &(struct tfc_store_options){0}, &db));
  assert_ok(tfc_report_html(db, -1, &html));
  const uint32_t count = boxes_of(html.data, 'a', boxes, 400);
  uint32_t scopes = 0, nested = 0, helpful = 0;
  char *won = part(html.data, "<h3>What would help most</h3>", "</ol>"); // no more than three operations
  for (const char *p = won; (p = strstr(p, "<li>")); p++) helpful++;
  assert_int_equal(helpful, 3);
  free(won);
  assert_true(count > 10);
  for (uint32_t i = 0; i < count; i++) {
    scopes += !boxes[i].leaf;
    for (uint32_t j = 0; j < i; j++) {
      if (!meet(&boxes[i], &boxes[j])) continue;
      const bool inside = within(&boxes[i], &boxes[j]) && !boxes[j].leaf;
      const bool outside = within(&boxes[j], &boxes[i]) && !boxes[i].leaf;
      assert_true(inside || outside);
      nested++;
    }
  }
  print_message("%u boxes, %u scopes, %u nested\n", count, scopes, nested);
  assert_true(scopes > 0 && nested >= scopes); // every scope has a box in it, or is in another one
  tfc_text_deinit(&html);
  tfc_store_close(db);
}

// Tests a run on more devices than there are colours: all of them are on the map and in every plot.
static void test_many_devices(void **state) {
  (void)state;
  char *html = page_of_changed(
      "many", "WITH RECURSIVE k(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM k WHERE n < 79) INSERT INTO device (run_id,"
              " device_id, name, kind, label) SELECT 1, n, 'cpu:' || n, 'cpu', 'measured' FROM k;"
              " UPDATE op SET device_id = 79 WHERE device_id = 1; UPDATE busy SET device_id = 79 WHERE device_id = 1;"
              " UPDATE memory SET device_id = 79 WHERE device_id = 1;"
              " UPDATE assignment SET device_id = 79 WHERE device_id = 1;"
              " UPDATE transfer SET source = CASE source WHEN 1 THEN 79 ELSE 0 END,"
              " target = CASE target WHEN 1 THEN 79 ELSE 0 END;"
              " INSERT INTO op_total (placement, node_id, device_id, samples, median_ns, fastest_ns, total_ns) SELECT "
              "placement, node_id, device_id, 2, duration_ns, duration_ns, 2 * duration_ns FROM"
              " op WHERE step = 0");
  char *map = part(html, "<section id=\"map\">", "</section>");
  tells(map, "cpu:79 218.0 us</span>");
  tells(map, "Some devices have the same colour");
  tells(map, "90deg,var(--d15) 0.0% 100.0%)");
  tells(map, "7.0 kB go to another device");
  if (strstr(map, "var(--line)")) fail_msg("a box without a colour in: %s", map);
  if (strstr(html, "gnuplot failed")) fail_msg("%.400s", strstr(html, "gnuplot failed"));
  free(map);
  free(html);
}

// Operations that take too little to be seen are one box, which says how many they are.
static void test_small_operations(void **state) {
  (void)state;
  char *html = page_of_changed("small", "UPDATE op SET duration_ns = 1000 WHERE node_id IN (0, 2)");
  char *map = part(html, "<section id=\"map\">", "</section>");
  tells(map, "title=\"small parts of net 2.00 us\""); // a and c, of a, b, c, d and e
  if (strstr(map, "title=\"net/a ") || !strstr(map, "title=\"net/b ")) fail_msg("%s", map);
  free(map);
  free(html);
}

// A scope of many small equal parts is one box of its own name, not "small parts" of it.
static void test_scope_of_small_parts(void **state) {
  (void)state;
  char *html = page_of_changed(
      "parts", "WITH RECURSIVE k(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM k WHERE n < 299) INSERT INTO node (run_id,"
               " node_id, unit_id, name, op) SELECT 1, 1000 + n, 0, 'soft/step' || n || '/x', 'Relu' FROM k;"
               " INSERT INTO op (placement, step, position, node_id, device_id, start_ns, duration_ns) SELECT DISTINCT"
               " o.placement, o.step, n.node_id, n.node_id, 0, 1000, 1000 FROM op o, node n WHERE n.node_id >= 1000");
  char *map = part(html, "<section id=\"map\">", "</section>");
  tells(map, "title=\"soft/ 300.0 us\"><span>soft</span>");
  if (strstr(map, "small parts of soft")) fail_msg("%s", map);
  free(map);
  free(html);
}

// The page says once of which step its figures are.
static void test_basis(void **state) {
  (void)state;
  html_says(
      page, "id=\"basis\">", "</p>",
      "What is said of operations, devices and transfers is of one step, so that all figures add up: step 0, which "
      "took 600.0 us, the traced one nearest to the median. What is of more steps says so.");
}

static double at(const json_t *list, size_t i) {
  const json_t *x = json_array_get(list, i);
  if (!json_is_number(x)) fail_msg("number %zu of a list is none", i);
  return json_number_value(x);
}
static void equal(double x, double expected) {
  if (!(fabs(x - expected) < 1e-6)) fail_msg("%.9g, not %.9g", x, expected);
}
static void list_is(const json_t *list, size_t count, const double *expected) {
  assert_int_equal(json_array_size(list), count);
  for (size_t i = 0; i < count; i++) equal(at(list, i), expected[i]);
}

// The page's data, as the script reads it.
static void test_data(void **state) {
  (void)state;
  char *text = part(page, "<script type=\"application/json\" id=\"data\">", "</script>");
  json_error_t error;
  json_t *data = json_loads(text, 0, &error);
  if (!data) fail_msg("%s: %.300s", error.text, text);
  equal(json_number_value(json_object_get(data, "factor")), 1);
  assert_string_equal(json_string_value(json_object_get(data, "unit")), "µs");
  equal(json_number_value(json_object_get(data, "end")), 600000);
  const json_t *devices = json_object_get(data, "devices"), *nodes = json_object_get(data, "nodes"),
               *ops = json_object_get(data, "ops"), *transfers = json_object_get(data, "transfers"),
               *gaps = json_object_get(data, "gaps");
  assert_int_equal(json_array_size(devices), 2);
  for (size_t d = 0; d < 2; d++) {
    assert_string_equal(json_string_value(json_array_get(json_array_get(devices, d), 0)), d ? "cpu:1" : "cpu:0");
    equal(at(json_array_get(devices, d), 1), (double)d);
  }
  // id, name, type, device, median, half range, bytes, FLOP, slack, box, family; the slowest first.
  static const struct {
    int id;
    const char *name, *op, *device;
    double median, half, bytes, flops, slack;
    int family;
  } expected[] = {{1, "net/b", "MatMul", "cpu:0", 300, 0, 2000, 2000, 0, 0},
                  {4, "net/e", "Softmax", "cpu:1", 118, 1, 5000, 0, 0, 3},
                  {0, "net/a", "MatMul", "cpu:0", 100, 0, 1000, 1000, 0, 0},
                  {2, "net/c", "Relu", "cpu:1", 100, 0, 3000, 3000, 125, 2},
                  {3, "net/d", "AddV2", "cpu:0", 50, 0, 4000, 0, 0, 2}};
  assert_int_equal(json_array_size(nodes), 5);
  bool boxes[6] = {0};
  for (size_t i = 0; i < 5; i++) {
    const json_t *n = json_array_get(nodes, i);
    assert_int_equal(json_array_size(n), 11);
    equal(at(n, 0), expected[i].id);
    assert_string_equal(json_string_value(json_array_get(n, 1)), expected[i].name);
    assert_string_equal(json_string_value(json_array_get(n, 2)), expected[i].op);
    assert_string_equal(json_string_value(json_array_get(n, 3)), expected[i].device);
    equal(at(n, 4), expected[i].median), equal(at(n, 5), expected[i].half), equal(at(n, 6), expected[i].bytes);
    equal(at(n, 7), expected[i].flops);
    equal(at(n, 8), expected[i].slack), equal(at(n, 10), expected[i].family);
    const int box = (int)at(n, 9);
    char id[40];
    assert_true(box >= 1 && box <= 5 && !boxes[box]); // each is a box of its own
    boxes[box] = true;
    snprintf(id, sizeof id, "id=\"a%d\"", box);
    const char *div = strstr(page, id);
    assert_non_null(div);
    snprintf(id, sizeof id, "title=\"%s ", expected[i].name);
    assert_non_null(strstr(div, id));
    assert_true(strstr(div, id) < strstr(div, "</div>"));
  }
  static const double op[][4] = {
      {0, 0, 0, 100000}, {1, 0, 100000, 300000}, {2, 1, 155000, 100000}, {3, 0, 400000, 50000}, {4, 1, 482000, 118000}};
  static const double moved[][7] = {
      {0, 0, 0, 1, 100000, 50000, 1000}, {2, 0, 1, 0, 255000, 20000, 2000}, {3, 0, 0, 1, 450000, 30000, 4000}};
  static const double gap[][8] = {{1, 255000, 227000, 195000, 30000, 2000, 4, 3},
                                  {1, 0, 155000, 100000, 50000, 5000, 2, 0},
                                  {0, 450000, 150000, 0, 0, 150000, -1, -1}};
  assert_int_equal(json_array_size(ops), 5);
  assert_int_equal(json_array_size(transfers), 3);
  assert_int_equal(json_array_size(gaps), 3);
  for (size_t i = 0; i < 5; i++) list_is(json_array_get(ops, i), 4, op[i]);
  for (size_t i = 0; i < 3; i++) list_is(json_array_get(transfers, i), 7, moved[i]);
  for (size_t i = 0; i < 3; i++) list_is(json_array_get(gaps, i), 8, gap[i]);
  json_decref(data);
  free(text);
}

// The table of operations that is readable without a script.
static void test_table(void **state) {
  (void)state;
  char *table = part(page, "id=\"operations\">", "</tbody>");
  html_says(table, "<thead>", "<td class=\"name\">net/e",
            "operation|type|device|in the step|half range|output|FLOP|slack|\n"
            "net/b|MatMul|cpu:0|300.0 us|0.00 us|2.0 kB|2 k|0.00 us|\n");
  free(table);
  tells(page, "<p class=\"note\" id=\"more\">5 operations; all with tfc-report nodes 1 --csv.</p>");
}

// --- the trace -----------------------------------------------------------------------------------------------------

static json_t *trace_of(struct tfc_report_trace_options options, uint64_t *out_events) {
  char file[128];
  json_error_t error;
  snprintf(file, sizeof file, "%s/trace.json", folder);
  assert_ok(tfc_report_trace(store, 1, &options, file, out_events));
  json_t *trace = json_load_file(file, 0, &error);
  if (!trace) fail_msg("%s", error.text);
  return trace;
}
static double number(const json_t *event, const char *key) {
  const json_t *x = json_object_get(event, key);
  if (!json_is_number(x)) fail_msg("an event has no number '%s'", key);
  return json_number_value(x);
}
static const char *text_of(const json_t *event, const char *key) {
  const char *text = json_string_value(json_object_get(event, key));
  return text ? text : "";
}
// The event of this kind, place and time; fails if there is not just one.
static const json_t *event(const json_t *events, const char *ph, int pid, int tid, double ts, const char *name) {
  const json_t *found = NULL;
  for (size_t i = 0; i < json_array_size(events); i++) {
    const json_t *e = json_array_get(events, i);
    if (strcmp(text_of(e, "ph"), ph) != 0 || (int)number(e, "pid") != pid || (int)number(e, "tid") != tid) continue;
    if (fabs(number(e, "ts") - ts) > 1e-6 || strcmp(text_of(e, "name"), name) != 0) continue;
    if (found) fail_msg("two events %s of %d/%d at %g: %s", ph, pid, tid, ts, name);
    found = e;
  }
  if (!found) fail_msg("no event %s of %d/%d at %g: %s", ph, pid, tid, ts, name);
  return found;
}
// A flow arrow between two places and times.
static void flows(const json_t *events, int from_pid, int from_tid, double from, int to_pid, int to_tid, double to) {
  const double id = number(event(events, "s", from_pid, from_tid, from, "tensor"), "id");
  for (size_t i = 0; i < json_array_size(events); i++) {
    const json_t *e = json_array_get(events, i);
    if (strcmp(text_of(e, "ph"), "f") != 0 || fabs(number(e, "id") - id) > 0) continue;
    equal(number(e, "pid"), to_pid), equal(number(e, "tid"), to_tid), equal(number(e, "ts"), to);
    return;
  }
  fail_msg("no end of flow %g", id);
}

static void test_trace(void **state) {
  (void)state;
  uint64_t count = 0;
  json_t *trace = trace_of((struct tfc_report_trace_options){.last = 1000}, &count);
  const json_t *events = json_object_get(trace, "traceEvents");
  assert_int_equal(json_array_size(events), count);
  assert_string_equal(json_string_value(json_object_get(trace, "displayTimeUnit")), "ms");
  assert_string_equal(text_of(json_object_get(event(events, "M", 0, 0, 0, "process_name"), "args"), "name"), "steps");
  assert_string_equal(text_of(json_object_get(event(events, "M", 1, 0, 0, "process_name"), "args"), "name"),
                      "cpu:0 (measured)");
  assert_string_equal(text_of(json_object_get(event(events, "M", 2, 2, 0, "thread_name"), "args"), "name"), "arriving");
  for (int step = 0; step < 2; step++) {
    const double t = 1000 * step; // the second step begins a millisecond later, and e takes 4 us longer in it
    char name[32];
    snprintf(name, sizeof name, "step %d", step);
    equal(number(event(events, "X", 0, 1, t, name), "dur"), 600 + 4 * step);
    const json_t *a = event(events, "X", 1, 1, t, "MatMul"), *e = event(events, "X", 2, 1, t + 482, "Softmax");
    equal(number(a, "dur"), 100), equal(number(e, "dur"), 118 + 4 * step);
    assert_string_equal(text_of(json_object_get(a, "args"), "node"), "net/a");
    equal(number(json_object_get(e, "args"), "step"), step);
    equal(number(event(events, "X", 1, 1, t + 100, "MatMul"), "dur"), 300);
    equal(number(event(events, "X", 1, 1, t + 400, "AddV2"), "dur"), 50);
    equal(number(event(events, "X", 2, 1, t + 155, "Relu"), "dur"), 100);
    const json_t *d = event(events, "X", 2, 2, t + 450, "from cpu:0");
    equal(number(d, "dur"), 30), equal(number(json_object_get(d, "args"), "bytes"), 4000);
    assert_string_equal(text_of(json_object_get(d, "args"), "tensor"), "net/d:0");
    equal(number(event(events, "X", 1, 2, t + 255, "from cpu:1"), "dur"), 20);
    // From the producer to its transfer, and from there to the consumer.
    flows(events, 1, 1, t, 2, 2, t + 100), flows(events, 2, 2, t + 100, 2, 1, t + 155);
    flows(events, 2, 1, t + 155, 1, 2, t + 255), flows(events, 1, 2, t + 255, 1, 1, t + 400);
    flows(events, 1, 1, t + 400, 2, 2, t + 450), flows(events, 2, 2, t + 450, 2, 1, t + 482);
    // cpu:0 is busy from 0 to 450 us, cpu:1 from 155 to 255 and from 482 on.
    static const struct {
      int pid;
      double at;
      int busy;
    } counters[] = {{1, 0, 1}, {1, 450, 0}, {2, 155, 1}, {2, 255, 0}, {2, 482, 1}, {2, 600, 0}};
    for (size_t k = 0; k < 6; k++) {
      const double when = t + counters[k].at + (k == 5 ? 4 * step : 0);
      const json_t *c = event(events, "C", counters[k].pid, 0, when, "busy");
      equal(number(json_object_get(c, "args"), "busy"), counters[k].busy);
    }
    // cpu:1 holds a's copy of 1 kB from 100 us on, c (2 kB) until 275 us, and d's copy from 450 us to the end.
    equal(number(json_object_get(event(events, "C", 2, 0, t + 100, "memory"), "args"), "bytes"), 1000);
    equal(number(json_object_get(event(events, "C", 2, 0, t + 450, "memory"), "args"), "bytes"), 4000);
    equal(number(json_object_get(event(events, "C", 2, 0, t + 600 + 4 * step, "memory"), "args"), "bytes"), 0);
  }
  // Per step: a step, 5 operations, 3 transfers, 6 flows with two ends, 6 counters, and the memory's counters.
  size_t plain = 0;
  for (size_t i = 0; i < json_array_size(events); i++)
    plain += strcmp(text_of(json_array_get(events, i), "name"), "memory") != 0;
  assert_int_equal(plain, 1 + 2 * 3 + 2 * (1 + 5 + 3 + 12 + 6));
  json_decref(trace);
  // A node without a type, as those of cost graphs, is called by its name.
  change("UPDATE node SET op = '' WHERE node_id = 0");
  trace = trace_of((struct tfc_report_trace_options){.last = 0}, &count);
  event(json_object_get(trace, "traceEvents"), "X", 1, 1, 0, "net/a");
  json_decref(trace);
  change("UPDATE node SET op = 'MatMul' WHERE node_id = 0");
  // One step, by number; a placement by name and by number.
  trace = trace_of((struct tfc_report_trace_options){.placement = "answer", .first = 1, .last = 1}, &count);
  events = json_object_get(trace, "traceEvents");
  event(events, "X", 0, 1, 1000, "step 1");
  for (size_t i = 0; i < json_array_size(events); i++)
    assert_string_not_equal(text_of(json_array_get(events, i), "name"), "step 0");
  json_decref(trace);
  trace = trace_of((struct tfc_report_trace_options){.placement = "0", .first = 0, .last = 0}, &count);
  event(json_object_get(trace, "traceEvents"), "X", 0, 1, 0, "step 0");
  json_decref(trace);
  char file[128];
  snprintf(file, sizeof file, "%s/none.json", folder);
  assert_fails(tfc_report_trace(store, 1, &(struct tfc_report_trace_options){.first = 2, .last = 9}, file, &count),
               TFC_NOT_FOUND, "0 to 1");
  assert_fails(
      tfc_report_trace(store, 1, &(struct tfc_report_trace_options){.placement = "x", .last = 9}, file, &count),
      TFC_NOT_FOUND, "no placement 'x'");
  assert_fails(
      tfc_report_trace(store, 1, &(struct tfc_report_trace_options){.placement = "expert", .last = 9}, file, &count),
      TFC_NOT_FOUND, "no traced step");
}

// --- sentences -----------------------------------------------------------------------------------------------------

static void ends(const char *sql, const char *expected) {
  struct tfc_query_args args;
  struct tfc_table run = {0};
  struct tfc_text text = {0};
  change(sql);
  assert_ok(tfc_report_focus(store, 1, &args));
  assert_ok(tfc_table_query(store, tfc_report_sql_run, &args, &run));
  assert_ok(tfc_report_ending(store, &args, &run, &text));
  tfc_report_learning(&run, &text);
  assert_string_equal(text.data ? text.data : "", expected);
  tfc_text_deinit(&text);
  tfc_table_deinit(&run);
}
static void test_endings(void **state) {
  (void)state;
  ends("UPDATE run SET started_unix_s = 100, ended_unix_s = 130, command = 'tfc-place --graph g.pb --time 2m"
       " --measurements=50 --devices 2'",
       "It ended after 30.00 s of its 120.00 s with 0 candidates measured, of at most 50.");
  ends("UPDATE run SET command = 'tfc-place --graph g.pb'",
       "It ended after 30.00 s of its 600.00 s with 0 candidates measured, of at most 200.");
  // Why, where no limit was used up.
  ends("INSERT INTO state (run_id, name, value) VALUES (1, 'ending', CAST('further rounds found nothing' AS BLOB))",
       "It ended after 30.00 s of its 600.00 s with 0 candidates measured, of at most 200: further rounds found "
       "nothing.");
  ends("UPDATE run SET command = 'tfc-place --evaluate p.json'", "It measured what it was given, without a search.");
  ends("UPDATE run SET command = 'tfc-place --steps 3 --config quick.yaml --time 20s'",
       "It ended after 30.00 s with 0 candidates measured (its limits are those of quick.yaml): further rounds found "
       "nothing.");
  ends("UPDATE run SET command = 'tfc-place --steps 3 --step s.yaml'",
       "It ended after 30.00 s with 0 candidates measured (its limits are those of s.yaml): further rounds found "
       "nothing.");
  ends(
      "UPDATE run SET command = 'tfc-place --config quick.yaml --time 2m --measurements 7'",
      "It ended after 30.00 s of its 120.00 s with 0 candidates measured, of at most 7: further rounds found nothing.");
  change("DELETE FROM state WHERE name = 'ending'");
  ends("UPDATE run SET label = 'modelled', command = 'tfc-place --machine m.yaml'",
       "It simulated for 30.00 s and measured nothing.");
  ends("UPDATE run SET label = 'measured', state = 'failed'", "It failed.");
  ends("UPDATE run SET state = 'interrupted'", "It was interrupted: tfc-place --resume goes on with it.");
  ends("UPDATE run SET state = 'running'", "It has not ended, or was killed.");
  ends("UPDATE run SET state = 'done', program = 'tfc-run'", "");
  ends("INSERT INTO placement (run_id, placement_id, role, name, algorithm, episode, state, label, steps) VALUES"
       " (1, 30, 'candidate', 'c 30', 'lns', 1, 'no fit', 'measured', 0)",
       "None of the candidates fits in memory.");
  ends("DELETE FROM placement WHERE placement_id = 30; INSERT INTO placement (run_id, placement_id, role, name,"
       " algorithm, episode, state, label, median_us, steps)"
       " VALUES (1, 20, 'candidate', 'c 20', 'lns', 3, 'ok', 'measured', 550, 5), (1, 21, 'candidate', 'c 21', 'heft',"
       " 4, 'ok', 'measured', 560, 5), (1, 22, 'candidate', 'c 22', 'x', 5, 'failed', 'measured', 100, 1)",
       "The best candidate seen is c 20 by lns, 550.0 us when it was measured: it was not in the final turns, the "
       "answer took 600.0 us.");
  // Two blocks of the turns that choose, for each of the two: medians of 400 and 900 (geometric mean 600), 250 and
  // 1000.
  ends("INSERT INTO step (placement, step, phase, block, traced, start_ns, duration_ns) SELECT placement, 800 + "
       "column1, 'choose', column1 / 3, 0, 0, 1000 * column2 FROM placement,"
       " (VALUES (0, 400), (1, 9000), (2, 10), (3, 900)) WHERE placement_id = 20; INSERT INTO step (placement, step, "
       "phase, block, traced, start_ns, duration_ns) SELECT placement, 800"
       " + column1, 'choose', column1, 0, 0, 1000 * column2 FROM placement, (VALUES (0, 250), (1, 1000)) WHERE name ="
       " 'answer'",
       "The best candidate seen is c 20 by lns, 550.0 us when it was measured: it lost in the turns that chose the "
       "answer, 600.0 us there and the answer 500.0 us; in the turns after them the answer took 600.0 us.");
  ends("UPDATE placement SET final_median_us = 620, final_steps = 9 WHERE placement_id = 20; INSERT INTO step "
       "(placement, step, phase, block, traced, start_ns, duration_ns) SELECT"
       " placement, 900, 'final', 0, 0, 0, 620000 FROM placement WHERE placement_id = 20",
       "The best candidate seen is c 20 by lns, 550.0 us when it was measured, 620.0 us in the final turns: it lost "
       "there, the answer took 600.0 us.");
  ends("UPDATE run SET program = 'tfc-place', command = 'tfc-place --measurements 3'",
       "It ended with the 3 measurements that it had. The best candidate seen is c 20 by lns, 550.0 us when it was "
       "measured, 620.0 us in the final turns: it lost there, the answer took 600.0 us.");
  ends("UPDATE run SET best_placement_id = 20",
       "It ended with the 3 measurements that it had. The best candidate seen is c 20 by lns, 550.0 us when it was "
       "measured, 620.0 us in the final turns: the answer.");
  ends("INSERT INTO state (run_id, name, value) VALUES (1, 'learning', CAST('First line.' || char(10) || 'Second.' AS"
       " BLOB))",
       "It ended with the 3 measurements that it had. The best candidate seen is c 20 by lns, 550.0 us when it was "
       "measured, 620.0 us in the final turns: the answer. First line. Second.");
}

// --- parts ---------------------------------------------------------------------------------------------------------

static void test_scales(void **state) {
  (void)state;
  static const struct {
    double us, factor;
    const char *unit;
  } scales[] = {{1, 1, "µs"},         {999.9, 1, "µs"}, {1000, 1e-3, "ms"},
                {999999, 1e-3, "ms"}, {1e6, 1e-6, "s"}, {NAN, 1e-3, "ms"}};
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
    const struct tfc_plot_scale s = tfc_plot_scale_of(scales[i].us);
    assert_true(fabs(s.factor / scales[i].factor - 1) < 1e-12);
    assert_string_equal(s.unit, scales[i].unit);
  }
}

// Ids become the plot's own, colours that mean something the page's; all else stays.
static void test_svg(void **state) {
  (void)state;
  static const char drawn[] =
      "<?xml?><svg id='x'><a id=\"y\" fill='rgb( 32,  36,  44)' stroke='rgb(1, 2, 3)'/><use href='#x'/><use "
      "href=\"#y\"/><b clip='url(#x)' c='rgb(0, 110, 174)' d='rgb(51,33,135)'>rgb(</b></svg>rest";
  struct tfc_text out = {0};
  clean_svg("steps-n", drawn, strstr(drawn, "rest"), &out);
  assert_string_equal(out.data, "<svg id='steps-n-x'><a id=\"steps-n-y\" fill='var(--ink)' stroke='rgb(1, 2, 3)'/><use "
                                "href='#steps-n-x'/><use href=\"#steps-n-y\"/><b clip='url(#steps-n-x)' c='var(--d0)' "
                                "d='var(--f0)'>rgb(</b></svg>");
  tfc_text_deinit(&out);
  // Cells of a datablock: what would end it is replaced.
  const struct tfc_cell cells[] = {{.real = NAN},
                                   tfc_cell_integer(-5),
                                   tfc_cell_real(0.1),
                                   tfc_cell_text(TFC_STR("a\"b\\c\nd")),
                                   tfc_cell_text(TFC_STR(""))};
  for (size_t i = 0; i < 5; i++) add_cell(&out, &cells[i]), tfc_text_add(&out, TFC_STR("|"));
  assert_string_equal(out.data, "NaN|-5|0.1|\"a'b'c'd\"|\"\"|");
  tfc_text_deinit(&out);
  // Two plots of two pictures each, in the order in which they were requested; the second plot has a note instead.
  struct tfc_plot plots[3] = {0};
  static const char *const names[] = {"one.gp", "two", "three"};
  static const char pictures[] = "<svg>1</svg>\n<svg id='i'>2</svg><svg>3</svg> <svg>4</svg>";
  struct tfc_text all = {.data = (char *)(uintptr_t)pictures, .size = sizeof pictures - 1};
  tfc_text_printf(&plots[1].note, "nothing");
  assert_true(take_pictures(&all, plots, names, 3));
  assert_string_equal(plots[0].svg.data, "<svg>1</svg>");
  assert_string_equal(plots[0].narrow.data, "<svg id='one-n-i'>2</svg>");
  assert_true(!plots[1].svg.data && !plots[1].narrow.data);
  assert_string_equal(plots[2].svg.data, "<svg>3</svg>");
  assert_string_equal(plots[2].narrow.data, "<svg>4</svg>");
  for (int i = 0; i < 3; i++) tfc_plot_deinit(&plots[i]);
  memset(plots, 0, sizeof plots);
  assert_false(take_pictures(&all, plots, names, 3)); // six pictures are too many
  for (int i = 0; i < 3; i++) tfc_plot_deinit(&plots[i]);
}

// A gnuplot that does not end is ended, and each plot has a note that says so. No plot gets a second run of gnuplot,
// which would hang, too.
static void test_hanging_gnuplot(void **state) {
  (void)state;
  static const char *const names[] = {"steps", "spread", "utilisation"};
  const int64_t usual_limit = plot_limit_ns;
  struct tfc_query_args args;
  struct tfc_plot plots[3] = {0};
  char command[256], started_path[128], *usual_path;
  struct tfc_file started;
  assert_ok(tfc_report_focus(store, 1, &args));
  snprintf(started_path, sizeof started_path, "%s/started", folder);
  snprintf(command, sizeof command, "echo once >>%s; sleep 600", started_path);
  usual_path = put_gnuplot(folder, command);
  plot_limit_ns = 2000000000;
  tfc_status s = tfc_plots_draw(store, names, 3, &args, tfc_plot_scale_of(1), plots);
  plot_limit_ns = usual_limit;
  remove_gnuplot(folder, usual_path);
  assert_ok(s);
  for (int i = 0; i < 3; i++) {
    assert_string_equal(plots[i].note.data, "gnuplot had not drawn it after 2 s, and was ended");
    assert_true(!plots[i].svg.size && !plots[i].narrow.size);
    tfc_plot_deinit(&plots[i]);
  }
  assert_ok(tfc_file_map(started_path, &started));
  assert_true(tfc_str_is((tfc_str){(const char *)started.data, started.size}, "once\n"));
  tfc_file_unmap(&started);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_warnings),
                                     cmocka_unit_test(test_timeline),
                                     cmocka_unit_test(test_map),
                                     cmocka_unit_test(test_moved_map),
                                     cmocka_unit_test(test_nested_map),
                                     cmocka_unit_test(test_many_devices),
                                     cmocka_unit_test(test_small_operations),
                                     cmocka_unit_test(test_scope_of_small_parts),
                                     cmocka_unit_test(test_basis),
                                     cmocka_unit_test(test_data),
                                     cmocka_unit_test(test_table),
                                     cmocka_unit_test(test_trace),
                                     cmocka_unit_test(test_scales),
                                     cmocka_unit_test(test_svg),
                                     cmocka_unit_test(test_hanging_gnuplot),
                                     cmocka_unit_test(test_endings)}; // must be last, because it changes the run
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
