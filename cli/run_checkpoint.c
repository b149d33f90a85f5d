// --checkpoint and --save-checkpoint.
#include "cli/run.h"

tfc_status run_restore(struct run_setup *setup) {
  return tfc_status_make(TFC_UNIMPLEMENTED,
                         "--checkpoint %s: checkpoints are not read yet; run the initialiser instead",
                         setup->options->checkpoint);
}

tfc_status run_save(struct run_setup *setup) {
  return tfc_status_make(TFC_UNIMPLEMENTED, "--save-checkpoint %s: checkpoints are not written yet",
                         setup->options->save_checkpoint);
}
