#include "runtime/pass/fold.h"

#include <stdlib.h>

#include "runtime/ops/kernel.h"

enum { most_inputs = 16, most_outputs = 16, most_in_bytes = 65536, most_out_bytes = 4096 };

const struct tfc_tensor *tfc_fold_keep(const struct tfc_tensor *value, struct tfc_arena *arena) {
  struct tfc_tensor *copy = TFC_ARENA_NEW(arena, struct tfc_tensor);
  if (!copy) return NULL;
  *copy = *value;
  copy->buffer = NULL;
  copy->data = tfc_arena_zalloc(arena, value->size + 8);
  if (!copy->data) return NULL;
  if (value->size) memcpy(copy->data, value->data, value->size);
  return copy;
}

static bool foldable(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_tensor *const *inputs) {
  const uint32_t never = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_VARIABLE | TFC_OP_ASYNC | TFC_OP_SAVES |
                         TFC_OP_SWITCH | TFC_OP_MERGE | TFC_OP_ENTER | TFC_OP_EXIT | TFC_OP_NEXT_ITERATION |
                         TFC_OP_LOOP_COND | TFC_OP_FUNCTIONAL | TFC_OP_NOP | TFC_OP_PLACEHOLDER;
  if (!n->def || !n->def->kernel || n->def->flags & never || n->def->node_state) return false;
  if (n->input_count == 0 || n->input_count > most_inputs || n->output_count == 0 || n->output_count > most_outputs)
    return false;
  for (uint32_t i = 0; i < n->input_count; i++)
    if (!inputs[i] || !tfc_dtype_is_plain(inputs[i]->dtype) || inputs[i]->size > most_in_bytes) return false;
  for (uint32_t i = 0; i < n->output_count; i++)
    if (!tfc_dtype_is_plain(g->output_dtypes[n->output_begin + i]) ||
        tfc_dtype_is_ref(g->output_dtypes[n->output_begin + i]))
      return false;
  return true;
}

void tfc_fold(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_tensor *const *inputs,
              struct tfc_arena *arena, const struct tfc_tensor **out_values) {
  if (!foldable(g, n, inputs)) return;
  struct tfc_arena scratch = {0};
  struct tfc_tensor tensors[most_outputs] = {0}, *outputs[most_outputs];
  struct tfc_shape shapes[most_inputs + most_outputs];
  tfc_dtype types[most_inputs];
  for (uint32_t i = 0; i < n->input_count; i++) shapes[i] = inputs[i]->shape, types[i] = inputs[i]->dtype;
  for (uint32_t i = 0; i < n->output_count; i++) {
    outputs[i] = &tensors[i];
    shapes[n->input_count + i] = TFC_SHAPE_UNKNOWN;
  }
  struct tfc_prepare_ctx prepare = {.graph = g,
                                    .node = n,
                                    .def = n->def,
                                    .input_shapes = shapes,
                                    .output_shapes = shapes + n->input_count,
                                    .input_dtypes = types,
                                    .input_values = inputs,
                                    .arena = &scratch};
  tfc_status s = n->def->prepare ? n->def->prepare(&prepare) : NULL;
  if (!s) {
    struct tfc_kernel_env env = {.threads = 1};
    struct tfc_variable *none[most_inputs] = {0}, *out_none[most_outputs] = {0};
    struct tfc_kernel_ctx ctx = {.graph = g,
                                 .node = n,
                                 .env = &env,
                                 .inputs = inputs,
                                 .variables = none,
                                 .outputs = outputs,
                                 .output_variables = out_none,
                                 .input_count = n->input_count,
                                 .output_count = n->output_count,
                                 .state = prepare.state};
    s = n->def->kernel(&ctx);
    if (prepare.release) prepare.release(prepare.state);
  }
  bool fits = !s;
  for (uint32_t i = 0; i < n->output_count; i++)
    fits &= tensors[i].size <= most_out_bytes && (tensors[i].data || tensors[i].size == 0);
  for (uint32_t i = 0; i < n->output_count; i++) {
    if (fits) out_values[i] = tfc_fold_keep(&tensors[i], arena);
    tfc_tensor_release(&tensors[i]);
  }
  tfc_status_free(s); // the kernel will say so again when the step runs
  tfc_arena_deinit(&scratch);
}
