#include "runtime/exec/rewrites/merging.h"

enum { UNSEEN, MET, MEMBER };

tfc_status tfc_merging_begin(const struct tfc_ir *ir, struct tfc_arena *arena, const struct tfc_ir_readers *readers,
                             struct tfc_merging *out) {
  const uint32_t count = (uint32_t)ir->ops.count;
  out->seen = TFC_ARENA_ARRAY(arena, uint8_t, count + 1);
  out->todo = TFC_ARENA_ARRAY(arena, uint32_t, count + 1);
  out->with = TFC_ARENA_ARRAY(arena, uint32_t, count + 1);
  if (!out->seen || !out->todo || !out->with) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < count; i++) out->with[i] = i;
  return tfc_ir_followers(ir, arena, readers, &out->followers);
}

bool tfc_merging_waits(struct tfc_merging *m, const uint32_t *ops, uint32_t count, uint32_t reader) {
  uint32_t pushed = 0;
  bool found = false;
  for (uint32_t i = 0; i < count; i++) m->seen[ops[i]] = MEMBER;
  if (reader != TFC_NONE) m->seen[reader] = MEMBER;
  for (uint32_t at = 0; at < count + pushed && !found; at++) {
    const uint32_t from = at < count ? ops[at] : m->todo[at - count];
    for (uint32_t e = m->followers.begin[from]; e < m->followers.begin[from + 1] && !found; e++) {
      const uint32_t to = m->followers.ops[e];
      found = at >= count && m->seen[to] == MEMBER;
      for (uint32_t each = to; m->seen[each] == UNSEEN; each = m->with[each]) { // those it is one with are met, too
        m->seen[each] = MET;
        m->todo[pushed++] = each;
      }
    }
  }
  for (uint32_t i = 0; i < count; i++) m->seen[ops[i]] = UNSEEN;
  if (reader != TFC_NONE) m->seen[reader] = UNSEEN;
  for (uint32_t i = 0; i < pushed; i++) m->seen[m->todo[i]] = UNSEEN;
  return found;
}

void tfc_merging_note(struct tfc_merging *m, const uint32_t *ops, uint32_t count, uint32_t reader) {
  for (uint32_t i = 0; i + 1 < count; i++) m->with[ops[i]] = ops[i + 1];
  if (count) m->with[ops[count - 1]] = reader != TFC_NONE ? reader : ops[0];
  if (count && reader != TFC_NONE) m->with[reader] = ops[0];
}
