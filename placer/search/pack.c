#include "placer/search/pack.h"

#include <stdlib.h>
#include <string.h>

#define FREE 28               // most items of two bins that are divided again at a time
#define HALF (1u << FREE / 2) // number of subsets of one half of them, for each of which a sum is listed

#define MOST_ITEMS 64     // most items with which branch and bound is tried
#define MOST_STEPS 200000 // and its most steps

#define MOST_SUMMED 40   // most items whose sums of subsets, listed as two halves, are used
#define MOST_EXACT 512   // most ways to fill a bin that are tried
#define MOST_LISTINGS 24 // limit of the total cost of listing sums; listing one half of MOST_SUMMED items costs 1

struct sum {
  uint64_t bytes;
  uint32_t set; // set of items of one half, as bits
};
struct packer {
  const struct tfc_pack *pack;
  struct tfc_random *random;
  tfc_device_id *bin;
  uint64_t *used; // [bin]
  uint32_t *item; // [item_count] the items that may change between the two bins
  struct sum *left, *right, *spare;
};

static uint64_t above(uint64_t used, uint64_t limit) {
  return used > limit ? used - limit : 0;
}

// Lists the sums of all subsets of `count` items, ascending: for each item it merges the list so far with the same list
// plus that item.
static uint32_t list_sums(const struct packer *q, const uint32_t *item, uint32_t count, struct sum **list,
                          struct sum **spare) {
  uint32_t size = 1;
  (*list)[0] = (struct sum){0, 0};
  for (uint32_t k = 0; k < count; k++) {
    const struct sum *from = *list;
    struct sum *to = *spare;
    const uint64_t bytes = q->pack->size[item[k]];
    for (uint32_t a = 0, b = 0; b < size;) {
      if (a < size && from[a].bytes <= from[b].bytes + bytes)
        *to++ = from[a++];
      else
        *to++ = (struct sum){from[b].bytes + bytes, from[b].set | 1u << k}, b++;
    }
    size *= 2;
    struct sum *other = *spare;
    *spare = *list, *list = other;
  }
  return size;
}

// Returns the number of sums that are at most `bytes`.
static uint32_t rank_of(const struct sum *list, uint32_t size, uint64_t bytes) {
  uint32_t low = 0, high = size;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (list[middle].bytes <= bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Divides the changeable items of two bins again, so that the bytes above their limits do not increase.
static void divide(struct packer *q, tfc_device_id a, tfc_device_id b) {
  const struct tfc_pack *k = q->pack;
  uint32_t count = 0;
  for (uint32_t i = 0; i < k->item_count; i++) {
    if ((q->bin[i] != a && q->bin[i] != b) || !k->size[i]) continue;
    if (k->may(k->user, i, a) && k->may(k->user, i, b)) q->item[count++] = i;
  }
  const uint32_t chosen = count < FREE ? count : FREE;
  uint64_t total = 0, in_a = 0;
  for (uint32_t i = 0; i < chosen; i++) {
    const uint32_t j = i + (uint32_t)tfc_random_below(q->random, count - i), x = q->item[i];
    q->item[i] = q->item[j], q->item[j] = x;
    total += k->size[q->item[i]];
    if (q->bin[q->item[i]] == a) in_a += k->size[q->item[i]];
  }
  if (!chosen) return;
  // The bytes of items that stay in their bin, and the room that is left for the chosen items.
  const uint64_t fixed_a = q->used[a] - in_a, fixed_b = q->used[b] - (total - in_a);
  const uint64_t room_a = above(k->limit[a], fixed_a), room_b = above(k->limit[b], fixed_b);
  const uint64_t least = above(total, room_b), now = above(in_a, room_a) + above(total - in_a, room_b);
  const uint32_t half = chosen / 2;
  const uint32_t lefts = list_sums(q, q->item, half, &q->left, &q->spare);
  const uint32_t rights = list_sums(q, q->item + half, chosen - half, &q->right, &q->spare);
  const uint32_t start = (uint32_t)tfc_random_below(q->random, lefts);
  struct sum best_left = {0}, best_right = {0};
  uint64_t best = UINT64_MAX;
  for (uint32_t n = 0; n < lefts && best; n++) {
    const struct sum left = q->left[(start + n) % lefts];
    // Candidates: the largest sum that fits into bin a, the next larger one, and the least one with which bin b fits.
    const uint32_t most = left.bytes <= room_a ? rank_of(q->right, rights, room_a - left.bytes) : 0;
    const uint32_t few = least > left.bytes ? rank_of(q->right, rights, least - left.bytes - 1) : 0;
    const uint32_t at[3] = {most ? most - 1 : 0, most < rights ? most : rights - 1, few < rights ? few : rights - 1};
    for (uint32_t t = 0; t < 3; t++) {
      const uint64_t bytes = left.bytes + q->right[at[t]].bytes;
      const uint64_t over = above(bytes, room_a) + above(total - bytes, room_b);
      if (over < best) best = over, best_left = left, best_right = q->right[at[t]];
    }
  }
  if (best > now) return;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < chosen; i++) {
    const bool to_a = i < half ? best_left.set >> i & 1 : best_right.set >> (i - half) & 1;
    q->bin[q->item[i]] = to_a ? a : b;
    if (to_a) bytes += k->size[q->item[i]];
  }
  q->used[a] = fixed_a + bytes, q->used[b] = fixed_b + total - bytes;
}

// Draws a bin other than `not_this` at random: one that is too full (way 1), one with free memory (way -1), or any (way
// 0). TFC_NONE: there is none.
static uint32_t some_bin(const struct packer *q, int way, uint32_t not_this) {
  const struct tfc_pack *k = q->pack;
  uint32_t seen = 0, choice = TFC_NONE;
  for (uint32_t b = 0; b < k->bin_count; b++) {
    if (b == not_this || (way > 0 && q->used[b] <= k->limit[b]) || (way < 0 && q->used[b] >= k->limit[b])) continue;
    if (tfc_random_below(q->random, ++seen) == 0) choice = b;
  }
  return choice;
}

// --- Few items: fills bin after bin, by branch and bound -----------------------------------------------------------

struct filler {
  const struct tfc_pack *pack;
  uint32_t count, *item, bins; // items, the largest first
  uint64_t slack;              // bytes that may stay free in all bins together
  bool bounded;                // some items may not be in some bins
  uint32_t home[MOST_ITEMS], steps;
};

static int larger_first(const void *a, const void *b) {
  const struct sum *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return (x->set > y->set) - (x->set < y->set);
}

// Adds items from index `from` on to a bin, with as many of them as fit at first, then continues with the next bin.
static bool fill(struct filler *f, uint32_t bin, uint32_t from, uint64_t used) {
  const struct tfc_pack *k = f->pack;
  const uint64_t limit = k->limit[bin];
  uint64_t rest = 0, tried = 0;
  if (++f->steps > MOST_STEPS) return false;
  for (uint32_t i = from; i < f->count; i++)
    if (f->home[i] == TFC_NONE) rest += k->size[f->item[i]];
  for (uint32_t i = from; i < f->count && rest + used + f->slack >= limit; i++) {
    const uint64_t bytes = k->size[f->item[i]];
    if (f->home[i] != TFC_NONE) continue;
    rest -= bytes;
    if (used + bytes > limit || bytes == tried || !k->may(k->user, f->item[i], bin)) continue;
    f->home[i] = bin;
    if (fill(f, bin, i + 1, used + bytes)) return true;
    f->home[i] = TFC_NONE;
    tried = f->bounded ? 0 : bytes; // another item of the same size would fail, too
  }
  if (limit - used > f->slack) return false;
  if (bin + 1 == f->bins) {
    for (uint32_t i = 0; i < f->count; i++)
      if (f->home[i] == TFC_NONE) return false;
    return true;
  }
  f->slack -= limit - used;
  if (fill(f, bin + 1, 0, 0)) return true;
  f->slack += limit - used;
  return false;
}

// --- Bins that must be exactly or nearly full ------------------------------------------------------------------------
//
// The bins are filled one after the other. For each, ways to fill it are listed: sets of free items that together have
// at most the bin's limit, and at least the limit less `slack`. To find them the items are divided into two halves, all
// sums of each half are listed, and a way is a sum of the first list with one of the second.

struct summer {
  struct packer *q;
  uint32_t count, *item; // all items
  tfc_device_id *home;   // [count]
  bool *placed, *done;   // [count], [bin]
  uint64_t slack;        // bytes that may stay free in all bins together
  double cost;           // of the listings so far
};

// Fills first the bin that can be filled in the fewest ways, then the others.
static bool fill_exactly(struct summer *f, uint32_t left) {
  const struct tfc_pack *k = f->q->pack;
  uint32_t free_item[MOST_SUMMED], count = 0, bin = TFC_NONE;
  uint64_t total = 0, room = 0, extreme = UINT64_MAX;
  if (!left) return true;
  for (uint32_t b = 0; b < k->bin_count; b++) {
    if (f->done[b]) continue;
    uint64_t most = 0; // the most bytes that can be in the bin
    for (uint32_t i = 0; i < f->count; i++)
      if (!f->placed[i] && k->may(k->user, f->item[i], b)) most += k->size[f->item[i]];
    room = most > k->limit[b] && most - k->limit[b] < k->limit[b] ? most - k->limit[b] : k->limit[b];
    if (room < extreme) extreme = room, bin = b;
  }
  if (bin == TFC_NONE) return false;
  for (uint32_t i = 0; i < f->count; i++)
    if (!f->placed[i] && k->may(k->user, f->item[i], bin)) free_item[count++] = i, total += k->size[f->item[i]];
  const uint64_t limit = k->limit[bin], least = limit > f->slack ? limit - f->slack : 0;
  const uint32_t half = count / 2;
  uint32_t at[MOST_SUMMED], found = 0;
  struct {
    uint32_t left, right;
    uint64_t bytes;
  } *way = malloc(sizeof *way * MOST_EXACT);
  f->cost += (double)(1u << (count - half)) / (1u << MOST_SUMMED / 2);
  if (!way || total < least || f->cost > MOST_LISTINGS) {
    free(way);
    return false;
  }
  for (uint32_t i = 0; i < count; i++) at[i] = f->item[free_item[i]];
  const uint32_t lefts = list_sums(f->q, at, half, &f->q->left, &f->q->spare);
  const uint32_t rights = list_sums(f->q, at + half, count - half, &f->q->right, &f->q->spare);
  for (uint32_t a = 0, end = rights; a < lefts && found < MOST_EXACT; a++) {
    const uint64_t bytes = f->q->left[a].bytes;
    while (end && f->q->right[end - 1].bytes + bytes > limit) end--;
    for (uint32_t b = end; b-- > 0 && f->q->right[b].bytes + bytes >= least && found < MOST_EXACT; found++)
      way[found].left = f->q->left[a].set, way[found].right = f->q->right[b].set,
      way[found].bytes = f->q->right[b].bytes + bytes;
  }
  bool fine = false;
  f->done[bin] = true;
  for (uint32_t w = 0; w < found && !fine; w++) {
    uint32_t taken = 0;
    for (uint32_t i = 0; i < count; i++) {
      if (!(i < half ? way[w].left >> i & 1 : way[w].right >> (i - half) & 1)) continue;
      f->placed[free_item[i]] = true, f->home[free_item[i]] = (tfc_device_id)bin, taken++;
    }
    f->slack -= limit - way[w].bytes;
    fine = fill_exactly(f, left - taken);
    f->slack += limit - way[w].bytes;
    for (uint32_t i = 0; i < count && !fine; i++)
      if (i < half ? way[w].left >> i & 1 : way[w].right >> (i - half) & 1) f->placed[free_item[i]] = false;
  }
  f->done[bin] = fine;
  free(way);
  return fine;
}

// Puts all items into the bins, or changes nothing. It is for bins that must be so full that only few ways to fill them
// exist.
static bool fill_by_sums(struct packer *q, uint32_t count, uint32_t *item, uint64_t slack) {
  const size_t size = (size_t)1 << (MOST_SUMMED / 2);
  struct sum **const lists[] = {&q->left, &q->right, &q->spare};
  struct summer f = {.q = q, .count = count, .item = item, .slack = slack};
  bool fine = true;
  for (int i = 0; i < 3; i++) {
    struct sum *larger = realloc(*lists[i], sizeof *larger * size);
    fine &= larger != NULL;
    if (larger) *lists[i] = larger;
  }
  f.home = calloc(count, sizeof *f.home);
  f.placed = calloc(count, sizeof *f.placed);
  f.done = calloc(q->pack->bin_count, sizeof *f.done);
  fine = fine && f.home && f.placed && f.done && fill_exactly(&f, count);
  for (uint32_t i = 0; i < count && fine; i++) q->bin[item[i]] = f.home[i];
  free(f.home), free(f.placed), free(f.done);
  return fine;
}

// Puts all items into the bins, or changes nothing.
static bool fill_all(struct packer *q) {
  const struct tfc_pack *k = q->pack;
  struct filler f = {.pack = k, .bins = k->bin_count, .item = q->item};
  uint64_t total = 0;
  for (uint32_t i = 0; i < k->item_count; i++) {
    if (!k->size[i]) continue;
    if (f.count == MOST_ITEMS) return false;
    q->left[f.count++] = (struct sum){k->size[i], i};
    total += k->size[i];
    for (uint32_t b = 0; b < k->bin_count; b++) f.bounded |= !k->may(k->user, i, b);
  }
  for (uint32_t b = 0; b < k->bin_count; b++) {
    if (k->limit[b] > UINT64_MAX / 4 / k->bin_count) return false;
    f.slack += k->limit[b];
  }
  if (f.slack < total) return false;
  f.slack -= total;
  qsort(q->left, f.count, sizeof *q->left, larger_first);
  for (uint32_t i = 0; i < f.count; i++) f.item[i] = q->left[i].set, f.home[i] = TFC_NONE;
  if (fill(&f, 0, 0, 0)) {
    for (uint32_t i = 0; i < f.count; i++) q->bin[f.item[i]] = (tfc_device_id)f.home[i];
    return true;
  }
  return k->thorough && f.count > FREE && f.count <= MOST_SUMMED && fill_by_sums(q, f.count, f.item, f.slack);
}

uint64_t tfc_pack_bins(const struct tfc_pack *k, struct tfc_random *random, uint32_t rounds, tfc_device_id *bin) {
  struct packer q = {.pack = k, .random = random, .bin = bin};
  uint64_t excess = UINT64_MAX;
  q.used = calloc((size_t)k->bin_count + 1, sizeof *q.used);
  q.item = malloc(sizeof *q.item * ((size_t)k->item_count + 1));
  q.left = malloc(sizeof *q.left * HALF);
  q.right = malloc(sizeof *q.right * HALF);
  q.spare = malloc(sizeof *q.spare * HALF);
  if (!q.used || !q.item || !q.left || !q.right || !q.spare) goto out;
  for (uint32_t i = 0; i < k->item_count; i++) q.used[bin[i]] += k->size[i];
  for (uint32_t round = 0;; round++) {
    excess = 0;
    for (uint32_t b = 0; b < k->bin_count; b++) excess += above(q.used[b], k->limit[b]);
    const uint32_t full = some_bin(&q, 1, TFC_NONE), empty = some_bin(&q, -1, TFC_NONE);
    if (full == TFC_NONE || empty == TFC_NONE) break;
    if (round >= rounds) {
      if (fill_all(&q)) excess = 0;
      break;
    }
    const uint64_t turn = tfc_random_below(random, 5);
    const uint32_t one = turn < 4 ? full : empty, other = turn < 3 ? empty : some_bin(&q, 0, one);
    if (other != TFC_NONE) divide(&q, (tfc_device_id)one, (tfc_device_id)other);
  }
out:
  free(q.used), free(q.item), free(q.left), free(q.right), free(q.spare);
  return excess;
}
