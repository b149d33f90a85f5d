// One pass over argv: each argument is looked up by name in the program's table, then in the table of common flags; its
// value is parsed as its kind says and stored at its offset. Help is printed from the same tables.
#include "cli/flags.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/manual.h"
#include "cli/outputs.h"
#include "cli/paragraph.h"
#include "cli/program.h"
#include "cli/settings.h"
#include "runtime/base/nearest.h"
#include "runtime/base/units.h"

static const struct tfc_flag common_flags[] = {
    {.name = "json",
     .kind = TFC_FLAG_BOOL,
     .offset = offsetof(struct tfc_common, json),
     .help = "print one JSON document on stdout and nothing else there"},
    {.name = "quiet",
     .letter = 'q',
     .kind = TFC_FLAG_BOOL,
     .offset = offsetof(struct tfc_common, quiet),
     .help = "only results, warnings and errors"},
    {.name = "verbose",
     .letter = 'v',
     .kind = TFC_FLAG_BOOL,
     .offset = offsetof(struct tfc_common, verbose),
     .help = "also details that help to find out what is wrong"},
    {.name = "color",
     .kind = TFC_FLAG_CHOICE,
     .offset = offsetof(struct tfc_common, color),
     .choices = "auto|always|never",
     .help = "colours (auto: on a terminal, unless NO_COLOR is set)"},
    {.name = "untrusted",
     .kind = TFC_FLAG_ATTACHED,
     .offset = offsetof(struct tfc_common, untrusted),
     .value = "=memory=SIZE,time=T,nodes=N",
     .help = "the graph may do nothing but compute: no file but those that the command line names, limits of memory "
             "(8GiB), time (10m) and nodes (1048576), or those given after '='"},
    {.name = "help",
     .letter = 'h',
     .kind = TFC_FLAG_BOOL,
     .offset = offsetof(struct tfc_common, help),
     .help = "print this"},
    {.name = "version",
     .kind = TFC_FLAG_BOOL,
     .offset = offsetof(struct tfc_common, version),
     .help = "print the version"},
};
static const size_t common_count = sizeof common_flags / sizeof *common_flags;

const struct tfc_flag *tfc_program_flag(const struct tfc_program *program, size_t i) {
  if (i < program->flag_count) return &program->flags[i];
  i -= program->flag_count;
  return i < common_count ? &common_flags[i] : NULL;
}

static const char *flag_name(const void *list, size_t i) {
  const struct tfc_flag *flag = tfc_program_flag(list, i);
  return flag ? flag->name : NULL;
}

const char *tfc_nearest(const char *text, const char *(*name)(const void *list, size_t i), const void *list) {
  struct tfc_nearest nearest = {.text = tfc_str_from(text)};
  const char *candidate;
  for (size_t i = 0; (candidate = name(list, i)) != NULL; i++) tfc_nearest_try(&nearest, tfc_str_from(candidate));
  return nearest.best.data; // it points into the list, so it is a whole name
}

int tfc_flags_error(const struct tfc_program *program, const char *format, ...) {
  va_list args;
  fprintf(stderr, "%s%s:%s ", tfc_paint(stderr, "1;31"), program->name, tfc_paint(stderr, "0"));
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "\n%s --help shows what there is, with examples.\n", program->name);
  return 2;
}

// --- Help ------------------------------------------------------------------------------------------------------------

// Returns the terminal's width, or COLUMNS, limited to a range in which text is readable.
static int help_width(void) {
  const char *columns = getenv("COLUMNS");
  struct winsize window = {0};
  int width = columns ? atoi(columns) : 0;
  if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) width = window.ws_col;
  return width <= 0 ? CLI_COLUMNS : width < 60 ? 60 : width > 110 ? 110 : width;
}

static void print_flag(FILE *out, const struct tfc_flag *flag) {
  char head[160];
  const char *value = flag->choices ? flag->choices : flag->value;
  bool optional = flag->kind == TFC_FLAG_OPTIONAL;
  snprintf(head, sizeof head, "  %c%c%s--%s%s%s%s", flag->letter ? '-' : ' ', flag->letter ? flag->letter : ' ',
           flag->letter ? ", " : "  ", flag->name,
           !value                            ? ""
           : optional                        ? " ["
           : flag->kind == TFC_FLAG_ATTACHED ? "["
                                             : " ",
           value ? value : "", value && (optional || flag->kind == TFC_FLAG_ATTACHED) ? "]" : "");
  enum { INDENT = 34 };
  const size_t longest = (size_t)help_width();
  for (size_t begin = 0, at = longest; strlen(head + begin) > longest; begin += at + 1, at = longest) {
    while (at > 0 && head[begin + at] != '|') at--; // many choices go on in further lines
    if (!at) break;
    head[begin + at] = '\n';
  }
  fprintf(out, "%s%s%s", tfc_paint(out, "1"), head, tfc_paint(out, "0"));
  if (strlen(head) >= INDENT - 1)
    fprintf(out, "\n%*s", INDENT, "");
  else
    fprintf(out, "%*s", INDENT - (int)strlen(head), "");
  cli_paragraph(out, flag->help, INDENT, INDENT, help_width());
}

const char *const tfc_exit_codes[] = {
    "0    done",
    "1    failed for another reason than those below",
    "2    usage: an unknown flag, algorithm or format",
    "3    bad or unsupported input; the message names the file, node and op",
    "4    a device that was asked for does not exist, or stopped working",
    "5    does not fit in memory",
    "6    the database or an output could not be written",
    "130  interrupted; what was stored is kept",
    NULL,
};

static void print_help(const struct tfc_program *program) {
  FILE *out = stdout;
  const char *bold = tfc_paint(out, "1"), *plain = tfc_paint(out, "0");
  fprintf(out, "%s%s%s: %s\n\n%sExamples%s\n%s\n", bold, program->name, plain, program->summary, bold, plain,
          program->examples);
  fprintf(out, "%sUsage%s\n  ", bold, plain);
  cli_paragraph(out, program->usage, 2, 6, help_width());
  fprintf(out, "\n%sFlags%s\n", bold, plain);
  for (size_t i = 0; i < program->flag_count; i++) print_flag(out, &program->flags[i]);
  fputc('\n', out);
  for (size_t i = 0; i < common_count; i++) print_flag(out, &common_flags[i]);
  fprintf(out, "\n%sExit codes%s\n", bold, plain);
  for (size_t i = 0; tfc_exit_codes[i]; i++) fprintf(out, "  %s\n", tfc_exit_codes[i]);
  if (program->exit_codes) fprintf(out, "  %s\n", program->exit_codes);
}

// --- Parsing ---------------------------------------------------------------------------------------------------------

static bool texts_add(struct tfc_texts *texts, const char *text) {
  const char **items = realloc(texts->items, (texts->count + 1) * sizeof *items);
  if (!items) return false;
  items[texts->count++] = text;
  texts->items = items;
  return true;
}

static int choice_index(const char *choices, const char *text) {
  size_t length = strlen(text);
  for (int i = 0; *choices; i++) {
    size_t n = strcspn(choices, "|");
    if (n == length && strncmp(choices, text, n) == 0) return i;
    choices += n + (choices[n] == '|');
  }
  return -1;
}

// Stores a value; -1 on success, else the exit code.
static int store(const struct tfc_program *program, const struct tfc_flag *flag, const char *value, void *options) {
  void *place = (char *)options + flag->offset;
  tfc_status s = NULL;
  if (flag->path != TFC_PATH_NONE && !*value && (flag->kind == TFC_FLAG_TEXT || flag->kind == TFC_FLAG_TEXTS))
    return tfc_flags_error(program, "--%s needs a name (%s), not an empty one", flag->name, flag->value);
  switch (flag->kind) {
  case TFC_FLAG_BOOL: *(bool *)place = true; return -1;
  case TFC_FLAG_TEXT:
  case TFC_FLAG_OPTIONAL:
  case TFC_FLAG_ATTACHED:
  case TFC_FLAG_SETTINGS: *(const char **)place = value; return -1;
  case TFC_FLAG_TEXTS: return texts_add(place, value) ? -1 : tfc_flags_error(program, "out of memory");
  case TFC_FLAG_COUNT: {
    int64_t low = flag->minimum, high = flag->maximum, number;
    if (low == 0 && high == 0) high = INT64_MAX;
    if ((s = tfc_parse_i64(tfc_str_from(value), &number)) != NULL) {
      tfc_status_free(s);
      return tfc_flags_error(program, "--%s needs a whole number, not '%s'", flag->name, value);
    }
    if (number < low || number > high) {
      if (high == INT64_MAX)
        return tfc_flags_error(program, "--%s must be at least %lld, not %s", flag->name, (long long)low, value);
      return tfc_flags_error(program, "--%s must be between %lld and %lld, not %s", flag->name, (long long)low,
                             (long long)high, value);
    }
    *(int64_t *)place = number;
    return -1;
  }
  case TFC_FLAG_SECONDS: {
    double us, number;
    tfc_status bare = tfc_parse_double(tfc_str_from(value), &number);
    bool has_unit = bare != NULL;
    tfc_status_free(bare);
    s = tfc_parse_time_us(tfc_str_from(value), &us);
    if (s || !has_unit || us <= 0) {
      tfc_status_free(s);
      return tfc_flags_error(program, "--%s needs a time with its unit, such as 90s, 10m or 1h, not '%s'", flag->name,
                             value);
    }
    *(double *)place = us * 1e-6;
    return -1;
  }
  case TFC_FLAG_CHOICE: {
    int index = choice_index(flag->choices, value);
    if (index < 0) return tfc_flags_error(program, "--%s is one of %s, not '%s'", flag->name, flag->choices, value);
    *(int *)place = index;
    return -1;
  }
  }
  return tfc_flags_error(program, "--%s: not handled", flag->name);
}

static const struct tfc_flag *find_long(const struct tfc_program *program, const char *name, size_t length) {
  const struct tfc_flag *flag;
  for (size_t i = 0; (flag = tfc_program_flag(program, i)) != NULL; i++)
    if (strlen(flag->name) == length && strncmp(flag->name, name, length) == 0) return flag;
  return NULL;
}

static const struct tfc_flag *find_letter(const struct tfc_program *program, char letter) {
  const struct tfc_flag *flag;
  for (size_t i = 0; (flag = tfc_program_flag(program, i)) != NULL; i++)
    if (flag->letter == letter) return flag;
  return NULL;
}

// Whether this argument looks like one of the program's flags; then it cannot be the value of the flag before it.
static bool is_flag(const struct tfc_program *program, const char *argument) {
  if (strncmp(argument, "--", 2) == 0 && argument[2])
    return find_long(program, argument + 2, strcspn(argument + 2, "=")) != NULL;
  return argument[0] == '-' && argument[1] && !argument[2] && find_letter(program, argument[1]) != NULL;
}

// Copies a text that was read from a settings file. The copy is never freed, because options point to it until the
// program ends, as they do to argv.
static char *keep_text(const char *text) {
  static char **texts;
  static size_t count;
  char **grown = realloc(texts, (count + 1) * sizeof *texts);
  if (!grown) return NULL;
  texts = grown;
  texts[count] = strdup(text);
  return texts[count] ? texts[count++] : NULL;
}

struct settings_sink {
  const struct tfc_program *program;
  void *options;
  const bool *given; // which flags the command line has; they take precedence over the settings file
  bool *set;         // which flags a settings file has
  const char *path;
  int code;
};

// Handles one value of a settings file.
static bool on_setting(void *user, const char *key, const char *value) {
  struct settings_sink *sink = user;
  const struct tfc_program *program = sink->program;
  const struct tfc_flag *flag = find_long(program, key, strlen(key));
  bool own = flag >= program->flags && flag < program->flags + program->flag_count;
  if (!flag || !own || flag->kind == TFC_FLAG_SETTINGS) {
    const char *nearest = flag ? NULL : tfc_nearest(key, flag_name, program); // a flag that is no setting is no help
    fprintf(stderr, "%s: %s: there is no setting '%s'%s%s%s\n", program->name, sink->path, key,
            nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    sink->code = 3;
    return false;
  }
  if (sink->given[flag - program->flags]) return true;
  sink->set[flag - program->flags] = true;
  if (flag->kind == TFC_FLAG_BOOL) {
    bool yes = strcmp(value, "true") == 0;
    if (yes || strcmp(value, "false") == 0) {
      *(bool *)((char *)sink->options + flag->offset) = yes;
      return true;
    }
    fprintf(stderr, "%s: %s: '%s' is true or false, not '%s'\n", program->name, sink->path, key, value);
    sink->code = 3;
    return false;
  }
  char *kept = keep_text(value);
  if (!kept || store(program, flag, kept, sink->options) >= 0) {
    fprintf(stderr, "%s: that was in %s\n", program->name, sink->path);
    sink->code = 3;
    return false;
  }
  return true;
}

// Reads the settings files that the command line names, and notes which flags they have.
static int read_settings(const struct tfc_program *program, void *options, const bool *given, bool *set) {
  for (size_t i = 0; i < program->flag_count; i++) {
    const struct tfc_flag *flag = &program->flags[i];
    if (flag->kind != TFC_FLAG_SETTINGS || !given[i]) continue;
    struct settings_sink sink = {program, options, given, set, *(const char **)((char *)options + flag->offset), 0};
    tfc_status s = tfc_settings_read(sink.path, on_setting, &sink);
    if (s) return tfc_program_fail(s);
    if (sink.code) return sink.code;
  }
  return -1;
}

int tfc_flags_parse(const struct tfc_program *program, int argc, char **argv, void *options,
                    struct tfc_texts *arguments) {
  struct tfc_common *common = options;
  bool seen[128] = {0}, set[128] = {0}, only_arguments = false;
  if (argc == 3 && strcmp(argv[1], "--generate") == 0 && tfc_manual_print(program, argv[2]))
    return tfc_program_finish(0);
  for (int i = 1; i < argc; i++) {
    char *argument = argv[i];
    if (only_arguments || argument[0] != '-' || argument[1] == 0) {
      if (!arguments || arguments->count >= program->argument_max)
        return tfc_flags_error(program, "'%s' is not a flag, and %s expected here", argument,
                               program->argument_max ? "no more arguments are" : "only flags are");
      if (!texts_add(arguments, argument)) return tfc_flags_error(program, "out of memory");
      continue;
    }
    if (strcmp(argument, "--") == 0) {
      only_arguments = true;
      continue;
    }
    const struct tfc_flag *flag;
    const char *value = NULL;
    if (argument[1] == '-') {
      size_t length = strcspn(argument + 2, "=");
      flag = find_long(program, argument + 2, length);
      if (flag && argument[2 + length] == '=') value = argument + 2 + length + 1;
      if (!flag) {
        argument[2 + length] = 0;
        const char *nearest = tfc_nearest(argument + 2, flag_name, program);
        if (nearest) return tfc_flags_error(program, "unknown flag %s; did you mean --%s?", argument, nearest);
        return tfc_flags_error(program, "unknown flag %s", argument);
      }
    } else {
      flag = argument[2] ? NULL : find_letter(program, argument[1]);
      if (!flag) {
        const char *nearest = tfc_nearest(argument + 1, flag_name, program);
        if (nearest) return tfc_flags_error(program, "unknown flag %s; did you mean --%s?", argument, nearest);
        return tfc_flags_error(program, "unknown flag %s", argument);
      }
    }
    bool takes = flag->kind != TFC_FLAG_BOOL, may_lack = flag->kind == TFC_FLAG_OPTIONAL;
    if (!takes && value) return tfc_flags_error(program, "--%s takes no value", flag->name);
    if (flag->kind == TFC_FLAG_ATTACHED && !value) {
      value = "";
    } else if (takes && !value) {
      bool there = i + 1 < argc && !is_flag(program, argv[i + 1]);
      if (there && may_lack && argv[i + 1][0] == '-') there = false;
      if (there)
        value = argv[++i];
      else if (may_lack)
        value = "";
      else if (i + 1 < argc)
        return tfc_flags_error(program, "--%s needs a value (%s), but is followed by %s", flag->name,
                               flag->choices ? flag->choices : flag->value, argv[i + 1]);
      else
        return tfc_flags_error(program, "--%s needs a value (%s)", flag->name,
                               flag->choices ? flag->choices : flag->value);
    }
    int code = store(program, flag, value, options);
    if (code >= 0) return code;
    if (flag >= program->flags && flag < program->flags + program->flag_count) seen[flag - program->flags] = true;
  }
  tfc_program_set_output(common->quiet, common->verbose, (tfc_color)common->color);
  if (common->help) {
    print_help(program);
    return tfc_program_finish(0);
  }
  if (common->version) {
    printf("%s %s\n", program->name, TFC_VERSION);
    return tfc_program_finish(0);
  }
  int code = read_settings(program, options, seen, set);
  if (code >= 0) return code;
  for (size_t i = 0; i < program->flag_count; i++)
    if (program->flags[i].required && !seen[i] && !set[i])
      return tfc_flags_error(program, "--%s %s is missing", program->flags[i].name, program->flags[i].value);
  char *refused = tfc_outputs_refused(program, options);
  code = refused ? tfc_flags_error(program, "%s", refused) : -1;
  free(refused);
  return code;
}
