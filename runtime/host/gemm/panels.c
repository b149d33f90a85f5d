// If A has few rows, packing all of B first takes a large part of the time, because B is read, written and read again
// from memory. Here all threads pack A first. Then each thread takes panels of B, packs them in pieces of k that stay
// in its second-level cache, and multiplies all rows, or a part of them, by each piece.
#include "runtime/host/gemm/panels.h"

#include "runtime/host/gemm/scratch.h"

enum { stripe = 8, most_piece = 768, most_parts = 4 };

struct job {
  const struct tfc_product *given;
  struct tfc_gemm_product product;
  int64_t m, n, row_part, row_parts;
  float *a, *c;
  _Atomic bool failed;
};

// The conditions are stricter for a B that is not `transposed`, because the rows of its panels are far apart in memory.
// They are stricter for few panels, too, because then several threads multiply parts of the rows by one panel, and each
// of them packs it.
bool tfc_panels_pay(int64_t threads, int64_t m, int64_t k, int64_t n, bool transposed) {
  enum { least_rows = 24, few_rows = 128, most_rows = 448, a_bytes = 4 << 20, b_bytes = 512 * 1024 };
  enum { alone_a_bytes = 1280 * 1024, alone_k = 1024 };
  const int64_t size = sizeof(float), panels = tfc_gemm_panels(n);
  if (m < least_rows || n * k * size <= b_bytes) return false;
  if (threads == 1) // with one thread it pays if all of A stays in the second-level cache
    return transposed && k <= alone_k && m * k * size <= alone_a_bytes;
  if (m > most_rows || m * k * size > a_bytes) return false;
  return transposed ? m <= few_rows || panels >= 4 * threads : m <= few_rows && panels >= 6 * threads;
}

static void pack_a(void *arg, int64_t begin, int64_t end) {
  struct job *j = arg;
  const int64_t last = end * stripe < j->m ? end * stripe : j->m;
  tfc_gemm_pack_a(&j->product, 1, begin * stripe, last, j->a + begin * stripe * j->product.k);
}

// Packs rows [first, last) of a panel of B.
static void pack_b(const struct job *j, int64_t first, int64_t last, int64_t panel, float *out) {
  const struct tfc_product *p = j->given;
  if (p->right) {
    p->right->pack(p->right, first, last, panel, out);
    return;
  }
  const struct tfc_matrix b = {p->b.data + first * p->b.row, p->b.row, p->b.column};
  tfc_gemm_pack(b, last - first, j->n, panel, panel + 1, out - panel * tfc_gemm_panel() * (last - first));
}

static void run_panels(void *arg, int64_t begin, int64_t end) {
  struct job *j = arg;
  const int64_t k = j->product.k, count = (k + most_piece - 1) / most_piece, piece = (k + count - 1) / count;
  float *b = tfc_thread_scratch(TFC_SCRATCH_B, tfc_gemm_packed_bytes(piece, tfc_gemm_panel()));
  if (!b) {
    j->failed = true;
    return;
  }
  for (int64_t i = begin; i < end; i++) {
    const int64_t panel = i / j->row_parts, row = i % j->row_parts * j->row_part;
    const int64_t row_end = row + j->row_part < j->m ? row + j->row_part : j->m;
    for (int64_t first = 0; first < k; first += piece) {
      const int64_t last = first + piece < k ? first + piece : k;
      pack_b(j, first, last, panel, b);
      tfc_gemm_run_panel(&j->product, j->n, j->c, row, row_end, first, last, panel, b, j->a + row * k);
    }
  }
}

// Chooses into how many parts the rows are divided, by the cycles that multiplying and packing take for each k.
static void choose_parts(struct job *j, int64_t threads) {
  const int64_t panels = tfc_gemm_panels(j->n);
  double best = 0;
  for (int64_t parts = 1; parts <= (threads > 1 ? most_parts : 1); parts++) {
    const int64_t rows = ((j->m + parts - 1) / parts + stripe - 1) / stripe * stripe, real = (j->m + rows - 1) / rows;
    const double time = (double)((panels * real + threads - 1) / threads) * (1.8 * (double)rows + 12);
    if (best > 0 && time >= best) continue;
    best = time;
    j->row_part = rows, j->row_parts = real;
  }
}

tfc_status tfc_panels_run(struct tfc_kernel_ctx *ctx, const struct tfc_product *p, int64_t m, int64_t n, float *c) {
  struct job j = {.given = p, .product = {.a = p->a, .source = p->source, .k = p->k}, .m = m, .n = n, .c = c};
  const int64_t stripes = (m + stripe - 1) / stripe;
  j.a = tfc_thread_scratch(TFC_SCRATCH_A, (size_t)(stripes * stripe * p->k) * sizeof *j.a);
  if (!j.a) return tfc_status_no_memory(NULL);
  choose_parts(&j, ctx ? ctx->env->threads : 1);
  const int64_t items = tfc_gemm_panels(n) * j.row_parts;
  if (ctx) {
    tfc_kernel_parallel_for(ctx, stripes, 1, pack_a, &j);
    tfc_kernel_parallel_for(ctx, items, 1, run_panels, &j);
  } else {
    pack_a(&j, 0, stripes);
    run_panels(&j, 0, items);
  }
  return j.failed ? tfc_status_no_memory(NULL) : NULL;
}
