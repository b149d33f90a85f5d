#!/usr/bin/env bash
# An installed tfc runs from wherever its tree was moved: programs, and the examples of programs that use the library,
# compiled against the installed header alone.
set -u
build=$(cd "$1" && pwd)
source=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }

cmake --install "$build" --prefix "$dir/first" >"$dir/install.log" 2>&1 || { cat "$dir/install.log"; fail "cmake --install failed"; }
mv "$dir/first" "$dir/moved"
lib=$(dirname "$(find "$dir/moved" -name libtfc.so)")
PATH=$dir/moved/bin:$PATH
for program in tfc-place tfc-run tfc-report tfc-export; do
  [ "$(command -v $program)" = "$dir/moved/bin/$program" ] || fail "$program is not installed"
  $program --version >"$dir/version" 2>&1 || { cat "$dir/version"; fail "$program does not start"; }
done
ldd "$dir/moved/bin/tfc-place" | grep -F "$build" && fail "an installed program uses a library of the build"

# What explains a program is made of its table of flags: every flag is in the page, and shells can read their files.
for program in tfc-place tfc-run tfc-report tfc-export; do
  page=$dir/moved/share/man/man1/$program.1
  for flag in $($program --help | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
    grep -qF -- "$(printf '%s' "$flag" | sed 's/-/\\-/g')" "$page" || fail "$page has no $flag"
  done
  bash -n "$dir/moved/share/bash-completion/completions/$program" || fail "bash cannot read $program's completions"
  [ -s "$dir/moved/share/zsh/site-functions/_$program" ] || fail "no completions of $program for zsh"
  [ -s "$dir/moved/share/fish/vendor_completions.d/$program.fish" ] || fail "no completions of $program for fish"
  ! command -v zsh >/dev/null || zsh -n "$dir/moved/share/zsh/site-functions/_$program" || fail "zsh cannot read $program's completions"
  ! command -v fish >/dev/null || fish -n "$dir/moved/share/fish/vendor_completions.d/$program.fish" || fail "fish cannot read $program's completions"
done
completed=$(bash -c "source '$dir/moved/share/bash-completion/completions/tfc-export'
  COMP_WORDS=(tfc-export --format '') COMP_CWORD=2; _tfc_export; echo \"\${COMPREPLY[*]}\"")
case " $completed " in *" clusterspec "*) ;; *) fail "--format is completed as '$completed'" ;; esac

if command -v fish >/dev/null; then
  completed=$(fish -c "source '$dir/moved/share/fish/vendor_completions.d/tfc-export.fish'; complete -C 'tfc-export --format '" | cut -f1 | tr '\n' ' ')
  case " $completed " in *" clusterspec "*) ;; *) fail "fish completes --format as '$completed'" ;; esac
fi

# One public header, and no symbol that is not listed.
[ "$(find "$dir/moved/include" -type f | wc -l)" = 1 ] || fail "more than one header is installed"
sed -nE 's/^ *(tfc_[a-z_; ]+);$/\1/p' "$source/libtfc/exports.map" | tr ';' '\n' | tr -d ' ' | sort >"$dir/listed"
nm -D --defined-only "$lib/libtfc.so" | awk '$2 == "T" {sub(/@.*/, "", $3); print $3}' | sort >"$dir/exported"
diff "$dir/listed" "$dir/exported" || fail "libtfc.so does not export what exports.map lists"
for name in $(cat "$dir/listed"); do
  grep -qw "$name" "$source/libtfc/tfc.h" || fail "$name is exported and not in tfc.h"
  for each in runtime profiler placer rl reports; do
    nm -D --defined-only "$lib/tfc/libtfc_$each.so" | grep -qw "T $name" && fail "$name is also a symbol of libtfc_$each"
  done
done

export PKG_CONFIG_PATH=$lib/pkgconfig
flags=$(pkg-config --cflags --libs tfc) || fail "no tfc.pc"
export LD_LIBRARY_PATH=$lib
cc -std=c11 -Wall -Wextra -Werror "$source/examples/embed/train.c" $flags -o "$dir/train" || fail "train.c"
cc -std=c11 -Wall -Wextra -Werror "$source/examples/embed/serve.c" $flags -o "$dir/serve" || fail "serve.c"
c++ -std=c++11 -Wall -Wextra -Werror "$source/examples/embed/profile.cpp" $flags -o "$dir/profile" || fail "profile.cpp"

"$dir/train" "$source/examples/mlp.pb" 41 "$dir/model" >"$dir/out" || fail "train"
first=$(sed -nE 's/^step 0: loss //p' "$dir/out") last=$(sed -nE 's/^last loss ([0-9.]+),.*/\1/p' "$dir/out")
awk -v a="$first" -v b="$last" 'BEGIN { exit !(a > 0 && b < 0.5 * a) }' || { cat "$dir/out"; fail "the loss does not fall"; }
[ -e "$dir/model.index" ] || fail "no checkpoint was saved"
echo "3 1 4 1 5" | "$dir/serve" "$source/examples/saved_model" >"$dir/out" || fail "serve"
grep -qE '[0-9]' "$dir/out" || fail "serve printed nothing"
"$dir/profile" "$source/examples/mlp.pb" init >"$dir/out" || fail "profile"
grep -qE ' us$' "$dir/out" || fail "profile printed nothing"
"$dir/profile" "$source/examples/nothing.pb" x 2>&1 | grep -q 'nothing.pb' || fail "an error does not name its file"

# A project that finds the package.
mkdir "$dir/project"
cat >"$dir/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(tfc 0.1 REQUIRED)
add_executable(user train.c)
target_link_libraries(user PRIVATE tfc::tfc)
END
cp "$source/examples/embed/train.c" "$dir/project"
cmake -S "$dir/project" -B "$dir/project/build" -DCMAKE_PREFIX_PATH="$dir/moved" >"$dir/out" 2>&1 &&
  cmake --build "$dir/project/build" >>"$dir/out" 2>&1 || { cat "$dir/out"; fail "find_package(tfc)"; }
"$dir/project/build/user" "$source/examples/mlp.pb" 1 >"$dir/out" || fail "the project's program does not run"
