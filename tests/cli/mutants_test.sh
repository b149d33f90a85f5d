#!/usr/bin/env bash
# Runs scripts/mutants in a tree of two files and one suite. The suite includes the first file through a header, so the
# script must compile the suite again for each fault in that file. The suite checks nothing of the second file. So it
# must notice all faults in the first file and none in the second, whichever fault was tried before.
command -v ninja >/dev/null || { echo "SKIPPED: no ninja"; exit 0; }
tree=$(cd "$(mktemp -d)" && pwd -P)
trap 'rm -rf "$tree"' EXIT
release=$tree/build/release
mkdir -p "$tree/scripts" "$tree/placer/search" "$tree/tests/placer" "$release/lib" "$release/tests" "$release/bin"
cp "$(dirname "$0")/../../scripts/mutants" "$tree/scripts/"
: >"$tree/tests/mutants.md"
cat >"$tree/placer/search/looked_at.c" <<'END_OF_FILE'
int looked_at(int a, int b);
int looked_at(int a, int b) {
  return a * 2 + b * 3;
}
END_OF_FILE
cat >"$tree/placer/search/unseen.c" <<'END_OF_FILE'
int unseen(int a, int b);
int unseen(int a, int b) {
  if (a != b) return a < b ? -1 : 1;
  return a * 5 + b * 7;
}
END_OF_FILE
cat >"$tree/tests/placer/played.h" <<'END_OF_FILE'
#include "placer/search/looked_at.c"
END_OF_FILE
cat >"$tree/tests/placer/pack_small_test.c" <<'END_OF_FILE'
#include "tests/placer/played.h"
// The script takes a suite with the word TFC_BINARY_DIR for one that runs programs.
int main(void) {
  return looked_at(4, 9) != 35;
}
END_OF_FILE
cat >"$release/build.ninja" <<END_OF_FILE
rule object
  command = cc -O1 -fPIC -I$tree -o \$out -c \$in
rule library
  command = cc -shared -o \$out \$in
rule program
  command = cc -o \$out \$in
build CMakeFiles/looked_at.o: object $tree/placer/search/looked_at.c
build CMakeFiles/unseen.o: object $tree/placer/search/unseen.c
build CMakeFiles/pack_small_test.o: object $tree/tests/placer/pack_small_test.c
build lib/libtfc_placer.so: library CMakeFiles/looked_at.o CMakeFiles/unseen.o
build tests/pack_small_test: program CMakeFiles/pack_small_test.o
build pack_small_test: phony tests/pack_small_test lib/libtfc_placer.so
build tfc-place tfc-run tfc-report tfc-export hidden_machine: phony
END_OF_FILE
for file in placer/search/looked_at.c placer/search/unseen.c tests/placer/pack_small_test.c; do
  printf '{"directory": "%s", "file": "%s", "command": "cc -O1 -fPIC -I%s -o %s -c %s"}\n' "$release" "$tree/$file" "$tree" \
    "CMakeFiles/$(basename "$file" .c).o" "$tree/$file"
done | paste -sd, | sed 's/.*/[&]/' >"$release/compile_commands.json"
printf 'add_test([=[placer/pack_small_test]=] "%s")\n' "$release/tests/pack_small_test" >"$release/CTestTestfile.cmake"
# What a run that was killed has left behind.
mkdir -p "$tree/build/mutants/quoted/placer/search"
echo 'static int looked_at(int a, int b) { return a - b; }' >"$tree/build/mutants/quoted/placer/search/looked_at.c"

fail=0
check() { # WANTED FILE SAID
  local count
  count=$(grep -c "$2:[0-9]* " "$3")
  [ "$count" -ge 3 ] && [ "$(grep -c "$2:[0-9]* $1" "$3")" -eq "$count" ] || {
    echo "not all of the $count faults in $2 are '$1':"
    cat "$3"
    fail=1
  }
}
"$tree/scripts/mutants" search --sample 100 >"$tree/said" 2>&1
check "killed by placer/pack_small_test" placer/search/looked_at.c "$tree/said"
check survived placer/search/unseen.c "$tree/said"
# The script must not try changes that change nothing: `a <= b` where a != b, and -2 where a comparison returns -1.
if grep -E 'a <= b|-2 : 1|-1 : 2' "$tree/said"; then
  echo "that changes nothing"
  fail=1
fi
exit $fail
