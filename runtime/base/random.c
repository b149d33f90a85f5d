#include "runtime/base/random.h"

#include <math.h>

double tfc_random_normal(struct tfc_random *r) {
  double u = 1.0 - tfc_random_unit(r), v = tfc_random_unit(r);
  return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
