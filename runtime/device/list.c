#include "runtime/device/list.h"

#include "runtime/base/units.h"

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

static tfc_status add(struct tfc_device_list *list, tfc_str name, int64_t index) {
  for (size_t k = 0; k < list->items.count; k++) {
    if (list->items.data[k].index != index || !tfc_str_equal(list->items.data[k].name, name)) continue;
    if (index < 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "%.*s is named twice", TFC_STR_ARG(name));
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%.*s:%lld is named twice", TFC_STR_ARG(name), (long long)index);
  }
  if (!tfc_array_push(&list->items, (struct tfc_device_item){name, index}))
    return tfc_status_no_memory("a list of devices");
  return NULL;
}

static tfc_status parse_item(tfc_str item, bool described, struct tfc_device_list *list) {
  const size_t colon = tfc_str_rfind(item, ':');
  const tfc_str kind = tfc_str_sub(item, 0, colon == SIZE_MAX ? item.size : colon);
  const tfc_str range = colon == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(item, colon + 1, item.size);
  const size_t dash = tfc_str_find(range, '-');
  const tfc_str from = tfc_str_sub(range, 0, dash == SIZE_MAX ? range.size : dash);
  const tfc_str to = dash == SIZE_MAX ? from : tfc_str_sub(range, dash + 1, range.size);
  if (!digits(from) || !digits(to)) {
    if (item.size == 0 || (!described && (kind.size == 0 || colon != SIZE_MAX)))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a device such as cpu:0 or cpu:0-3",
                             TFC_STR_ARG(item));
    return add(list, item, -1);
  }
  const int64_t first = number(from), last = number(to);
  if (kind.size == 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a device such as cpu:0 or cpu:0-3", TFC_STR_ARG(item));
  if (last < first)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' goes from %lld down to %lld", TFC_STR_ARG(item),
                           (long long)first, (long long)last);
  if (last >= TFC_MAX_DEVICES && (!described || last - first >= TFC_MAX_DEVICES))
    return tfc_status_make(TFC_UNAVAILABLE, "device %.*s:%lld is not there: a machine has no more than %u",
                           TFC_STR_ARG(kind), (long long)last, TFC_MAX_DEVICES);
  for (int64_t i = first; i <= last; i++) TFC_RETURN_IF_ERROR(add(list, kind, i));
  return NULL;
}

tfc_status tfc_device_list_parse(const char *text, bool described, struct tfc_device_list *out) {
  tfc_status s = NULL;
  struct tfc_device_list list = {0};
  tfc_str rest = tfc_str_from(text);
  int64_t count;
  if (!described && (list.shared = tfc_str_ends(rest, ",shared")))
    rest = tfc_str_sub(rest, 0, rest.size - sizeof ",shared" + 1);
  tfc_status not_a_number = tfc_parse_i64(rest, &count);
  if (!not_a_number) {
    if (count < 1 || count > TFC_MAX_DEVICES)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "a number of devices is between 1 and %u", TFC_MAX_DEVICES);
    list.count = (uint32_t)count;
  }
  if (not_a_number && !rest.size) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "no device is named");
  while (not_a_number) {
    const size_t comma = tfc_str_find(rest, ',');
    TFC_TRY(s, parse_item(tfc_str_sub(rest, 0, comma == SIZE_MAX ? rest.size : comma), described, &list));
    if (comma == SIZE_MAX) break;
    rest = tfc_str_sub(rest, comma + 1, rest.size);
  }
  if (list.items.count > TFC_MAX_DEVICES)
    TFC_FAIL(s, TFC_UNAVAILABLE, "%zu devices are not there: a machine has no more than %u", list.items.count,
             TFC_MAX_DEVICES);
  *out = list, list = (struct tfc_device_list){0};
out:
  tfc_status_free(not_a_number);
  tfc_device_list_deinit(&list);
  return s;
}

void tfc_device_list_deinit(struct tfc_device_list *list) {
  tfc_array_free(&list->items);
  *list = (struct tfc_device_list){0};
}
