// Matrix products in float32 for CPU devices.
//
// Every element of a product is one chain of fused multiply-adds over ascending k, starting from zero, however the
// product is blocked and packed and on any number of cores:  c(i,j) = fma(a(i,K-1), b(K-1,j), … fma(a(i,0), b(0,j),
// 0)).  So a product has the same bits however it is split or grouped. That is why `--rewrites exact` may pack weights
// once, add the products of an unrolled cell to one sum, and split over cores. (Processors without fused multiply-add
// multiply and then add.) One kind of product adds in another order, by its shape alone: rows with whole vectors of
// neighbours (tfc_gemm_source.neighbours) times at most four columns.
//
// B is packed in panels of `tfc_gemm_panel()` columns, k-major, padded with zeros: pack once, multiply often. A is
// packed on the fly, 8 rows at a time.
//
// Nothing here allocates or locks. Any thread; calls for disjoint parts of C may run at the same time.
#ifndef TFC_RUNTIME_HOST_GEMM_GEMM_H
#define TFC_RUNTIME_HOST_GEMM_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/ops/last_pass.h"

// A matrix in memory by strides in elements: element (i, j) is data[i * row + j * column].
struct tfc_matrix {
  const float *data;
  int64_t row, column;
};

int64_t tfc_gemm_panel(void);                        // columns of a panel on this processor
bool tfc_gemm_panels_are_wide(void);                 // have at least 48 columns, as with AVX-512
const char *tfc_gemm_name(void);                     // "avx512", "avx2", "generic"
size_t tfc_gemm_packed_bytes(int64_t k, int64_t n);  // for B [k, n], packed; align the memory to 64
size_t tfc_gemm_scratch_bytes(int64_t m, int64_t k); // for each thread that calls tfc_gemm_run; k: of all products
int64_t tfc_gemm_panels(int64_t n);                  // number of panels of n columns

// Packs panels [first, last) of B [k, n].
void tfc_gemm_pack(struct tfc_matrix b, int64_t k, int64_t n, int64_t first, int64_t last, float *packed);
// Packs rows [row_first, row_last) of these panels; `row_first` is a multiple of 64.
void tfc_gemm_pack_part(struct tfc_matrix b, int64_t k, int64_t n, int64_t row_first, int64_t row_last, int64_t first,
                        int64_t last, float *packed);

// A stripe of 8 rows whose elements lie at the same distances from the first one of their row: element i is
// rows[r][offsets[i]]. Only elements in spans are read: an element that is padding in all rows is in no span, and one
// that is padding in the first or the last row only is in a span that leaves this row out. So rows[r][offsets[i]] of
// padding may be outside of the image. The next `more` stripes lie like this one, each `apart` elements behind the one
// before it.
enum { TFC_GEMM_MOST_SPANS = 48 };
typedef enum tfc_gemm_rows { TFC_GEMM_ALL_ROWS, TFC_GEMM_BUT_FIRST, TFC_GEMM_BUT_LAST } tfc_gemm_rows;
struct tfc_gemm_span {
  int32_t begin, end; // elements of a row
  tfc_gemm_rows rows;
};
struct tfc_gemm_stretch {
  const float *rows[8];
  const int32_t *offsets;
  int64_t more, apart, span_count;
  struct tfc_gemm_span spans[TFC_GEMM_MOST_SPANS];
};

// An A that is not stored as a matrix (the patches of an image): packs a stripe of up to 8 of its rows, with all k
// elements, out[i * 8 + r] = A(row + r, i). Rows beyond `rows` may contain anything. Any thread.
struct tfc_gemm_source {
  void (*pack)(const struct tfc_gemm_source *source, int64_t row, int64_t rows, float *out);
  // NULL, or each row consists of `pieces` runs of `length` elements, and a run is contiguous in memory. Sets
  // out[p * 8 + r] to the address of run p of row `row` + r. A run that is not in memory as it is (it contains padding)
  // is written to `edge` [pieces, 8, length], and its address is the one there.
  void (*find)(const struct tfc_gemm_source *source, int64_t row, const float **out, float *edge);
  int64_t pieces, length;
  // NULL, or finds how 8 rows from `row` on lie in memory. `all`: no padding may be left out. False: no stretch can
  // describe these rows, or only one that leaves out padding although `all` is set.
  bool (*stretch)(const struct tfc_gemm_source *source, int64_t row, bool all, struct tfc_gemm_stretch *out);
  // The address of runs of zeros: padding. Runs of which all 8 rows are padding are left out of the chains if their
  // rows of B are finite. NULL: no run is known to be padding.
  const float *zeros;
  // Elements of a row that are neighbours in every layout of the image, with and without a dilation: the channels of a
  // pixel. 0: there are none. Products with few columns add in an order that depends on `neighbours`.
  int64_t neighbours;
};
// Whether none of the elements of a packed B [k, n] is infinite or NaN.
bool tfc_gemm_is_finite(const float *packed_b, int64_t k, int64_t n);
// Whether products of rows [m, k] with such `neighbours` and n columns add along the rows, in an order of their own. A
// product that must have the same bits as one of them has to have a source, too.
bool tfc_gemm_has_few_columns(int64_t neighbours, int64_t k, int64_t n);
enum { TFC_GEMM_LONGEST_PIECE = 4096, TFC_GEMM_MOST_PIECES = 16 };
// Packs 8 rows in memory: out[i * 8 + r] = rows[r][i], i < count.
void tfc_gemm_pack_rows(const float *const rows[8], int64_t count, float *out);

// One product of a sum: A [m, k] times B [k, n].
struct tfc_gemm_product {
  struct tfc_matrix a;
  const struct tfc_gemm_source *source; // if not NULL, A comes from here
  const float *packed_b; // or NULL: B is row-major, `b` with `b_row` elements from row to row, and where n is no
  const float *b;        // multiple of a panel, `tail` is its last panel, packed; NULL: n is a multiple of 16
  int64_t b_row;
  const float *tail;
  int64_t k;
  // Rows of a packed panel, of which k belong to this product; 0: k. It is more if the right sides of a sum are packed
  // as one, each panel with the rows of all products: then a tile of C reads a panel in one run.
  int64_t panel_rows;
  // In the first product: right sides are packed as one, and each element of C is one chain over all products, which
  // rounds differently.
  bool joined;
  bool finite; // the packed B is known to be finite, so that nobody has to look at it before padding is left out
  // NULL, or what follows on each element of C; for one product that is not added to C, in tfc_gemm_run and
  // tfc_gemm_run_block. C must begin at the first element of the output, without gaps between rows.
  const struct tfc_last_pass *last;
};
// Some steps of the chains of a stripe of an A that lies in memory column by column: the steps of rows [from, from +
// count) of B. `a` leads to the first row's element in the first of these columns.
struct tfc_gemm_steps {
  const float *a;
  int64_t from, count;
};
// A stripe of rows of such an A. If `apart` is NULL, there are 8 rows, and row r lies `offset` + r elements behind `a`.
// Otherwise row r lies apart[r] elements behind `a`; `apart` then has 8 elements, even for fewer rows, because the rows
// behind the last one may be read. Steps that are left out are as if A were 0 there.
struct tfc_gemm_turned {
  const struct tfc_gemm_steps *steps;
  int64_t count;
  int64_t offset, a_row; // a_row: from one column to the next
  const int32_t *apart;
  int64_t rows; // at most 8
};
// C [rows, n] (`ldc` elements from row to row) = the rows of `a` times the product's B in panels [first, last). With
// `accumulate` the product is added to C.
void tfc_gemm_run_transposed(const struct tfc_gemm_product *product, const struct tfc_gemm_turned *a, int64_t n,
                             float *c, int64_t ldc, bool accumulate, int64_t first, int64_t last);

// C [m, n] (row-major, `ldc` elements from row to row) = (products[0] + products[1]) + …, from left to right; with
// `accumulate`, the sum is added to C. Writes rows [row_first, row_last) of panels [first, last). `row_first` is a
// multiple of 8.
void tfc_gemm_run(const struct tfc_gemm_product *products, int64_t product_count, int64_t n, float *c, int64_t ldc,
                  bool accumulate, int64_t row_first, int64_t row_last, int64_t first, int64_t last, float *scratch);

// For callers that pack A once and multiply it by a few panels at a time. tfc_gemm_block returns how many rows of A may
// be packed at once, or 0 if all of B stays in cache (then divide the rows among threads); tfc_gemm_pack_a packs rows
// [row_first, row_last) into tfc_gemm_scratch_bytes; tfc_gemm_run_block computes these rows of panels [first, last).
int64_t tfc_gemm_block(const struct tfc_gemm_product *products, int64_t product_count, int64_t n, bool accumulate);
// How many rows of the product's A tfc_gemm_run reads in place at once where B does not stay in cache; 0: it packs
// them.
int64_t tfc_gemm_rows_in_place(const struct tfc_gemm_product *product);
void tfc_gemm_pack_a(const struct tfc_gemm_product *products, int64_t product_count, int64_t row_first,
                     int64_t row_last, float *packed);
void tfc_gemm_run_block(const struct tfc_gemm_product *products, int64_t product_count, int64_t n, float *c,
                        int64_t ldc, bool accumulate, int64_t row_first, int64_t row_last, int64_t first, int64_t last,
                        const float *packed_a);
// As tfc_gemm_run, for one product and one panel. Rows [k_first, k_last) of the panel are packed at `panel_b`; earlier
// ones have been added already. `packed_a`: rows [row_first, row_last) with all k elements.
void tfc_gemm_run_panel(const struct tfc_gemm_product *product, int64_t n, float *c, int64_t row_first,
                        int64_t row_last, int64_t k_first, int64_t k_last, int64_t panel, const float *panel_b,
                        const float *packed_a);

// c [n] = x B, for a vector x [k] whose elements are `x_step` apart. Works only if rows or columns of B are contiguous;
// otherwise returns false and does nothing.
bool tfc_gemm_vector(const float *x, int64_t x_step, struct tfc_matrix b, int64_t k, int64_t n, float *c);

// C [m, n] (`ldc` elements from row to row) = A B, for an A of few rows and a B whose rows are contiguous: B is read
// once, along its rows.
void tfc_gemm_few(struct tfc_matrix a, int64_t m, struct tfc_matrix b, int64_t k, int64_t n, float *c, int64_t ldc);

// C [m, n] += A B: A packed by 8 rows (element (r, i) at a[r / 8 * 8 * k + i * 8 + r % 8]), B in memory with `b_row`
// elements from row to row, C contiguous; m a multiple of 8, n of 16.
void tfc_gemm_add(const float *a, int64_t m, const float *b, int64_t b_row, int64_t k, int64_t n, float *c);

#endif
