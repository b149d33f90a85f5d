#!/usr/bin/env bash
# The Debian packages: they are made, say what they need, and in a bare system, which has that and nothing else, they
# install, place a graph and write its report, and Python imports them. With tfc-cuda among them (in builds that have it),
# a GPU that is asked for is refused with the reason: without CUDA's libraries their loader's, with them CUDA's.
set -u
build=$(cd "$1" && pwd)
source=$PWD
dir=$(mktemp -d)
trap 'rm -rf --one-file-system "$dir"' EXIT
fail() { echo "$*"; exit 1; }
command -v dpkg-shlibdeps >/dev/null || { echo "dpkg-dev is missing"; exit 1; }
(cd "$dir" && cpack --config "$build/CPackConfig.cmake" -G DEB >"$dir/log" 2>&1) || { cat "$dir/log"; fail "cpack failed"; }
packages=(tfc libtfc libtfc-dev python3-tfc)
[ ! -e "$build/lib/libtfc_cuda.so" ] || packages+=(tfc-cuda)
for package in "${packages[@]}"; do
  file=$(ls "$dir/${package}_"*.deb 2>/dev/null) || fail "there is no package $package"
  dpkg -f "$file" Depends | grep -q 'libtfc\|libc6' || fail "$package depends on nothing"
  dpkg-deb -x "$file" "$dir/unpacked" || fail "$package cannot be unpacked"
done
dpkg -f "$dir"/libtfc_*.deb Depends | grep -q libsqlite3-0 || fail "libtfc does not say that it needs SQLite"
"$dir/unpacked/usr/bin/tfc-run" --graph "$source/examples/mlp.pb" --steps 2 >"$dir/out" 2>&1 || { cat "$dir/out"; fail "tfc-run"; }
cuda=''
if [ -e "$build/lib/libtfc_cuda.so" ]; then
  dpkg -f "$dir"/tfc-cuda_*.deb Recommends | grep -q 'libcublas-.*libcudnn9' || fail "tfc-cuda does not say whose libraries it uses"
  cuda=$(ldd "$(find "$dir/unpacked/usr/lib" -name libtfc_cuda.so)" | awk '$1 ~ /^libcudart/ && $3 ~ /^\// { sub("/[^/]*$", "", $3); print $3 }')
  [ "$cuda" ] || fail "the packaged plug-in does not find CUDA's libraries where the build found them"
  "$dir/unpacked/usr/bin/tfc-run" --graph "$source/examples/mlp.pb" --devices gpu:0 --steps 1 >"$dir/out" 2>&1
  case $? in 0 | 4) ;; *) cat "$dir/out"; fail "tfc-run on a GPU" ;; esac
  grep 'cannot be loaded' "$dir/out" && fail "the packaged plug-in cannot be loaded"
fi
ldd "$dir/unpacked/usr/bin/tfc-place" | grep -F "$build" && fail "a packaged program uses a library of the build"

# The bare system. Names of its own for mounts and processes are needed: as root, or where users may make them.
if [ "$(id -u)" = 0 ]; then apart=(unshare --mount --pid --fork); else apart=(unshare --map-root-user --mount --pid --fork); fi
if ! "${apart[@]}" mount -t proc proc /proc 2>"$dir/said"; then
  echo "SKIPPED: the packages in a bare system: $(cat "$dir/said")"
  exit 0
fi
debs=$(ls "$dir"/*.deb)
mkdir "$dir/root"
# shellcheck disable=SC2086 # names
python3 "$source/tests/libtfc/bare_root.py" "$dir/root" $debs || fail "no bare system could be made"
mkdir "$dir/root/try" && cp "$source/examples/mlp.pb" "$source/libtfc/tfc.h" "$dir/root/try/"
cat >"$dir/root/try/run.sh" <<'END'
set -e
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive
cd /try
dpkg --configure -a >configured 2>&1 || { tail -n 20 configured; echo "what the packages need cannot be configured"; exit 1; }
dpkg --install /packages/*.deb >installed 2>&1 || { tail -n 20 installed; echo "the packages cannot be installed"; exit 1; }
dpkg --audit
tfc-place --graph mlp.pb --devices 2 --time 10s --measurements 4 -q >answer 2>said && code=0 || code=$?
case $code in 0 | 7) ;; *) cat answer said; echo "tfc-place ends with $code"; exit 1 ;; esac
grep -q 'whole' answer
grep -q '<svg' mlp.report/index.html || { echo "the report has no plots"; exit 1; }
tfc-report list | grep -q mlp.pb
tfc-export --run 1 --graph mlp.pb --out placed.pb
tfc-run --graph placed.pb --steps 2 >ran 2>&1 || { cat ran; exit 1; }
python3 -c 'import tfc; m = tfc.load("mlp.pb"); print("python:", m.devices)'
if dpkg -s tfc-cuda >/dev/null 2>&1; then
  tfc-run --graph mlp.pb --devices gpu:0 --steps 1 >ran 2>&1 && code=0 || code=$?
  { [ $code = 4 ] && grep -q 'libcudart' ran; } || { cat ran; echo "a GPU without CUDA's libraries: exit $code"; exit 1; }
  mkdir -p "$CUDA" && rmdir "$CUDA" && ln -s /cuda "$CUDA"
  tfc-run --graph mlp.pb --devices gpu:0 --steps 1 >ran 2>&1 && code=0 || code=$?
  case $code in 0 | 4) ;; *) cat ran; echo "a GPU: exit $code"; exit 1 ;; esac
  ! grep 'cannot be loaded' ran || exit 1
  echo "tfc-cuda, with CUDA's libraries: $(tail -n 1 ran)"
  rm "$CUDA"
  dpkg --remove tfc-cuda >removed 2>&1 || { cat removed; exit 1; }
  tfc-run --graph mlp.pb --devices gpu:0 --steps 1 >ran 2>&1 && exit 1
  grep -q 'this build has no CUDA plug-in' ran || { cat ran; exit 1; }
fi
ls /usr/share/man/man1/tfc-place.1* /usr/include/tfc.h /usr/lib/pkgconfig/tfc.pc >/dev/null
dpkg --remove python3-tfc tfc libtfc-dev libtfc >removed 2>&1 || { cat removed; exit 1; }
[ ! -e /usr/bin/tfc-place ] || { echo "tfc-place is still there after the packages were removed"; exit 1; }
END
if [ "$cuda" ]; then mkdir "$dir/root/cuda"; fi
export CUDA=$cuda
# shellcheck disable=SC2016 # the inner shell's
"${apart[@]}" sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" && { [ -z "$CUDA" ] || mount --bind "$CUDA" "$0/cuda"; } && exec chroot "$0" /bin/sh /try/run.sh' "$dir/root" ||
  fail "the packages in a bare system"
