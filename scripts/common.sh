# For scripts/run and scripts/test: the list of Debian packages that tfc needs, and building with CMake presets. All
# messages here go to stderr, because stdout belongs to the program that is run.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# package | purpose
packages_run='
build-essential|the C compiler
cmake|configures the build
ninja-build|builds
pkg-config|finds libraries
libopenblas-serial-dev|dense linear algebra on CPUs
libdnnl-dev|convolutions and packed products on CPUs
libsqlite3-dev|stores profiles
libpng-dev|image files as operations
libjpeg-dev|the same
libjansson-dev|reads and writes JSON
libcyaml-dev|reads machine and settings files
libyaml-dev|the same
libhwloc-dev|finds cores and caches
libmetis-dev|graph partitioning, a rival of the search
libscotch-dev|graph partitioning, a rival of the search
coinor-libcbc-dev|exact bounds by integer programs
zlib1g-dev|compressed traces
libxxhash-dev|checksums
libre2-dev|regular expressions
libopenmpi-dev|connects the tasks of a job
openmpi-bin|starts them
libseccomp-dev|denies system calls to graphs that are not trusted
gnuplot-nox|draws the plots of reports
'
packages_test='
libcmocka-dev|unit tests
protobuf-c-compiler|tests read graphs a second time
libprotobuf-c-dev|the same
sqlite3|tests query the database from outside
python3|tests check JSON documents from outside
python3-numpy|arrays of the Python package
python3-venv|installs the Python package as a user would
libopenblas0|the name by which the packages of tfc ask for OpenBLAS
file|tells CPack which files of a package are programs and libraries
'
packages_all='
clang|fuzzing
libclang-rt-14-dev|fuzzing
slurmctld|allocates nodes to jobs, for tests/slurm
slurmd|runs them
slurm-client|takes them
munge|what Slurm signs its messages with
chromium-headless-shell|reads the pages of reports (64 MB to fetch)
'

say() { printf '%s\n' "$*" >&2; }

# packages LIST...: installs the packages that are missing; does so once for each list.
packages() {
  local wanted="$*" stamp missing=() name reason sudo=
  stamp=build/.packages.$(printf '%s' "$wanted" | cksum | cut -d' ' -f1)
  [ -e "$stamp" ] && return 0
  if command -v dpkg-query >/dev/null; then
    local have
    have=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' 2>/dev/null | awk '$2 == "installed" {print $1}')
    while IFS='|' read -r name reason; do
      [ -n "$name" ] || continue
      grep -qxF -- "$name" <<<"$have" || missing+=("$name|$reason")
    done <<<"$wanted"
    if [ ${#missing[@]} -gt 0 ]; then
      say "tfc needs ${#missing[@]} Debian packages that are not installed:"
      printf '  %s\n' "${missing[@]}" | awk -F'|' '{printf "%-26s %s\n", $1, $2}' >&2
      if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
          say "To install them, run as root: apt-get install ${missing[*]%%|*}"
          return 1
        }
        sudo=sudo
      fi
      say "Installing them with ${sudo:+sudo }apt-get ..."
      local log
      log=$(mktemp)
      if ! { $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q update &&
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]%%|*}"; } >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        say "The packages could not be installed (whole log: $log)."
        say "To try by hand, run as root: apt-get update && apt-get install ${missing[*]%%|*}"
        return 1
      fi
      rm -f "$log"
    fi
  else
    say "This is not a Debian system: the libraries are looked for by CMake. On Debian 12 they are:"
    awk -F'|' '$1 != "" {printf "  %-26s %s\n", $1, $2}' <<<"$wanted" >&2
  fi
  mkdir -p build && : >"$stamp"
}


# build PRESET TARGET...: builds targets. It first configures build/PRESET if that folder is new or older than the
# packages that it looks for.
build() {
  local preset=$1 dir=build/$1 log stamp configure=
  shift
  mkdir -p "$dir"
  exec 8>"$dir/.lock"
  if ! flock -n 8; then
    say "Waiting for another build of $dir ..."
    flock 8
  fi
  [ -e "$dir/build.ninja" ] || configure=yes
  for stamp in build/.packages.*; do
    [ ! "$stamp" -nt "$dir/build.ninja" ] || configure=yes
  done
  if [ -n "$configure" ]; then
    say "Configuring $dir ..."
    log=$dir/configure.log
    cmake --preset "$preset" >"$log" 2>&1 || {
      tail -n 20 "$log" >&2
      say "Configuring failed (whole log: $log)."
      return 1
    }
    touch "$dir/build.ninja" # updates its time even if nothing in it changed
  fi
  local code
  if [ -t 2 ]; then # ninja shows its own line of progress
    NINJA_STATUS='Building %f of %t (%es)  ' ninja -C "$dir" "$@" >&2
    code=$?
  else # prints every tenth line of progress, and all lines that are no progress
    ninja -C "$dir" "$@" 2>&1 | awk '
      /^\[[0-9]+\/[0-9]+\] / {
        split(substr($1, 2), n, /[\/\]]/)
        tenth = int(10 * n[1] / n[2])
        if (n[2] > 9 && tenth != last) { printf "  built %d of %d\n", n[1], n[2]; last = tenth; fflush() }
        next
      }
      /^ninja: (no work to do|[Ee]ntering directory)/ { next }
      { print; fflush() }' >&2
    code=${PIPESTATUS[0]}
  fi
  exec 8>&-
  [ "$code" -eq 0 ] || say "The build failed."
  return "$code"
}
