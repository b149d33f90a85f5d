// Regular expressions, by the C library's POSIX extended ones. Patterns are RE2's in TensorFlow: what the two have in
// common runs (classes, groups, alternatives, counts, anchors, \d \w \s and their opposites, (?: groups); what POSIX
// does not know (lazy counts, \b in brackets, flags, Unicode classes) is an error. Where alternatives overlap, POSIX
// takes the longest match and RE2 the first alternative.
#include <regex.h>
#include <stdlib.h>

#include "runtime/ops/nn_common.h"

static tfc_status no_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
}

// RE2 to POSIX. Groups that do not count become groups that do: `groups[k]` is the POSIX number of RE2's group k.
static tfc_status translate(tfc_str p, bool whole, struct tfc_text *out, int groups[10]) {
  bool bracket = false;
  int counted = 1, posix = whole ? 1 : 0;
  groups[0] = 0;
  for (int i = 1; i < 10; i++) groups[i] = -1;
  if (whole) tfc_text_add(out, TFC_STR("^("));
  for (size_t i = 0; i < p.size; i++) {
    char c = p.data[i], next = i + 1 < p.size ? p.data[i + 1] : 0;
    if (c == 0) return tfc_status_make(TFC_UNIMPLEMENTED, "a zero byte in a regular expression");
    if (c == '\\') {
      i++;
      const char *class = next == 'd' ? "0-9" : next == 'w' ? "A-Za-z0-9_" : next == 's' ? " \t\n\r\f" : NULL;
      const char *other = next == 'D' ? "0-9" : next == 'W' ? "A-Za-z0-9_" : next == 'S' ? " \t\n\r\f" : NULL;
      const char *control = next == 'n' ? "\n" : next == 't' ? "\t" : next == 'r' ? "\r" : next == 'f' ? "\f" : NULL;
      if (class)
        tfc_text_printf(out, bracket ? "%s" : "[%s]", class);
      else if (other && !bracket)
        tfc_text_printf(out, "[^%s]", other);
      else if (control)
        tfc_text_printf(out, "%s", control);
      else if (next == 'A' && !bracket)
        tfc_text_printf(out, "^");
      else if (next == 'z' && !bracket)
        tfc_text_printf(out, "$");
      else if ((next == 'b' || next == 'B') && !bracket)
        tfc_text_printf(out, "\\%c", next);
      else if (next == 0 || (next >= '0' && next <= '9') || (next >= 'a' && next <= 'z') ||
               (next >= 'A' && next <= 'Z'))
        return tfc_status_make(TFC_UNIMPLEMENTED, "'\\%c' in the regular expression '%.*s'", next ? next : ' ',
                               TFC_STR_ARG(p));
      else if (bracket && (next == ']' || next == '^' || next == '-' || next == '\\'))
        tfc_text_printf(out, next == '\\' ? "\\" : "[.%c.]", next); // POSIX brackets know no escapes
      else
        tfc_text_printf(out, bracket ? "%c" : "\\%c", next);
      continue;
    }
    if (bracket) {
      if (c == '[' && next == ':') { // a class such as [:alpha:] ends at its own bracket
        size_t end = i + 2;
        while (end < p.size && p.data[end] != ']') end++;
        tfc_text_add(out, tfc_str_sub(p, i, end + 1));
        i = end;
        continue;
      }
      if (c == ']') bracket = false;
    } else if (c == '[') {
      bracket = true;
      tfc_text_printf(out, "[");
      if (next == '^') tfc_text_printf(out, "^"), i++, next = i + 1 < p.size ? p.data[i + 1] : 0;
      if (next == ']') tfc_text_printf(out, "]"), i++;
      continue;
    } else if (c == '(') {
      posix++;
      if (next == '?') {
        if (i + 2 >= p.size || p.data[i + 2] != ':')
          return tfc_status_make(TFC_UNIMPLEMENTED, "'(?' in the regular expression '%.*s'", TFC_STR_ARG(p));
        i += 2;
      } else if (counted < 10) {
        groups[counted++] = posix;
      }
    } else if ((c == '*' || c == '+' || c == '?' || c == '}') && (next == '?' || next == '+')) {
      return tfc_status_make(TFC_UNIMPLEMENTED, "a lazy or possessive count in the regular expression '%.*s'",
                             TFC_STR_ARG(p));
    }
    tfc_text_add(out, (tfc_str){&c, 1});
  }
  if (whole) tfc_text_add(out, TFC_STR(")$"));
  return out->failed ? no_memory() : NULL;
}

static tfc_status compile(tfc_str pattern, bool whole, regex_t *out, int groups[10]) {
  struct tfc_text text = {0};
  tfc_status s = translate(pattern, whole, &text, groups);
  if (!s) {
    int error = regcomp(out, text.data ? text.data : "", REG_EXTENDED);
    if (error) {
      char message[128];
      regerror(error, NULL, message, sizeof message);
      s = tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid pattern: %.*s, error: %s", TFC_STR_ARG(pattern), message);
    }
  }
  tfc_text_deinit(&text);
  return s;
}
static bool match(const regex_t *re, tfc_str s, size_t from, regmatch_t *found, size_t count) {
  found[0] = (regmatch_t){.rm_so = (regoff_t)from, .rm_eo = (regoff_t)s.size};
  return regexec(re, s.data ? s.data : "", count, found, REG_STARTEND | (from ? REG_NOTBOL : 0)) == 0;
}

static tfc_status full_match_with(struct tfc_kernel_ctx *ctx, tfc_str pattern) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  regex_t re;
  int groups[10];
  regmatch_t found[1];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &x->shape, &y));
  TFC_RETURN_IF_ERROR(compile(pattern, true, &re, groups));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++)
    ((bool *)y->data)[i] = match(&re, tfc_tensor_get_string(x, i), 0, found, 1);
  regfree(&re);
  return NULL;
}

// Adds the rewrite: \0 to \9 are groups, \\ a backslash.
static tfc_status add_rewrite(struct tfc_text *text, tfc_str s, tfc_str rewrite, const regmatch_t *found,
                              const int *groups, size_t posix_groups) {
  for (size_t i = 0; i < rewrite.size; i++) {
    if (rewrite.data[i] != '\\') {
      tfc_text_add(text, tfc_str_sub(rewrite, i, i + 1));
      continue;
    }
    char c = ++i < rewrite.size ? rewrite.data[i] : 0;
    if (c == '\\') {
      tfc_text_add(text, TFC_STR("\\"));
    } else if (c >= '0' && c <= '9' && groups[c - '0'] >= 0 && (size_t)groups[c - '0'] < posix_groups) {
      const regmatch_t *m = &found[groups[c - '0']];
      if (m->rm_so >= 0) tfc_text_add(text, tfc_str_sub(s, (size_t)m->rm_so, (size_t)m->rm_eo));
    } else {
      return tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid rewrite: %.*s", TFC_STR_ARG(rewrite));
    }
  }
  return NULL;
}

static tfc_status replace_one(const regex_t *re, const int *groups, tfc_str s, tfc_str rewrite, bool global,
                              struct tfc_text *text) {
  enum { MOST = 32 };
  regmatch_t found[MOST];
  size_t count = re->re_nsub + 1 < MOST ? re->re_nsub + 1 : MOST, at = 0, copied = 0;
  while (at <= s.size && match(re, s, at, found, count)) {
    size_t from = (size_t)found[0].rm_so, to = (size_t)found[0].rm_eo;
    if (from == to && from == copied && copied > 0) { // nothing right behind a match: goes on one further
      at++;
      continue;
    }
    tfc_text_add(text, tfc_str_sub(s, copied, from));
    TFC_RETURN_IF_ERROR(add_rewrite(text, s, rewrite, found, groups, count));
    copied = to;
    at = to > from ? to : to + 1;
    if (!global) break;
  }
  tfc_text_add(text, tfc_str_sub(s, copied, s.size));
  return text->failed ? no_memory() : NULL;
}

static tfc_status replace_with(struct tfc_kernel_ctx *ctx, tfc_str pattern, tfc_str rewrite) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  regex_t re;
  int groups[10];
  bool global = tfc_node_attr_bool(ctx->graph, ctx->node, "replace_global", true);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  TFC_RETURN_IF_ERROR(compile(pattern, false, &re, groups));
  tfc_status s = NULL;
  for (int64_t i = 0; !s && i < tfc_tensor_elements(x); i++) {
    struct tfc_text text = {0};
    s = replace_one(&re, groups, tfc_tensor_get_string(x, i), rewrite, global, &text);
    if (!s && !tfc_tensor_set_string(y, i, (tfc_str){text.data, text.size})) s = no_memory();
    tfc_text_deinit(&text);
  }
  regfree(&re);
  return s;
}

static tfc_status scalar_string(struct tfc_kernel_ctx *ctx, uint32_t i, tfc_str *out) {
  TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 0, "input %u must be a scalar", i);
  *out = tfc_tensor_get_string(ctx->inputs[i], 0);
  return NULL;
}
static tfc_status static_full_match(struct tfc_kernel_ctx *ctx) {
  return full_match_with(ctx, tfc_node_attr_string(ctx->graph, ctx->node, "pattern", ""));
}
static tfc_status full_match(struct tfc_kernel_ctx *ctx) {
  tfc_str pattern;
  TFC_RETURN_IF_ERROR(scalar_string(ctx, 1, &pattern));
  return full_match_with(ctx, pattern);
}
static tfc_status static_replace(struct tfc_kernel_ctx *ctx) {
  return replace_with(ctx, tfc_node_attr_string(ctx->graph, ctx->node, "pattern", ""),
                      tfc_node_attr_string(ctx->graph, ctx->node, "rewrite", ""));
}
static tfc_status replace(struct tfc_kernel_ctx *ctx) {
  tfc_str pattern, rewrite;
  TFC_RETURN_IF_ERROR(scalar_string(ctx, 1, &pattern));
  TFC_RETURN_IF_ERROR(scalar_string(ctx, 2, &rewrite));
  return replace_with(ctx, pattern, rewrite);
}

#define STRING(kernel_)                                                                                                \
  .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = tfc_nn_shape_first, .kernel = kernel_
static const struct tfc_op_def string_regex_rows[] = {
    {.name = "StaticRegexFullMatch",
     .inputs = "input: string",
     .outputs = "output: bool",
     .attrs = "pattern: string",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(static_full_match)},
    {.name = "RegexFullMatch",
     .inputs = "input: string, pattern: string",
     .outputs = "output: bool",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(full_match)},
    {.name = "StaticRegexReplace",
     .inputs = "input: string",
     .outputs = "output: string",
     .attrs = "pattern: string, rewrite: string, replace_global: bool = true",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(static_replace)},
    {.name = "RegexReplace",
     .inputs = "input: string, pattern: string, rewrite: string",
     .outputs = "output: string",
     .attrs = "replace_global: bool = true",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(replace)},
};
TFC_REGISTER_OPS(string_regex_rows);
