// On devices whose libraries read filters in another order of dimensions than the graph's, a filter is transposed once
// for all convolutions of the device that read it in that form: in training a convolution and the gradient of its
// image. A constant is transposed when the plan is made. The results are bit-identical, because the same numbers are
// multiplied.
//
// A transposed filter is in memory, as any result of an operation, until its last reader has run.
#include "runtime/exec/rewrites/operands.h"

enum { FILTER = 1 }; // of the inputs

static const struct tfc_op_def transpose_def = {
    .name = "_TransposeFilter", .inputs = "filter: T", .outputs = "transposed: T", .attrs = "T: type"};
static const struct tfc_op_def forward_def = {.name = "_TransposedFilterConvolution",
                                              .inputs = "input: T, transposed: T",
                                              .outputs = "output: T",
                                              .attrs = "T: type"};
static const struct tfc_op_def gradient_def = {.name = "_TransposedFilterConvolutionGradient",
                                               .inputs = "input_sizes: int32, transposed: T, out_backprop: T",
                                               .outputs = "output: T",
                                               .attrs = "T: type",
                                               .host_inputs = 1};

struct use { // an operation that reads a filter in another form
  uint32_t op, filter;
};
struct filter { // a value that is read in this form
  uint32_t value;
  uint16_t device;
  tfc_filter_form form;
  struct tfc_shape shape;
  uint32_t count, transposed;
  uint32_t node; // of the first reader, if it is transposed at run time
};
typedef TFC_ARRAY(struct use) use_array;
typedef TFC_ARRAY(struct filter) filter_array;

static bool reads_filter(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_operands *out) {
  if (!ir->devices[op->device]->driver->filter_form || op->wanted || op->finish || op->window || op->output_variables)
    return false;
  return tfc_operands_of(ir, op, out) && op->def->plan_trait == TFC_PLAN_FILTERED && op->output_count == 1 &&
         out->shapes[FILTER]->rank > 2 && tfc_shape_elements(out->shapes[FILTER]) > 0;
}

static tfc_filter_form form_of(const struct tfc_ir *ir, const struct tfc_ir_op *op, const struct tfc_operands *from) {
  struct tfc_arena arena = {0};
  struct tfc_operands_question question;
  struct tfc_device *device = ir->devices[op->device];
  tfc_operands_ask(ir, op, from, &arena, &question);
  const tfc_filter_form form = device->driver->filter_form(device, &question.ctx);
  tfc_arena_deinit(&arena);
  return form;
}

static tfc_status find_uses(const struct tfc_ir *ir, use_array *uses, filter_array *filters) {
  for (uint32_t i = 0; i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    struct tfc_operands from;
    if (!reads_filter(ir, op, &from) || op->outputs[0] == TFC_NONE) continue;
    const struct filter fresh = {.value = op->inputs[FILTER].value,
                                 .device = op->device,
                                 .form = form_of(ir, op, &from),
                                 .shape = *from.shapes[FILTER],
                                 .transposed = TFC_NONE};
    if (fresh.form == TFC_FILTER_OF_GRAPH) continue;
    uint32_t at = 0;
    for (; at < filters->count; at++) {
      const struct filter *f = &filters->data[at];
      if (f->value == fresh.value && f->device == fresh.device && f->form == fresh.form &&
          tfc_shape_equal(&f->shape, &fresh.shape))
        break;
    }
    if ((at == filters->count && !tfc_array_push(filters, fresh)) || !tfc_array_push(uses, (struct use){i, at}))
      return tfc_status_no_memory("planning a step");
    filters->data[at].count++;
  }
  return NULL;
}

static tfc_filter_form *new_form(struct tfc_ir *ir, tfc_filter_form form) {
  tfc_filter_form *copy = TFC_ARENA_NEW(&ir->arena, tfc_filter_form);
  if (copy) *copy = form;
  return copy;
}

// Adds the transposed filter, by an operation before its first reader, or as a constant.
static tfc_status add_transposed(struct tfc_ir *ir, uint32_t reader, struct filter *f) {
  const struct tfc_ir_value from = ir->values.data[f->value];
  const struct tfc_ir_op *like = &ir->ops.data[reader];
  const struct tfc_ir_tensor transposed = {from.origin, tfc_dtype_base(from.dtype), f->shape};
  if (from.kind == TFC_IR_CONST) {
    void *data;
    TFC_RETURN_IF_ERROR(tfc_ir_add_constant(ir, &transposed, &data, &f->transposed));
    tfc_filter_transpose(f->form, &f->shape, tfc_dtype_size(transposed.dtype), from.constant->data, data);
    return NULL;
  }
  const double bytes = (double)tfc_shape_elements(&f->shape) * (double)tfc_dtype_size(transposed.dtype);
  const struct tfc_ir_op transpose = {.node = like->node,
                                      .def = &transpose_def,
                                      .device = like->device,
                                      .inputs = &like->inputs[FILTER],
                                      .input_count = 1,
                                      .prepared = true,
                                      .state = new_form(ir, f->form),
                                      .cost_us = 2 + 1e6 * 2 * bytes / 1e12};
  return transpose.state ? tfc_ir_add_maker(ir, &transpose, &transposed, &f->transposed)
                         : tfc_status_no_memory("planning a step");
}

// A reader on another device would transpose the filter once more.
static tfc_status share(struct tfc_ir *ir, uint32_t reader, const struct filter *f) {
  const struct tfc_ir_value *transposed = &ir->values.data[f->transposed];
  const struct tfc_plan_shared both = {ir->ops.data[reader].node, f->node, transposed->bytes};
  if (transposed->kind == TFC_IR_CONST || both.node == both.with || tfc_array_push(&ir->shared, both)) return NULL;
  return tfc_status_no_memory("planning a step");
}

static tfc_status use_transposed(struct tfc_ir *ir, uint32_t old, const struct filter *f) {
  struct tfc_ir_op op;
  TFC_RETURN_IF_ERROR(tfc_ir_copy_op(ir, old, &op));
  op.inputs[FILTER] = (struct tfc_ir_input){.value = f->transposed, .variable = TFC_NONE};
  op.def = op.input_count == 2 ? &forward_def : &gradient_def;
  op.prepared = true;
  op.state = new_form(ir, f->form);
  return op.state ? tfc_ir_add_instead(ir, &op, old) : tfc_status_no_memory("planning a step");
}

static tfc_status transpose_filters(struct tfc_ir *ir) {
  tfc_status s = NULL;
  use_array uses = {0};
  filter_array filters = {0};
  TFC_TRY(s, find_uses(ir, &uses, &filters));
  for (size_t i = 0; i < uses.count; i++) {
    struct filter *f = &filters.data[uses.data[i].filter];
    // The operation transposes a filter itself if nothing else reads it in this form.
    if (f->count < 2 && ir->values.data[f->value].kind != TFC_IR_CONST) continue;
    if (f->transposed == TFC_NONE) {
      TFC_TRY(s, add_transposed(ir, uses.data[i].op, f));
      f->node = ir->ops.data[uses.data[i].op].node;
    } else {
      TFC_TRY(s, share(ir, uses.data[i].op, f));
    }
    TFC_TRY(s, use_transposed(ir, uses.data[i].op, f));
  }
out:
  tfc_array_free(&uses);
  tfc_array_free(&filters);
  return s;
}

static const struct tfc_rewrite rows[] = {{"transposed filters", 68, true, transpose_filters}};
TFC_REWRITES(rows);
