// Lower bounds: no placement can be faster. Several are computed; the result is the largest one, with its name.
#ifndef TFC_PLACER_EXACT_BOUND_H
#define TFC_PLACER_EXACT_BOUND_H

#include "placer/simulate/budget.h"

#define TFC_BOUNDS(X)                                                                                                  \
  X(NONE, "none")                                                                                                      \
  X(PATH, "critical path")                                                                                             \
  X(WORK, "work per device")                                                                                           \
  X(WINDOW, "head-work-tail windows")                                                                                  \
  X(MEMORY, "transfers forced by memory")                                                                              \
  X(ILP, "integer program")                                                                                            \
  X(CROWDING, "operations that share a device")                                                                        \
  X(SEVERING, "transfers between parts")                                                                               \
  X(BORDER, "borders of parts")
#define TFC_BOUND_ENUM(name, text) TFC_BOUND_##name,
typedef enum tfc_bound_kind { TFC_BOUNDS(TFC_BOUND_ENUM) TFC_BOUND_COUNT } tfc_bound_kind;
#undef TFC_BOUND_ENUM
const char *tfc_bound_name(tfc_bound_kind kind);

struct tfc_bound {
  int64_t value; // ps
  tfc_bound_kind kind;
  int64_t each[TFC_BOUND_COUNT]; // ps; 0: it was not computed
};
// Adds a bound that was computed elsewhere (in ps).
void tfc_bound_raise(struct tfc_bound *bound, tfc_bound_kind kind, int64_t value);
// Computes all but the borders of parts (border.h), which take time and ask for a placement. `budget` limits the
// integer program; NULL: no integer program.
TFC_MUST_USE tfc_status tfc_bound_compute(const struct tfc_problem *problem, const struct tfc_budget *budget,
                                          struct tfc_bound *out);
// Call this if more devices share the machine's cores than there are cores: all their work runs on these cores. Divides
// the total work by the number of cores instead of devices, and chooses the largest bound again.
void tfc_bound_share_cores(struct tfc_bound *bound, uint32_t device_count, uint32_t cores);

#endif
