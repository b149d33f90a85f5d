// The linker puts the families of all files into one section. On first use, they become a table ordered by name, with
// their parsed signatures. Any thread may read it afterwards.
#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/log.h"
#include "runtime/base/map.h"
#include "runtime/graph/signature.h"

extern const struct tfc_op_family __start_tfc_op_families[] __attribute__((weak, visibility("hidden")));
extern const struct tfc_op_family __stop_tfc_op_families[] __attribute__((weak, visibility("hidden")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct tfc_op_def **list;
static struct tfc_op_signature *signatures; // by index in list
static size_t op_count;
static struct tfc_strmap by_name;    // name → index in list
static struct tfc_intmap by_address; // row → index in list
static struct tfc_arena arena;
static const struct tfc_op_signature no_signature;

static int by_op_name(const void *a, const void *b) {
  return strcmp((*(const struct tfc_op_def *const *)a)->name, (*(const struct tfc_op_def *const *)b)->name);
}

static void build(void) {
  size_t n = 0;
  for (const struct tfc_op_family *f = __start_tfc_op_families; f != __stop_tfc_op_families; f++) n += f->count;
  list = calloc(n + 1, sizeof *list);
  signatures = calloc(n + 1, sizeof *signatures);
  if (!list || !signatures || !tfc_strmap_reserve(&by_name, n) || !tfc_intmap_reserve(&by_address, n)) {
    tfc_log(TFC_LOG_ERROR, "out of memory: the table of ops");
    return; // without the table no op is known, so every graph is rejected with an error that names its first op
  }
  for (const struct tfc_op_family *f = __start_tfc_op_families; f != __stop_tfc_op_families; f++)
    for (size_t i = 0; i < f->count; i++) list[op_count++] = &f->rows[i];
  qsort(list, op_count, sizeof *list, by_op_name);
  for (size_t i = 0; i < op_count; i++) {
    bool found = false;
    tfc_strmap_put(&by_name, tfc_str_from(list[i]->name), i, &found);
    if (found) tfc_log(TFC_LOG_ERROR, "op %s has two rows", list[i]->name);
    tfc_intmap_put(&by_address, (uintptr_t)list[i], i, NULL);
    tfc_status s = tfc_signature_parse(list[i], &arena, &signatures[i]);
    if (s) tfc_log(TFC_LOG_ERROR, "%s", tfc_status_message(s));
    tfc_status_free(s);
  }
}

const struct tfc_op_def *tfc_op_find(tfc_str name) {
  pthread_once(&once, build);
  const uint64_t *i = tfc_strmap_get(&by_name, name);
  return i ? list[*i] : NULL;
}

const struct tfc_op_def *const *tfc_op_list(size_t *out_count) {
  pthread_once(&once, build);
  *out_count = op_count;
  return list;
}

const struct tfc_op_signature *tfc_op_signature(const struct tfc_op_def *def) {
  pthread_once(&once, build);
  const uint64_t *i = tfc_intmap_get(&by_address, (uintptr_t)def);
  return i ? &signatures[*i] : &no_signature;
}
