#!/usr/bin/env bash
# Libraries neither print nor read the environment: programs do. The runtime knows neither SQLite nor CUPTI. (Who may use
# whom: tests/arrows.)
set -u
cd "$(dirname "$0")/../.." || exit 1
failed=0

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
