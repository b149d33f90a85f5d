#include "cli/device_list.h"

#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/str.h"
#include "runtime/base/units.h"

enum { MOST = 4096 };

struct named {
  tfc_str kind;
  int64_t index; // -1: the name is all
};

static bool digits(tfc_str text) {
  for (size_t i = 0; i < text.size; i++)
    if (text.data[i] < '0' || text.data[i] > '9') return false;
  return text.size > 0 && text.size < 10;
}

static int64_t number(tfc_str text) {
  int64_t n = 0;
  for (size_t i = 0; i < text.size; i++) n = 10 * n + (text.data[i] - '0');
  return n;
}

char *cli_device_list_error(const char *text, bool described) {
  TFC_ARRAY(struct named) seen = {0};
  char *error = NULL;
  int64_t count = 0;
  tfc_str list = tfc_str_from(text); // ",shared": virtual devices read each other's memory
  if (!described && tfc_str_ends(list, ",shared")) list = tfc_str_sub(list, 0, list.size - sizeof ",shared" + 1);
  tfc_status s = tfc_parse_i64(list, &count);
  bool is_number = !s;
  tfc_status_free(s);
  if (is_number)
    return count >= 1 && count <= MOST ? NULL : tfc_format("a number of devices is between 1 and %d", (int)MOST);
  for (tfc_str rest = list;;) {
    size_t comma = tfc_str_find(rest, ',');
    tfc_str item = tfc_str_sub(rest, 0, comma == SIZE_MAX ? rest.size : comma);
    size_t colon = tfc_str_rfind(item, ':');
    tfc_str kind = tfc_str_sub(item, 0, colon == SIZE_MAX ? item.size : colon);
    tfc_str range = colon == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(item, colon + 1, item.size);
    size_t dash = tfc_str_find(range, '-');
    tfc_str from = tfc_str_sub(range, 0, dash == SIZE_MAX ? range.size : dash);
    tfc_str to = dash == SIZE_MAX ? from : tfc_str_sub(range, dash + 1, range.size);
    int64_t first = -1, last = -1;
    if (digits(from) && digits(to))
      first = number(from), last = number(to);
    else if (item.size == 0 || (!described && (kind.size == 0 || colon != SIZE_MAX)))
      error = tfc_format("'%.*s' is not a device such as cpu:0 or cpu:0-3", TFC_STR_ARG(item));
    else
      kind = item;
    if (!error && last < first)
      error = tfc_format("'%.*s' goes from %lld down to %lld", TFC_STR_ARG(item), (long long)first, (long long)last);
    for (int64_t i = first; i <= last && !error && seen.count <= MOST; i++) {
      for (size_t k = 0; k < seen.count && !error; k++)
        if (seen.data[k].index == i && tfc_str_equal(seen.data[k].kind, kind))
          error = i < 0 ? tfc_format("%.*s is named twice", TFC_STR_ARG(kind))
                        : tfc_format("%.*s:%lld is named twice", TFC_STR_ARG(kind), (long long)i);
      if (!tfc_array_push(&seen, (struct named){kind, i})) break; // what is there is found out anyway
    }
    if (error || comma == SIZE_MAX) break;
    rest = tfc_str_sub(rest, comma + 1, rest.size);
  }
  tfc_array_free(&seen);
  return error;
}
