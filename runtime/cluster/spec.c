#include "runtime/cluster/spec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/none.h"

static bool is_name(tfc_str name) {
  if (!name.size || name.size > 100 || !isalpha((unsigned char)name.data[0])) return false;
  for (size_t i = 0; i < name.size; i++)
    if (!isalnum((unsigned char)name.data[i]) && name.data[i] != '_') return false;
  return true;
}

static tfc_status add(struct tfc_cluster_spec *spec, tfc_str job, uint32_t index) {
  if (!is_name(job))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not the name of a job (letters, digits, _)",
                           TFC_STR_ARG(job));
  if (tfc_cluster_spec_rank(spec, job, index) != TFC_NONE)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "/job:%.*s/task:%u is there twice", TFC_STR_ARG(job), index);
  if (spec->tasks.count == TFC_CLUSTER_MOST_TASKS)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "there are more than %d tasks", TFC_CLUSTER_MOST_TASKS);
  struct tfc_cluster_task task = {tfc_format("%.*s", TFC_STR_ARG(job)), index};
  if (task.job && tfc_array_push(&spec->tasks, task)) return NULL;
  free(task.job);
  return tfc_status_no_memory(NULL);
}

static bool read_count(tfc_str text, uint32_t *out) {
  uint32_t n = 0;
  if (!text.size || text.size > 6) return false;
  for (size_t i = 0; i < text.size; i++) {
    if (!isdigit((unsigned char)text.data[i])) return false;
    n = 10 * n + (uint32_t)(text.data[i] - '0');
  }
  *out = n;
  return true;
}

tfc_status tfc_cluster_spec_parse(tfc_str text, struct tfc_cluster_spec *out) {
  tfc_status s = NULL;
  struct tfc_cluster_spec spec = {0};
  for (tfc_str rest = text;;) {
    const size_t comma = tfc_str_find(rest, ',');
    tfc_str part = tfc_str_sub(rest, 0, comma == SIZE_MAX ? rest.size : comma);
    const size_t equals = tfc_str_find(part, '=');
    uint32_t count = 0;
    if (equals == SIZE_MAX || !read_count(tfc_str_sub(part, equals + 1, part.size), &count) || count == 0)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "'%.*s' is not JOB=TASKS, as in ps=1,worker=2", TFC_STR_ARG(part));
    for (uint32_t i = 0; i < count; i++) TFC_TRY(s, add(&spec, tfc_str_sub(part, 0, equals), i));
    if (comma == SIZE_MAX) break;
    rest = tfc_str_sub(rest, comma + 1, rest.size);
  }
  *out = spec, spec = (struct tfc_cluster_spec){0};
out:
  tfc_cluster_spec_deinit(&spec);
  return s;
}

// --- Reading files -------------------------------------------------------------------------------------------------
// JSON and protobuf text both consist of words, quoted texts and brackets, so one tokenizer reads both.
struct reader {
  const char *at, *end;
  const char *path;
};
struct token {
  char kind; // 't': a quoted text; 'w': a word or number; 0: the end; otherwise the character itself
  tfc_str text;
};

static tfc_status next(struct reader *r, struct token *out) {
  while (r->at < r->end && (isspace((unsigned char)*r->at) || *r->at == ',' || *r->at == ';')) r->at++;
  *out = (struct token){0};
  if (r->at == r->end) return NULL;
  const char *begin = r->at;
  if (*begin == '"' || *begin == '\'') {
    for (r->at++; r->at < r->end && *r->at != *begin; r->at++)
      if (*r->at == '\\' || *r->at == '\n')
        return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: a text has a backslash or a line's end in it", r->path);
    if (r->at == r->end) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: a text does not end", r->path);
    *out = (struct token){'t', {begin + 1, (size_t)(r->at - begin - 1)}};
    r->at++;
  } else if (isalnum((unsigned char)*begin) || *begin == '_') {
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_')) r->at++;
    *out = (struct token){'w', {begin, (size_t)(r->at - begin)}};
  } else {
    r->at++;
    *out = (struct token){*begin, {begin, 1}};
  }
  return NULL;
}

static tfc_status unexpected(const struct reader *r, const struct token *t, const char *wanted) {
  if (!t->kind) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: it ends where %s should be", r->path, wanted);
  return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: there is '%.*s' where %s should be", r->path, TFC_STR_ARG(t->text),
                         wanted);
}
static tfc_status expect(struct reader *r, char kind, const char *wanted, struct token *out) {
  TFC_RETURN_IF_ERROR(next(r, out));
  return out->kind == kind ? NULL : unexpected(r, out, wanted);
}

static tfc_status json_tasks(struct reader *r, tfc_str job, struct tfc_cluster_spec *spec) {
  struct token t;
  uint32_t index = 0;
  TFC_RETURN_IF_ERROR(next(r, &t));
  const bool numbered = t.kind == '{';
  if (!numbered && t.kind != '[') return unexpected(r, &t, "a list of tasks");
  for (;;) {
    TFC_RETURN_IF_ERROR(next(r, &t));
    if (t.kind == (numbered ? '}' : ']')) return NULL;
    if (t.kind != 't') return unexpected(r, &t, "a task");
    if (numbered) {
      if (!read_count(t.text, &index)) return unexpected(r, &t, "a task's number");
      TFC_RETURN_IF_ERROR(expect(r, ':', "':'", &t));
      TFC_RETURN_IF_ERROR(expect(r, 't', "an address", &t));
    }
    TFC_RETURN_IF_ERROR(add(spec, job, index++));
  }
}

// Skips a JSON object whose '{' was already read, because its field is unknown and is ignored.
static tfc_status json_skip(struct reader *r) {
  struct token t;
  int depth = 0;
  do {
    TFC_RETURN_IF_ERROR(next(r, &t));
    if (!t.kind) return unexpected(r, &t, "a value");
    depth += (t.kind == '{' || t.kind == '[') - (t.kind == '}' || t.kind == ']');
  } while (depth > 0);
  return NULL;
}
// Reads the jobs of an object whose '{' was already read. `whole`: it is the file's, which may have "cluster".
static tfc_status json_jobs(struct reader *r, bool whole, struct tfc_cluster_spec *spec) {
  struct token t, job;
  for (;;) {
    TFC_RETURN_IF_ERROR(next(r, &job));
    if (job.kind == '}') return NULL;
    if (job.kind != 't') return unexpected(r, &job, "a job");
    TFC_RETURN_IF_ERROR(expect(r, ':', "':'", &t));
    if (whole && tfc_str_is(job.text, "cluster")) { // as in TF_CONFIG, which has "task" next to it
      TFC_RETURN_IF_ERROR(expect(r, '{', "jobs", &t));
      TFC_RETURN_IF_ERROR(json_jobs(r, false, spec));
    } else if (tfc_str_is(job.text, "task") || tfc_str_is(job.text, "environment")) {
      TFC_RETURN_IF_ERROR(json_skip(r));
    } else {
      TFC_RETURN_IF_ERROR(json_tasks(r, job.text, spec));
    }
  }
}

// Reads a task of a ClusterDef: job { name: "ps" tasks { key: 0 value: "host:port" } }
static tfc_status text_task(struct reader *r, uint32_t *out) {
  struct token t, key;
  *out = 0;
  TFC_RETURN_IF_ERROR(expect(r, '{', "'{'", &t));
  for (;;) {
    TFC_RETURN_IF_ERROR(next(r, &key));
    if (key.kind == '}') return NULL;
    TFC_RETURN_IF_ERROR(expect(r, ':', "':'", &t));
    TFC_RETURN_IF_ERROR(next(r, &t));
    if (tfc_str_is(key.text, "key") ? t.kind != 'w' || !read_count(t.text, out)
                                    : !tfc_str_is(key.text, "value") || t.kind != 't')
      return unexpected(r, &key, "key or value of a task");
  }
}
static tfc_status text_job(struct reader *r, struct tfc_cluster_spec *spec) {
  struct token t, key;
  tfc_str name = {0};
  TFC_ARRAY(uint32_t) tasks = {0};
  tfc_status s = NULL;
  TFC_TRY(s, expect(r, '{', "'{'", &t));
  for (;;) {
    uint32_t index;
    TFC_TRY(s, next(r, &key));
    if (key.kind == '}') break;
    if (tfc_str_is(key.text, "name")) {
      TFC_TRY(s, expect(r, ':', "':'", &t));
      TFC_TRY(s, expect(r, 't', "a name", &t));
      name = t.text;
    } else if (tfc_str_is(key.text, "tasks")) {
      TFC_TRY(s, text_task(r, &index));
      if (!tfc_array_push(&tasks, index)) TFC_TRY(s, tfc_status_no_memory(NULL));
    } else {
      s = unexpected(r, &key, "name or tasks");
      goto out;
    }
  }
  for (size_t i = 0; i < tasks.count; i++) TFC_TRY(s, add(spec, name, tasks.data[i]));
out:
  tfc_array_free(&tasks);
  return s;
}

tfc_status tfc_cluster_spec_read(tfc_str text, const char *path, struct tfc_cluster_spec *out) {
  tfc_status s = NULL;
  struct tfc_cluster_spec spec = {0};
  struct reader r = {text.data, text.data + text.size, path};
  struct token t;
  TFC_TRY(s, next(&r, &t));
  if (t.kind == '{') {
    TFC_TRY(s, json_jobs(&r, true, &spec));
    TFC_TRY(s, next(&r, &t));
    if (t.kind) {
      s = unexpected(&r, &t, "the end");
      goto out;
    }
  } else {
    for (; t.kind;) {
      if (!tfc_str_is(t.text, "job")) {
        s = unexpected(&r, &t, "job");
        goto out;
      }
      TFC_TRY(s, text_job(&r, &spec));
      TFC_TRY(s, next(&r, &t));
    }
  }
  if (!spec.tasks.count) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: there are no tasks", path);
  *out = spec, spec = (struct tfc_cluster_spec){0};
out:
  tfc_cluster_spec_deinit(&spec);
  return s;
}

void tfc_cluster_spec_deinit(struct tfc_cluster_spec *spec) {
  for (size_t i = 0; i < spec->tasks.count; i++) free(spec->tasks.data[i].job);
  tfc_array_free(&spec->tasks);
}

uint32_t tfc_cluster_spec_rank(const struct tfc_cluster_spec *spec, tfc_str job, uint32_t index) {
  for (size_t i = 0; i < spec->tasks.count; i++)
    if (spec->tasks.data[i].index == index && tfc_str_is(job, spec->tasks.data[i].job)) return (uint32_t)i;
  return TFC_NONE;
}

const char *tfc_cluster_task_name(const struct tfc_cluster_spec *spec, uint32_t rank, char out[TFC_TASK_TEXT]) {
  const struct tfc_cluster_task *t = &spec->tasks.data[rank];
  snprintf(out, TFC_TASK_TEXT, "/job:%s/task:%u", t->job, t->index);
  return out;
}
