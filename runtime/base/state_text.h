// Lines of words, with a tab between two words: the text in which a checkpoint keeps what operations hold beside
// variables. A word may have any bytes: a backslash, and bytes that would end the word or that nobody can read, are
// written as \xHH.
//
//   while (tfc_line_next(&text, &line)) {
//     tfc_str kind = tfc_state_word(&line), name = tfc_state_word(&line);
//     tfc_state_read(name, &plain);
//   }
#ifndef TFC_RUNTIME_BASE_STATE_TEXT_H
#define TFC_RUNTIME_BASE_STATE_TEXT_H

#include "runtime/base/line.h"

// Removes the first word, up to a tab, from a line, and returns it with its escapes.
tfc_str tfc_state_word(tfc_str *line);
void tfc_state_add(struct tfc_text *out, tfc_str word);
// Appends what a written word stands for.
void tfc_state_read(tfc_str word, struct tfc_text *out);
// Bytes that are no text are written as hexadecimal digits. tfc_state_copy_bytes writes half as many bytes as the word
// has; false: the word has something else in it.
void tfc_state_add_bytes(struct tfc_text *out, tfc_str bytes);
bool tfc_state_copy_bytes(tfc_str word, char *to);

#endif
