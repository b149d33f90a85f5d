// Changes the layout of the chains that layouts.c has found.
#ifndef TFC_RUNTIME_EXEC_REWRITES_LAYOUTS_MAKE_H
#define TFC_RUNTIME_EXEC_REWRITES_LAYOUTS_MAKE_H

#include "runtime/exec/rewrites/layouts.h"

// Changes the chains whose gain is above 0.
TFC_MUST_USE tfc_status tfc_layouts_change(struct tfc_layouts *l);

#endif
