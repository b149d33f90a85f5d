// A row of a window is contiguous in memory (size[1] * channels floats) if the window has no dilation along the row and
// does not reach over the image's edge. Then the row is packed directly. Rows that reach over the edge are first copied
// into a buffer, with zeros for cells outside of the image. Of a window with a dilation, each cell is contiguous.
#include "runtime/device/cpu/conv/patches.h"

#include <string.h>

#include "runtime/ops/element_types.h"

// STRIPE: windows that are packed together. EDGE: most floats of a piece of a row that is copied.
enum { STRIPE = 8, EDGE = TFC_GEMM_LONGEST_PIECE };

struct place { // the position of a window
  const float *image;
  int64_t z, y, x; // position of the window's first cell, which may be outside of the image
};

static struct place place_of(const struct tfc_patches *p, int64_t position) {
  int64_t x = position % p->out[1], rest = position / p->out[1], y = rest % p->out[0];
  rest /= p->out[0];
  int64_t z = rest % p->out[2], n = rest / p->out[2];
  return (struct place){p->image + n * p->in[2] * p->in[0] * p->in[1] * p->channels, z * p->stride[2] - p->before[2],
                        y * p->stride[0] - p->before[0], x * p->stride[1] - p->before[1]};
}

// Returns how far row `i` of a window is below its first row.
static struct place row_below(const struct tfc_patches *p, int64_t i) {
  const int64_t plane = p->size[2] == 1 ? 0 : i / p->size[0];
  return (struct place){.z = plane * p->dilation[2], .y = (i - plane * p->size[0]) * p->dilation[0]};
}

// Whether row `i` of the window at that place is inside the image. *out_line: the line of the image under that row.
static bool find_line(const struct tfc_patches *p, const struct place *at, int64_t i, int64_t *out_line) {
  const struct place below = row_below(p, i);
  const int64_t z = at->z + below.z, y = at->y + below.y;
  *out_line = z * p->in[0] + y;
  return z >= 0 && z < p->in[2] && y >= 0 && y < p->in[0];
}
static int64_t rows_of(const struct tfc_patches *p) {
  return p->size[2] * p->size[0];
}

// Finds which cells [first, last) of a window's row are inside the image. The row has `size` cells and begins at column
// x.
static void inside(int64_t x, int64_t size, int64_t in, int64_t *first, int64_t *last) {
  *first = x < 0 ? (-x < size ? -x : size) : 0;
  *last = in - x < size ? (in - x > *first ? in - x : *first) : size;
}

// Where 8 windows lie. If they are on one line of the image, one after the other, windows [first, last) reach over
// neither end of the line; else the range is empty, because that is not known.
struct places {
  struct place at[STRIPE];
  bool on_line;
  int64_t first, last;
};
static bool all_inside(const struct places *places) {
  return places->first == 0 && places->last == STRIPE;
}

// Finds the places of the 8 windows from `row` on. If there are only `rows` < 8 of them, the last place is repeated.
static void find_places(const struct tfc_patches *p, int64_t row, int64_t rows, struct places *out) {
  struct place here = place_of(p, row), *at = out->at;
  const int64_t step = p->stride[1], last_x = (p->out[1] - 1) * step - p->before[1],
                last_y = (p->out[0] - 1) * p->stride[0] - p->before[0],
                last_z = (p->out[2] - 1) * p->stride[2] - p->before[2];
  out->first = out->last = 0;
  out->on_line = rows == STRIPE && here.x + (STRIPE - 1) * step <= last_x;
  if (out->on_line) {
    const int64_t end = p->in[1] - (p->size[1] - 1) * p->dilation[1]; // a window inside begins before this column
    for (int64_t r = 0; r < STRIPE; r++) at[r] = (struct place){here.image, here.z, here.y, here.x + r * step};
    while (out->first < STRIPE && at[out->first].x < 0) out->first++;
    for (out->last = STRIPE; out->last > out->first && at[out->last - 1].x >= end;) out->last--;
    return;
  }
  at[0] = here;
  for (int64_t r = 1; r < STRIPE; r++) {
    if (r >= rows) {
      // the same once more
    } else if (here.x < last_x) {
      here.x += step;
    } else {
      here.x = -p->before[1];
      if (here.y < last_y) {
        here.y += p->stride[0];
      } else {
        here.y = -p->before[0];
        if (here.z < last_z)
          here.z += p->stride[2];
        else
          here.z = -p->before[2], here.image += p->in[2] * p->in[0] * p->in[1] * p->channels;
      }
    }
    at[r] = here;
  }
}

// Sets `from` to row i of each window as a contiguous piece. A row that reaches over the image's edge is copied, with
// zeros for padding, to `edge` [8, size[1] * channels].
static void find_rows(const struct tfc_patches *p, const struct places *places, int64_t i, const float *from[STRIPE],
                      float *edge) {
  const struct place *at = places->at;
  const int64_t c = p->channels, length = p->size[1] * c, line = p->in[1] * c;
  const struct place below = row_below(p, i);
  if (places->on_line) {
    const int64_t z = at->z + below.z, y = at->y + below.y, step = p->stride[1] * c;
    const bool there = z >= 0 && z < p->in[2] && y >= 0 && y < p->in[0];
    const float *start = at->image + (z * p->in[0] + y) * line + at->x * c;
    for (int64_t r = 0; r < STRIPE; r++) from[r] = there ? start + r * step : p->zeros;
    if (!there || all_inside(places)) return;
  }
  for (int64_t r = 0; r < STRIPE; r++, edge += length) {
    int64_t first, last;
    const int64_t z = at[r].z + below.z, y = at[r].y + below.y;
    if (r == places->first && places->last > r) { // windows [first, last): found above
      edge += (places->last - 1 - r) * length, r = places->last - 1;
      continue;
    }
    if (z < 0 || z >= p->in[2] || y < 0 || y >= p->in[0]) {
      from[r] = p->zeros;
      continue;
    }
    const float *start = at[r].image + (z * p->in[0] + y) * line + at[r].x * c; // x may be negative
    if (at[r].x >= 0 && at[r].x + p->size[1] <= p->in[1]) {
      from[r] = start;
      continue;
    }
    inside(at[r].x, p->size[1], p->in[1], &first, &last);
    memset(edge, 0, (size_t)(first * c) * sizeof(float));
    if (last > first) memcpy(edge + first * c, start + first * c, (size_t)((last - first) * c) * sizeof(float));
    memset(edge + last * c, 0, (size_t)(length - last * c) * sizeof(float));
    from[r] = edge;
  }
}

// Sets `from` to cell (i, j) of each window.
static void find_cells(const struct tfc_patches *p, const struct place at[STRIPE], int64_t i, int64_t j,
                       const float *from[STRIPE]) {
  const int64_t line = p->in[1] * p->channels;
  for (int64_t r = 0; r < STRIPE; r++) {
    int64_t y, x = at[r].x + j * p->dilation[1];
    const bool there = find_line(p, &at[r], i, &y) && x >= 0 && x < p->in[1];
    from[r] = there ? at[r].image + y * line + x * p->channels : p->zeros;
  }
}

// Sets `out` to all rows of the 8 windows from `row` on, if these windows follow each other on one line of the image,
// none of them reaches over its edge, and they are not dilated along the line. Otherwise it returns false.
OPS_CLONES static bool find_inside(const struct tfc_patches *p, int64_t row, const float **out) {
  const struct place at = place_of(p, row);
  const int64_t last_x = at.x + (STRIPE - 1) * p->stride[1], c = p->channels, line = p->in[1] * c;
  if (p->dilation[1] != 1 || last_x > (p->out[1] - 1) * p->stride[1] - p->before[1]) return false;
  if (at.x < 0 || at.y < 0 || at.z < 0 || last_x + p->size[1] > p->in[1]) return false;
  if (at.y + (p->size[0] - 1) * p->dilation[0] >= p->in[0] || at.z + (p->size[2] - 1) * p->dilation[2] >= p->in[2])
    return false;
  const float *plane = at.image + (at.z * p->in[0] + at.y) * line + at.x * c, *first[STRIPE];
  for (int r = 0; r < STRIPE; r++) first[r] = plane + r * p->stride[1] * c;
  for (int64_t z = 0, from = 0; z < p->size[2]; z++, from += p->dilation[2] * p->in[0] * line)
    for (int64_t y = 0, below = from; y < p->size[0]; y++, below += p->dilation[0] * line, out += STRIPE)
      for (int r = 0; r < STRIPE; r++) out[r] = first[r] + below;
  return true;
}

static void find(const struct tfc_gemm_source *source, int64_t row, const float **out, float *edge) {
  const struct tfc_patches *p = (const struct tfc_patches *)(const void *)source;
  struct places places;
  if (find_inside(p, row, out)) return;
  find_places(p, row, STRIPE, &places);
  if (p->dilation[1] != 1) {
    for (int64_t i = 0; i < rows_of(p); i++)
      for (int64_t j = 0; j < p->size[1]; j++, out += STRIPE) find_cells(p, places.at, i, j, out);
    return;
  }
  for (int64_t i = 0; i < rows_of(p); i++)
    find_rows(p, &places, i, out + i * STRIPE, edge + i * STRIPE * p->size[1] * p->channels);
}

// Packs windows of an image with one channel that are neighbours, so that their elements are neighbours in memory.
static void pack_side_by_side(const struct tfc_patches *p, const struct place *at, float *out) {
  for (int64_t z = 0; z < p->size[2]; z++)
    for (int64_t y = 0; y < p->size[0]; y++) {
      const int64_t line = (at->z + z * p->dilation[2]) * p->in[0] + at->y + y * p->dilation[0];
      const float *from = at->image + line * p->in[1] + at->x;
      for (int64_t x = 0; x < p->size[1]; x++, out += STRIPE)
        memcpy(out, from + x * p->dilation[1], STRIPE * sizeof *out);
    }
}

static void pack(const struct tfc_gemm_source *source, int64_t row, int64_t rows, float *out) {
  const struct tfc_patches *p = (const struct tfc_patches *)(const void *)source;
  const int64_t c = p->channels, length = p->size[1] * c;
  struct places places;
  find_places(p, row, rows, &places);
  const bool side_by_side = all_inside(&places) && p->stride[1] * c == 1;
  if (side_by_side && p->inside) {
    pack_side_by_side(p, places.at, out);
    return;
  }
  const float *from[STRIPE];
  float edge[STRIPE * EDGE];
  for (int64_t i = 0; i < rows_of(p); i++) {
    if (p->dilation[1] == 1 && length <= EDGE) {
      find_rows(p, &places, i, from, edge);
      if (side_by_side && from[0] != p->zeros) { // the windows' elements are neighbours, too
        for (int64_t e = 0; e < length; e++, out += STRIPE) memcpy(out, from[0] + e, STRIPE * sizeof *out);
        continue;
      }
      tfc_gemm_pack_rows(from, length, out);
      out += length * STRIPE;
      continue;
    }
    for (int64_t j = 0; j < p->size[1]; j++, out += c * STRIPE) {
      find_cells(p, places.at, i, j, from);
      if (side_by_side && from[0] != p->zeros)
        memcpy(out, from[0], STRIPE * sizeof *out);
      else
        tfc_gemm_pack_rows(from, c, out);
    }
  }
}

bool tfc_patches_are_flat(const struct tfc_patches *p) {
  return p->in[2] == 1 && p->out[2] == 1 && p->size[2] == 1;
}

void tfc_patches_init(struct tfc_patches *p) {
  const bool apart = p->dilation[1] != 1; // the cells of a row
  p->base = (struct tfc_gemm_source){.pack = pack, .find = find, .zeros = p->zeros};
  p->base.pieces = apart ? rows_of(p) * p->size[1] : rows_of(p);
  p->base.length = apart ? p->channels : p->size[1] * p->channels;
  p->base.neighbours = p->channels;
}

static bool is_inside(const struct tfc_patches *p, const struct place *at) {
  const int64_t position[3] = {at->y, at->x, at->z};
  for (int k = 0; k < 3; k++)
    if (position[k] < 0 || position[k] + (p->size[k] - 1) * p->dilation[k] >= p->in[k]) return false;
  return true;
}
static void add_span(struct tfc_gemm_stretch *out, int64_t begin, int64_t end, tfc_gemm_rows rows) {
  struct tfc_gemm_span *before = out->span_count ? &out->spans[out->span_count - 1] : NULL;
  if (before && before->rows == rows && before->end == begin)
    before->end = (int32_t)end;
  else
    out->spans[out->span_count++] = (struct tfc_gemm_span){(int32_t)begin, (int32_t)end, rows};
}

// Finds the spans of 8 windows that are neighbours on one line, the first window at `at`. False: a cell of the window
// is in padding for more than one of the 8, or there are too many cells.
static bool find_window_spans(const struct tfc_patches *p, const struct place *at, struct tfc_gemm_stretch *out) {
  const int64_t c = p->channels, step = p->stride[1], rows = rows_of(p);
  if (rows * p->size[1] > TFC_GEMM_MOST_SPANS) return false;
  tfc_gemm_rows by_cell[TFC_GEMM_MOST_SPANS];
  for (int64_t j = 0; j < p->size[1]; j++) {
    const int64_t x = at->x + j * p->dilation[1], last = x + (STRIPE - 1) * step;
    const bool left = x < 0, right = last >= p->in[1];
    if ((left && right) || x + step < 0 || last - step >= p->in[1]) return false;
    by_cell[j] = left ? TFC_GEMM_BUT_FIRST : right ? TFC_GEMM_BUT_LAST : TFC_GEMM_ALL_ROWS;
  }
  for (int64_t i = 0; i < rows; i++) {
    int64_t line;
    if (!find_line(p, at, i, &line)) continue;
    for (int64_t j = 0; j < p->size[1]; j++) {
      const int64_t begin = (i * p->size[1] + j) * c;
      add_span(out, begin, begin + c, by_cell[j]);
    }
  }
  return true;
}

// Windows on one line of the image follow each other at the same distance. If a stripe of windows is on two lines, each
// window is found on its own.
static bool stretch(const struct tfc_gemm_source *source, int64_t row, bool all, struct tfc_gemm_stretch *out) {
  const struct tfc_patches *p = (const struct tfc_patches *)(const void *)source;
  const int64_t c = p->channels, step = p->stride[1], here = p->out[1] - row % p->out[1];
  struct place at = place_of(p, row);
  const float *first = at.image + ((at.z * p->in[0] + at.y) * p->in[1] + at.x) * c;
  out->offsets = p->offsets, out->apart = STRIPE * step * c, out->more = 0, out->span_count = 0;
  if (here >= STRIPE) {
    for (int64_t r = 0; r < STRIPE; r++) out->rows[r] = first + r * step * c;
    const struct place end = {at.image, at.z, at.y, at.x + (STRIPE - 1) * step};
    if (!is_inside(p, &at) || !is_inside(p, &end)) return !all && find_window_spans(p, &at, out);
    const int64_t room = (p->in[1] - 1 - (p->size[1] - 1) * p->dilation[1] - end.x) / step, left = here - STRIPE;
    out->more = (room < left ? room : left) / STRIPE;
  }
  for (int64_t r = 0; r < STRIPE && here < STRIPE; r++) {
    at = place_of(p, row + r);
    if (!is_inside(p, &at)) return false;
    out->rows[r] = at.image + ((at.z * p->in[0] + at.y) * p->in[1] + at.x) * c;
  }
  add_span(out, 0, rows_of(p) * p->size[1] * c, TFC_GEMM_ALL_ROWS);
  return true;
}

void tfc_patches_scatter(struct tfc_patches *p) {
  const int64_t c = p->channels, k = rows_of(p) * p->size[1] * c, line = p->in[1] * c;
  const int64_t reach[3] = {(p->size[0] - 1) * p->dilation[0], (p->size[1] - 1) * p->dilation[1],
                            (p->size[2] - 1) * p->dilation[2]};
  for (int i = 0; i < 3; i++)
    if (reach[i] >= p->in[i] + p->before[i]) return; // every window ends behind the image
  if (k > TFC_PATCHES_MOST_OFFSETS || reach[2] * p->in[0] + reach[0] + 1 > INT32_MAX / line) return;
  int32_t *out = p->offsets;
  for (int64_t z = 0; z < p->size[2]; z++)
    for (int64_t y = 0; y < p->size[0]; y++)
      for (int64_t x = 0; x < p->size[1]; x++)
        for (int64_t e = 0; e < c; e++)
          *out++ = (int32_t)((z * p->dilation[2] * p->in[0] + y * p->dilation[0]) * line + x * p->dilation[1] * c + e);
  for (int64_t i = k; i % STRIPE; i++) *out++ = 0; // rows beyond the last one may be read
  p->base.stretch = stretch;
}

// Finds the line of the image under row `i` of the windows; NULL: it is outside of the image.
static const float *line_under(const struct tfc_patches *p, const struct tfc_patches_line *on, int64_t i) {
  const struct place at = {.z = on->z, .y = on->y};
  int64_t y;
  return find_line(p, &at, i, &y) ? on->image + y * p->in[1] * p->channels : NULL;
}

// Finds which of a line's windows, [*first, *last), have elements [from, from + count) of their row inside the image.
static void windows_inside(const struct tfc_patches *p, const struct tfc_patches_line *on, int64_t from, int64_t count,
                           int64_t *first, int64_t *last) {
  const int64_t step = p->stride[1] * p->channels, e = on->start + from, room = p->in[1] * p->channels - count - e;
  *first = 0, *last = on->count;
  if (e < 0) *first = (step - 1 - e) / step;
  if (room < (on->count - 1) * step) *last = room < 0 ? 0 : room / step + 1;
  if (*first > *last) *first = *last;
}

// Packs 8 elements (r) that are neighbours in a row of the window, from `element` of row `i` on, at all positions (k):
// out[k * 8 + r].
OPS_CLONES static void pack_neighbours(const struct tfc_patches_transposed *t, int64_t i, int64_t element, float *out) {
  const struct tfc_patches *p = t->patches;
  const int64_t width = p->in[1] * p->channels, step = p->stride[1] * p->channels;
  for (const struct tfc_patches_line *on = t->lines; on < t->lines + t->line_count; out += on->count * STRIPE, on++) {
    const float *line = line_under(p, on, i);
    int64_t first, last, e = on->start + element;
    if (!line) {
      memset(out, 0, (size_t)on->count * STRIPE * sizeof *out);
      continue;
    }
    windows_inside(p, on, element, STRIPE, &first, &last);
    for (int64_t k = 0; k < on->count; k++) {
      if (k == first)
        for (; k < last; k++) memcpy(out + k * STRIPE, line + e + k * step, STRIPE * sizeof *out);
      if (k == on->count) break;
      for (int64_t r = 0, at = e + k * step; r < STRIPE; r++, at++)
        out[k * STRIPE + r] = at >= 0 && at < width ? line[at] : 0;
    }
  }
}

// Packs one row of A: element `element` of row `i` of the window at all positions.
static void pack_one(const struct tfc_patches_transposed *t, int64_t i, int64_t element, float *out) {
  const struct tfc_patches *p = t->patches;
  const int64_t step = p->stride[1] * p->channels;
  for (const struct tfc_patches_line *on = t->lines; on < t->lines + t->line_count; out += on->count * STRIPE, on++) {
    const float *line = line_under(p, on, i);
    int64_t first = 0, last = 0, k = 0;
    if (line) windows_inside(p, on, element, 1, &first, &last);
    for (; k < first; k++) out[k * STRIPE] = 0;
    for (; k < last; k++) out[k * STRIPE] = line[on->start + element + k * step];
    for (; k < on->count; k++) out[k * STRIPE] = 0;
  }
}

// Packs rows of A that may belong to several rows of the window, if the window is inside of the image at all positions.
// Rows whose elements lie side by side in the image are copied together, STRIPE floats at a time. That writes beyond
// the end of such a run of rows; the next run, or the next position, overwrites it.
OPS_CLONES static void pack_inside(const struct tfc_patches_transposed *t, int64_t row, int64_t rows, float *out) {
  const struct tfc_patches *p = t->patches;
  const int64_t c = p->channels, step = p->stride[1] * c;
  int64_t apart[STRIPE], first[STRIPE], runs = 0; // a row's distance from the window's begin; the first row of each run
  for (int64_t r = 0; r < STRIPE; r++) {
    const int64_t at = row + (r < rows ? r : rows - 1), cell = at / c;
    const struct place below = row_below(p, cell / p->size[1]);
    apart[r] = ((below.z * p->in[0] + below.y) * p->in[1] + cell % p->size[1] * p->dilation[1]) * c + at % c;
    if (r == 0 || (r < rows && apart[r] != apart[r - 1] + 1)) first[runs++] = r;
  }
  for (const struct tfc_patches_line *on = t->lines; on < t->lines + t->line_count; out += on->count * STRIPE, on++) {
    const float *base = on->image + (on->z * p->in[0] + on->y) * p->in[1] * c + on->start;
    const float *from[STRIPE];
    if (step == 1) {
      for (int64_t r = 0; r < STRIPE; r++) from[r] = base + apart[r];
      tfc_gemm_pack_rows(from, on->count, out);
      continue;
    }
    float *to = out;
    for (int64_t q = 0; q < runs; q++) from[q] = base + apart[first[q]];
    for (int64_t k = 0; k + 1 < on->count; k++, to += STRIPE)
      for (int64_t q = 0; q < runs; q++, from[q - 1] += step) memcpy(to + first[q], from[q], STRIPE * sizeof *to);
    for (int64_t r = 0; r < STRIPE; r++) to[r] = base[apart[r] + (on->count - 1) * step];
  }
}

static void pack_transposed(const struct tfc_gemm_source *source, int64_t row, int64_t rows, float *out) {
  const struct tfc_patches_transposed *t = (const struct tfc_patches_transposed *)(const void *)source;
  const struct tfc_patches *p = t->patches;
  const int64_t c = p->channels;
  // How many elements of the window lie side by side in the image, too: a row of the window, or if the window is
  // dilated only the channels of one cell.
  const int64_t length = p->dilation[1] == 1 ? p->size[1] * c : c, element = row % length;
  if (p->inside) {
    pack_inside(t, row, rows, out);
    return;
  }
  if (rows == STRIPE && element + STRIPE <= length) {
    const int64_t cell = row / c, i = cell / p->size[1];
    const int64_t left = p->dilation[1] == 1 ? 0 : cell % p->size[1] * p->dilation[1] * c;
    pack_neighbours(t, i, left + element, out);
    return;
  }
  for (int64_t r = 0; r < STRIPE; r++) {
    const int64_t at = row + (r < rows ? r : rows - 1), cell = at / c;
    pack_one(t, cell / p->size[1], cell % p->size[1] * p->dilation[1] * c + at % c, out + r);
  }
}

int64_t tfc_patches_steps(const struct tfc_patches_transposed *t, int64_t cell, struct tfc_gemm_steps *out) {
  const struct tfc_patches *p = t->patches;
  const int64_t c = p->channels, step = p->stride[1] * c, left = cell % p->size[1] * p->dilation[1] * c;
  const struct place below = row_below(p, cell / p->size[1]);
  int64_t count = 0, from = 0;
  for (const struct tfc_patches_line *on = t->lines; on < t->lines + t->line_count; from += on->count, on++) {
    const int64_t z = on->z + below.z, y = on->y + below.y;
    if (z < 0 || z >= p->in[2] || y < 0 || y >= p->in[0]) continue;
    int64_t first, last;
    windows_inside(p, on, left, c, &first, &last);
    const float *line = on->image + (z * p->in[0] + y) * p->in[1] * c + on->start + left;
    if (last > first) out[count++] = (struct tfc_gemm_steps){line + first * step, from + first, last - first};
  }
  return count;
}

int64_t tfc_patches_lines(const struct tfc_patches_transposed *t, struct tfc_gemm_steps *out) {
  const struct tfc_patches *p = t->patches;
  int64_t from = 0;
  for (int64_t i = 0; i < t->line_count; i++) {
    const struct tfc_patches_line *on = &t->lines[i];
    const float *first = on->image + (on->z * p->in[0] + on->y) * p->in[1] * p->channels + on->start;
    out[i] = (struct tfc_gemm_steps){first, from, on->count};
    from += on->count;
  }
  return t->line_count;
}

void tfc_patches_transpose(const struct tfc_patches *p, int64_t first, int64_t count,
                           struct tfc_patches_transposed *out) {
  out->base = (struct tfc_gemm_source){.pack = pack_transposed};
  out->patches = p, out->line_count = 0;
  for (int64_t here; count > 0; first += here, count -= here) {
    const int64_t x = first % p->out[1], left = p->out[1] - x;
    const struct place at = place_of(p, first);
    here = left < count ? left : count;
    out->lines[out->line_count++] = (struct tfc_patches_line){at.image, at.z, at.y, at.x * p->channels, here};
  }
}

static void rows_of_cell(const void *arg, int64_t first, int64_t count, const float **out) {
  const struct tfc_patches_cell *cell = arg;
  const struct tfc_patches *p = cell->patches;
  const int64_t c = p->channels;
  int64_t position = cell->first + first;
  while (count > 0) { // handles one line of positions at a time
    int64_t x = position % p->out[1], n = p->out[1] - x < count ? p->out[1] - x : count;
    struct place at = place_of(p, position - x);
    int64_t y = at.y + cell->i * p->dilation[0], column = at.x + cell->j * p->dilation[1] + x * p->stride[1];
    const float *line = at.image + y * p->in[1] * c;
    bool there = y >= 0 && y < p->in[0];
    for (int64_t k = 0; k < n; k++, column += p->stride[1])
      *out++ = there && column >= 0 && column < p->in[1] ? line + column * c : p->zeros;
    position += n, count -= n;
  }
}

struct tfc_split_matrix tfc_patches_of_cell(const struct tfc_patches_cell *cell) {
  return (struct tfc_split_matrix){.rows = rows_of_cell, .arg = cell};
}
