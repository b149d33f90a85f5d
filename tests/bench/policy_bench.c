// What scripts/train_policy runs:
//   policy_bench train FOLDER OUT SEED THREADS [without=FAMILY] [state=FILE] [generations=N] [rollouts=N] [heads=N]
//     trains a policy on the frozen graphs unpacked in FOLDER and on generated ones, and writes it to OUT
//   policy_bench lessons FOLDER SEED [without=FAMILY]
//     lists what it would be trained on
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/lessons.h"

static atomic_bool cancelled;
static void interrupt(int signal) {
  (void)signal;
  atomic_store(&cancelled, true);
}

static int fail(tfc_status s) {
  fprintf(stderr, "policy_bench: %s\n", tfc_status_message(s));
  const int code = tfc_status_code(s) == TFC_CANCELLED ? 130 : 1;
  tfc_status_free(s);
  return code;
}
static void say(void *user, const char *line) {
  (void)user;
  printf("%s\n", line);
  fflush(stdout);
}
static const char *option(char **argv, const char *name) {
  const size_t n = strlen(name);
  for (; *argv; argv++)
    if (strncmp(*argv, name, n) == 0 && (*argv)[n] == '=') return *argv + n + 1;
  return NULL;
}
static uint32_t number(char **argv, const char *name) {
  const char *text = option(argv, name);
  return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static int train(char **argv) {
  struct lessons l = {0};
  struct tfc_policy *p = NULL;
  const char *without = option(argv, "without");
  tfc_status s = lessons_make(argv[2], without, strtoull(argv[4], NULL, 10), &l);
  if (s) return fail(s);
  signal(SIGINT, interrupt);
  signal(SIGTERM, interrupt);
  printf("%u lessons\n", l.count);
  const struct tfc_train_options o = {.lessons = l.lessons,
                                      .lesson_count = l.count,
                                      .seed = strtoull(argv[4], NULL, 10),
                                      .threads = (uint32_t)atoi(argv[5]),
                                      .generations = number(argv, "generations"),
                                      .rollouts = number(argv, "rollouts"),
                                      .heads = number(argv, "heads"),
                                      .state = option(argv, "state"),
                                      .cancel = &cancelled,
                                      .say = say};
  s = tfc_train(&o, &p);
  for (uint32_t i = 0; i < l.seen_count && !s; i++) s = tfc_policy_add_seen(p, l.seen[i].name, l.seen[i].sha256);
  if (!s && without && !(p->without = strdup(without))) s = tfc_status_no_memory(NULL);
  if (!s) s = tfc_policy_write(p, argv[3]);
  tfc_policy_free(p);
  lessons_free(&l);
  return s ? fail(s) : 0;
}

static int list(char **argv) {
  struct lessons l = {0};
  tfc_status s = lessons_make(argv[2], option(argv, "without"), strtoull(argv[3], NULL, 10), &l);
  if (s) return fail(s);
  for (uint32_t i = 0; i < l.count; i++)
    printf("source %u: %u units, %u devices%s\n", l.lessons[i].source, l.lessons[i].problem->unit_count,
           l.lessons[i].problem->device_count, l.lessons[i].problem->has_limits ? ", limited" : "");
  lessons_free(&l);
  return 0;
}

int main(int argc, char **argv) {
  if (argc >= 6 && strcmp(argv[1], "train") == 0) return train(argv);
  if (argc >= 4 && strcmp(argv[1], "lessons") == 0) return list(argv);
  fprintf(stderr, "usage: policy_bench train|lessons … (see the head of the source)\n");
  return 2;
}
