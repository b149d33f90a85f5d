// Regular expressions by RE2, whose syntax is TensorFlow's. Compiling and matching take time and memory in proportion
// to the size of pattern and text; a pattern that would need more (deep nesting, huge counts) does not compile. Several
// threads may use a pattern at once.
//
//   char why[128];
//   struct tfc_pattern *pattern = tfc_pattern_make("layer_[0-9]+/.*", 15, why, sizeof why);
//   if (pattern && tfc_pattern_matches(pattern, name.data, name.size)) ...
//   tfc_pattern_free(pattern);
//
// A C++ file implements these functions, so this header must be valid C++ and uses plain pointers.
#ifndef TFC_RUNTIME_BASE_PATTERN_H
#define TFC_RUNTIME_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfc_pattern;

// NULL: `text` is not a pattern, for the reason in `why`.
struct tfc_pattern *tfc_pattern_make(const char *text, size_t size, char *why, size_t why_size);
void tfc_pattern_free(struct tfc_pattern *pattern); // NULL is fine

// Whether the pattern matches the whole text.
bool tfc_pattern_matches(const struct tfc_pattern *pattern, const char *text, size_t size);

// Replaces the first match, or all of them, by `rewrite`, in which \0 to \9 are groups of the match and \\ a backslash.
// As in TensorFlow, the text stays as it is if `rewrite` has a group that the pattern lacks. NULL: out of memory.
// free() it.
char *tfc_pattern_replace(const struct tfc_pattern *pattern, const char *text, size_t size, const char *rewrite,
                          size_t rewrite_size, bool all, size_t *out_size);

#ifdef __cplusplus
}
#endif
#endif
