// Datasets that read files: lines, TFRecords, and records of a fixed length. One file is open at a time; the next one
// is opened when it has ended.
#include "runtime/base/no_memory.h"
#include "runtime/ops/data_dataset.h"
#include "runtime/ops/data_records.h"

struct walk {
  struct tfc_records file;
  struct tfc_text key;
  bool open;
  int64_t next; // index of the next file
};
// Indices into the dataset's numbers `n`: for records of a fixed length, and the compression.
enum { HEADER, RECORD, FOOTER, COMPRESSION };
enum { FILENAMES, COMPRESSION_TYPE, BYTE_OFFSETS = 3 }; // indices of the kernel's inputs

static void end(struct tfc_dataset_iterator *it) {
  struct walk *w = tfc_dataset_state(it);
  tfc_records_close(&w->file);
  tfc_text_deinit(&w->key);
}

// Checks that the body of a file, between header and footer, consists of whole records. TensorFlow checks this before
// the first record; for compressed files, at the end.
static tfc_status check_fixed(const struct tfc_dataset *d, const struct tfc_records *file) {
  const int64_t *n = d->n, body = (int64_t)file->size - n[HEADER] - n[FOOTER];
  if (body >= 0 && body % n[RECORD] == 0) return NULL;
  return tfc_status_make(d->n[COMPRESSION] == TFC_RECORDS_PLAIN ? TFC_INVALID_ARGUMENT : TFC_DATA_LOSS,
                         "Excluding the header (%lld bytes) and footer (%lld bytes), input file \"%s\" has body length "
                         "%lld bytes, which is not an exact multiple of the record length (%lld bytes).",
                         (long long)n[HEADER], (long long)n[FOOTER], file->name, (long long)body, (long long)n[RECORD]);
}

static tfc_status open_next(const struct tfc_dataset *d, const struct tfc_records_format *format, struct walk *w) {
  const int64_t i = w->next++;
  TFC_RETURN_IF_ERROR(tfc_records_open(format, tfc_tensor_get_string(&d->tensors[FILENAMES], i), &w->file));
  w->open = true;
  if (format->kind == TFC_RECORDS_FIXED && format->compression == TFC_RECORDS_PLAIN) return check_fixed(d, &w->file);
  const struct tfc_tensor *offsets = d->tensor_count > BYTE_OFFSETS ? &d->tensors[BYTE_OFFSETS] : NULL;
  if (format->kind != TFC_RECORDS_TF || !offsets || tfc_tensor_elements(offsets) == 0) return NULL;
  const int64_t at = tfc_tensor_int(offsets, i);
  if (at < 0 || (uint64_t)at > w->file.size)
    return tfc_status_make(TFC_OUT_OF_RANGE, "%s: it has no byte %lld to begin at", w->file.name, (long long)at);
  w->file.at = (size_t)at;
  return NULL;
}

// As TensorFlow's datasets do, drops every "\r" of a line, and a last line that is empty without them. (TensorFlow's
// readers drop only one "\r" before the "\n".) False: the line is such a last line.
static bool clean_line(struct walk *w, tfc_str *line) {
  const bool last = w->file.at == w->file.size && w->file.data[w->file.size - 1] != '\n';
  if (line->size && memchr(line->data, '\r', line->size)) {
    w->key.size = 0;
    for (size_t i = 0; i < line->size; i++)
      if (line->data[i] != '\r') tfc_text_add(&w->key, (tfc_str){line->data + i, 1});
    *line = (tfc_str){w->key.size ? w->key.data : "", w->key.size};
  }
  return line->size > 0 || !last;
}

static tfc_status next_of(struct tfc_dataset_iterator *it, enum tfc_records_kind kind, struct tfc_tensor *parts,
                          bool *ended) {
  const struct tfc_dataset *d = it->dataset;
  struct walk *w = tfc_dataset_state(it);
  const struct tfc_records_format format = {.kind = kind,
                                            .compression = (int)d->n[COMPRESSION],
                                            .header = d->n[HEADER],
                                            .record = d->n[RECORD],
                                            .footer = d->n[FOOTER]};
  tfc_status s = NULL;
  tfc_str value = {0};
  bool found = false;
  for (;;) {
    if (!w->open) {
      *ended = w->next >= tfc_tensor_elements(&d->tensors[FILENAMES]);
      if (*ended) return NULL;
      TFC_TRY(s, open_next(d, &format, w));
    }
    TFC_TRY(s, tfc_records_next(&format, &w->file, &w->key, &value, &found));
    if (found && kind == TFC_RECORDS_LINES) found = clean_line(w, &value);
    if (w->key.failed) TFC_TRY(s, tfc_status_no_memory_for("reading %s", w->file.name));
    if (found) break;
    if (kind == TFC_RECORDS_FIXED) TFC_TRY(s, check_fixed(d, &w->file));
    tfc_records_close(&w->file);
    w->open = false;
  }
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_STRING, &TFC_SHAPE_SCALAR, &parts[0]));
  TFC_RETURN_IF_ERROR(tfc_tensor_set_string(&parts[0], 0, value));
  return NULL;
out: // the next call continues with the next file
  tfc_records_close(&w->file);
  w->open = false;
  return s;
}
static tfc_status lines_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                             bool *ended) {
  (void)ctx;
  return next_of(it, TFC_RECORDS_LINES, parts, ended);
}
static tfc_status records_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                               bool *ended) {
  (void)ctx;
  return next_of(it, TFC_RECORDS_TF, parts, ended);
}
static tfc_status fixed_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                             bool *ended) {
  (void)ctx;
  return next_of(it, TFC_RECORDS_FIXED, parts, ended);
}
static const struct tfc_dataset_kind lines_kind = {
    .name = "TextLine", .state = sizeof(struct walk), .next = lines_next, .end = end};
static const struct tfc_dataset_kind records_kind = {
    .name = "TFRecord", .state = sizeof(struct walk), .next = records_next, .end = end};
static const struct tfc_dataset_kind fixed_kind = {
    .name = "FixedLengthRecord", .state = sizeof(struct walk), .next = fixed_next, .end = end};

// --- Creating datasets -----------------------------------------------------------------------------------------------
static tfc_status compression(struct tfc_kernel_ctx *ctx, uint32_t input, int64_t *out) {
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[input]) == 1, "`compression_type` must be a scalar");
  const tfc_str how = tfc_tensor_get_string(ctx->inputs[input], 0);
  *out = tfc_str_is(how, "ZLIB") ? TFC_RECORDS_ZLIB : tfc_str_is(how, "GZIP") ? TFC_RECORDS_GZIP : TFC_RECORDS_PLAIN;
  TFC_KERNEL_CHECK(how.size == 0 || *out != TFC_RECORDS_PLAIN,
                   "Unsupported compression_type: '%.*s' is not '', ZLIB or GZIP", TFC_STR_ARG(how));
  return NULL;
}
// Every input is kept with the dataset.
static tfc_status make(struct tfc_kernel_ctx *ctx, const struct tfc_dataset_kind *kind, const int64_t *n,
                       uint32_t buffer_size) {
  struct tfc_dataset *d = NULL;
  int64_t buffer;
  TFC_KERNEL_CHECK(ctx->inputs[FILENAMES]->shape.rank <= 1, "`filenames` must be a scalar or a vector.");
  TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, buffer_size, "buffer_size", &buffer));
  TFC_KERNEL_CHECK(buffer >= 0, "`buffer_size` must be >= 0 (0 == default)");
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, kind, 0, 0, ctx->input_count, &d));
  memcpy(d->n, n, sizeof d->n);
  return tfc_dataset_output(ctx, d);
}
static tfc_status lines(struct tfc_kernel_ctx *ctx) {
  int64_t n[4] = {0};
  TFC_RETURN_IF_ERROR(compression(ctx, COMPRESSION_TYPE, &n[COMPRESSION]));
  return make(ctx, &lines_kind, n, 2);
}
static tfc_status records(struct tfc_kernel_ctx *ctx) {
  int64_t n[4] = {0};
  TFC_RETURN_IF_ERROR(compression(ctx, COMPRESSION_TYPE, &n[COMPRESSION]));
  if (ctx->input_count > BYTE_OFFSETS) {
    const int64_t offsets = tfc_tensor_elements(ctx->inputs[BYTE_OFFSETS]);
    TFC_KERNEL_CHECK(offsets == 0 || offsets == tfc_tensor_elements(ctx->inputs[FILENAMES]),
                     "`byte_offsets` must be of same size as `filenames`");
  }
  return make(ctx, &records_kind, n, 2);
}
static tfc_status fixed(struct tfc_kernel_ctx *ctx) {
  static const char *const names[] = {"header_bytes", "record_bytes", "footer_bytes"};
  int64_t n[4] = {0};
  for (uint32_t i = 0; i < 3; i++) {
    TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 1 + i, names[i], &n[i]));
    TFC_KERNEL_CHECK(n[i] >= (i == RECORD) && n[i] < INT64_MAX / 4, "`%s` must be %s 0", names[i],
                     i == RECORD ? ">" : ">=");
  }
  if (ctx->input_count > 5) TFC_RETURN_IF_ERROR(compression(ctx, 5, &n[COMPRESSION]));
  return make(ctx, &fixed_kind, n, 4);
}

#define FILES(op, in, kernel_)                                                                                         \
  {                                                                                                                    \
    .name = op, .inputs = "filenames: string, " in, .outputs = "handle: variant", .attrs = "metadata: string = ''",    \
    .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_FILES | TFC_OP_NOT_DIFFERENTIABLE, .shape = ops_shape_scalar,      \
    .kernel = kernel_                                                                                                  \
  }
static const struct tfc_op_def data_dataset_files_rows[] = {
    FILES("TextLineDataset", "compression_type: string, buffer_size: int64", lines),
    FILES("TFRecordDataset", "compression_type: string, buffer_size: int64", records),
    FILES("TFRecordDatasetV2", "compression_type: string, buffer_size: int64, byte_offsets: int64", records),
    FILES("FixedLengthRecordDataset",
          "header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64", fixed),
    FILES("FixedLengthRecordDatasetV2",
          "header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64, compression_type: string",
          fixed),
};
TFC_REGISTER_OPS(data_dataset_files_rows);
