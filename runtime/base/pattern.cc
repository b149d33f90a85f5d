// The C interface of RE2. No exception leaves this file: RE2 throws none, and a failed allocation becomes a reason.
#include "runtime/base/pattern.h"

#include <re2/re2.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

struct tfc_pattern {
  RE2 re;
  tfc_pattern(const re2::StringPiece &text, const RE2::Options &options) : re(text, options) {}
};

struct tfc_pattern *tfc_pattern_make(const char *text, size_t size, char *why, size_t why_size) {
  try {
    RE2::Options options;
    options.set_log_errors(false);
    tfc_pattern *pattern = new tfc_pattern(re2::StringPiece(size ? text : "", size), options);
    if (pattern->re.ok()) return pattern;
    snprintf(why, why_size, "%s", pattern->re.error().c_str());
    delete pattern;
  } catch (const std::bad_alloc &) {
    snprintf(why, why_size, "out of memory");
  }
  return nullptr;
}

void tfc_pattern_free(struct tfc_pattern *pattern) {
  delete pattern;
}

bool tfc_pattern_matches(const struct tfc_pattern *pattern, const char *text, size_t size) {
  return RE2::FullMatch(re2::StringPiece(size ? text : "", size), pattern->re);
}

char *tfc_pattern_replace(const struct tfc_pattern *pattern, const char *text, size_t size, const char *rewrite,
                          size_t rewrite_size, bool all, size_t *out_size) {
  try {
    std::string result(size ? text : "", size);
    const re2::StringPiece with(rewrite_size ? rewrite : "", rewrite_size);
    if (all)
      RE2::GlobalReplace(&result, pattern->re, with);
    else
      RE2::Replace(&result, pattern->re, with);
    char *copy = static_cast<char *>(malloc(result.size() + 1));
    if (copy) memcpy(copy, result.c_str(), result.size() + 1), *out_size = result.size();
    return copy;
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
