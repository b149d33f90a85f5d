#!/usr/bin/env bash
# A training step launches no more than it may (--rewrites all; counted on the fake plug-ins, see launches.sh): kernels,
# copies and fills of nmt at most 1,300, of rnnlm_large 500, of transformer 350, and with branches fewer in a row.
#
#   tests/gpu/launches_long_test.sh BUILD
set -u
[ -e "$1/fake_gpu/lib/libtfc_cuda.so" ] || { echo "SKIPPED: no fake plug-ins in this build"; exit 0; }
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 0; }
table=$(bash "$(dirname "$0")/launches.sh" "$1" nmt rnnlm_large transformer) || { echo "nothing was counted"; exit 1; }
code=0
row() { # NAME WHICH: the numbers of the example's row in the first or the second table
  printf '%s\n' "$table" | grep "^| $1 |" | sed -n "${2}p" | cut -d'|' -f3- | tr '|' ' '
}
while read -r name most; do
  read -r _ _ kernels copies _ <<<"$(row "$name" 1)"
  read -r exact branched _ _ every beside _ <<<"$(row "$name" 2)"
  [ "$((kernels + copies))" -le "$most" ] && [ "$every" -eq "$((kernels + copies))" ] ||
    { echo "$name launches $kernels kernels and $copies copies and fills: more than $most, or not the $every of the second table"; code=1; }
  [ "$branched" -lt "$exact" ] && [ "$beside" -lt "$every" ] ||
    { echo "$name: $branched of $exact and $beside of $every in a row with branches"; code=1; }
done <<'END'
nmt 1300
rnnlm_large 500
transformer 350
END
exit $code
