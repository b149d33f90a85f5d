// On devices that launch kernels, joins sums and means over the last dimension with the element-wise operations around
// them, so that the normalisation of a layer, or its gradient, or the scores of an attention take one launch. A group
// of threads computes a row; a sum is added up in the order of the device's own kernel for sums, and all other steps
// are those of chains, so the results are bit-identical.
//
// Runs after chains were made; a chain, or an operation that is in none, is a part as a whole. Which parts go together
// follows from levels, as for chains (chains.c says why this makes no cycles): the level of an operation is the highest
// one of those before it, plus one for each edge that cannot be inside of one operation.
#include "runtime/exec/rewrites/rows.h"

#include "runtime/base/union_find.h"

struct search {
  struct tfc_ir *ir;
  struct tfc_arena arena; // scratch
  struct tfc_ir_readers readers;
  struct tfc_ir_followers followers;
  struct tfc_rows_member *members; // [ops]
  uint32_t *level, *group;         // [ops]; group: union-find
  bool *waits;                     // [ops] an ordering edge ends there
  uint32_t *order, count;          // ops, producers first
};

// Whether `to` reads the tensor by the same indices by which `from` wrote it: element by element, so that each thread
// reads what it wrote itself, or one number for a row, which all threads of the row have.
static bool reads_alike(const struct tfc_rows_member *from, uint32_t written, const struct tfc_rows_member *to,
                        uint32_t read) {
  bool whole = false, each = false;
  for (uint16_t i = 0; i < from->chain->chain.operand_count; i++) {
    const struct tfc_chain_operand *o = &from->chain->chain.operands[i];
    if (o->tensor != written) continue;
    whole = tfc_rows_is_whole(from, o), each = tfc_rows_is_each(from, o);
  }
  for (uint16_t i = 0; i < to->chain->chain.operand_count; i++) {
    const struct tfc_chain_operand *o = &to->chain->chain.operands[i];
    if (o->tensor == read && !(whole && tfc_rows_is_whole(to, o)) && !(each && tfc_rows_is_each(to, o))) return false;
  }
  return true;
}

// Whether the data that goes from one operation to another can stay in registers.
static bool inside(const struct search *s, uint32_t from, uint32_t to) {
  const struct tfc_rows_member *a = &s->members[from], *b = &s->members[to];
  const struct tfc_ir *ir = s->ir;
  if (!a->chain || !b->chain || s->waits[to] || ir->ops.data[from].device != ir->ops.data[to].device ||
      a->rows != b->rows || a->columns != b->columns || !a->columns)
    return false;
  for (uint32_t k = 0; k < b->chain->input_count; k++)
    for (uint32_t i = 0; i < a->chain->output_count; i++)
      if (b->inputs[k].value == a->outputs[i] && !reads_alike(a, a->chain->input_count + i, b, k)) return false;
  return true;
}

// Sorts the operations by Kahn's algorithm, and finds their levels on the way. An operation on one number for each row
// takes the length of rows from an operation before it.
static tfc_status sort_and_level(struct search *s) {
  const uint32_t n = (uint32_t)s->ir->ops.count;
  uint32_t *missing = TFC_ARENA_ARRAY(&s->arena, uint32_t, n + 1), done = 0;
  s->order = TFC_ARENA_ARRAY(&s->arena, uint32_t, n + 1);
  s->level = TFC_ARENA_ARRAY(&s->arena, uint32_t, n + 1);
  s->group = TFC_ARENA_ARRAY(&s->arena, uint32_t, n + 1);
  if (!missing || !s->order || !s->level || !s->group) return tfc_status_no_memory("planning a step");
  tfc_union_find_init(s->group, n);
  for (uint32_t e = 0; e < s->followers.begin[n]; e++) missing[s->followers.ops[e]]++;
  for (uint32_t i = 0; i < n; i++)
    if (!missing[i]) s->order[done++] = i;
  for (uint32_t at = 0; at < done; at++) {
    const uint32_t from = s->order[at];
    const struct tfc_rows_member *a = &s->members[from];
    for (uint32_t e = s->followers.begin[from]; e < s->followers.begin[from + 1]; e++) {
      const uint32_t to = s->followers.ops[e];
      struct tfc_rows_member *b = &s->members[to];
      if (a->chain && b->chain && !b->columns && a->rows == b->rows) b->columns = a->columns;
      const uint32_t least = s->level[from] + !inside(s, from, to);
      if (least > s->level[to]) s->level[to] = least;
      if (--missing[to] == 0) s->order[done++] = to;
    }
  }
  s->count = done == n ? n : 0; // there is a cycle: nothing is joined here; tfc_order_make reports the error
  for (uint32_t at = 0; at < s->count; at++) {
    const uint32_t from = s->order[at];
    for (uint32_t e = s->followers.begin[from]; e < s->followers.begin[from + 1]; e++) {
      const uint32_t to = s->followers.ops[e];
      if (s->level[to] == s->level[from] && inside(s, from, to)) tfc_union_find_join(s->group, from, to);
    }
  }
  return NULL;
}

static tfc_status make_groups(struct search *s) {
  const uint32_t n = s->count;
  uint32_t *size = TFC_ARENA_ARRAY(&s->arena, uint32_t, n + 1), *begin = TFC_ARENA_ARRAY(&s->arena, uint32_t, n + 1);
  uint32_t *ops = TFC_ARENA_ARRAY(&s->arena, uint32_t, n + 1), total = 0;
  bool *reduces = TFC_ARENA_ARRAY(&s->arena, bool, n + 1);
  uint32_t *made = tfc_arena_alloc(&s->arena, (s->ir->values.count + 1) * sizeof *made);
  if (!size || !begin || !ops || !reduces || !made) return tfc_status_no_memory("planning a step");
  for (size_t v = 0; v < s->ir->values.count; v++) made[v] = TFC_NONE;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t root = tfc_union_find_root(s->group, i);
    size[root]++;
    reduces[root] = reduces[root] || s->members[i].reduces;
  }
  for (uint32_t i = 0; i < n; i++) begin[i] = total, total += size[i], size[i] = 0;
  for (uint32_t at = 0; at < n; at++) {
    const uint32_t root = tfc_union_find_root(s->group, s->order[at]);
    ops[begin[root] + size[root]++] = s->order[at];
  }
  for (uint32_t i = 0; i < n; i++)
    if (size[i] > 1 && reduces[i])
      TFC_RETURN_IF_ERROR(tfc_rows_make(s->ir, &s->readers, s->members, ops + begin[i], size[i], made));
  return NULL;
}

static tfc_status join_rows(struct tfc_ir *ir) {
  tfc_status status = NULL;
  struct search s = {.ir = ir};
  const uint32_t count = (uint32_t)ir->ops.count;
  bool any = false;
  if (!tfc_ir_any_launches(ir, &tfc_rows_def)) return NULL;
  s.members = TFC_ARENA_ARRAY(&s.arena, struct tfc_rows_member, count + 1);
  if (!s.members) TFC_TRY(status, tfc_status_no_memory("planning a step"));
  TFC_TRY(status, tfc_ir_waits(ir, &s.arena, &s.waits));
  for (uint32_t i = 0; i < count; i++) {
    if (!tfc_ir_launches(ir, ir->ops.data[i].device, &tfc_rows_def)) continue;
    TFC_TRY(status, tfc_rows_member_of(ir, i, &s.members[i]));
    any |= s.members[i].reduces;
  }
  if (!any) goto out;
  TFC_TRY(status, tfc_ir_readers(ir, &s.arena, &s.readers));
  TFC_TRY(status, tfc_ir_followers(ir, &s.arena, &s.readers, &s.followers));
  TFC_TRY(status, sort_and_level(&s));
  TFC_TRY(status, make_groups(&s));
out:
  tfc_arena_deinit(&s.arena);
  return status;
}

// Rank 63: after the rewrites that look for single operations, such as the scaling of a gradient.
static const struct tfc_rewrite rows[] = {{"rows", 63, true, join_rows}};
TFC_REWRITES(rows);
