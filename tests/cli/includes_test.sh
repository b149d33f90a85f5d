#!/usr/bin/env bash
# Who may include whom (docs/design.md, "Folders"): one way, from the base up, and nothing includes programs. Libraries
# neither print nor read the environment: programs do.
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0

# allowed FOLDER REGEX: every #include "..." in FOLDER's sources must match.
allowed() {
  local folder=$1 regex=$2 bad
  [ -d "$folder" ] || return 0
  bad=$(grep -rnE --include='*.[ch]' --include='*.cu' '^ *# *include +"' "$folder" | grep -vE "include +\"($regex)")
  if [ -n "$bad" ]; then
    printf '%s may not include what these lines do:\n%s\n' "$folder" "$bad"
    failed=1
  fi
}
base='runtime/base/'
trace='runtime/trace\.h'
allowed runtime/base "$base"
allowed runtime/trace.h "$base"
allowed runtime/graph "$base|runtime/graph/"
allowed runtime/ops "$base|runtime/(graph|ops|io)/"
allowed runtime/pass "$base|runtime/(graph|ops|pass)/"
allowed runtime/io "$base|runtime/(graph|io)/"
allowed runtime/device "$base|runtime/(graph|ops|device)/|$trace"
allowed runtime/exec "runtime/"
allowed profiler "runtime/|profiler/"
allowed placer "runtime/|profiler/|placer/"
allowed rl "runtime/|profiler/|placer/|rl/"
allowed reports "$base|profiler/|placer/|reports/"
allowed libtfc "runtime/|profiler/|placer/|libtfc/"
allowed cli "runtime/|profiler/|placer/|rl/|reports/|cli/"

# The runtime knows neither SQLite nor CUPTI.
if bad=$(grep -rnE --include='*.[ch]' 'include +<(sqlite3|cupti)' runtime); then
  printf 'the runtime may not know these:\n%s\n' "$bad"
  failed=1
fi
# Calls that only programs make.
if bad=$(grep -rnE --include='*.[ch]' '(^|[^_a-zA-Z0-9.>])(printf|puts|putchar|perror|exit|getenv|secure_getenv|setenv|putenv|system) ?\(' \
  runtime profiler placer rl reports 2>/dev/null | grep -vE ':[0-9]+: *//|TFC_PRINTF|format\(printf'); then
  printf 'libraries neither print, nor exit, nor read the environment:\n%s\n' "$bad"
  failed=1
fi
exit $failed
