// Drawing a plot: the script's "#@" lines are read, its queries run, and their rows written in front of the script as
// datablocks. gnuplot reads and writes files in memory, not pipes, so that neither process can block the other.
#include "reports/plot.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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
    for (size_t i = 0; i < cell->text.size; i++) { // characters that would end the line of a datablock
      char c = cell->text.data[i];
      bool odd = c == '"' || c == '\\' || (unsigned char)c < ' ';
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

static bool says(const struct drawing *d, const char *what, tfc_str name) { // of a query
  char *wanted = tfc_format("#@ %s %.*s\n", what, TFC_STR_ARG(name));
  bool found = wanted && strstr(d->script, wanted);
  free(wanted);
  return found;
}

static tfc_status add_query(struct drawing *d, tfc_str name, struct tfc_text *sql) {
  struct tfc_table table = {0};
  tfc_status s = NULL;
  if (sql->failed || !sql->data) TFC_FAIL(s, TFC_INTERNAL, "query '%.*s' is empty", TFC_STR_ARG(name));
  s = tfc_table_query(d->store, sql->data, d->args, &table);
  const bool may_lack = says(d, "left out without", name);
  if (s && may_lack) tfc_status_free(s), s = NULL; // databases of older versions have no such view
  if (s) goto out;
  if (may_lack && table.row_count == 0) d->plot->left_out = true;
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
      TFC_TRY(s, add_query(d, name, &sql));
      tfc_text_deinit(&sql);
      name = (tfc_str){0};
    }
    if (!head) break;
    tfc_str rest = tfc_str_sub(text, 3, SIZE_MAX);
    if (more) {
      tfc_text_add(&sql, tfc_str_sub(text, 5, SIZE_MAX));
      tfc_text_printf(&sql, "\n");
      tfc_text_printf(&d->plot->queries, "%.*s\n", TFC_STR_ARG(tfc_str_sub(text, 5, SIZE_MAX)));
    } else if (tfc_str_starts(rest, "title: ")) {
      tfc_text_add(&d->plot->title, tfc_str_sub(rest, 7, SIZE_MAX));
    } else if (tfc_str_starts(rest, "caption: ")) {
      tfc_text_add(&d->plot->caption, tfc_str_sub(rest, 9, SIZE_MAX));
    } else if (tfc_str_starts(rest, "query ")) {
      size_t colon = tfc_str_find(rest, ':');
      name = tfc_str_sub(rest, 6, colon);
      tfc_text_printf(&d->plot->queries, "%s-- %.*s\n", d->plot->queries.size ? "\n" : "",
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

// Runs gnuplot on `input`. UNAVAILABLE: it is not installed; INTERNAL: it failed, with its message.
static tfc_status run_gnuplot(const struct tfc_text *input, struct tfc_text *out) {
  tfc_status s = NULL;
  struct tfc_text said = {0};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int in = memfd_create("plot", MFD_CLOEXEC), result = memfd_create("svg", MFD_CLOEXEC),
      errors = memfd_create("errors", MFD_CLOEXEC), state = 0, rc;
  pid_t pid;
  if (in < 0 || result < 0 || errors < 0) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "no memory for a plot");
  for (size_t at = 0; at < input->size;) {
    ssize_t n = write(in, input->data + at, input->size - at);
    if (n <= 0) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "no memory for a plot");
    at += (size_t)n;
  }
  lseek(in, 0, SEEK_SET);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, result, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  rc = posix_spawnp(&pid, "gnuplot", &actions, NULL, (char *[]){(char *)"gnuplot", (char *)"-d", (char *)"-", NULL},
                    environ);
  if (rc != 0)
    TFC_FAIL(s, TFC_UNAVAILABLE, "gnuplot could not be started (%s): install the package gnuplot-nox", strerror(rc));
  while (waitpid(pid, &state, 0) < 0)
    if (errno != EINTR) break;
  TFC_TRY(s, read_back(errors, &said));
  TFC_TRY(s, read_back(result, out));
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
    TFC_FAIL(s, TFC_INTERNAL, "gnuplot failed: %.*s", (int)(said.size < 600 ? said.size : 600),
             said.data ? said.data : "");
out:
  if (in >= 0) close(in);
  if (result >= 0) close(result);
  if (errors >= 0) close(errors);
  posix_spawn_file_actions_destroy(&actions);
  tfc_text_deinit(&said);
  return s;
}

// Keeps the <svg> element only, and puts the plot's name before all its ids: a page holds many plots, and ids must
// differ.
static void clean_svg(int stem, const char *name, const struct tfc_text *svg, struct tfc_text *out) {
  const char *p = svg->data ? strstr(svg->data, "<svg") : NULL, *end = p ? svg->data + svg->size : NULL;
  static const char *const marks[] = {"id='", "id=\"", "url(#", "href='#", "href=\"#"};
  while (p && p < end) {
    const char *next = end;
    size_t mark_size = 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
      const char *found = strstr(p, marks[i]);
      if (found && found < next) next = found, mark_size = strlen(marks[i]);
    }
    tfc_text_add(out, (tfc_str){p, (size_t)(next - p) + mark_size});
    if (next < end) tfc_text_printf(out, "%.*s-", stem, name);
    p = next + mark_size;
  }
}

tfc_status tfc_plot_draw(struct tfc_store *store, const char *name, const struct tfc_query_args *args,
                         struct tfc_plot_scale scale, struct tfc_plot *out) {
  struct tfc_plot plot = {0};
  struct drawing d = {.store = store, .args = args, .plot = &plot};
  struct tfc_text svg = {0};
  tfc_status s = NULL;
  const int stem = (int)strcspn(name, ".");
  char *file = tfc_format("%.*s.gp", stem, name);
  d.script = file ? tfc_embedded_find(file) : NULL;
  if (!d.script) TFC_FAIL(s, TFC_NOT_FOUND, "there is no plot '%s'", name);
  tfc_text_printf(&d.input, "NAME = '%.*s'\nrun = %lld\nplacement = %lld\nstep = %lld\nscale = %.17g\nunit = '%s'\n",
                  stem, name, (long long)args->run, (long long)args->placement, (long long)args->step, scale.factor,
                  scale.unit);
  TFC_TRY(s, read_head(&d));
  if (plot.note.size == 0 && !plot.left_out) {
    tfc_text_printf(&d.input, "%s\n%s\n", tfc_embedded_find("style.gp"), d.script);
    if (d.input.failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    s = run_gnuplot(&d.input, &svg);
    if (s) {
      tfc_text_printf(&plot.note, "%s", tfc_status_message(s));
      tfc_status_free(s);
      s = NULL;
    } else {
      clean_svg(stem, name, &svg, &plot.svg);
    }
  }
  if (plot.svg.failed || plot.queries.failed || plot.note.failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  *out = plot;
  plot = (struct tfc_plot){0};
out:
  s = tfc_status_annotate(s, "plot '%s'", name);
  tfc_text_deinit(&svg);
  tfc_text_deinit(&d.input);
  tfc_plot_deinit(&plot);
  free(file);
  return s;
}

void tfc_plot_deinit(struct tfc_plot *plot) {
  tfc_text_deinit(&plot->svg);
  tfc_text_deinit(&plot->title);
  tfc_text_deinit(&plot->caption);
  tfc_text_deinit(&plot->queries);
  tfc_text_deinit(&plot->note);
}
