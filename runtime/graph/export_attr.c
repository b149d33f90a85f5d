#include "runtime/graph/export_attr.h"

void tfc_wire_put_shape(struct tfc_text *out, uint32_t number, const struct tfc_shape *shape) {
  struct tfc_text m = {0}, dim = {0};
  for (int i = 0; i < shape->rank; i++) {
    dim.size = 0;
    if (shape->dims[i]) tfc_wire_put_int(&dim, 1, (uint64_t)(shape->dims[i] < 0 ? -1 : shape->dims[i]));
    tfc_wire_put_bytes(&m, 2, tfc_text_view(&dim));
  }
  if (shape->rank < 0) tfc_wire_put_int(&m, 3, 1);
  tfc_wire_put_bytes(out, number, tfc_text_view(&m));
  out->failed |= m.failed | dim.failed;
  tfc_text_deinit(&m);
  tfc_text_deinit(&dim);
}

void tfc_wire_put_tensor_fields(struct tfc_text *out, const struct tfc_tensor *t) {
  tfc_wire_put_int(out, 1, (uint64_t)t->dtype);
  tfc_wire_put_shape(out, 2, &t->shape);
  if (tfc_dtype_is_plain(t->dtype) && t->size)
    tfc_wire_put_bytes(out, 4, (tfc_str){t->data, t->size});
  else if (t->dtype == TFC_STRING)
    for (int64_t i = 0; i < tfc_tensor_elements(t); i++) tfc_wire_put_bytes(out, 8, tfc_tensor_get_string(t, i));
}
void tfc_wire_put_tensor(struct tfc_text *out, uint32_t number, const struct tfc_tensor *t) {
  struct tfc_text m = {0};
  tfc_wire_put_tensor_fields(&m, t);
  tfc_wire_put_bytes(out, number, tfc_text_view(&m));
  out->failed |= m.failed;
  tfc_text_deinit(&m);
}

static void put_func(struct tfc_text *out, uint32_t number, const struct tfc_func_attr *func) {
  struct tfc_text m = {0};
  tfc_wire_put_bytes(&m, 1, func->name);
  for (uint32_t i = 0; i < func->attr_count; i++) tfc_wire_put_attr(&m, 2, &func->attrs[i]);
  tfc_wire_put_bytes(out, number, tfc_text_view(&m));
  out->failed |= m.failed;
  tfc_text_deinit(&m);
}

static void put_value(struct tfc_text *out, const struct tfc_attr *a) {
  struct tfc_text list = {0};
  switch (a->kind) {
  case TFC_ATTR_NONE: break;
  case TFC_ATTR_INT: tfc_wire_put_int(out, 3, (uint64_t)a->i); break;
  case TFC_ATTR_FLOAT: tfc_wire_put_float(out, 4, (float)a->f); break;
  case TFC_ATTR_BOOL: tfc_wire_put_int(out, 5, a->b); break;
  case TFC_ATTR_STRING: tfc_wire_put_bytes(out, 2, a->s); break;
  case TFC_ATTR_TYPE: tfc_wire_put_int(out, 6, (uint64_t)a->type); break;
  case TFC_ATTR_SHAPE: tfc_wire_put_shape(out, 7, a->shape); break;
  case TFC_ATTR_TENSOR: tfc_wire_put_tensor(out, 8, a->tensor); break;
  case TFC_ATTR_FUNC: put_func(out, 10, a->func); break;
  case TFC_ATTR_PLACEHOLDER: tfc_wire_put_bytes(out, 9, a->s); break;
  default:
    for (uint32_t i = 0; i < a->count; i++) switch (a->kind) {
      case TFC_ATTR_LIST_INT: tfc_wire_put_int(&list, 3, (uint64_t)a->ints[i]); break;
      case TFC_ATTR_LIST_FLOAT: tfc_wire_put_float(&list, 4, (float)a->floats[i]); break;
      case TFC_ATTR_LIST_BOOL: tfc_wire_put_int(&list, 5, a->bools[i]); break;
      case TFC_ATTR_LIST_STRING: tfc_wire_put_bytes(&list, 2, a->strings[i]); break;
      case TFC_ATTR_LIST_TYPE: tfc_wire_put_int(&list, 6, (uint64_t)a->types[i]); break;
      case TFC_ATTR_LIST_SHAPE: tfc_wire_put_shape(&list, 7, &a->shapes[i]); break;
      case TFC_ATTR_LIST_TENSOR: tfc_wire_put_tensor(&list, 8, &a->tensors[i]); break;
      default: put_func(&list, 9, &a->funcs[i]); break;
      }
    tfc_wire_put_bytes(out, 1, tfc_text_view(&list));
    out->failed |= list.failed;
    tfc_text_deinit(&list);
  }
}

void tfc_wire_put_attr(struct tfc_text *out, uint32_t number, const struct tfc_attr *a) {
  struct tfc_text entry = {0}, value = {0};
  put_value(&value, a);
  tfc_wire_put_bytes(&entry, 1, a->name);
  tfc_wire_put_bytes(&entry, 2, tfc_text_view(&value));
  tfc_wire_put_bytes(out, number, tfc_text_view(&entry));
  out->failed |= entry.failed | value.failed;
  tfc_text_deinit(&entry);
  tfc_text_deinit(&value);
}

void tfc_wire_put_node(struct tfc_text *out, const struct tfc_graph *g, const struct tfc_node *n, tfc_str device) {
  const struct tfc_output *in = tfc_node_inputs(g, n);
  tfc_wire_put_bytes(out, 1, n->name);
  tfc_wire_put_bytes(out, 2, n->op);
  for (uint32_t k = 0; k < n->input_count + n->control_count; k++) {
    struct tfc_text input = {0};
    tfc_str from = g->nodes[in[k].node].name;
    if (k >= n->input_count)
      tfc_text_printf(&input, "^%.*s", TFC_STR_ARG(from));
    else if (in[k].index)
      tfc_text_printf(&input, "%.*s:%d", TFC_STR_ARG(from), in[k].index);
    else
      tfc_text_add(&input, from);
    tfc_wire_put_bytes(out, 3, tfc_text_view(&input));
    out->failed |= input.failed;
    tfc_text_deinit(&input);
  }
  if (device.size) tfc_wire_put_bytes(out, 4, device);
  for (uint32_t i = 0; i < n->attr_count; i++) tfc_wire_put_attr(out, 5, &g->attrs[n->attr_begin + i]);
}
