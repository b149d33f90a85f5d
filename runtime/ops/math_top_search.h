// How the largest values of a row are searched: a template for kernels of any device, in C and in C++.
//
// Which NaN are among the results, and in which order if none is required, depends on how a row is searched. Graphs can
// see that, so the search is TensorFlow's: a single value as a maximum over eight (or four wide) lanes and the rest of
// the row; a whole row by quicksort that ends in insertion sort (Musser 1997, "Introspective sorting and selection
// algorithms", as in GNU's C++ library); otherwise by a binary heap of the best so far.
//
// Before it is included (once in a file, or in a struct):
//   TOP_FN             what its functions are: static, say
//   TOP_ROW            type of a row
//   TOP_ABOVE(r, a, b) is element a of the row larger than element b?
//   TOP_SAME(r, a, b)  are they equal?
//   TOP_NEXT(r, i, n, than)  the first element from i on that is larger than element `than`; n: none
// Rows are shorter than 2^31.

// The body of a function that finds one value among x[0, n): GET reads an element. NaN loses in the lanes, and in the
// rest to what comes after it.
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
// Puts `value` into the hole: down to a leaf, then up to where it belongs.
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
// The root goes to the end, the others are a heap of n - 1.
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
enum { TOP_SMALL = 16, TOP_SPANS = 64 }; // pieces of at most so many are left to insertion; twice the bits of a length
struct top_span {                        // still to be sorted
  int32_t begin, end, depth;
};
TOP_FN void top_swap(int32_t *a, int32_t *b) {
  int32_t c = *a;
  *a = *b;
  *b = c;
}
// The middle one of three goes to `to`.
TOP_FN void top_median(const TOP_ROW *r, int32_t *to, int32_t *a, int32_t *b, int32_t *c) {
  if (TOP_ABOVE(r, *a, *b))
    top_swap(to, TOP_ABOVE(r, *b, *c) ? b : TOP_ABOVE(r, *a, *c) ? c : a);
  else
    top_swap(to, TOP_ABOVE(r, *a, *c) ? a : TOP_ABOVE(r, *b, *c) ? c : b);
}
// Partitions a span that begins with its pivot. If comparisons contradict each other, one side may run to the end of
// the row, and no further.
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
// Spans wait for what is behind them: they are longer than they were where comparisons contradict each other.
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
// all [n]: the row's elements from the largest down. spans [TOP_SPANS]
TOP_FN void top_sort_row(const TOP_ROW *r, int32_t *all, int32_t n, struct top_span *spans) {
  for (int32_t i = 0; i < n; i++) all[i] = i;
  top_quicksort(r, all, n, spans);
  for (int32_t i = 1; i < n; i++) {
    const int32_t value = all[i];
    const bool first = i < TOP_SMALL && TOP_ABOVE(r, value, all[0]); // goes there, whatever is between
    int32_t to = i;
    for (; to > 0 && (first || TOP_ABOVE(r, value, all[to - 1])); to--) all[to] = all[to - 1];
    all[to] = value;
  }
  for (int32_t run = 0, end; run < n; run = end) { // of equals the first comes first
    for (end = run + 1; end < n && TOP_SAME(r, all[run], all[end]);) end++;
    top_make(r, TOP_BY_PLACE, all + run, end - run);
    top_heap_sort(r, TOP_BY_PLACE, all + run, end - run);
  }
}

// heap [k + 1]: the k largest of n > k, in order or as the heap has them
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
