#!/usr/bin/env bash
# Checks that bash can parse every script: once, an apostrophe in a quoted list had broken all of them.
fail=0
while read -r script; do
  head -n 1 "$script" | grep -q '^#!.*bash' || [[ $script == *.sh ]] || continue
  bash -n "$script" || { echo "$script cannot be read"; fail=1; }
done < <(find scripts tests -maxdepth 3 -type f \( -path 'scripts/*' -o -name '*.sh' \))
exit $fail
