// Command: a user's program for `--measure-with`, which runs steps on any machine and reports how long they took. tfc
// starts it once and asks it for one reading after another, in lines of JSON (command_wire.h). An error costs only the
// requested reading. A command that ended or hangs is started again, at most three times.
//
//   TFC_TRY(s, tfc_command_start(&options, &program));
//   TFC_TRY(s, tfc_command_ask(program, &reading, &answer));
//   ... answer.state, answer.step_us ...
//   tfc_command_stop(program);
//
// Only one thread at a time may use a command.
#ifndef TFC_PLACER_MEASURE_COMMAND_H
#define TFC_PLACER_MEASURE_COMMAND_H

#include <stdatomic.h>

#include "placer/model/placement.h"
#include "placer/simulate/evaluator.h"
#include "runtime/base/array.h"

struct tfc_command_answer;
// Measures a placement in this process instead of a command. It works like tfc_command_ask; `answer` is empty before
// the call.
typedef tfc_status (*tfc_command_fn)(void *user, const struct tfc_placement *placement, uint32_t warmup, uint32_t steps,
                                     struct tfc_command_answer *answer);
struct tfc_command_options {
  const char *command;       // for /bin/sh -c
  tfc_command_fn ask;        // is called instead of a command; NULL: there is a command
  void *ask_user;            //
  const char *graph;         // paths, as the user gave them: the program may read them
  const char *machine;       // NULL: there is none
  const tfc_str *devices;    // [device_count] names of the devices in use
  uint32_t device_count;     //
  double timeout_s;          // how long an answer may take; 0: ten times the longest so far, at least 60 s
  int stderr_to;             // a descriptor that its stderr goes to, -1: none
  const char *temporary;     // folder for files of placements; NULL: /tmp
  const atomic_bool *cancel; // may be NULL
  void (*say)(void *user, const char *text); // is called with the reason when the command is started again; may be NULL
  void *user;
};

struct tfc_command_operation {
  tfc_str node, device;
  double start_us, time_us; // start_us NaN: the program did not report it
};
struct tfc_command_transfer {
  tfc_str node, from, to;
  int32_t output;
  double start_us, time_us;
};
// The result of one reading. Zero it before the first use; arrays are reused. Names point into `document`.
struct tfc_command_answer {
  tfc_result_state state;                             // OK, NO_FIT, FAILED
  char *message;                                      // why it failed, or NULL
  double seconds;                                     // from the request to the answer
  TFC_ARRAY(double) step_us;                          // in order, without warm-up
  TFC_ARRAY(struct tfc_command_operation) operations; // of one of these steps
  TFC_ARRAY(struct tfc_command_transfer) transfers;
  void *document; // owned
};

struct tfc_command;
// Starts the command, sends hello and waits until it is ready. UNAVAILABLE: it does not become ready, with its message.
TFC_MUST_USE tfc_status tfc_command_start(const struct tfc_command_options *options, struct tfc_command **out);
tfc_label tfc_command_label(const struct tfc_command *program);     // how the numbers were made, as the program says it
bool tfc_command_has_operations(const struct tfc_command *program); // whether its answers have times of operations
uint32_t tfc_command_restarts(const struct tfc_command *program);

// Asks for one reading of the placement in the document: nodes with their devices and order. A status other than OK is
// an error of the program, not of the placement. UNAVAILABLE: it ended too often; CANCELLED; DATA_LOSS: the file of the
// placement could not be written.
TFC_MUST_USE tfc_status tfc_command_ask(struct tfc_command *program, const struct tfc_placement *placement,
                                        uint32_t warmup, uint32_t steps, struct tfc_command_answer *answer);
void tfc_command_stop(struct tfc_command *program); // closes its stdin, waits for its end; NULL is fine

#endif
