#!/usr/bin/env bash
# bootstrap_test.sh <scratch folder>: ./orrery in a small tree of its own, with stand-ins for dpkg-query, apt-get, sudo and
# cmake first on the PATH. Each records that it was called; the cmake one "builds" a binary that prints its arguments.
set -euo pipefail

source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
scratch=$1
rm -rf "$scratch"
mkdir -p "$scratch/tree/base" "$scratch/tree/cmake" "$scratch/bin" "$scratch/elsewhere"
scratch=$(cd "$scratch" && pwd -P)
tree=$scratch/tree
calls=$scratch/calls
cp "$source_root/orrery" "$tree/"
cp "$source_root/cmake/bootstrap.sh" "$tree/cmake/"
touch "$tree/CMakeLists.txt" "$tree/CMakePresets.json" "$tree/base/a.cc"

stand_in() { # stand_in <name>: the body comes on stdin
  { printf '#!/bin/bash\necho "%s $*" >>"%s"\n' "$1" "$calls"; cat; } >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}
stand_in dpkg-query <<<'[[ -f '"$scratch"'/installed ]] && printf "installed %s\n" "${@:3}"'
stand_in apt-get <<<'[[ $* != *install* ]] || touch '"$scratch"'/installed'
stand_in sudo <<<'exit 1'
stand_in cmake <<E2
[[ ! -f $scratch/broken ]] || { echo "a.cc:1: error: broken"; exit 1; }
if [[ \$1 == --build ]]; then
  mkdir -p "\$2/bin"
  printf '#!/bin/bash\necho "in \$PWD: \$*"; exit 7\n' >"\$2/bin/orrery"
  chmod +x "\$2/bin/orrery"
else
  mkdir -p $tree/build/release
  touch $tree/build/release/build.ninja
fi
E2
export PATH=$scratch/bin:$PATH

failures=0
# orrery_run <expected exit code> <environment>...: runs it from another folder, leaving output and calls in files.
orrery_run() {
  local expected=$1 code=0
  shift
  : >"$calls"
  (cd "$scratch/elsewhere" && env "$@" "$tree/orrery" simulate 'two words') \
    >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || code=$?
  expect "exit code $code is $expected" test "$code" = "$expected"
}
expect() {
  local what=$1
  shift
  "$@" >/dev/null && return
  echo "FAILED (line ${BASH_LINENO[0]}): $what"
  cat "$scratch/stdout" "$scratch/stderr" "$calls"
  failures=$((failures + 1))
}
not() { ! "$@"; }

# Packages are missing and must not be installed: the apt line, exit 2, nothing else happens.
orrery_run 2 ORRERY_NO_INSTALL=1
expect "prints the line" grep -q '^  apt-get install --no-install-recommends g++ cmake .*libabsl-dev' "$scratch/stderr"
expect "prints nothing on stdout" test ! -s "$scratch/stdout"
expect "calls neither apt-get nor cmake" not grep -Eq '^(apt-get|cmake)' "$calls"

# As root they are named, then installed; then it builds and hands over: folder, arguments and exit code are the program's.
stand_in id <<<'echo 0'
orrery_run 7
expect "names them first" grep -q 'installing the missing Debian packages.*libabsl-dev' "$scratch/stderr"
expect "installs them" grep -q '^apt-get .*install -y --no-install-recommends g++ cmake' "$calls"
expect "builds without tests" grep -q '^cmake .*--preset release -DORRERY_TESTS=OFF' "$calls"
expect "hands over" test "$(cat "$scratch/stdout")" = "in $scratch/elsewhere: simulate two words"

# A second call calls nothing at all.
orrery_run 7
expect "starts at once" test ! -s "$calls"
expect "says nothing of its own" test ! -s "$scratch/stderr"

# A changed, an added and a removed source each rebuild, without configuring; files that are no sources do not.
touch "$tree/base/a.cc"
orrery_run 7
expect "rebuilds after an edit" grep -q '^cmake --build' "$calls"
expect "does not configure again" not grep -q preset "$calls"
touch "$tree/base/b.cc"
orrery_run 7
expect "rebuilds after an addition" grep -q '^cmake --build' "$calls"
rm "$tree/base/b.cc"
orrery_run 7
expect "rebuilds after a removal" grep -q '^cmake --build' "$calls"
mkdir -p "$tree/tests" "$tree/specs"
touch "$tree/tests/x.cc" "$tree/specs/x.txtpb" "$tree/out.json"
orrery_run 7
expect "other files do not matter" test ! -s "$calls"

# A broken source: the end of the log on stderr, exit 3, and again at the next call.
touch "$tree/base/a.cc" "$scratch/broken"
for _ in 1 2; do
  orrery_run 3
  expect "shows the compiler's words" grep -q 'a.cc:1: error: broken' "$scratch/stderr"
  expect "does not run the old binary" test ! -s "$scratch/stdout"
done
rm "$scratch/broken"

# Called through a link, and with the tree moved.
ln -s "$tree/orrery" "$scratch/bin/link"
orrery_run 7
expect "recovers" grep -q 'simulate two words' "$scratch/stdout"
"$scratch/bin/link" x >"$scratch/stdout" 2>"$scratch/stderr" || true
expect "follows a link to itself" grep -q ': x$' "$scratch/stdout"

((failures == 0)) || exit 1
rm -rf "$scratch"
echo "bootstrap: all passed"
