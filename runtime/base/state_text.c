#include "runtime/base/state_text.h"

tfc_str tfc_state_word(tfc_str *line) {
  return tfc_str_take(line, '\t');
}

void tfc_state_add(struct tfc_text *out, tfc_str word) {
  size_t plain = 0; // the first byte that is not written yet
  for (size_t i = 0; i < word.size; i++) {
    const unsigned char c = (unsigned char)word.data[i];
    if (c >= ' ' && c != '\\' && c != 127) continue;
    tfc_text_add(out, tfc_str_sub(word, plain, i));
    tfc_text_printf(out, "\\x%02x", c);
    plain = i + 1;
  }
  tfc_text_add(out, tfc_str_sub(word, plain, word.size));
}

static int digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void tfc_state_read(tfc_str word, struct tfc_text *out) {
  size_t plain = 0;
  for (size_t i = 0; i + 3 < word.size; i++) {
    if (word.data[i] != '\\' || word.data[i + 1] != 'x') continue;
    const int high = digit(word.data[i + 2]), low = digit(word.data[i + 3]);
    if (high < 0 || low < 0) continue;
    const char c = (char)(high * 16 + low);
    tfc_text_add(out, tfc_str_sub(word, plain, i));
    tfc_text_add(out, (tfc_str){&c, 1});
    plain = i + 4;
    i += 3;
  }
  tfc_text_add(out, tfc_str_sub(word, plain, word.size));
}

void tfc_state_add_bytes(struct tfc_text *out, tfc_str bytes) {
  static const char digits[] = "0123456789abcdef";
  char piece[4096];
  size_t size = 0;
  for (size_t i = 0; i < bytes.size; i++) {
    const unsigned char c = (unsigned char)bytes.data[i];
    piece[size++] = digits[c >> 4];
    piece[size++] = digits[c & 15];
    if (size < sizeof piece && i + 1 < bytes.size) continue;
    tfc_text_add(out, (tfc_str){piece, size});
    size = 0;
  }
}

bool tfc_state_copy_bytes(tfc_str word, char *to) {
  if (word.size % 2) return false;
  for (size_t i = 0; i < word.size; i += 2) {
    const int high = digit(word.data[i]), low = digit(word.data[i + 1]);
    if (high < 0 || low < 0) return false;
    *to++ = (char)(high * 16 + low);
  }
  return true;
}
