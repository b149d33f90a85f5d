#!/usr/bin/env bash
# The Debian packages: they are made, say what they need, and what is in them runs.
set -u
build=$(cd "$1" && pwd)
source=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
command -v dpkg-shlibdeps >/dev/null || { echo "dpkg-dev is missing"; exit 1; }
(cd "$dir" && cpack --config "$build/CPackConfig.cmake" -G DEB >"$dir/log" 2>&1) || { cat "$dir/log"; fail "cpack failed"; }
for package in tfc libtfc libtfc-dev python3-tfc; do
  file=$(ls "$dir/${package}_"*.deb 2>/dev/null) || fail "there is no package $package"
  dpkg -f "$file" Depends | grep -q 'libtfc\|libc6' || fail "$package depends on nothing"
  dpkg-deb -x "$file" "$dir/root" || fail "$package cannot be unpacked"
done
dpkg -f "$dir"/libtfc_*.deb Depends | grep -q libsqlite3-0 || fail "libtfc does not say that it needs SQLite"
"$dir/root/usr/bin/tfc-run" --graph "$source/examples/mlp.pb" --steps 2 >"$dir/out" 2>&1 || { cat "$dir/out"; fail "tfc-run"; }
ldd "$dir/root/usr/bin/tfc-place" | grep -F "$build" && fail "a packaged program uses a library of the build"
exit 0
