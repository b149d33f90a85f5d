#!/usr/bin/env bash
# Checks that libraries neither print nor read the environment (only programs do), that the runtime uses neither
# SQLite nor CUPTI, and that names of ops are compared only by their own family. (tests/arrows checks which folder may use
# which.)
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0

# placer/job is one line: a file includes only headers of files that come before it in this list, so its calls go one
# way, too.
line=(clock outcome options schedule together model given candidates entries finalists proposers journal resume lesson measuring turns room profile
  rivals learn search in_flight final repeat saved_problem table explain document evaluate answer account job)
for file in placer/job/*.[ch]; do
  own=$(basename "${file%.*}") before=none
  for name in "${line[@]}"; do
    before+="|$name"
    [ "$name" = "$own" ] && break
  done
  [ "$name" = "$own" ] || { printf '%s has no place in the line of placer/job\n' "$file" && failed=1; }
  bad=$(grep -nE '^ *# *include +"placer/job/' "$file" | grep -vE "placer/job/($before)\.h\"")
  [ -z "$bad" ] || { printf '%s includes what stands behind it in the line:\n%s\n' "$file" "$bad" && failed=1; }
done

# The runtime uses neither SQLite nor CUPTI.
if bad=$(grep -rnE --include='*.[ch]' 'include +<(sqlite3|cupti)' runtime); then
  printf 'the runtime may not know these:\n%s\n' "$bad"
  failed=1
fi
# The row of an op says what it is (runtime/graph/op_def.h): only the file of its family may compare its name.
if bad=$(grep -rnE --include='*.[ch]' '(strcmp|strncmp|tfc_str_(is|starts|ends|equal))\([^"]*(->|\.)(op|def->name)\>[^"]*"' \
  runtime profiler placer rl reports libtfc cli | grep -vE '^runtime/ops/(array|data|image|io|linalg|math|nn|quant|random|segment|signal|sparse|state|string|training|control)_|^runtime/ops/(effect|gradient)\.c'); then
  printf 'the name of an op is compared outside of its family:\n%s\n' "$bad"
  failed=1
fi
# Calls that only programs make.
if bad=$(grep -rnE --include='*.[ch]' '(^|[^_a-zA-Z0-9.>])(printf|puts|putchar|perror|exit|getenv|secure_getenv|setenv|putenv|system) ?\(' \
  runtime profiler placer rl reports 2>/dev/null | grep -vE ':[0-9]+: *//|TFC_PRINTF|format\(printf'); then
  printf 'libraries neither print, nor exit, nor read the environment:\n%s\n' "$bad"
  failed=1
fi
exit $failed
