// A checkpoint is in TensorFlow's format, which holds only variables. tfc also saves the state of other objects (random
// numbers, iterators, queues, tables), in a text file of its own: model.ckpt-STEPS.state. TensorFlow ignores that file.
#include "cli/run_saves.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/program.h"
#include "cli/run_variables.h"
#include "runtime/base/file.h"
#include "runtime/base/line.h"
#include "runtime/exec/saved_state.h"
#include "runtime/ops/saved.h"

// --- The file `checkpoint` -------------------------------------------------------------------------------------------
static tfc_status write_state(const struct run_saves *s) {
  struct tfc_text text = {0};
  char *path = tfc_format("%s/checkpoint", s->folder), *next = tfc_format("%s/checkpoint.new", s->folder);
  tfc_text_printf(&text, "model_checkpoint_path: \"model.ckpt-%lld\"\n", (long long)s->kept[s->kept_count - 1]);
  for (uint32_t i = 0; i < s->kept_count; i++)
    tfc_text_printf(&text, "all_model_checkpoint_paths: \"model.ckpt-%lld\"\n", (long long)s->kept[i]);
  tfc_status status = path && next && !text.failed ? tfc_file_write(next, (tfc_str){text.data, text.size})
                                                   : tfc_status_no_memory("a checkpoint");
  if (!status && rename(next, path) != 0) status = tfc_status_make(TFC_DATA_LOSS, "%s: cannot be written", path);
  tfc_text_deinit(&text);
  free(path);
  free(next);
  return status;
}

tfc_status run_saves_open(const struct run_setup *setup, const char *folder, bool chief, struct run_saves *out) {
  struct run_saves s = {.setup = setup, .folder = folder, .chief = chief};
  struct tfc_file file = {0};
  tfc_status status = NULL;
  char *path = tfc_format("%s/checkpoint", folder);
  if (!path) return tfc_status_no_memory("a checkpoint");
  TFC_TRY(status, tfc_file_make_parents(path));
  *out = s;
  if (access(path, F_OK) != 0) goto out;
  TFC_TRY(status, tfc_file_map(path, &file));
  for (tfc_str rest = {(const char *)file.data, file.size}, whole; tfc_line_next(&rest, &whole);) {
    char line[256] = "";
    long long steps = 0;
    snprintf(line, sizeof line, "%.*s", TFC_STR_ARG(tfc_str_sub(whole, 0, 200)));
    if (sscanf(line, "all_model_checkpoint_paths: \"model.ckpt-%lld\"", &steps) == 1 && steps > 0) {
      if (s.kept_count == RUN_SAVES_KEPT) {
        memmove(s.kept, s.kept + 1, (RUN_SAVES_KEPT - 1) * sizeof *s.kept);
        s.kept_count--;
      }
      s.kept[s.kept_count++] = steps;
    } else if (sscanf(line, "model_checkpoint_path: \"model.ckpt-%lld\"", &steps) == 1) {
      s.steps = steps;
    } else if (line[0]) {
      TFC_FAIL(status, TFC_INVALID_ARGUMENT, "%s: '%s' is not a line of tfc-run's", path, line);
    }
  }
  if (s.kept_count && s.steps != s.kept[s.kept_count - 1])
    TFC_FAIL(status, TFC_INVALID_ARGUMENT, "%s: the last checkpoint is not in the list", path);
  *out = s;
out:
  tfc_file_unmap(&file);
  free(path);
  return status;
}

// --- The state of operations -----------------------------------------------------------------------------------------
static const char state_begin[] = "tfc state 2\n", state_end[] = "end\n", any_state[] = "tfc state ";

static bool has_line(const struct tfc_text *lines, tfc_str wanted) {
  tfc_str text = {lines->data, lines->size};
  for (tfc_str line; tfc_line_next(&text, &line);)
    if (tfc_str_equal(line, wanted)) return true;
  return false;
}

// Warns once of each thing that cannot be saved, and drops these lines.
static void drop_unsaved(struct run_saves *s, const struct tfc_text *state, struct tfc_text *out) {
  tfc_str text = {state->data, state->size};
  for (tfc_str line; tfc_line_next(&text, &line);) {
    const bool saved = !tfc_str_starts(line, "unsaved\t");
    if (!saved && has_line(&s->told, line)) continue;
    if (!saved)
      tfc_warn("--supervise: %.*s is not saved: training that is broken off and goes on may give other numbers",
               TFC_STR_ARG(tfc_str_sub(line, 8, SIZE_MAX)));
    tfc_text_add(saved ? out : &s->told, line);
    tfc_text_add(saved ? out : &s->told, TFC_STR("\n"));
  }
}

// Local variables are in no checkpoint of TensorFlow's (it gives them their initial values again), but counters of
// epochs and sums of metrics go on. Each client keeps its own beside the state of its task's operations:
// "variable<TAB>NAME<TAB>WORDS" (runtime/ops/saved.h).
static tfc_status keep_local_variables(const struct run_saves *s) {
  tfc_status status = NULL;
  struct tfc_text lines = {0}, *out = &lines;
  run_variables all = {0};
  TFC_TRY(status, run_variables_find(s->setup, true, &all));
  for (size_t i = 0; i < all.count; i++) {
    const struct run_variable *v = &all.data[i];
    struct tfc_tensor value = {0};
    status = run_step(s->setup, &(struct tfc_run_spec){.fetches = &v->value, .fetch_count = 1}, NULL, &value,
                      &(struct tfc_run_options){.cancel = tfc_program_cut_off()});
    if (tfc_status_code(status) == TFC_FAILED_PRECONDITION) { // it has no value
      tfc_status_free(status);
      status = NULL;
      continue;
    }
    if (status) goto out;
    if (tfc_saved_has_text(value.dtype) && tfc_str_find(v->name, '\t') == SIZE_MAX &&
        tfc_str_find(v->name, '\n') == SIZE_MAX) {
      tfc_text_printf(out, "variable\t%.*s", TFC_STR_ARG(v->name));
      tfc_saved_add_tensor(out, &value);
      tfc_text_add(out, TFC_STR("\n"));
    }
    tfc_tensor_release(&value);
  }
  if (lines.failed) TFC_TRY(status, tfc_status_no_memory("a checkpoint"));
  status = tfc_cluster_session_keep(s->setup->cluster, (tfc_str){lines.data ? lines.data : "", lines.size});
out:
  tfc_text_deinit(&lines);
  tfc_array_free(&all);
  return status;
}

tfc_status run_saves_restore_own(struct run_saves *s) {
  tfc_status status = NULL;
  run_variables all = {0};
  char *lines = tfc_cluster_session_kept(s->setup->cluster);
  tfc_str text = tfc_str_from(lines ? lines : "");
  TFC_TRY(status, run_variables_find(s->setup, true, &all));
  for (tfc_str line; tfc_line_next(&text, &line);) {
    tfc_state_word(&line); // "variable"
    const tfc_str whole = line, name = tfc_state_word(&line);
    bool found = false;
    for (size_t i = 0; i < all.count && !found; i++) {
      const struct run_variable *v = &all.data[i];
      struct tfc_tensor value = {0};
      struct tfc_saved in = {.words = tfc_str_sub(whole, name.size, SIZE_MAX)};
      if (!tfc_str_equal(v->name, name)) continue;
      found = true;
      tfc_saved_tensor(&in, tfc_dtype_base(tfc_output_dtype(s->setup->graph, v->given)), &value);
      status = tfc_saved_end(&in);
      const struct tfc_run_spec spec = {.feeds = &v->given, .feed_count = 1, .targets = &v->assign, .target_count = 1};
      if (!status)
        status = run_step(s->setup, &spec, &value, NULL, &(struct tfc_run_options){.cancel = tfc_program_cancel()});
      tfc_tensor_release(&value);
      if (status) status = tfc_status_annotate(status, "the local variable '%.*s'", TFC_STR_ARG(name));
      if (status) goto out;
    }
    if (!found) tfc_warn("the local variable '%.*s' that was saved is no longer in the graph", TFC_STR_ARG(name));
  }
out:
  free(lines);
  tfc_array_free(&all);
  return status;
}

// `unsaved`: lines about what is not saved.
static tfc_status write_state_of_operations(struct run_saves *s, const char *prefix, const struct tfc_text *unsaved) {
  tfc_status status = NULL;
  struct tfc_text state = {0}, file = {0};
  char *path = tfc_format("%s.state", prefix);
  if (!path) return tfc_status_no_memory("a checkpoint");
  TFC_TRY(status, tfc_cluster_session_save_state(s->setup->cluster, tfc_program_cut_off(), &state));
  tfc_text_printf(&file, "%s", state_begin);
  drop_unsaved(s, unsaved, &file);
  drop_unsaved(s, &state, &file);
  tfc_text_printf(&file, "%s", state_end);
  if (file.failed) TFC_TRY(status, tfc_status_no_memory("a checkpoint"));
  status = tfc_file_write(path, (tfc_str){file.data, file.size});
out:
  tfc_text_deinit(&state);
  tfc_text_deinit(&file);
  free(path);
  return status;
}

static tfc_status restore_state_of_operations(const struct run_saves *s, const char *prefix) {
  tfc_status status = NULL;
  struct tfc_file file = {0};
  struct tfc_text lost = {0};
  char *path = tfc_format("%s.state", prefix);
  if (!path) return tfc_status_no_memory("a checkpoint");
  if (access(path, F_OK) != 0) {
    tfc_warn("%s is not there: random numbers, datasets and queues begin anew", path);
    goto out;
  }
  TFC_TRY(status, tfc_file_map(path, &file));
  const tfc_str text = {(const char *)file.data, file.size};
  tfc_str after = text, first = {0};
  tfc_line_next(&after, &first);
  if (tfc_str_starts(text, any_state) && !tfc_str_starts(text, state_begin))
    TFC_FAIL(status, TFC_INVALID_ARGUMENT,
             "%s: it begins with '%.*s': another version of tfc wrote it, and this one reads '%.*s'. Without the file, "
             "variables are restored, and random numbers, datasets and queues begin anew",
             path, TFC_STR_ARG(tfc_str_sub(first, 0, 40)), (int)(sizeof state_begin - 2), state_begin);
  if (!tfc_str_starts(text, state_begin) || !tfc_str_ends(text, state_end))
    TFC_FAIL(status, TFC_INVALID_ARGUMENT, "%s: it has no beginning or no end", path);
  const tfc_str lines = tfc_str_sub(text, sizeof state_begin - 1, text.size - (sizeof state_end - 1));
  status = tfc_cluster_session_restore_state(s->setup->cluster, lines, tfc_program_cancel(), &lost);
  for (tfc_str rest = {lost.data, lost.size}, line; !status && tfc_line_next(&rest, &line);)
    tfc_warn("%s: %.*s", path, TFC_STR_ARG(line));
  if (status) status = tfc_status_annotate(status, "%s", path);
out:
  tfc_text_deinit(&lost);
  tfc_file_unmap(&file);
  free(path);
  return status;
}

void run_saves_close(struct run_saves *s) {
  tfc_text_deinit(&s->told);
  *s = (struct run_saves){0};
}

tfc_status run_saves_restore(struct run_saves *s) {
  tfc_status status = NULL;
  size_t restored, all;
  if (!s->steps) return NULL;
  char *prefix = tfc_format("%s/model.ckpt-%lld", s->folder, (long long)s->steps);
  if (!prefix) return tfc_status_no_memory("a checkpoint");
  TFC_TRY(status, run_variables_restore(s->setup, prefix, true, &restored, &all));
  TFC_TRY(status, restore_state_of_operations(s, prefix));
  tfc_say("%s: %zu variables restored", prefix, restored);
out:
  if (status) status = tfc_status_annotate(status, "restoring %s", prefix);
  free(prefix);
  return status;
}

static void remove_save(const char *folder, int64_t steps) {
  static const char *const ends[] = {"index", "data-00000-of-00001", "state"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    char *path = tfc_format("%s/model.ckpt-%lld.%s", folder, (long long)steps, ends[i]);
    if (path) unlink(path);
    free(path);
  }
}

static tfc_status write_files(struct run_saves *s, int64_t steps, const struct tfc_text *unsaved) {
  tfc_status status = NULL;
  size_t saved;
  char *prefix = tfc_format("%s/model.ckpt-%lld", s->folder, (long long)steps);
  if (!prefix) return tfc_status_no_memory("a checkpoint");
  TFC_TRY(status, write_state_of_operations(s, prefix, unsaved));
  TFC_TRY(status, run_variables_save(s->setup, prefix, false, &saved));
  if (!s->kept_count || s->kept[s->kept_count - 1] != steps) {
    if (s->kept_count == RUN_SAVES_KEPT) { // rewrites `checkpoint` first, so that it never names a deleted checkpoint
      const int64_t oldest = s->kept[0];
      memmove(s->kept, s->kept + 1, (RUN_SAVES_KEPT - 1) * sizeof *s->kept);
      s->kept[RUN_SAVES_KEPT - 1] = steps;
      TFC_TRY(status, write_state(s));
      remove_save(s->folder, oldest);
    } else {
      s->kept[s->kept_count++] = steps;
      TFC_TRY(status, write_state(s));
    }
  }
  s->steps = steps;
  tfc_say("%s: %zu variables saved", prefix, saved);
out:
  if (status) status = tfc_status_annotate(status, "saving %s", prefix);
  free(prefix);
  return status;
}

// Waits for the other clients, if they take part.
static tfc_status meet(const struct run_saves *s, const char *name) {
  return s->together ? tfc_member_barrier(s->setup->member, name, tfc_program_cut_off()) : NULL;
}

// Queue runners rest until all is saved: they count epochs in local variables.
tfc_status run_saves_write(struct run_saves *s, int64_t steps) {
  tfc_status status = NULL;
  struct tfc_text unsaved = {0};
  struct tfc_cluster_session *session = s->setup->cluster;
  tfc_cluster_session_pause(session);
  TFC_TRY(status, meet(s, "queue runners pause"));
  if (s->chief) TFC_TRY(status, tfc_cluster_session_rest(session, s->together, tfc_program_cut_off(), &unsaved));
  TFC_TRY(status, meet(s, "queue runners rest"));
  TFC_TRY(status, keep_local_variables(s));
  TFC_TRY(status, meet(s, "local variables are kept"));
  if (s->chief) TFC_TRY(status, write_files(s, steps, &unsaved));
  status = meet(s, "saved");
out:
  tfc_cluster_session_go_on(session);
  tfc_text_deinit(&unsaved);
  return status;
}
