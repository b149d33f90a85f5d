#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/program.h"
#include "runtime/base/clock.h"
#include "runtime/base/units.h"

static struct {
  char phase[32];
  bool active, drawn;
  int64_t begin, last; // ns
} bar;

static bool terminal(void) {
  static int known = -1;
  if (known < 0) known = isatty(STDERR_FILENO) == 1;
  return known;
}

void tfc_progress_hide(void) {
  if (!bar.drawn) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  bar.drawn = false;
}

void tfc_progress_begin(const char *phase) {
  tfc_progress_hide();
  snprintf(bar.phase, sizeof bar.phase, "%s", phase);
  bar.active = true;
  bar.begin = tfc_now_ns();
  bar.last = terminal() ? 0 : bar.begin;
}

static void format_left(char *text, size_t size, double seconds) {
  if (seconds < 0 || seconds > 360000)
    snprintf(text, size, "%s", "");
  else if (seconds < 60)
    snprintf(text, size, "%.0f s left", seconds);
  else
    snprintf(text, size, "%d:%02d left", (int)(seconds / 60), (int)seconds % 60);
}

// Writes the line of a terminal with `width` columns. A text that has no room makes the bar shorter, and then loses
// whole words. fraction below 0: it is not known.
static void format_line(char *line, size_t size, int width, double fraction, const char *detail, const char *left) {
  enum { CELLS = 24, LEAST_CELLS = 8, BESIDE = 18 }; // BESIDE: columns of the phase, of blanks, and four that stay free
  static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  char cells[CELLS * 4 + 8] = "";
  int wide = CELLS, room = width - BESIDE - CELLS - (int)strlen(left), length = (int)strlen(detail);
  for (; length > room && wide > LEAST_CELLS; room++) wide--;
  if (room < 0) room = 0;
  if (length > room)
    for (length = room; length > 0 && detail[length] != ' ';) length--;
  int filled = fraction < 0 ? 0 : (int)(fraction * wide * 8), used = 0;
  for (int i = 0; i < filled / 8; i++) strcat(cells, "█"), used++;
  if (used < wide && filled % 8) strcat(cells, eighths[filled % 8]), used++;
  snprintf(line, size, "\r\033[K%s%-9s%s %s%*s  %.*s%s%s", tfc_paint(stderr, "1;36"), bar.phase, tfc_paint(stderr, "0"),
           cells, wide - used, "", length, detail, left[0] ? "  " : "", left);
}

void tfc_progress_update(double fraction, double seconds_left, const char *format, ...) {
  if (!bar.active || tfc_quiet()) return;
  int64_t now = tfc_now_ns(), wait = terminal() ? 100000000 : 15000000000;
  if (now - bar.last < wait) return;
  bar.last = now;
  if (fraction > 1) fraction = 1;
  if (seconds_left < 0 && fraction > 0.01) seconds_left = 1e-9 * (double)(now - bar.begin) * (1 - fraction) / fraction;
  char detail[256], left[32];
  va_list args;
  va_start(args, format);
  vsnprintf(detail, sizeof detail, format, args);
  va_end(args);
  format_left(left, sizeof left, seconds_left);
  if (!terminal()) {
    fprintf(stderr, "  %-9s", bar.phase);
    if (fraction >= 0) fprintf(stderr, " %3.0f %%", 100 * fraction);
    fprintf(stderr, "  %s%s%s\n", detail, left[0] ? ", " : "", left);
    return;
  }
  char line[640];
  struct winsize window = {0};
  const int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 20 ? window.ws_col : 80;
  format_line(line, sizeof line, width, fraction, detail, left);
  fputs(line, stderr);
  fflush(stderr);
  bar.drawn = true;
}

void tfc_progress_end(const char *format, ...) {
  if (!bar.active) return;
  bar.active = false;
  tfc_progress_hide();
  if (tfc_quiet()) return;
  char detail[512], took[32];
  va_list args;
  va_start(args, format);
  vsnprintf(detail, sizeof detail, format, args);
  va_end(args);
  tfc_show_us(took, 1e-3 * (double)(tfc_now_ns() - bar.begin));
  fprintf(stderr, "%s%-9s%s  %s  %s(%s)%s\n", tfc_paint(stderr, "1"), bar.phase, tfc_paint(stderr, "0"), detail,
          tfc_paint(stderr, "2"), took, tfc_paint(stderr, "0"));
}
