// Readers: each takes file names from a queue, one after another, and returns the files' records. Requests that come
// while the reader waits for a name are queued; when the name arrives, all of them continue.
#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/ops/data_named.h"
#include "runtime/ops/data_queue.h"
#include "runtime/ops/data_records.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"
#include "runtime/ops/saved.h"

struct record {
  char *key, *value;
  size_t key_size, value_size;
};
struct reader;
struct request { // a kernel that wants records
  struct request *next;
  struct tfc_kernel_ctx *ctx;
  struct reader *reader;   // retained
  struct tfc_queue *queue; // retained
  bool up_to;
  int64_t wanted;
  TFC_ARRAY(struct record) records;
  struct tfc_kernel_ctx name_ctx; // of the dequeue that gets a file's name for this request
  struct tfc_tensor name, *name_output;
  bool asked;
  tfc_status result;
};
struct reader {
  struct tfc_object object;
  struct tfc_records_format format;
  char *name;
  pthread_mutex_t lock; // guards what follows
  struct tfc_records file;
  bool open, serving;
  bool answered; // a dequeue has finished; if the thread that began it still serves, that thread takes the answer
  tfc_status answer;
  int64_t produced, finished;
  struct request *first, **last;
};

static void destroy(struct tfc_object *self) {
  struct reader *r = (struct reader *)self;
  tfc_records_close(&r->file);
  pthread_mutex_destroy(&r->lock);
  free(r->name);
  free(r);
}
static void describe(struct tfc_object *self, struct tfc_text *out) {
  tfc_text_printf(out, "a file name for the reader '%s'", ((struct reader *)self)->name);
}
static void wake(struct tfc_object *self);
static void waits(struct tfc_object *self, void (*fn)(void *arg, int64_t step), void *arg) {
  struct reader *r = (struct reader *)self;
  pthread_mutex_lock(&r->lock); // the first request waits in a queue, if it waits
  for (const struct request *q = r->first ? r->first->next : NULL; q; q = q->next) fn(arg, q->ctx->env->step_id);
  pthread_mutex_unlock(&r->lock);
}
// The name of the open file and how far it has been read. The file is opened again, so it must not have changed.
static tfc_status save(struct tfc_object *self, struct tfc_text *out) {
  struct reader *r = (struct reader *)self;
  pthread_mutex_lock(&r->lock);
  tfc_saved_add_number(out, r->produced);
  tfc_saved_add_number(out, r->finished);
  tfc_saved_add_number(out, r->open);
  if (r->open) {
    tfc_saved_add_bytes(out, tfc_str_from(r->file.name));
    tfc_saved_add_number(out, (int64_t)r->file.size);
    tfc_saved_add_number(out, (int64_t)r->file.at);
    tfc_saved_add_number(out, r->file.number);
  }
  pthread_mutex_unlock(&r->lock);
  return NULL;
}
static tfc_status load(struct tfc_object *self, tfc_str words) {
  struct reader *r = (struct reader *)self;
  struct tfc_saved in = {.words = words};
  struct tfc_records file = {0};
  int64_t at = 0, size = 0, number = 0;
  size_t name_size;
  char *name = NULL;
  tfc_status s = NULL;
  const int64_t produced = tfc_saved_number(&in, 0, INT64_MAX / 2), finished = tfc_saved_number(&in, 0, INT64_MAX / 2);
  const bool open = tfc_saved_number(&in, 0, 1);
  if (open) {
    name = tfc_saved_bytes(&in, &name_size);
    size = tfc_saved_number(&in, 0, INT64_MAX);
    at = tfc_saved_number(&in, 0, size);
    number = tfc_saved_number(&in, 0, INT64_MAX / 2);
  }
  TFC_TRY(s, tfc_saved_end(&in));
  if (open) {
    TFC_TRY(s, tfc_records_open(&r->format, (tfc_str){name, name_size}, &file));
    if ((int64_t)file.size != size)
      TFC_FAIL(s, TFC_DATA_LOSS, "%s: it has %zu bytes, and had %lld when the reader was saved", name, file.size,
               (long long)size);
    file.at = (size_t)at, file.number = number;
  }
  pthread_mutex_lock(&r->lock);
  tfc_records_close(&r->file);
  r->file = file, file = (struct tfc_records){0};
  r->open = open, r->produced = produced, r->finished = finished;
  pthread_mutex_unlock(&r->lock);
out:
  tfc_records_close(&file);
  free(name);
  return s;
}
static const struct tfc_object_type reader_type = {.name = "reader",
                                                   .destroy = destroy,
                                                   .wake = wake,
                                                   .describe = describe,
                                                   .waits = waits,
                                                   .save = save,
                                                   .load = load};

// --- Creating readers --------------------------------------------------------------------------------------------
static tfc_status compression(const struct tfc_kernel_ctx *ctx, const char *attr, int *out) {
  tfc_str how = tfc_node_attr_string(ctx->graph, ctx->node, attr, "");
  *out = tfc_str_is(how, "ZLIB") ? TFC_RECORDS_ZLIB : tfc_str_is(how, "GZIP") ? TFC_RECORDS_GZIP : TFC_RECORDS_PLAIN;
  TFC_KERNEL_CHECK(how.size == 0 || *out != TFC_RECORDS_PLAIN, "%s is '%.*s': not '', ZLIB or GZIP", attr,
                   TFC_STR_ARG(how));
  return NULL;
}
static tfc_status format_of(const struct tfc_kernel_ctx *ctx, struct tfc_records_format *f) {
  const tfc_str op = ctx->node->op;
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  *f = (struct tfc_records_format){.kind = tfc_str_starts(op, "TextLine")    ? TFC_RECORDS_LINES
                                           : tfc_str_starts(op, "Fixed")     ? TFC_RECORDS_FIXED
                                           : tfc_str_starts(op, "TFRecord")  ? TFC_RECORDS_TF
                                           : tfc_str_starts(op, "WholeFile") ? TFC_RECORDS_FILE
                                                                             : TFC_RECORDS_NAME};
  f->skip = tfc_node_attr_int(g, n, "skip_header_lines", 0);
  if (f->kind == TFC_RECORDS_TF) return compression(ctx, "compression_type", &f->compression);
  if (f->kind != TFC_RECORDS_FIXED) return NULL;
  f->header = tfc_node_attr_int(g, n, "header_bytes", 0), f->record = tfc_node_attr_int(g, n, "record_bytes", 0);
  f->footer = tfc_node_attr_int(g, n, "footer_bytes", 0), f->hop = tfc_node_attr_int(g, n, "hop_bytes", 0);
  const int64_t all[] = {f->header, f->record - 1, f->footer, f->hop};
  for (int i = 0; i < 4; i++)
    TFC_KERNEL_CHECK(all[i] >= 0 && all[i] < INT64_MAX / 4,
                     "header_bytes, footer_bytes and hop_bytes must be >= 0, record_bytes > 0");
  return compression(ctx, "encoding", &f->compression);
}
static tfc_status make(void *arg, struct tfc_object **out) {
  const struct tfc_kernel_ctx *ctx = arg;
  struct tfc_records_format format;
  TFC_RETURN_IF_ERROR(format_of(ctx, &format));
  struct reader *r = calloc(1, sizeof *r);
  char *name = tfc_str_dup(tfc_named_name(ctx));
  if (!r || !name) {
    free(r), free(name);
    return tfc_status_no_memory(NULL);
  }
  *r = (struct reader){.object = {.type = &reader_type, .references = 1}, .format = format, .name = name};
  pthread_mutex_init(&r->lock, NULL);
  r->last = &r->first;
  *out = &r->object;
  return NULL;
}
static tfc_status create(struct tfc_kernel_ctx *ctx) {
  return tfc_named_make(ctx, &reader_type, make);
}

// --- Reading records ---------------------------------------------------------------------------------------------
static void request_free(struct request *q) {
  for (size_t i = 0; i < q->records.count; i++) free(q->records.data[i].key), free(q->records.data[i].value);
  tfc_array_free(&q->records);
  tfc_tensor_release(&q->name);
  tfc_queue_release(q->queue);
  tfc_object_release(&q->reader->object);
  free(q);
}

static bool keep(struct request *q, const struct tfc_text *key, tfc_str value) {
  struct record r = {.key = tfc_str_dup((tfc_str){key->data, key->size}),
                     .value = malloc(value.size + 1),
                     .key_size = key->size,
                     .value_size = value.size};
  if (r.key && r.value && tfc_array_push(&q->records, r)) {
    if (value.size) memcpy(r.value, value.data, value.size);
    return true;
  }
  free(r.key), free(r.value);
  return false;
}

// Called under the lock. Reads what the open file still has; returns true if the request is finished.
static bool read_some(struct reader *r, struct request *q) {
  struct tfc_text key = {0};
  const bool whole = r->format.kind == TFC_RECORDS_FILE || r->format.kind == TFC_RECORDS_NAME;
  while (r->open && !q->result && (int64_t)q->records.count < q->wanted) {
    bool found;
    tfc_str value;
    q->result = tfc_records_next(&r->format, &r->file, &key, &value, &found);
    if (!q->result && found && !keep(q, &key, value)) q->result = tfc_status_no_memory(NULL);
    if (q->result) break;
    r->produced += found;
    if (found && !whole) continue;
    tfc_records_close(&r->file);
    r->open = false;
    r->finished++;
    if (q->up_to && q->records.count) break;
  }
  tfc_text_deinit(&key);
  return q->result || (int64_t)q->records.count >= q->wanted || (q->up_to && q->records.count > 0);
}

static tfc_status deliver(struct request *q) {
  struct tfc_tensor *keys = NULL, *values = NULL;
  struct tfc_shape shape = q->up_to ? TFC_SHAPE((int64_t)q->records.count) : TFC_SHAPE_SCALAR;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(q->ctx, 0, TFC_STRING, &shape, &keys));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(q->ctx, 1, TFC_STRING, &shape, &values));
  for (size_t i = 0; i < q->records.count; i++) {
    const struct record *r = &q->records.data[i];
    TFC_RETURN_IF_ERROR(tfc_tensor_set_string(keys, (int64_t)i, (tfc_str){r->key, r->key_size}));
    TFC_RETURN_IF_ERROR(tfc_tensor_set_string(values, (int64_t)i, (tfc_str){r->value, r->value_size}));
  }
  return NULL;
}
static void complete(struct request *q) { // called without the lock
  struct tfc_kernel_ctx *ctx = q->ctx;
  tfc_status s = q->result ? q->result : deliver(q);
  request_free(q);
  ctx->done(ctx, s);
}

static void shift(struct reader *r) {
  r->first = r->first->next;
  if (!r->first) r->last = &r->first;
}
static void serve(struct reader *r);

// Called when the dequeue for the first request has finished.
static void named(struct tfc_kernel_ctx *name_ctx, tfc_status s) {
  struct reader *r = ((struct request *)((char *)name_ctx - offsetof(struct request, name_ctx)))->reader;
  tfc_object_retain(&r->object);
  pthread_mutex_lock(&r->lock);
  r->answered = true;
  r->answer = s;
  bool mine = !r->serving;
  pthread_mutex_unlock(&r->lock);
  if (mine) serve(r);
  tfc_object_release(&r->object);
}

static void take_answer(struct reader *r, struct request *q) {
  q->asked = r->answered = false;
  q->result = r->answer;
  r->answer = NULL;
  if (!q->result) q->result = tfc_records_open(&r->format, tfc_tensor_get_string(&q->name, 0), &r->file);
  r->open = !q->result;
  tfc_tensor_release(&q->name);
  q->name = (struct tfc_tensor){0};
}

// Continues with the requests, in order, until one has to wait for a file name. Only one thread does this at a time.
static void serve(struct reader *r) {
  pthread_mutex_lock(&r->lock);
  bool busy = r->serving;
  r->serving = true;
  while (!busy && r->first) {
    struct request *q = r->first;
    if (r->answered) take_answer(r, q);
    if (q->asked) break;
    bool done = read_some(r, q);
    if (done) shift(r);
    q->asked = !done;
    pthread_mutex_unlock(&r->lock);
    if (done) {
      complete(q);
    } else {
      q->name_ctx = *q->ctx;
      q->name_output = &q->name;
      q->name_ctx.outputs = &q->name_output;
      q->name_ctx.output_count = 1;
      q->name_ctx.done = named;
      tfc_status s = tfc_queue_take_one(&q->name_ctx, q->queue);
      if (s) named(&q->name_ctx, s);
    }
    pthread_mutex_lock(&r->lock);
  }
  if (!busy) r->serving = false;
  pthread_mutex_unlock(&r->lock);
}

// Requests behind the first one wait for the reader and not in a queue, so that no queue informs them if their step is
// cancelled.
static void wake(struct tfc_object *self) {
  struct reader *r = (struct reader *)self;
  struct request *ended = NULL;
  pthread_mutex_lock(&r->lock);
  for (struct request **at = r->first ? &r->first->next : &r->first; *at;) {
    struct request *q = *at;
    if (!q->ctx->env->cancelled || !q->ctx->env->cancelled(q->ctx->env)) {
      at = &q->next;
      continue;
    }
    *at = q->next;
    if (r->last == &q->next) r->last = at;
    q->next = ended;
    ended = q;
  }
  pthread_mutex_unlock(&r->lock);
  for (struct request *q = ended, *next; q; q = next) {
    next = q->next;
    q->result = tfc_status_make(TFC_CANCELLED, "Read operation was cancelled");
    complete(q);
  }
}

static tfc_status start(struct tfc_kernel_ctx *ctx, bool up_to) {
  int64_t wanted = up_to ? ops_scalar_int(ctx->inputs[2]) : 1;
  TFC_KERNEL_CHECK(wanted > 0, "num_records must be > 0, not %lld", (long long)wanted);
  struct request *q = calloc(1, sizeof *q);
  if (!q) return tfc_status_no_memory(NULL);
  q->ctx = ctx;
  q->up_to = up_to;
  q->wanted = wanted;
  tfc_status s = tfc_named_get(ctx, &reader_type, (struct tfc_object **)&q->reader);
  if (s) {
    free(q);
    return s;
  }
  s = tfc_queue_of_input(ctx, 1, &q->queue);
  if (s) {
    request_free(q);
    return s;
  }
  struct reader *r = q->reader;
  tfc_object_retain(&r->object);
  pthread_mutex_lock(&r->lock);
  *r->last = q;
  r->last = &q->next;
  pthread_mutex_unlock(&r->lock);
  serve(r);
  tfc_object_release(&r->object);
  return NULL;
}
static tfc_status read_one(struct tfc_kernel_ctx *ctx) {
  return start(ctx, false);
}
static tfc_status read_up_to(struct tfc_kernel_ctx *ctx) {
  return start(ctx, true);
}

enum what { PRODUCED, FINISHED, RESET };
static tfc_status on_reader(struct tfc_kernel_ctx *ctx, enum what what) {
  struct reader *r = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_named_get(ctx, &reader_type, (struct tfc_object **)&r));
  pthread_mutex_lock(&r->lock);
  int64_t n = what == PRODUCED ? r->produced : r->finished;
  if (what == RESET) {
    tfc_records_close(&r->file);
    r->open = false;
    r->produced = r->finished = 0;
  }
  pthread_mutex_unlock(&r->lock);
  tfc_object_release(&r->object);
  if (what == RESET) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE_SCALAR, &y));
  *(int64_t *)y->data = n;
  return NULL;
}
static tfc_status num_records(struct tfc_kernel_ctx *ctx) {
  return on_reader(ctx, PRODUCED);
}
static tfc_status num_work_units(struct tfc_kernel_ctx *ctx) {
  return on_reader(ctx, FINISHED);
}
static tfc_status reset(struct tfc_kernel_ctx *ctx) {
  return on_reader(ctx, RESET);
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static tfc_status shape_scalars(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ctx->outputs[1] = TFC_SHAPE_SCALAR;
  return NULL;
}
static tfc_status shape_pair(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(2);
  return NULL;
}
static tfc_status shape_vectors(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ctx->outputs[1] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  return NULL;
}

#define FLAGS TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE
// Each reader exists in two versions: the older one's handle is a reference to two strings.
#define READER_OF(op, handle, attrs_, shape_, uses)                                                                    \
  {                                                                                                                    \
    .name = op, .outputs = "reader_handle: " handle,                                                                   \
    .attrs = attrs_ "container: string = '', shared_name: string = ''", .flags = FLAGS | (uses), .host_outputs = 1,    \
    .shape = shape_, .kernel = create                                                                                  \
  }
#define READER(op, old_attrs, attrs, uses)                                                                             \
  READER_OF(op, "Ref(string)", old_attrs, shape_pair, uses),                                                           \
      READER_OF(op "V2", "resource", attrs, ops_shape_scalar, uses)
#define ON_OF(op, inputs_, outputs_, flags_, shape_, kernel_)                                                          \
  {                                                                                                                    \
    .name = op, .inputs = inputs_, .outputs = outputs_, .flags = FLAGS | (flags_), .host_inputs = UINT32_MAX,          \
    .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_                                                     \
  }
#define ON(op, queue, more, ...)                                                                                       \
  ON_OF(op, "reader_handle: Ref(string)" queue("Ref(string)") more, __VA_ARGS__),                                      \
      ON_OF(op "V2", "reader_handle: resource" queue("resource") more, __VA_ARGS__)
#define QUEUE(handle) ", queue_handle: " handle
#define ALONE(handle)
#define FIXED "header_bytes: int = 0, record_bytes: int, footer_bytes: int = 0, hop_bytes: int = 0, "
#define LINES "skip_header_lines: int = 0, "
#define PACKED "compression_type: string = '', "
static const struct tfc_op_def data_reader_rows[] = {
    READER("TextLineReader", LINES, LINES, TFC_OP_FILES),
    READER("FixedLengthRecordReader", FIXED, FIXED "encoding: string = '', ", TFC_OP_FILES),
    READER("TFRecordReader", PACKED, PACKED, TFC_OP_FILES),
    READER("WholeFileReader", "", "", TFC_OP_FILES),
    READER("IdentityReader", "", "", 0),
    ON("ReaderRead", QUEUE, "", "key: string, value: string", TFC_OP_ASYNC | TFC_OP_READS_OUTSIDE, shape_scalars,
       read_one),
    ON("ReaderReadUpTo", QUEUE, ", num_records: int64", "keys: string, values: string",
       TFC_OP_ASYNC | TFC_OP_READS_OUTSIDE, shape_vectors, read_up_to),
    ON("ReaderNumRecordsProduced", ALONE, "", "records_produced: int64", 0, ops_shape_scalar, num_records),
    ON("ReaderNumWorkUnitsCompleted", ALONE, "", "units_completed: int64", 0, ops_shape_scalar, num_work_units),
    ON("ReaderReset", ALONE, "", NULL, 0, ops_shape_none, reset),
};
TFC_REGISTER_OPS(data_reader_rows);
