#include "runtime/pass/function_gradient.h"

#include <stdlib.h>

tfc_status tfc_function_gradient(tfc_gradients_fn *gradients, const struct tfc_function *fn, struct tfc_function *out) {
  tfc_status s = NULL;
  struct tfc_builder *b = NULL;
  struct tfc_graph *body = NULL;
  uint32_t args = fn->arg_count + fn->ret_count;
  uint32_t *ids = calloc((size_t)args + fn->arg_count + 1, sizeof *ids);
  struct tfc_output *ends = calloc(2 * (size_t)args + 2, sizeof *ends);
  if (!ids || !ends) TFC_TRY(s, tfc_status_no_memory("the gradient of a function"));
  struct tfc_output *xs = ends, *ys = xs + fn->arg_count, *dys = ys + fn->ret_count, *grads = dys + fn->ret_count;
  TFC_TRY(s, tfc_builder_create(fn->body, &b));
  for (uint32_t i = 0; i < args; i++) {
    if (i < fn->arg_count) {
      ids[i] = fn->args[i];
      xs[i] = (struct tfc_output){ids[i], 0};
      continue;
    }
    ys[i - fn->arg_count] = tfc_builder_input(b, fn->rets[i - fn->arg_count], 0);
    struct tfc_attr attrs[] = {tfc_attr_type("T", tfc_dtype_base(tfc_builder_dtype(b, ys[i - fn->arg_count]))),
                               tfc_attr_int("index", i)};
    dys[i - fn->arg_count] = tfc_add(b, "_Arg", "dy", NULL, 0, attrs, 2);
    ids[i] = dys[i - fn->arg_count].node;
  }
  TFC_TRY(s, gradients(b, ys, fn->ret_count, xs, fn->arg_count, dys, grads));
  for (uint32_t i = 0; i < fn->arg_count; i++) {
    if (!tfc_output_valid(grads[i])) grads[i] = tfc_add1(b, "ZerosLike", xs[i]);
    struct tfc_attr index = tfc_attr_int("index", i);
    ids[args + i] = tfc_add(b, "_Retval", "dx", &grads[i], 1, &index, 1).node;
  }
  TFC_TRY(s, tfc_builder_finish(b, &body));
  *out = (struct tfc_function){.name = fn->name,
                               .body = body,
                               .args = ids,
                               .rets = ids + args,
                               .arg_count = args,
                               .ret_count = fn->arg_count,
                               .stateful = fn->stateful};
  ids = NULL;
out:
  tfc_builder_free(b);
  free(ids);
  free(ends);
  return s;
}
