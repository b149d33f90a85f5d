// The CUDA driver on a fake of the CUDA calls passes the tests that every driver has to pass
// (tests/common/conformance.h): with kernels that run on the streams, and with operations that run on the host between
// copies.
#include "tests/common/conformance.h"
#include "tests/common/cuda_fake.h"
#include "tests/common/test.h"

#include "runtime/device/cuda/device.h"

struct add_one {
  const float *x;
  float *y;
  int64_t n;
};
static void add_one_work(void *argument) {
  const struct add_one *a = argument;
  const float *x = tfc_cuda_fake_host(a->x);
  float *y = tfc_cuda_fake_host(a->y);
  for (int64_t i = 0; i < a->n; i++) y[i] = x[i] + 1;
}
static tfc_status add_one(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  int64_t n = tfc_tensor_elements(x);
  TFC_KERNEL_CHECK(n != 7, "seven is not liked");
  return tfc_cuda_status(
      l, tfc_cuda_fake_launch(l->stream, add_one_work, &(struct add_one){x->data, y->data, n}, sizeof(struct add_one)));
}
static bool declines;
static tfc_status decide(struct tfc_cuda_prepare *p) {
  (void)p;
  return declines ? tfc_status_make(TFC_UNIMPLEMENTED, "the test wants the host") : NULL;
}
static const struct tfc_cuda_kernel rows[] = {{"AddOne", TFC_TYPE_BIT(TFC_FLOAT), decide, add_one, 0}};
TFC_CUDA_KERNELS(rows);

int main(void) {
  static const char *const lists[] = {"gpu:0-1", "vgpu:0-1", "vgpu:0-1,shared", "gpu:0,cpu:0", NULL};
  int failed = 0;
  tfc_driver_add(&tfc_driver_gpu);
  tfc_driver_add(&tfc_driver_vgpu);
  for (int pass = 0; pass < 3; pass++) {
    declines = pass == 1;
    // first with streams that take events of the primary context, too
    tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2, .loose_events = pass == 0});
    if (pass == 2) {
      tfc_cuda_fake_delay(30000);
      tfc_cuda_fake_shuffle(7);
    }
    failed += tfc_conformance_run(lists);
    if (tfc_cuda_fake_bytes()) {
      print_error("%llu bytes of device memory are left\n", (unsigned long long)tfc_cuda_fake_bytes());
      failed++;
    }
    if (tfc_cuda_fake_violations()) {
      print_error("%llu calls against CUDA's rules\n", (unsigned long long)tfc_cuda_fake_violations());
      failed++;
    }
  }
  return failed;
}
