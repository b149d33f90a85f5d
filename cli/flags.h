// Flags: one typed table per program, from which parsing, --help and every error message come.
//
//   struct options {
//     struct tfc_common common; // must be first
//     const char *graph;
//     int64_t steps;
//   };
//   static const struct tfc_flag flags[] = {
//       {.name = "graph", .kind = TFC_FLAG_TEXT, .offset = offsetof(struct options, graph), .value = "PATH",
//        .help = "the graph", .required = true},
//       {.name = "steps", .kind = TFC_FLAG_COUNT, .offset = offsetof(struct options, steps), .value = "N", ...},
//   };
//   struct options o = {.steps = 10}; // the defaults
//   int code = tfc_flags_parse(&program, argc, argv, &o, NULL);
//   if (code >= 0) return code;
//
// Call it on the main thread, before any other thread is started. Texts are views of argv.
#ifndef TFC_CLI_FLAGS_H
#define TFC_CLI_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/texts.h"

typedef enum tfc_flag_kind {
  TFC_FLAG_BOOL,     // bool: --name
  TFC_FLAG_TEXT,     // const char *: --name VALUE; if it is given several times, the last one counts
  TFC_FLAG_TEXTS,    // struct tfc_texts: may be repeated; `items` is malloc'd and exists until the program ends
  TFC_FLAG_COUNT,    // int64_t, within [minimum, maximum]
  TFC_FLAG_SECONDS,  // double, from a time with its unit ("90s", "10m")
  TFC_FLAG_CHOICE,   // int: index in `choices`
  TFC_FLAG_OPTIONAL, // const char *: --name or --name VALUE; "" without a value
  TFC_FLAG_ATTACHED, // const char *: --name or --name=VALUE; "" without a value
  // const char *: a YAML file with more flags; those on the command line take precedence. The value of a key is a
  // value, a list of values, or a mapping (feed: {x: x.npy} stands for --feed x=x.npy).
  TFC_FLAG_SETTINGS,
} tfc_flag_kind;

// Says whether a flag's value is a path, and what the program does with the file. With --untrusted, only files that the
// command line names may be opened (cli/untrusted.h).
typedef enum tfc_flag_path {
  TFC_PATH_NONE,
  TFC_PATH_READ,       // a file or a folder that is read
  TFC_PATH_PREFIX,     // the common beginning of several files that are read
  TFC_PATH_READ_PAIR,  // NAME=FILE, read
  TFC_PATH_BESIDE,     // a file that refers to other files in its folder; all of them are read
  TFC_PATH_WRITE,      // a file
  TFC_PATH_WRITE_PAIR, // NAME=FILE, written
  TFC_PATH_FOLDER,     // a folder that is written
  TFC_PATH_DATABASE,   // a database, read or written
} tfc_flag_path;

struct tfc_flag {
  const char *name; // without dashes
  char letter;      // 0: none
  tfc_flag_kind kind;
  tfc_flag_path path;
  size_t offset;            // into the program's options
  const char *value;        // what --help calls the value
  const char *choices;      // "step|throughput"
  int64_t minimum, maximum; // of a count; both 0: 0 to INT64_MAX
  bool required;
  const char *help; // one or a few sentences; wrapped when shown
};

typedef enum tfc_color { TFC_COLOR_AUTO, TFC_COLOR_ALWAYS, TFC_COLOR_NEVER } tfc_color;

// The flags that every program has. It must be the first member of a program's options.
struct tfc_common {
  bool help, version, json, quiet, verbose;
  int color;             // tfc_color
  const char *untrusted; // NULL: the graph is trusted; else the limits, "" for the default ones
};

struct tfc_program {
  const char *name;
  const char *summary;  // one line
  const char *usage;    // "tfc-run --graph PATH [flags]"
  const char *examples; // lines "command\n    what it does\n"
  const struct tfc_flag *flags;
  size_t flag_count;
  const char *commands;   // what the first argument may be: "list|show"; NULL: any text
  uint32_t argument_max;  // how many arguments that are not flags it takes
  const char *exit_codes; // lines for exit codes that mean something else than usual, or NULL
};

// Fills `options`. -1: go on. Otherwise the exit code: 0 after --help and --version (printed), 2 after an error
// (printed, with the nearest flag). `arguments` takes what is not a flag; NULL where argument_max is 0.
int tfc_flags_parse(const struct tfc_program *program, int argc, char **argv, void *options,
                    struct tfc_texts *arguments);
// Prints "NAME: message" and how to get help; returns 2.
int tfc_flags_error(const struct tfc_program *program, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Returns the i-th flag, counting first the program's own and then the common ones; NULL: there are no more.
const struct tfc_flag *tfc_program_flag(const struct tfc_program *program, size_t index);
extern const char *const tfc_exit_codes[]; // the exit codes of every program, one line each, ended by NULL
// Returns the name that is most similar to `text`, for error messages; NULL: none is similar. `name(list, i)` returns
// NULL after the last name.
const char *tfc_nearest(const char *text, const char *(*name)(const void *list, size_t i), const void *list);

#endif
