// In the place of library/dnn.c where there is no cuDNN: the kernels of ours do everything.
#include "runtime/device/cuda/kernels/dnn.h"

tfc_status tfc_cuda_dnn_find(struct tfc_cuda_library *library, const struct tfc_cuda_dnn *dnn,
                             const struct tfc_cuda_dnn_plan **out) {
  (void)library, (void)dnn, (void)out;
  return tfc_status_make(TFC_UNIMPLEMENTED, "there is no cuDNN here");
}
size_t tfc_cuda_dnn_scratch(const struct tfc_cuda_dnn_plan *plan) {
  (void)plan;
  return 0;
}
tfc_status tfc_cuda_dnn_run(struct tfc_cuda_launch *l, const struct tfc_cuda_dnn_plan *plan,
                            const struct tfc_cuda_dnn_memory *memory) {
  (void)l, (void)plan, (void)memory;
  return tfc_status_make(TFC_INTERNAL, "there is no cuDNN here");
}
