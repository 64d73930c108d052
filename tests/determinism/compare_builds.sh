#!/usr/bin/env bash
# One spec, one answer: `simulate --json` of every example run must be the same bytes from g++ and clang at -O0 and -O3.
# Only the binary is built, in build/same-bytes-*; g++ -O3 is the release that ./check built. The figures of the simulator
# itself (wall time, memory) are left out by --no-simulator.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=cmake/bootstrap.sh
source "$root/cmake/bootstrap.sh"
cd "$root"

declare -A compiler=([gcc-O0]=g++ [clang-O0]=clang++-19 [clang-O3]=clang++-19)
declare -A level=([gcc-O0]=-O0 [clang-O0]=-O0 [clang-O3]=-O3)
builds=(gcc-O0)
if command -v clang++-19 >/dev/null; then
  builds+=(clang-O0 clang-O3)
else
  echo "same bytes: clang++-19 is not installed; its two builds are SKIPPED"
fi

shopt -s nullglob
specs=(specs/runs/*.txtpb)
((${#specs[@]})) || { echo "same bytes: specs/runs holds no .txtpb" >&2; exit 1; }

# answers <binary> <folder>: the output and exit code of every spec. 1 (it does not fit) is an answer too.
answers() {
  local spec code
  mkdir -p "$2"
  for spec in "${specs[@]}"; do
    code=0
    "$1" simulate "$spec" --json --no-simulator >"$2/${spec##*/}.json" 2>"$2/${spec##*/}.stderr" </dev/null || code=$?
    echo "$code" >"$2/${spec##*/}.exit"
    if ((code > 1)) || [[ ! -s $2/${spec##*/}.json ]]; then
      cat "$2/${spec##*/}.stderr" >&2
      echo "same bytes: $1 simulate $spec exited with $code" >&2
      return 1
    fi
  done
}

out=build/same-bytes
rm -rf "$out"
lock_release
build_release orrery_binary
exec 9>&-
answers build/release/bin/orrery "$out/gcc-O3"

failed=0
for build in "${builds[@]}"; do
  folder=build/same-bytes-$build
  logged "configuring $build" cmake -G Ninja -S . -B "$folder" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_CXX_COMPILER="${compiler[$build]}" -DCMAKE_CXX_FLAGS="${level[$build]} -DNDEBUG" \
    -DORRERY_TESTS=OFF -DORRERY_BENCHMARKS=OFF
  logged "building $build" cmake --build "$folder" --target orrery_binary
  answers "$folder/bin/orrery" "$out/$build"
  for spec in "${specs[@]}"; do
    for kind in json stderr exit; do
      cmp "$out/gcc-O3/${spec##*/}.$kind" "$out/$build/${spec##*/}.$kind" || failed=1
    done
  done
done
if ((failed)); then
  echo "same bytes: FAILED; the answers are in $out" >&2
  exit 1
fi
echo "same bytes: ${#specs[@]} runs agree between gcc-O3 ${builds[*]}"
