// Draws a plot: reads the "#@" lines of its script, runs their queries, and writes the rows as datablocks before the
// script. gnuplot reads and writes files in memory instead of pipes, so that neither process can block the other.
#include "reports/plot.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reports/memory.h"
#include "reports/palette.h"
#include "reports/tau.h"
#include "runtime/base/clock.h"
#include "runtime/base/interrupt.h"

static int64_t plot_limit_ns = INT64_C(60000000000); // for one run of gnuplot; a test sets it

extern char **environ;

const char *tfc_embedded_find(const char *name) {
  for (const struct tfc_embedded_file *f = tfc_embedded_files; f->name; f++)
    if (strcmp(f->name, name) == 0) return f->text;
  return NULL;
}

const char *tfc_plot_next(int place, int *out_place) {
  static const char mark[] = "\n#@ place: ";
  const char *name = NULL;
  for (const struct tfc_embedded_file *f = tfc_embedded_files; f->name; f++) {
    const char *line = strstr(f->text, mark);
    const int at = line ? atoi(line + sizeof mark - 1) : 0;
    if (at > place && (!name || at < *out_place)) name = f->name, *out_place = at;
  }
  return name;
}

struct tfc_plot_scale tfc_plot_scale_of(double us) {
  if (us >= 1e6) return (struct tfc_plot_scale){1e-6, "s"};
  if (us >= 1e3 || us != us) return (struct tfc_plot_scale){1e-3, "ms"};
  return (struct tfc_plot_scale){1, "µs"};
}

static void add_cell(struct tfc_text *out, const struct tfc_cell *cell) {
  switch (cell->kind) {
  case TFC_CELL_NULL: tfc_text_printf(out, "NaN"); break;
  case TFC_CELL_INTEGER: tfc_text_printf(out, "%lld", (long long)cell->integer); break;
  case TFC_CELL_REAL: tfc_text_printf(out, "%.12g", cell->real); break;
  case TFC_CELL_TEXT:
    tfc_text_printf(out, "\"");
    // The text is cut between characters, because gnuplot takes minutes for one of many megabytes.
    size_t size = cell->text.size < TFC_SHOWN_WORD ? cell->text.size : TFC_SHOWN_WORD;
    while (size && size < cell->text.size && ((unsigned char)cell->text.data[size] & 0xc0) == 0x80) size--;
    for (size_t i = 0; i < size; i++) { // those that would end the line of a datablock or a quoted text, and "`"
      char c = cell->text.data[i];
      bool odd = c == '"' || c == '\\' || c == '`' || (unsigned char)c < ' ';
      tfc_text_add(out, odd ? TFC_STR("'") : (tfc_str){&c, 1});
    }
    tfc_text_printf(out, "\"");
    break;
  }
}

struct drawing {
  struct tfc_store *store;
  const struct tfc_query_args *args;
  const char *script;
  struct tfc_text input;
  struct tfc_plot *plot;
};

static bool says(const struct drawing *d, const char *what,
                 tfc_str name) { // whether the script has the line "#@ WHAT NAME"
  char *wanted = tfc_format("#@ %s %.*s\n", what, TFC_STR_ARG(name));
  bool found = wanted && strstr(d->script, wanted);
  free(wanted);
  return found;
}

// Returns what a page says if this query has no rows; empty: the plot is not left out for that.
static tfc_str reason_without(const struct drawing *d, tfc_str name) {
  char *wanted = tfc_format("#@ left out without %.*s: ", TFC_STR_ARG(name));
  const char *line = wanted ? strstr(d->script, wanted) : NULL;
  const char *reason = line ? line + strlen(wanted) : "";
  free(wanted);
  return (tfc_str){reason, strcspn(reason, "\n")};
}

static tfc_status add_query(struct drawing *d, tfc_str name, struct tfc_text *sql) {
  struct tfc_table table = {0};
  tfc_status s = NULL;
  if (sql->failed || !sql->data) TFC_FAIL(s, TFC_INTERNAL, "query '%.*s' is empty", TFC_STR_ARG(name));
  s = tfc_table_query(d->store, sql->data, d->args, &table);
  const tfc_str reason = reason_without(d, name);
  if (s && reason.size) tfc_status_free(s), s = NULL; // databases of older versions have no such view
  if (s) goto out;
  if (reason.size && table.row_count == 0) {
    d->plot->left_out = true;
    tfc_text_add(&d->plot->reason, reason);
  }
  if (table.row_count == 0 && !says(d, "optional", name))
    tfc_text_printf(&d->plot->note, "%sNothing was recorded for it (%.*s).", d->plot->note.size ? " " : "",
                    TFC_STR_ARG(name));
  tfc_text_printf(&d->input, "$%.*s << END_OF_ROWS\n", TFC_STR_ARG(name));
  for (uint32_t r = 0; r < table.row_count; r++)
    for (uint32_t c = 0; c < table.column_count; c++) {
      if (c) tfc_text_printf(&d->input, "\t");
      add_cell(&d->input, tfc_table_cell(&table, r, c));
      if (c + 1 == table.column_count) tfc_text_printf(&d->input, "\n");
    }
  tfc_text_printf(&d->input, "END_OF_ROWS\n");
out:
  tfc_table_deinit(&table);
  return s;
}

// A line "{name}" of a query stands for one of these, which other reports use too.
static const struct {
  const char *name, *sql;
} shared_queries[] = {{"{held}", TFC_SQL_HELD}, {"{tau}", TFC_SQL_TAU}, {"{tau without}", TFC_SQL_TAU_WITHOUT}};
static tfc_str query_line(tfc_str line) {
  for (size_t i = 0; i < sizeof shared_queries / sizeof *shared_queries; i++)
    if (tfc_str_is(line, shared_queries[i].name)) return tfc_str_from(shared_queries[i].sql);
  return line;
}

// Reads the "#@" lines and runs the queries.
static tfc_status read_head(struct drawing *d) {
  struct tfc_text sql = {0};
  tfc_str name = {0};
  tfc_status s = NULL;
  const char *line = d->script;
  while (line && !d->plot->left_out) {
    size_t n = strcspn(line, "\n");
    tfc_str text = {line, n};
    bool head = tfc_str_starts(text, "#@");
    bool more = tfc_str_starts(text, "#@   ");
    if (!more && name.data) { // the query's last line was the one before
      tfc_text_printf(&d->plot->queries, ";");
      TFC_TRY(s, add_query(d, name, &sql));
      tfc_text_deinit(&sql);
      name = (tfc_str){0};
    }
    if (!head) break;
    tfc_str rest = tfc_str_sub(text, 3, SIZE_MAX);
    if (more) {
      const tfc_str more_sql = query_line(tfc_str_sub(text, 5, SIZE_MAX));
      tfc_text_printf(&sql, "%.*s\n", TFC_STR_ARG(more_sql));
      tfc_text_printf(&d->plot->queries, "\n%.*s", TFC_STR_ARG(more_sql));
    } else if (tfc_str_starts(rest, "title: ")) {
      tfc_text_add(&d->plot->title, tfc_str_sub(rest, 7, SIZE_MAX));
    } else if (tfc_str_starts(rest, "caption: ")) {
      tfc_text_add(&d->plot->caption, tfc_str_sub(rest, 9, SIZE_MAX));
    } else if (tfc_str_starts(rest, "query ")) {
      size_t colon = tfc_str_find(rest, ':');
      name = tfc_str_sub(rest, 6, colon);
      tfc_text_printf(&d->plot->queries, "%s-- %.*s\n", d->plot->queries.size ? "\n\n" : "",
                      TFC_STR_ARG(tfc_str_sub(rest, 6, SIZE_MAX)));
    }
    line = line[n] ? line + n + 1 : NULL;
  }
out:
  tfc_text_deinit(&sql);
  return s;
}

static tfc_status read_back(int fd, struct tfc_text *out) {
  off_t size = lseek(fd, 0, SEEK_END);
  char buffer[65536];
  for (off_t at = 0; at < size;) {
    ssize_t n = pread(fd, buffer, sizeof buffer, at);
    if (n <= 0) return tfc_status_make(TFC_INTERNAL, "gnuplot's output could not be read");
    tfc_text_add(out, (tfc_str){buffer, (size_t)n});
    at += n;
  }
  return NULL;
}

// Starts gnuplot in a process group of its own, so that whatever it starts can be ended with it.
static tfc_status start_gnuplot(int in, int result, int errors, pid_t *out) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t usual;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, result, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int rc = posix_spawnp(out, "gnuplot", &actions, &attributes,
                              (char *[]){(char *)"gnuplot", (char *)"-d", (char *)"-", NULL}, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return rc == 0 ? NULL
                 : tfc_status_make(TFC_UNAVAILABLE,
                                   "gnuplot could not be started (%s): install the package gnuplot-nox", strerror(rc));
}

// Waits for gnuplot to end, and ends its process group. CANCELLED: a signal came; DEADLINE_EXCEEDED: it took too long.
static tfc_status wait_for_gnuplot(pid_t pid, int *out_state) {
  const int64_t end = tfc_now_ns() + plot_limit_ns;
  struct timespec pause = {.tv_nsec = 1000000};
  tfc_status s = NULL;
  siginfo_t info = {0};
  tfc_interrupt_child(pid);
  // WNOWAIT keeps the process as a zombie, so that no other process group can get its number before kill()
  while (!s && (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)) {
    s = tfc_interrupted("gnuplot was drawing the plots");
    if (tfc_status_code(s) != TFC_CANCELLED) tfc_status_free(s), s = NULL;
    if (!s && tfc_now_ns() > end)
      s = tfc_status_make(TFC_DEADLINE_EXCEEDED, "gnuplot had not drawn it after %g s, and was ended",
                          (double)plot_limit_ns * 1e-9);
    if (!s) nanosleep(&pause, NULL);
    if (pause.tv_nsec < 20000000) pause.tv_nsec += 1000000;
  }
  kill(-pid, SIGKILL);
  tfc_interrupt_child(0);
  while (waitpid(pid, out_state, 0) < 0 && errno == EINTR) continue;
  return s;
}

// Runs gnuplot on `input`. UNAVAILABLE: it is not installed; INTERNAL: it failed, with its message; else as
// wait_for_gnuplot.
static tfc_status run_gnuplot(const struct tfc_text *input, struct tfc_text *out) {
  tfc_status s = NULL;
  struct tfc_text said = {0};
  int in = memfd_create("plot", MFD_CLOEXEC), result = memfd_create("svg", MFD_CLOEXEC),
      errors = memfd_create("errors", MFD_CLOEXEC), state = 0;
  pid_t pid;
  if (in < 0 || result < 0 || errors < 0) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "no memory for a plot");
  for (size_t at = 0; at < input->size;) {
    ssize_t n = write(in, input->data + at, input->size - at);
    if (n <= 0) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "no memory for a plot");
    at += (size_t)n;
  }
  lseek(in, 0, SEEK_SET);
  TFC_TRY(s, start_gnuplot(in, result, errors, &pid));
  TFC_TRY(s, wait_for_gnuplot(pid, &state));
  TFC_TRY(s, read_back(errors, &said));
  TFC_TRY(s, read_back(result, out));
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
    TFC_FAIL(s, TFC_INTERNAL, "gnuplot failed: %.*s", (int)(said.size < 600 ? said.size : 600),
             said.data ? said.data : "");
out:
  if (in >= 0) close(in);
  if (result >= 0) close(result);
  if (errors >= 0) close(errors);
  tfc_text_deinit(&said);
  return s;
}

// Replaces colours that have a meaning by custom properties of the page, so that a dark page can use other colours.
static bool add_colour(struct tfc_text *out, const char *at, size_t *out_size) {
  static const struct {
    uint32_t rgb;
    const char *name;
  } inks[] = {
      {0x20242C, "ink"}, {0x60656F, "soft"}, {0xB8BCC4, "rule"}, {0xE4E7EC, "line"}, {TFC_PALETTE_ACCENT, "accent"}};
  unsigned r, g, b;
  int size = 0;
  if (sscanf(at, "rgb(%u ,%u ,%u )%n", &r, &g, &b, &size) != 3 || size == 0) return false;
  const uint32_t rgb = r << 16 | g << 8 | b;
  *out_size = (size_t)size;
  for (size_t i = 0; i < sizeof inks / sizeof *inks; i++)
    if (rgb == inks[i].rgb) return tfc_text_printf(out, "var(--%s)", inks[i].name), true;
  for (uint32_t i = 0; i < TFC_OP_FAMILIES; i++)
    if (rgb == tfc_palette_family_rgb(i)) return tfc_text_printf(out, "var(--f%u)", i), true;
  for (uint32_t i = 0; i < TFC_DEVICE_COLOURS; i++)
    if (rgb == tfc_palette_device_rgb(i)) return tfc_text_printf(out, "var(--d%u)", i), true;
  return false;
}

// Takes the <svg> element, and makes its ids unique by the plot's name, because a page has many plots.
static void clean_svg(const char *name, const char *svg, const char *end, struct tfc_text *out) {
  static const char *const marks[] = {"id='", "id=\"", "url(#", "href='#", "href=\"#", "rgb("};
  enum { MARKS = sizeof marks / sizeof *marks, COLOUR = MARKS - 1 };
  const char *p = strstr(svg, "<svg"), *found[MARKS];
  for (size_t i = 0; i < MARKS; i++) found[i] = p ? strstr(p, marks[i]) : NULL;
  while (p && p < end) {
    size_t which = MARKS, size = 0;
    for (size_t i = 0; i < MARKS; i++) {
      if (found[i] && found[i] < p) found[i] = strstr(p, marks[i]);
      if (found[i] && found[i] < end && (which == MARKS || found[i] < found[which])) which = i;
    }
    const char *next = which < MARKS ? found[which] : end;
    tfc_text_add(out, (tfc_str){p, (size_t)(next - p)});
    if (which == MARKS) return;
    if (which == COLOUR && add_colour(out, next, &size)) {
      p = next + size;
      continue;
    }
    tfc_text_printf(out, "%s", marks[which]);
    if (which != COLOUR) tfc_text_printf(out, "%s-", name);
    p = next + strlen(marks[which]);
  }
}

// Makes the colours that every script gets in addition to its rows: by device_id and by type of operation.
enum { MOST_DEVICES = 65536 };
static tfc_status make_colours(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_text *out) {
  struct tfc_table devices = {0}, ops = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(store, "SELECT device_id, name FROM v_device WHERE run_id = :run", args, &devices));
  TFC_TRY(s, tfc_table_query(store, "SELECT DISTINCT op FROM v_node WHERE run_id = :run", args, &ops));
  int64_t size = 1;
  for (uint32_t r = 0; r < devices.row_count; r++) {
    const int64_t id = tfc_table_cell(&devices, r, 0)->integer;
    if (id >= size && id < MOST_DEVICES) size = id + 1;
  }
  tfc_text_printf(out, "array device_colour[%lld]\ndo for [i = 1:%lld] { device_colour[i] = 0x60656f }\n",
                  (long long)size, (long long)size);
  for (uint32_t r = 0; r < devices.row_count; r++) {
    int64_t id = tfc_table_cell(&devices, r, 0)->integer;
    if (id >= 0 && id < size)
      tfc_text_printf(out, "device_colour[%lld] = 0x%06x\n", (long long)id + 1,
                      tfc_palette_device_rgb(tfc_palette_device(tfc_table_cell(&devices, r, 1)->text)));
  }
  for (uint32_t f = 0; f < TFC_OP_FAMILIES; f++) {
    tfc_text_printf(out, "family_%u = \" ", f);
    for (uint32_t r = 0; r < ops.row_count; r++) {
      tfc_str op = tfc_table_cell(&ops, r, 0)->text;
      // The types become part of gnuplot's program, in which a text between "`" is run as a command. So only types made
      // of the characters that TensorFlow's own have are listed; others get the colour of what belongs to no family.
      bool plain = op.size > 0 && op.size <= TFC_SHOWN_WORD;
      for (size_t i = 0; i < op.size && plain; i++)
        plain = op.data[i] && (isalnum((unsigned char)op.data[i]) || strchr("_>.-", op.data[i]));
      if (plain && tfc_palette_family(op) == f) tfc_text_printf(out, "%.*s ", TFC_STR_ARG(op));
    }
    tfc_text_printf(out, "\"\n");
  }
  tfc_text_printf(out, "op_colour(name) = ");
  for (uint32_t f = 0; f + 1 < TFC_OP_FAMILIES; f++)
    tfc_text_printf(out, "strstrt(family_%u, \" \".name.\" \") > 0 ? 0x%06x : ", f, tfc_palette_family_rgb(f));
  tfc_text_printf(out, "0x%06x\n", tfc_palette_family_rgb(TFC_OP_FAMILIES - 1));
out:
  tfc_table_deinit(&devices);
  tfc_table_deinit(&ops);
  return s;
}

// Each plot has two pictures: for a page and for a telephone.
enum { WIDE, NARROW, WIDTHS };
static const int widths[WIDTHS] = {1060, 340};

static void add_drawing(struct tfc_text *input, const char *name, int width, const struct tfc_text *colours,
                        const struct tfc_query_args *args, struct tfc_plot_scale scale, const struct drawing *d) {
  tfc_text_printf(input,
                  "reset session\nNAME = '%.*s'\nW = %d\nrun = %lld\nplacement = %lld\nstep = %lld\nscale = %.17g\n"
                  "unit = '%s'\n",
                  (int)strcspn(name, "."), name, width, (long long)args->run, (long long)args->placement,
                  (long long)args->step, scale.factor, scale.unit);
  tfc_text_add(input, (tfc_str){colours->data, colours->size});
  tfc_text_add(input, (tfc_str){d->input.data, d->input.size});
  tfc_text_printf(input, "%s\n%s\n", tfc_embedded_find("style.gp"), d->script);
}

// Cuts `svg` into its pictures, which are in the order in which they were requested.
static bool take_pictures(const struct tfc_text *svg, struct tfc_plot *plots, const char *const *names,
                          uint32_t count) {
  const char *at = svg->data ? strstr(svg->data, "<svg") : NULL, *end = svg->data + svg->size;
  for (uint32_t i = 0; i < count; i++) {
    if (plots[i].note.size || plots[i].left_out) continue;
    for (int w = 0; w < WIDTHS; w++) {
      const char *stop = at ? strstr(at, "</svg>") : NULL;
      char name[64];
      if (!stop) return false;
      stop += strlen("</svg>");
      snprintf(name, sizeof name, "%.*s%s", (int)strcspn(names[i], "."), names[i], w == NARROW ? "-n" : "");
      clean_svg(name, at, stop, w == NARROW ? &plots[i].narrow : &plots[i].svg);
      at = stop < end ? strstr(stop, "<svg") : NULL;
    }
  }
  return true;
}

// Draws all plots in one run of gnuplot. If that fails, each plot gets a run of its own, so that only the faulty one is
// missing. If gnuplot hangs, this is not done, because each of these runs would hang, too.
static tfc_status draw(struct tfc_plot *plots, const char *const *names, uint32_t count, struct drawing *d,
                       const struct tfc_text *colours, const struct tfc_query_args *args, struct tfc_plot_scale scale) {
  struct tfc_text input = {0}, svg = {0};
  tfc_status s = NULL;
  for (uint32_t i = 0; i < count; i++)
    for (int w = 0; w < WIDTHS && !plots[i].note.size && !plots[i].left_out; w++)
      add_drawing(&input, names[i], widths[w], colours, args, scale, &d[i]);
  if (!input.size) return NULL;
  if (input.failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  tfc_status failed = run_gnuplot(&input, &svg);
  if (!failed && !take_pictures(&svg, plots, names, count))
    failed = tfc_status_make(TFC_INTERNAL, "gnuplot drew fewer pictures than it was asked for");
  if (tfc_status_code(failed) == TFC_CANCELLED) s = failed, failed = NULL;
  const bool last = count == 1 || tfc_status_code(failed) == TFC_DEADLINE_EXCEEDED;
  for (uint32_t i = 0; i < count && failed && !s; i++) {
    tfc_text_deinit(&plots[i].svg);
    tfc_text_deinit(&plots[i].narrow);
    if (!last)
      s = draw(&plots[i], &names[i], 1, &d[i], colours, args, scale);
    else if (!plots[i].note.size && !plots[i].left_out)
      tfc_text_printf(&plots[i].note, "%s", tfc_status_message(failed));
  }
  tfc_status_free(failed);
out:
  tfc_text_deinit(&input);
  tfc_text_deinit(&svg);
  return s;
}

tfc_status tfc_plots_draw(struct tfc_store *store, const char *const *names, uint32_t count,
                          const struct tfc_query_args *args, struct tfc_plot_scale scale, struct tfc_plot *out) {
  struct tfc_text colours = {0};
  struct tfc_plot *plots = calloc(count + 1u, sizeof *plots);
  struct drawing *d = calloc(count + 1u, sizeof *d);
  tfc_status s = NULL;
  if (!plots || !d) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, make_colours(store, args, &colours));
  for (uint32_t i = 0; i < count; i++) {
    char *file = tfc_format("%.*s.gp", (int)strcspn(names[i], "."), names[i]);
    d[i] = (struct drawing){
        .store = store, .args = args, .plot = &plots[i], .script = file ? tfc_embedded_find(file) : NULL};
    free(file);
    if (!d[i].script) TFC_FAIL(s, TFC_NOT_FOUND, "there is no plot '%s'", names[i]);
    TFC_TRY(s, tfc_status_annotate(read_head(&d[i]), "plot '%s'", names[i]));
  }
  TFC_TRY(s, draw(plots, names, count, d, &colours, args, scale));
  for (uint32_t i = 0; i < count; i++)
    if (plots[i].svg.failed || plots[i].narrow.failed || plots[i].queries.failed || plots[i].note.failed)
      TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < count; i++) out[i] = plots[i], plots[i] = (struct tfc_plot){0};
out:
  for (uint32_t i = 0; i < count && plots && d; i++) {
    tfc_plot_deinit(&plots[i]);
    tfc_text_deinit(&d[i].input);
  }
  tfc_text_deinit(&colours);
  free(plots);
  free(d);
  return s;
}

tfc_status tfc_plot_draw_given(const char *name, tfc_str rows, struct tfc_plot *out) {
  tfc_status s = NULL;
  struct tfc_plot plot = {0};
  struct tfc_text no_colours = {0};
  const struct tfc_query_args args = {0};
  struct drawing d = {.args = &args, .plot = &plot, .script = tfc_embedded_find(name)};
  if (!d.script) return tfc_status_make(TFC_NOT_FOUND, "there is no plot '%s'", name);
  TFC_TRY(s, read_head(&d));
  tfc_text_add(&d.input, rows);
  TFC_TRY(s, draw(&plot, &name, 1, &d, &no_colours, &args, tfc_plot_scale_of(1)));
  *out = plot, plot = (struct tfc_plot){0};
out:
  tfc_text_deinit(&d.input);
  tfc_plot_deinit(&plot);
  return s;
}

void tfc_plot_deinit(struct tfc_plot *plot) {
  tfc_text_deinit(&plot->svg);
  tfc_text_deinit(&plot->narrow);
  tfc_text_deinit(&plot->title);
  tfc_text_deinit(&plot->caption);
  tfc_text_deinit(&plot->queries);
  tfc_text_deinit(&plot->note);
  tfc_text_deinit(&plot->reason);
}
