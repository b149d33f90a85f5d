// Runs tfc's programs as users do: a command line through the shell, with its exit code and its output.
#ifndef TFC_TESTS_COMMON_COMMAND_H
#define TFC_TESTS_COMMON_COMMAND_H

#include <stddef.h>

struct command_result {
  int code; // exit code; 128 + signal if a signal killed it
  char out[65536], err[65536];
};
// Runs the programs of this build: "tfc-run ..." is found in TFC_BINARY_DIR/bin.
const struct command_result *command_run(const char *bin, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define command(...) command_run(TFC_BINARY_DIR "/bin", __VA_ARGS__)

void command_put(const char *folder, const char *name, const char *text); // writes a file into `folder`

// Expects this exit code of `result`, and this text in stderr ("": any text).
#define assert_result(result, expected, text)                                                                          \
  do {                                                                                                                 \
    const struct command_result *command_r_ = (result);                                                                \
    if (command_r_->code != (expected))                                                                                \
      fail_msg("exit %d instead of %d\nstdout: %s\nstderr: %s", command_r_->code, (expected), command_r_->out,         \
               command_r_->err);                                                                                       \
    if (!__builtin_strstr(command_r_->err, (text))) fail_msg("no '%s' in: %s", (text), command_r_->err);               \
  } while (0)
#define assert_exit(expected, text, ...) assert_result(command(__VA_ARGS__), expected, text)

#endif
