#include "runtime/device/cuda/kernels/library/choices.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/str.h"

// Computes two FNV-1a hashes with different start values.
static void hash_of(const struct tfc_cuda_choices *c, const void *key, size_t size, uint64_t out[2]) {
  const unsigned char *bytes = key;
  out[0] = UINT64_C(0xcbf29ce484222325), out[1] = out[0] ^ (uint64_t)c->version();
  for (size_t i = 0; i < size; i++)
    for (int k = 0; k < 2; k++) out[k] = (out[k] ^ (bytes[i] + 31u * (unsigned)k)) * UINT64_C(0x100000001b3);
}

void tfc_cuda_choice_model(const struct tfc_cuda_library *library, char out[64]) {
  const char *model = library->device->info.model;
  snprintf(out, 64, "%.63s", *model ? model : library->device->info.name);
  for (char *c = out; *c; c++)
    if (*c == '\t' || *c == '\n') *c = ' ';
}

char *tfc_cuda_choices_write(const struct tfc_cuda_choices *c, struct tfc_cuda_plans *plans) {
  struct tfc_text text = {0};
  pthread_mutex_lock(&plans->lock);
  for (size_t i = 0; i < plans->made.count; i++) {
    const char *model = NULL;
    int values[TFC_CUDA_CHOICE_VALUES] = {0};
    uint64_t hash[2];
    c->of(plans->made.data[i], &model, values);
    hash_of(c, plans->made.data[i], plans->key_size, hash);
    tfc_text_printf(&text, "%s\t%s %016llx%016llx\t%d", model, c->kind, (unsigned long long)hash[0],
                    (unsigned long long)hash[1], values[0]);
    for (int k = 1; k < c->value_count; k++) tfc_text_printf(&text, " %d", values[k]);
    tfc_text_printf(&text, "\n");
  }
  pthread_mutex_unlock(&plans->lock);
  char *lines = text.data ? tfc_format("%s", text.data) : NULL;
  tfc_text_deinit(&text);
  return lines;
}

void tfc_cuda_choices_read(struct tfc_cuda_choices *c, struct tfc_cuda_plans *plans, const char *lines) {
  pthread_mutex_lock(&plans->making);
  for (const char *line = lines; line && *line;) {
    struct tfc_cuda_choice k = {0};
    char kind[16];
    unsigned long long a = 0, b = 0;
    int *v = k.values;
    int found =
        sscanf(line, "%63[^\t\n]\t%15s %16llx%16llx\t%d %d %d %d", k.model, kind, &a, &b, &v[0], &v[1], &v[2], &v[3]);
    if (found >= 4 + c->value_count && !strcmp(kind, c->kind)) {
      k.hash[0] = a, k.hash[1] = b;
      (void)tfc_array_push(&c->read, k); // if this fails, the plan is measured again
    }
    line += strcspn(line, "\n");
    line += *line == '\n';
  }
  pthread_mutex_unlock(&plans->making);
}

const int *tfc_cuda_choices_find(const struct tfc_cuda_choices *c, const char *model, const void *key,
                                 size_t key_size) {
  uint64_t hash[2];
  hash_of(c, key, key_size, hash);
  for (size_t i = c->read.count; i-- > 0;) {
    const struct tfc_cuda_choice *k = &c->read.data[i];
    if (k->hash[0] == hash[0] && k->hash[1] == hash[1] && !strcmp(k->model, model)) return k->values;
  }
  return NULL;
}
