// DecodeCSV: splits records (RFC 4180) into fields, with one output for each column.
#include <stdlib.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"
#include "runtime/ops/string_number.h"

struct csv {
  char delimiter;
  bool quotes;
  tfc_str absent; // a field with this text has no value
  const int64_t *columns;
  uint32_t column_count; // 0: all columns
};
static tfc_status prepare_csv(struct tfc_prepare_ctx *ctx) {
  struct csv *state = TFC_ARENA_NEW(ctx->arena, struct csv);
  if (!state) return tfc_status_no_memory(NULL);
  tfc_str delimiter = tfc_node_attr_string(ctx->graph, ctx->node, "field_delim", ",");
  const struct tfc_attr *columns = tfc_node_attr(ctx->graph, ctx->node, "select_cols");
  TFC_KERNEL_CHECK(delimiter.size == 1, "field_delim should be only 1 char");
  state->delimiter = delimiter.data[0];
  state->quotes = tfc_node_attr_bool(ctx->graph, ctx->node, "use_quote_delim", true);
  state->absent = tfc_node_attr_string(ctx->graph, ctx->node, "na_value", "");
  if (columns && columns->kind == TFC_ATTR_LIST_INT && columns->count) {
    TFC_KERNEL_CHECK(columns->count == ctx->node->output_count, "select_cols should match output size");
    for (uint32_t i = 0; i < columns->count; i++)
      TFC_KERNEL_CHECK(columns->ints[i] >= 0 && (i == 0 || columns->ints[i] > columns->ints[i - 1]),
                       "select_cols should be strictly increasing indices, none below 0");
    state->columns = columns->ints;
    state->column_count = columns->count;
  }
  ctx->state = state;
  return NULL;
}

// Reads the fields of a record, one at a time.
struct reader {
  const struct csv *csv;
  tfc_str record;
  size_t at;
  struct tfc_text field;
};
static bool is(const struct reader *r, size_t at, char c) {
  return at < r->record.size && r->record.data[at] == c;
}
static tfc_status next_field(struct reader *r) { // at < record.size, and no line ends there
  r->field.size = 0;
  if (!r->csv->quotes || !is(r, r->at, '"')) {
    size_t begin = r->at;
    for (; r->at < r->record.size && !is(r, r->at, r->csv->delimiter); r->at++)
      TFC_KERNEL_CHECK((!r->csv->quotes || !is(r, r->at, '"')) && !is(r, r->at, '\n') && !is(r, r->at, '\r'),
                       "Unquoted fields cannot have quotes/CRLFs inside");
    tfc_text_add(&r->field, tfc_str_sub(r->record, begin, r->at));
    r->at++;
    return NULL;
  }
  r->at++;
  while (r->at + 1 < r->record.size && !(is(r, r->at, '"') && is(r, r->at + 1, r->csv->delimiter))) {
    if (is(r, r->at, '"')) {
      TFC_KERNEL_CHECK(is(r, r->at + 1, '"'), "Quote inside a string has to be escaped by another quote");
      r->at++;
    }
    tfc_text_add(&r->field, tfc_str_sub(r->record, r->at, r->at + 1));
    r->at++;
  }
  TFC_KERNEL_CHECK(is(r, r->at, '"') && (r->at + 1 == r->record.size || is(r, r->at + 1, r->csv->delimiter)),
                   "Quoted field has to end with quote followed by delim or end");
  r->at += 2;
  return NULL;
}

static tfc_status store(struct tfc_kernel_ctx *ctx, const struct csv *csv, uint32_t column, int64_t record,
                        tfc_str field) {
  const struct tfc_tensor *otherwise = ctx->inputs[1 + column];
  struct tfc_tensor *y = ctx->outputs[column];
  size_t size = tfc_dtype_size(y->dtype);
  bool text = y->dtype == TFC_STRING, fits;
  if (field.size == 0 || tfc_str_equal(field, csv->absent)) {
    TFC_KERNEL_CHECK(tfc_tensor_elements(otherwise) == 1, "Field %u is required but missing in record %lld!", column,
                     (long long)record);
    if (text) field = tfc_tensor_get_string(otherwise, 0);
    fits = true;
    if (!text) memcpy((char *)y->data + (size_t)record * size, otherwise->data, size);
  } else {
    fits = text || tfc_string_number(field, y->dtype, (char *)y->data + (size_t)record * size);
  }
  TFC_KERNEL_CHECK(fits, "Field %u in record %lld is not a valid %s: %.*s", column, (long long)record,
                   tfc_dtype_name(y->dtype), TFC_STR_ARG(field));
  return text ? tfc_tensor_set_string(y, record, field) : NULL;
}

static tfc_status read_record(struct tfc_kernel_ctx *ctx, struct reader *r, int64_t record) {
  const struct csv *csv = r->csv;
  uint32_t found = 0, wanted = ctx->output_count;
  int64_t parsed = 0;
  while (r->at < r->record.size) {
    if (is(r, r->at, '\n') || is(r, r->at, '\r')) {
      r->at++;
      continue;
    }
    TFC_RETURN_IF_ERROR(next_field(r));
    if (r->field.failed) return tfc_status_no_memory(NULL);
    if (csv->column_count && csv->columns[found] != parsed++) continue;
    if (found < wanted) TFC_RETURN_IF_ERROR(store(ctx, csv, found, record, (tfc_str){r->field.data, r->field.size}));
    if (++found == csv->column_count) return NULL;
  }
  bool include = !csv->column_count || csv->columns[found] == parsed; // the record may end in an empty field
  if (include && r->record.size && is(r, r->record.size - 1, csv->delimiter)) {
    if (found < wanted) TFC_RETURN_IF_ERROR(store(ctx, csv, found, record, (tfc_str){0}));
    found++;
  }
  TFC_KERNEL_CHECK(found == wanted, "Expect %u fields but have %u in record %lld", wanted, found, (long long)record);
  return NULL;
}

// Inputs: records, and a default for each column; outputs: the columns, each in the records' shape.
static tfc_status decode_csv(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *records = ctx->inputs[0];
  tfc_status s = NULL;
  for (uint32_t i = 0; i < ctx->output_count; i++) {
    const struct tfc_tensor *otherwise = ctx->inputs[1 + i];
    struct tfc_tensor *y = NULL;
    TFC_KERNEL_CHECK(otherwise->shape.rank <= 1 && tfc_tensor_elements(otherwise) < 2,
                     "There should only be 1 default per field but field %u has %lld", i,
                     (long long)tfc_tensor_elements(otherwise));
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, otherwise->dtype, &records->shape, &y));
  }
  struct reader r = {.csv = ctx->state};
  for (int64_t i = 0; !s && i < tfc_tensor_elements(records); i++) {
    r.record = tfc_tensor_get_string(records, i);
    r.at = 0;
    s = read_record(ctx, &r, i);
  }
  tfc_text_deinit(&r.field);
  return s;
}
static tfc_status shape_csv(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 1; i < ctx->node->input_count; i++) {
    const struct tfc_shape *d = ctx->inputs[i];
    if (d->rank > 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "Shape of a default must be a vector or a scalar");
    if (d->rank == 1 && d->dims[0] > 1)
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
  }
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = *ctx->inputs[0];
  return NULL;
}

static const struct tfc_op_def string_csv_rows[] = {
    {.name = "DecodeCSV",
     .inputs = "records: string, record_defaults: OUT_TYPE",
     .outputs = "output: OUT_TYPE",
     .attrs = "OUT_TYPE: list({float, double, int32, int64, string}) >= 1, field_delim: string = ',', "
              "use_quote_delim: bool = true, na_value: string = '', select_cols: list(int) = []",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_csv,
     .prepare = prepare_csv,
     .kernel = decode_csv},
};
TFC_REGISTER_OPS(string_csv_rows);
