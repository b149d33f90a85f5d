// The search for the largest values of a row: a template for kernels of any device, in C and in C++.
//
// How a row is searched decides which NaN are among the results and, if no order is required, their order. Graphs can
// see that, so tfc searches as TensorFlow does: for a single value, by a maximum over eight (or four wide) lanes and
// then over the rest of the row; for a whole row, by quicksort that ends in insertion sort (Musser 1997, "Introspective
// sorting and selection algorithms", as in GNU's C++ library); otherwise by a binary heap of the best elements so far.
//
// Define these before including it (once in a file, or in a struct):
//   TOP_FN             the specifiers of its functions, e.g. static
//   TOP_ROW            the type of a row
//   TOP_ABOVE(r, a, b) whether element a of the row is larger than element b
//   TOP_SAME(r, a, b)  whether they are equal
//   TOP_NEXT(r, i, n, than)  the first element from i on that is larger than element `than`, or n if there is none
// Rows are shorter than 2^31.

// The body of a function that finds the largest of x[0, n); GET reads an element. A NaN loses against numbers in the
// lanes; in the rest of the row it loses against the element after it.
#define TOP_BEST(x, n, GET, lanes)                                                                                     \
  int32_t whole = (n) / (lanes) * (lanes), at = 0, rest = whole;                                                       \
  while (at < whole && GET(x[at]) != GET(x[at])) at++;                                                                 \
  for (int32_t i = at + 1; i < whole; i++)                                                                             \
    if (GET(x[at]) < GET(x[i])) at = i;                                                                                \
  if (whole == (n)) return at < (n) ? at : 0;                                                                          \
  for (int32_t i = whole + 1; i < (n); i++)                                                                            \
    if (!(GET(x[i]) < GET(x[rest]))) rest = i;                                                                         \
  if (at < whole && GET(x[rest]) < GET(x[at])) return at;                                                              \
  for (int32_t i = 0; i < (n); i++)                                                                                    \
    if (GET(x[i]) == GET(x[rest])) return i;                                                                           \
  return 0

enum top_order { TOP_BY_VALUE, TOP_FIRST_OF_EQUALS, TOP_BY_PLACE };
TOP_FN bool top_before(const TOP_ROW *r, enum top_order order, int32_t a, int32_t b) {
  if (order == TOP_BY_PLACE) return a < b;
  return TOP_ABOVE(r, a, b) || (order == TOP_FIRST_OF_EQUALS && !TOP_ABOVE(r, b, a) && a < b);
}

// --- A heap whose root is the last in order ------------------------------------------------------------------------
TOP_FN void top_rise(const TOP_ROW *r, enum top_order order, int32_t *heap, int64_t hole, int64_t top, int32_t value) {
  for (int64_t parent = (hole - 1) / 2; hole > top && top_before(r, order, heap[parent], value);
       parent = (hole - 1) / 2) {
    heap[hole] = heap[parent];
    hole = parent;
  }
  heap[hole] = value;
}
// Puts `value` into the hole: moves the hole down to a leaf, then `value` up to its place.
TOP_FN void top_sink(const TOP_ROW *r, enum top_order order, int32_t *heap, int64_t hole, int64_t n, int32_t value) {
  int64_t top = hole;
  while (2 * hole + 2 < n) {
    int64_t child = 2 * hole + 2;
    if (top_before(r, order, heap[child], heap[child - 1])) child--;
    heap[hole] = heap[child];
    hole = child;
  }
  if (2 * hole + 2 == n) {
    heap[hole] = heap[n - 1];
    hole = n - 1;
  }
  top_rise(r, order, heap, hole, top, value);
}
TOP_FN void top_make(const TOP_ROW *r, enum top_order order, int32_t *heap, int64_t n) {
  for (int64_t parent = n / 2 - 1; parent >= 0; parent--) top_sink(r, order, heap, parent, n, heap[parent]);
}
// Moves the root to the end; the other n - 1 elements remain a heap.
TOP_FN void top_pop(const TOP_ROW *r, enum top_order order, int32_t *heap, int64_t n) {
  if (n < 2) return;
  int32_t value = heap[n - 1];
  heap[n - 1] = heap[0];
  top_sink(r, order, heap, 0, n - 1, value);
}
TOP_FN void top_heap_sort(const TOP_ROW *r, enum top_order order, int32_t *heap, int64_t n) {
  for (; n > 1; n--) top_pop(r, order, heap, n);
}

// --- Sorting whole rows ----------------------------------------------------------------------------------------------
// Spans of at most TOP_SMALL elements are left to insertion sort; TOP_SPANS is twice the bits of a length.
enum { TOP_SMALL = 16, TOP_SPANS = 64 };
struct top_span { // a part that is still to be sorted
  int32_t begin, end, depth;
};
TOP_FN void top_swap(int32_t *a, int32_t *b) {
  int32_t c = *a;
  *a = *b;
  *b = c;
}
// Swaps the middle one of three elements with `to`.
TOP_FN void top_median(const TOP_ROW *r, int32_t *to, int32_t *a, int32_t *b, int32_t *c) {
  if (TOP_ABOVE(r, *a, *b))
    top_swap(to, TOP_ABOVE(r, *b, *c) ? b : TOP_ABOVE(r, *a, *c) ? c : a);
  else
    top_swap(to, TOP_ABOVE(r, *a, *c) ? a : TOP_ABOVE(r, *b, *c) ? c : b);
}
// Partitions a span, whose first element is the pivot. If comparisons contradict each other (NaN), one side may run to
// the end of the row, but no further.
TOP_FN int32_t top_cut(const TOP_ROW *r, int32_t *all, int32_t n, int32_t begin, int32_t end) {
  int32_t left = begin + 1, right = end;
  for (;; left++) {
    while (left < n - 1 && TOP_ABOVE(r, all[left], all[begin])) left++;
    right--;
    while (right > 0 && TOP_ABOVE(r, all[begin], all[right])) right--;
    if (left >= right) return left;
    top_swap(all + left, all + right);
  }
}
// Sorts the later spans first, and an earlier one afterwards: with contradictory comparisons it may reach into them.
TOP_FN void top_quicksort(const TOP_ROW *r, int32_t *all, int32_t n, struct top_span *spans) {
  int waiting = 0;
  struct top_span s = {0, n, 0};
  for (int32_t i = n; i > 1; i /= 2) s.depth += 2;
  for (;;) {
    while (s.end - s.begin > TOP_SMALL) {
      if (s.depth-- == 0) {
        top_make(r, TOP_BY_VALUE, all + s.begin, s.end - s.begin);
        top_heap_sort(r, TOP_BY_VALUE, all + s.begin, s.end - s.begin);
        break;
      }
      top_median(r, all + s.begin, all + s.begin + 1, all + s.begin + (s.end - s.begin) / 2, all + s.end - 1);
      const int32_t at = top_cut(r, all, n, s.begin, s.end);
      struct top_span front = {s.begin, at, s.depth};
      spans[waiting++] = front;
      s.begin = at;
    }
    if (!waiting) return;
    s = spans[--waiting];
  }
}
// Fills all [n] with the row's elements, the largest first. spans [TOP_SPANS] is scratch.
TOP_FN void top_sort_row(const TOP_ROW *r, int32_t *all, int32_t n, struct top_span *spans) {
  for (int32_t i = 0; i < n; i++) all[i] = i;
  top_quicksort(r, all, n, spans);
  for (int32_t i = 1; i < n; i++) {
    const int32_t value = all[i];
    // the element belongs at the front, before all others
    const bool first = i < TOP_SMALL && TOP_ABOVE(r, value, all[0]);
    int32_t to = i;
    for (; to > 0 && (first || TOP_ABOVE(r, value, all[to - 1])); to--) all[to] = all[to - 1];
    all[to] = value;
  }
  for (int32_t run = 0, end; run < n; run = end) { // equal elements are ordered by position
    for (end = run + 1; end < n && TOP_SAME(r, all[run], all[end]);) end++;
    top_make(r, TOP_BY_PLACE, all + run, end - run);
    top_heap_sort(r, TOP_BY_PLACE, all + run, end - run);
  }
}

// Fills heap [k + 1] with the k largest of n > k elements, in order or in the heap's order.
TOP_FN void top_best_of_row(const TOP_ROW *r, int32_t *heap, int32_t k, int32_t n, bool sorted) {
  for (int32_t i = 0; i <= k; i++) heap[i] = i;
  top_make(r, TOP_FIRST_OF_EQUALS, heap, k + 1);
  top_pop(r, TOP_FIRST_OF_EQUALS, heap, k + 1);
  for (int32_t at = k + 1; (at = TOP_NEXT(r, at, n, heap[0])) < n; at++) {
    top_pop(r, TOP_FIRST_OF_EQUALS, heap, k);
    top_rise(r, TOP_FIRST_OF_EQUALS, heap, k - 1, 0, at);
  }
  if (sorted) top_heap_sort(r, TOP_FIRST_OF_EQUALS, heap, k);
}
