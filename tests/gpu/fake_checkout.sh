# Sourced with $build set: makes $root, a checkout whose build folder has tfc's programs and the fake plug-ins
# (tests/cuda_kernels/fake_plugin.c), as on a machine with a GPU. KEEP=1 leaves the folder and names it.
fake=$build/fake_gpu
[ -e "$fake/lib/libtfc_cuda.so" ] || { echo "SKIPPED: no fake plug-ins in this build"; exit 0; }
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 0; }
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
root=$(mktemp -d)
[ "${KEEP:-}" ] && echo "$root" || trap 'rm -rf "$root"' EXIT

mkdir -p "$root/build/gpu/lib" "$root/bin"
cp -r "$source/scripts" "$root/"
mkdir "$root/tests" && cp -r "$source/tests/gpu" "$root/tests/"
ln -s "$source/tests/conformance" "$root/tests/"
ln -s "$source/examples" "$root/examples"
mkdir "$root/build/gpu/bin" && cp "$build"/bin/tfc-* "$root/build/gpu/bin/" # they look for libraries beside themselves first
ln -s "$build/share" "$root/build/gpu/share"
ln -s "$build/tests" "$root/build/gpu/tests"
for library in "$build"/lib/libtfc_*.so; do ln -s "$library" "$root/build/gpu/lib/"; done
for library in "$fake"/lib/lib*; do ln -sf "$library" "$root/build/gpu/lib/"; done
printf '#!/bin/sh\necho "GPU 0: a fake"\n' >"$root/bin/nvidia-smi"
chmod +x "$root/bin/nvidia-smi"
export PATH=$root/bin:$PATH LD_LIBRARY_PATH=$root/build/gpu/lib
