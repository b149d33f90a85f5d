#!/usr/bin/env bash
# Checks that bash can parse every script: once, an apostrophe in a quoted list had broken all of them. Then that
# scripts/fuzz ends early and keeps its totals when a signal comes, also where it was started with SIGINT ignored.
fail=0
while read -r script; do
  head -n 1 "$script" | grep -q '^#!.*bash' || [[ $script == *.sh ]] || continue
  bash -n "$script" || { echo "$script cannot be read"; fail=1; }
done < <(find scripts tests -maxdepth 3 -type f \( -path 'scripts/*' -o -name '*.sh' \))

# A tree in which nothing is installed or built, with a target that has done seven executions when it is told to end.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/scripts" "$tree/tests/fuzz" "$tree/build/fuzz/bin"
cp scripts/fuzz "$tree/scripts/"
cat >"$tree/scripts/common.sh" <<'END'
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
packages_run= packages_test= packages_all=
say() { printf '%s\n' "$*" >&2; }
packages() { :; }
build() { :; }
END
: >"$tree/tests/fuzz/fake_fuzz.c"
cat >"$tree/build/fuzz/bin/fake_fuzz" <<'END'
#!/usr/bin/env python3
import os, signal, sys, time
def end(number, frame):
    print("stat::number_of_executed_units: 7", flush=True)
    os._exit(72)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
open(os.path.join(sys.argv[-1], "input"), "w").close()
time.sleep(60)
END
chmod +x "$tree/build/fuzz/bin/fake_fuzz"
total=0
for signal in INT TERM HUP; do
  rm -f "$tree/build/fuzz/long/fake/corpus/input" "$tree/pid" "$tree/code"
  # without job control: SIGINT is ignored in the background
  setsid "$BASH" -c '"$0" fake --hours 0.02 & echo $! >"$1"; wait $!; echo $? >"$2"' "$tree/scripts/fuzz" "$tree/pid" \
    "$tree/code" 2>"$tree/log" &
  until [ -e "$tree/build/fuzz/long/fake/corpus/input" ] || [ -e "$tree/code" ]; do sleep 0.05; done
  kill -"$signal" "$(cat "$tree/pid")"
  wait $!
  total=$((total + 7))
  read -r runs _ <"$tree/build/fuzz/long/fake/totals"
  [ "$runs" = $total ] && [ "$(cat "$tree/code")" = 0 ] || {
    echo "scripts/fuzz after SIG$signal: $runs executions instead of $total, exit code $(cat "$tree/code")"
    cat "$tree/log"
    fail=1
  }
done
exit $fail
