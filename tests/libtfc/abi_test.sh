#!/usr/bin/env bash
# What programs that were linked with libtfc rely on stays: its SONAME, the symbols that it exports and their versions,
# and the sizes and places of what tfc.h's records hold, as abi.txt beside this file has them. A line may be added there;
# one that changes or goes breaks programs, and needs a new SONAME.
#
#   tests/libtfc/abi_test.sh BUILD [--write]
set -u
here=$(cd "$(dirname "$0")" && pwd) build=$1
library=$(find "$build/lib" -name 'libtfc.so.*' -type f | head -n 1)
[ -n "$library" ] || { echo "no libtfc.so in $build/lib"; exit 1; }
for tool in readelf cc python3; do command -v $tool >/dev/null || { echo "SKIPPED: no $tool"; exit 0; }; done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# Records and their members, and the names of enumerations, as the header has them.
python3 - "$here/../../libtfc/tfc.h" >"$work/sizes.c" <<'P' || exit 1
import re, sys
text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
print('#include <stddef.h>\n#include <stdio.h>\n#include "libtfc/tfc.h"\nint main(void) {')
for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, re.S):
    print(f'  printf("size {name} %zu\\n", sizeof({name}));')
    for field in re.findall(r"(\w+)(?:\[[^\]]*\])?\s*(?:,|;)", body):
        print(f'  printf("member {name}.{field} at %zu\\n", offsetof({name}, {field}));')
for body in re.findall(r"typedef enum \w+ \{(.*?)\} \w+;", text, re.S):
    for name in re.findall(r"\b(TFC_\w+)", body):
        print(f'  printf("value {name} %d\\n", (int){name});')
print("  return 0;\n}")
P
cc -I"$here/../.." "$work/sizes.c" -o "$work/sizes" || exit 1
{
  readelf -d "$library" | sed -nE 's/.*\(SONAME\).*\[(.*)\]/soname \1/p'
  readelf --dyn-syms -W "$library" | awk '$7 != "UND" && $5 == "GLOBAL" && $4 != "OBJECT" && $8 ~ /^tfc_/ { print "symbol " $8 }'
  "$work/sizes"
} | LC_ALL=C sort >"$work/now.txt"
if [ "${2:-}" = --write ]; then
  cp "$work/now.txt" "$here/abi.txt"
  exit
fi
gone=$(LC_ALL=C comm -23 "$here/abi.txt" "$work/now.txt") new=$(LC_ALL=C comm -13 "$here/abi.txt" "$work/now.txt")
[ -z "$gone" ] || printf 'changed or gone:\n%s\n' "$gone"
[ -z "$new" ] || printf 'not in tests/libtfc/abi.txt (add it with --write):\n%s\n' "$new"
others=$(readelf --dyn-syms -W "$library" | awk '$7 != "UND" && $5 == "GLOBAL" && $8 !~ /^(tfc_|TFC_0)/ { print $8 }')
[ -z "$others" ] || printf 'exported, but not of tfc: %s\n' "$others"
[ -z "$gone$new$others" ]
