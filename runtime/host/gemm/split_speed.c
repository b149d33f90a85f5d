// Other programs may use the tile unit of a core as well, and then it falls to less than half of its speed, for
// milliseconds or for minutes: slower than multiply-adds elsewhere. So a thread times a few products of tiles, by the
// core's own clock, and uses the result for half a millisecond. The unit must be fast three times in a row to be called
// fast.
//
// If such phases are as short as a product, the answer is outdated when the product runs. So products themselves are
// timed as well: if one on the unit took longer than the latest ones without it, the unit is not used for a while,
// which is twice as long each time.
#include "runtime/host/gemm/split.h"

#include <stdatomic.h>

static _Atomic bool supposed;

void tfc_split_suppose_fast(bool always) {
  supposed = always;
}

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("amx-tile,amx-bf16")
#include <immintrin.h>
#include <x86intrin.h>

enum {
  PRODUCTS = 32,          // products of tiles; each takes 16 cycles if no other thread uses the unit
  MOST_CYCLES = 24,       // the most cycles of one of them at which the unit counts as fast
  FACTORS = 64,           // a chain of integer multiplications, 3 cycles each
  BELIEVED = 1000 * 1000, // ticks: about half a millisecond
  TRUSTED = 3,
  FIRST_PAUSE = 4 * BELIEVED,
  LONGEST_PAUSE = 400 * BELIEVED,
  TELLING = 2000000, // the FLOP of a product whose time is long enough to be meaningful
};
static _Thread_local struct {
  uint64_t asked, again, pause; // when the speed was measured, when it may be measured again, and the last pause; all
                                // in ticks
  int fast;                     // how many times in a row the unit was fast
  float without;                // FLOP per tick of the latest products without the unit; 0: not known
} unit;

static uint64_t ticks_of_products(void) {
  uint64_t start = __rdtsc();
  for (int i = 0; i < PRODUCTS / 4; i++) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _mm_lfence();
  return __rdtsc() - start;
}

static uint64_t ticks_of_factors(void) {
  uint64_t x = 3, start = __rdtsc();
  for (int i = 0; i < FACTORS; i++) __asm__ volatile("imul %0, %0" : "+r"(x));
  _mm_lfence();
  return __rdtsc() - start;
}

static bool ask(void) {
  static const _Alignas(64) uint16_t ones[512] = {[0 ... 511] = 0x3f80}; // the unit would skip zeros
  tfc_split_configure();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  _tile_loadd(6, ones, 64);
  _tile_loadd(7, ones, 64);
  ticks_of_products(); // starts the unit; this time is not used
  uint64_t products = ticks_of_products(), again = ticks_of_products(), factors = ticks_of_factors();
  _tile_release();
  if (again < products) products = again;
  return products * (3 * FACTORS) < factors * (MOST_CYCLES * PRODUCTS);
}

bool tfc_split_is_fast(void) {
  if (atomic_load_explicit(&supposed, memory_order_relaxed)) return true;
  uint64_t now = __rdtsc();
  if (now < unit.again) return false;
  if (!unit.asked || now - unit.asked > BELIEVED) {
    unit.fast = ask() ? unit.fast + 1 : 0;
    unit.asked = now;
  }
  return unit.fast >= TRUSTED;
}

uint64_t tfc_split_clock(void) {
  return __rdtsc();
}

void tfc_split_took(bool on_unit, double flop, uint64_t since) {
  if (flop < TELLING) return;
  uint64_t now = __rdtsc();
  float rate = (float)(flop / (double)(now - since + 1));
  if (!on_unit) {
    unit.without = unit.without > 0 ? 0.75f * unit.without + 0.25f * rate : rate;
  } else if (rate < unit.without) {
    unit.pause = unit.pause ? 2 * unit.pause : FIRST_PAUSE;
    if (unit.pause > LONGEST_PAUSE) unit.pause = LONGEST_PAUSE;
    unit.again = now + unit.pause;
    unit.fast = 0;
  } else {
    unit.pause /= 2;
  }
}

#else
bool tfc_split_is_fast(void) {
  return false;
}
uint64_t tfc_split_clock(void) {
  return 0;
}
void tfc_split_took(bool on_unit, double flop, uint64_t since) {
  (void)on_unit, (void)flop, (void)since;
}
#endif
