// Merges checkpoints: data files are renamed to shards of the destination, and the entries of all indexes go into one
// index, with new shard numbers. That index is written last; then the parts' indexes are removed.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/map.h"
#include "runtime/io/bundle.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/table.h"

struct merged {
  tfc_str key;
  struct tfc_text value; // BundleEntryProto
  bool sliced;
};
struct part {
  char *index; // the index's path
  struct tfc_file file;
  uint32_t first, shards; // number of its first shard in the destination, and how many it has
};
struct merge {
  TFC_ARRAY(struct merged) entries;
  struct tfc_strmap by_key;
  struct tfc_arena arena;
  struct part *parts;
  size_t part_count;
  uint32_t shards;
};

// Copies an entry with another shard number. The order of fields stays: dtype and shape come before the shard, the
// other fields after it.
static tfc_status renumber(tfc_str bytes, uint32_t first, uint32_t shards, struct merged *out) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  uint64_t shard = 0;
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 3) shard = f.value;
    if (f.number == 7) out->sliced = true;
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s", w.error);
  if (shard >= shards)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "it is in data file %llu of %u", (unsigned long long)shard, shards);
  bool placed = out->sliced || first + shard == 0; // the entry of a tensor that is stored in slices has no shard
  w = tfc_wire_of(bytes);
  while (tfc_wire_next(&w, &f)) {
    if (f.number > 3 && !placed) {
      tfc_wire_put_int(&out->value, 3, first + shard);
      placed = true;
    }
    if (f.number != 3) tfc_text_add(&out->value, (tfc_str){(const char *)f.start, (size_t)(w.at - f.start)});
  }
  if (!placed) tfc_wire_put_int(&out->value, 3, first + shard);
  return out->value.failed ? tfc_status_no_memory("merging checkpoints") : NULL;
}

// Appends the slices to a tensor that already has some.
static tfc_status add_slices(struct merged *to, tfc_str bytes) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f))
    if (f.number == 7) tfc_text_add(&to->value, (tfc_str){(const char *)f.start, (size_t)(w.at - f.start)});
  return to->value.failed ? tfc_status_no_memory("merging checkpoints") : NULL;
}

static tfc_status merge_entry(struct merge *m, const struct part *p, tfc_str key, tfc_str value) {
  struct merged made = {.key = key};
  tfc_status s = renumber(value, p->first, p->shards, &made);
  bool found = false;
  uint64_t *at = s ? NULL : tfc_strmap_put(&m->by_key, key, m->entries.count, &found);
  if (!s && !at) s = tfc_status_no_memory("merging checkpoints");
  if (!s && found && (!made.sliced || !m->entries.data[*at].sliced))
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "it is in more than one of the checkpoints");
  if (!s && found) s = add_slices(&m->entries.data[*at], value);
  if (!s && !found && !tfc_array_push(&m->entries, made)) s = tfc_status_no_memory("merging checkpoints");
  if (s || found) tfc_text_deinit(&made.value);
  return s;
}

static tfc_status shards_of(tfc_str header, uint32_t *out) {
  struct tfc_wire w = tfc_wire_of(header);
  struct tfc_field f;
  uint64_t shards = 0;
  while (tfc_wire_next(&w, &f))
    if (f.number == 1) shards = f.value;
  if (w.error || !shards || shards > 1 << 16)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "its header is wrong: %s", w.error ? w.error : "number of data files");
  *out = (uint32_t)shards;
  return NULL;
}

static tfc_status read_part(struct merge *m, struct part *p) {
  struct tfc_table_entry *entries = NULL;
  size_t count = 0;
  TFC_RETURN_IF_ERROR(tfc_table_read((tfc_str){(const char *)p->file.data, p->file.size}, &m->arena, &entries, &count));
  if (!count || entries[0].key.size) return tfc_status_make(TFC_INVALID_ARGUMENT, "it has no header");
  TFC_RETURN_IF_ERROR(shards_of(entries[0].value, &p->shards));
  p->first = m->shards;
  m->shards += p->shards;
  for (size_t i = 1; i < count; i++) {
    tfc_status s = merge_entry(m, p, entries[i].key, entries[i].value);
    tfc_str key = entries[i].key;
    if (s) return tfc_status_annotate(s, "tensor '%.*s'", TFC_STR_ARG(key));
  }
  return NULL;
}

static tfc_status rename_data(const struct merge *m, const struct part *p, const char *from, const char *to) {
  tfc_status s = NULL;
  for (uint32_t i = 0; !s && i < p->shards; i++) {
    char *old = tfc_format("%s.data-%05u-of-%05u", from, i, p->shards);
    char *new = tfc_format("%s.data-%05u-of-%05u", to, p->first + i, m->shards);
    if (!old || !new)
      s = tfc_status_no_memory("merging checkpoints");
    else if (strcmp(old, new) != 0 && tfc_os.rename(old, new) != 0)
      s = tfc_status_make(errno == ENOENT ? TFC_NOT_FOUND : TFC_DATA_LOSS, "%s: cannot become %s: %s", old, new,
                          strerror(errno));
    free(old);
    free(new);
  }
  return s;
}

static tfc_status write_index(const struct merge *m, const char *path) {
  struct tfc_table_entry *entries = calloc(m->entries.count + 1, sizeof *entries);
  if (!entries) return tfc_status_no_memory("merging checkpoints");
  for (size_t i = 0; i < m->entries.count; i++)
    entries[1 + i] = (struct tfc_table_entry){m->entries.data[i].key, tfc_text_view(&m->entries.data[i].value)};
  tfc_status s = tfc_bundle_write_index(entries, m->entries.count, m->shards, path);
  free(entries);
  return s;
}

tfc_status tfc_checkpoint_merge(const char *const *prefixes, size_t count, const char *destination,
                                bool allow_missing) {
  tfc_status s = NULL;
  struct merge m = {0};
  char *index = tfc_format("%s.index", destination);
  tfc_arena_init(&m.arena, 64 * 1024);
  m.parts = calloc(count + 1, sizeof *m.parts);
  m.part_count = count;
  if (!index || !m.parts) {
    s = tfc_status_no_memory("merging checkpoints");
    goto out;
  }
  for (size_t i = 0; i < count; i++) {
    struct part *p = &m.parts[i];
    p->index = tfc_format("%s.index", prefixes[i]);
    s = p->index ? tfc_file_map(p->index, &p->file) : tfc_status_no_memory("merging checkpoints");
    if (s && allow_missing && tfc_status_code(s) == TFC_NOT_FOUND) {
      tfc_status_free(s);
      s = NULL;
      continue;
    }
    if (s) goto out;
    s = read_part(&m, p);
    if (s) {
      s = tfc_status_annotate(s, "%s", p->index);
      goto out;
    }
  }
  if (!m.shards) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: there is nothing to merge", destination);
  TFC_TRY(s, tfc_file_make_parents(index));
  for (size_t i = 0; i < count; i++) TFC_TRY(s, rename_data(&m, &m.parts[i], prefixes[i], destination));
  TFC_TRY(s, write_index(&m, index));
  for (size_t i = 0; i < count; i++)
    if (m.parts[i].shards && strcmp(m.parts[i].index, index) != 0) unlink(m.parts[i].index);
out:
  for (size_t i = 0; m.parts && i < count; i++) {
    tfc_file_unmap(&m.parts[i].file);
    free(m.parts[i].index);
  }
  for (size_t i = 0; i < m.entries.count; i++) tfc_text_deinit(&m.entries.data[i].value);
  tfc_array_free(&m.entries);
  tfc_strmap_deinit(&m.by_key);
  tfc_arena_deinit(&m.arena);
  free(m.parts);
  free(index);
  return s;
}
