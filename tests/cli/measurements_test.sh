#!/usr/bin/env bash
# Checks that every document of docs/measurements with figures in tables says which command of this repository made
# them, and at which commit: a line "Made by `COMMAND` at `COMMIT`" before the first table of the document, or of each
# section that has a table.
fail=0
for document in docs/measurements/*.md; do
  grep -q '^|' "$document" || continue
  lines=$(grep -c '^Made by `.*` at `[0-9a-f]\{7,40\}`$' "$document")
  first=$(grep -n '^|' "$document" | head -n 1 | cut -d: -f1)
  made=$(grep -n '^Made by ' "$document" | head -n 1 | cut -d: -f1)
  if [ "$lines" -eq 0 ] || [ "$made" -gt "$first" ]; then
    echo "$document: no line 'Made by \`COMMAND\` at \`COMMIT\`' before its first table"
    fail=1
  fi
  # The program is in the tree, or was in it at that commit. (A clone without history cannot tell.)
  while read -r program commit; do
    [ -x "$program" ] && continue
    git cat-file -e "$commit" 2>/dev/null || continue
    git cat-file -e "$commit:$program" 2>/dev/null && continue
    echo "$document: $program is no program of this repository"
    fail=1
  done < <(sed -nE 's/^Made by `([^ `]*).*` at `([0-9a-f]+)`$/\1 \2/p; s/^Made by `(tests[^ `]*).*/\1 HEAD/p' "$document" | sort -u)
done
exit $fail
