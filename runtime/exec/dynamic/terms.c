#include "runtime/exec/dynamic/terms.h"

#include <stdlib.h>

#include "runtime/device/runner.h"
#include "runtime/exec/dynamic/kernels.h"

// A product's k is the number of its factors' rows. Each element of the sum is read and written (8 bytes) for 2 k FLOP:
// in memory that takes, at the 24 GB/s and 118 GFLOP/s of a core of an AMD EPYC with AVX-512, a third of a nanosecond
// beside 2.2 at 128 rows. Products of more rows lose less than a sixth, and need not wait for others.
enum { MOST_ROWS = 128 };

static bool is_matrix(const struct tfc_run_value *v) {
  return v->live && !v->reference && v->location == TFC_PLAN_HOST && v->t.dtype == TFC_FLOAT && v->t.shape.rank == 2;
}
// Whether a product of these factors has the shape of the sum; otherwise it is broadcast, or an error.
static bool fits(const struct tfc_dsum *sum, const struct tfc_run_value *in) {
  if (!is_matrix(&in[0]) || !is_matrix(&in[1]) || !is_matrix(&in[2])) return false;
  const int64_t *c = in[0].t.shape.dims, *a = in[1].t.shape.dims, *b = in[2].t.shape.dims;
  return a[sum->transpose_a] == c[0] && b[!sum->transpose_b] == c[1] && a[!sum->transpose_a] == b[sum->transpose_b] &&
         a[!sum->transpose_a] <= MOST_ROWS;
}

// Adds the terms that wait to `sum`.
static tfc_status add(struct tfc_run *r, struct tfc_run_terms *terms, struct tfc_run_value *sum) {
  if (!terms->count) return NULL;
  const struct tfc_dnode *n = terms->node;
  const struct tfc_tensor *inputs[2 * TFC_RUN_TERMS + 1] = {&sum->t};
  struct tfc_variable *none[2 * TFC_RUN_TERMS + 1] = {NULL}, *no_output = NULL;
  struct tfc_tensor made = {0}, *outputs[] = {&made};
  for (uint32_t i = 0; i < 2 * terms->count; i++) inputs[i + 1] = &terms->factors[i];
  struct tfc_kernel_ctx ctx = {.env = &r->envs[n->device],
                               .inputs = inputs,
                               .variables = none,
                               .outputs = outputs,
                               .output_variables = &no_output,
                               .input_count = 2 * terms->count + 1,
                               .output_count = 1,
                               .reusable = n->reusable_inputs};
  r->at = n;
  tfc_status s = tfc_run_launch(r, n, &ctx);
  tfc_run_terms_drop(terms);
  if (s) {
    const struct tfc_graph *g = r->plan->ir.graph;
    tfc_tensor_release(&made);
    return tfc_op_error(s, g, &g->nodes[n->node], r->session->devices[n->device], inputs, 1);
  }
  tfc_buffer_release(sum->t.buffer);
  sum->t = made;
  return NULL;
}

tfc_status tfc_run_gather(struct tfc_run *r, const struct tfc_run_item *item, bool *out_waits) {
  const struct tfc_dnode *n = item->node;
  const struct tfc_dloop *loop = item->frame->f->loop;
  struct tfc_run_value *in = item->iteration->values + n->input_begin;
  *out_waits = false;
  if (!item->frame->terms) item->frame->terms = calloc(loop->sum_count, sizeof *item->frame->terms);
  if (!item->frame->terms) return NULL; // the node runs now
  struct tfc_run_terms *terms = &item->frame->terms[n->gathers - 1];
  if (!fits(&loop->sums[n->gathers - 1], in)) return add(r, terms, &in[0]);
  if (terms->count && !tfc_shape_equal(&terms->factors[0].shape, &in[1].t.shape))
    TFC_RETURN_IF_ERROR(add(r, terms, &in[0]));
  terms->node = n;
  for (uint32_t k = 0; k < 2; k++) tfc_tensor_share(&in[k + 1].t, &terms->factors[2 * terms->count + k]);
  *out_waits = true;
  return ++terms->count < TFC_RUN_TERMS ? NULL : add(r, terms, &in[0]);
}

tfc_status tfc_run_add_terms(struct tfc_run *r, const struct tfc_run_item *item) {
  const struct tfc_dloop *loop = item->frame->f->loop;
  for (uint32_t i = 0; item->frame->terms && i < loop->sum_count; i++)
    TFC_RETURN_IF_ERROR(add(r, &item->frame->terms[i], item->iteration->values + loop->sums[i].value));
  return NULL;
}
