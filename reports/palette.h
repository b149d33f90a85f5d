// Colours, fixed by name and the same in all reports, and distinguishable by colour-blind readers: for devices (by kind
// and number) and for operations (by the family of their type). No colour is used for both. Everything else is drawn in
// the text's colour; the learned policy and differences in the accent colour.
#ifndef TFC_REPORTS_PALETTE_H
#define TFC_REPORTS_PALETTE_H

#include "runtime/base/str.h"

enum { TFC_DEVICE_COLOURS = 16, TFC_OP_FAMILIES = 9 };

// Returns 0 to TFC_DEVICE_COLOURS - 1. Sixteen devices of one kind have different colours, and so have the first
// devices of CPUs, GPUs and other kinds (eight CPUs beside eight GPUs, or four beside four of another kind).
uint32_t tfc_palette_device(tfc_str name);
uint32_t tfc_palette_family(tfc_str op); // TFC_OP_FAMILIES - 1 stands for all types without a family
const char *tfc_palette_family_name(uint32_t family);
// The accent, on a light and on a dark page.
enum { TFC_PALETTE_ACCENT = 0xD21EC3, TFC_PALETTE_DARK_ACCENT = 0x96FF69 };
uint32_t tfc_palette_device_rgb(uint32_t index);  // 0xRRGGBB, on all pages
uint32_t tfc_palette_family_rgb(uint32_t family); // on a light page
// Writes CSS: custom properties --d0.. and --f0.., and classes .d0.. and .f0.. that fill with them, for light and dark
// pages.
void tfc_palette_css(struct tfc_text *out);

#endif
