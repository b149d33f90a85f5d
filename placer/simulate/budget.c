#include "placer/simulate/budget.h"

#include "runtime/base/clock.h"

bool tfc_budget_over(const struct tfc_budget *budget) {
  return (budget->cancel && atomic_load_explicit(budget->cancel, memory_order_relaxed)) ||
         (budget->deadline > 0 && tfc_now_s() >= budget->deadline);
}
