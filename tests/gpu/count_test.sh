#!/usr/bin/env bash
# Tests --devices N with the fake plug-ins (tests/cuda_kernels/fake_plugin.c): GPUs are used where the driver's library
# is (here a fake of it, too), and the CPU where it is not.
#
#   tests/gpu/count_test.sh BUILD
set -u
build=$(cd "$1" && pwd)
source "$(dirname "$0")/fake_checkout.sh"
code=0
used() { # N: the kinds of devices of a run on N devices
  "$root/build/gpu/bin/tfc-run" -q --graph "$root/examples/mlp.pb" --devices "$1" --fetch loss:0 --steps 1 --json |
    python3 -c 'import json, sys; print(*sorted({d["name"].split(":")[0] for d in json.load(sys.stdin)["devices"]}))'
}
[ "$(used 1)" = gpu ] || { echo "WRONG: with a driver, one device is $(used 1)"; code=1; }
rm "$root/build/gpu/lib/libcuda.so.1"
if ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
  [ "$(used 1)" = cpu ] || { echo "WRONG: without a driver, one device is $(used 1)"; code=1; }
fi
exit $code
