# Set-up shared by ./orrery, ./check and .ci/run: packages, configuring, building. To be sourced by bash with `root` set
# to the repository's root. Messages go to stderr: stdout belongs to the command that is run in the end.
# shellcheck shell=bash disable=SC2034,SC2154  # root comes from the script that sources this; it also uses the lists

readonly build_log="$root/build/bootstrap.log"

# What the binary needs to be built (and, through their dependencies, to run), and what the tests add to it.
readonly -a build_packages=(g++ cmake ninja-build pkg-config libboost-dev libabsl-dev libprotobuf-dev protobuf-compiler
  libcli11-dev nlohmann-json3-dev zlib1g-dev libssl-dev libexpat1-dev)
readonly -a test_packages=(libgtest-dev libgmock-dev libbenchmark-dev libsimgrid-dev)

say() { printf 'orrery: %s\n' "$*" >&2; }

# Where ccache is installed it is used; its entries are found again from another clone.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
fi

# Prints the packages of the arguments that are not installed, one a line.
missing_packages() {
  local installed package
  installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "installed $package" <<<"$installed" || printf '%s\n' "$package"
  done
}

# Prints the words that make apt-get run as root, or fails where that cannot be.
root_prefix() {
  if [[ $(id -u) == 0 ]]; then
    echo env
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
    echo sudo env
  else
    return 1
  fi
}

# Installs what is missing of the packages in the arguments, naming it first. Exits 2 where it may not or cannot.
need_packages() {
  if ! command -v dpkg-query >/dev/null; then
    command -v cmake >/dev/null && command -v ninja >/dev/null && return
    say "this is not a Debian system; install what these Debian 12 packages contain, then run this again: $*"
    exit 2
  fi
  local -a missing prefix
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0

  local by_hand="apt-get install --no-install-recommends ${missing[*]}"
  if [[ -n ${ORRERY_NO_INSTALL:-} ]] || ! command -v apt-get >/dev/null || ! root_prefix >/dev/null; then
    say "these Debian packages are missing; install them as root, then run this again:"
    printf '  %s\n' "$by_hand" >&2
    exit 2
  fi
  say "installing the missing Debian packages (ORRERY_NO_INSTALL=1 prevents it): ${missing[*]}"
  read -ra prefix < <(root_prefix)
  mkdir -p "$root/build"
  if ! { "${prefix[@]}" apt-get update &&
    "${prefix[@]}" DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y \
      --no-install-recommends "${missing[@]}"; } >"$build_log" 2>&1 </dev/null; then
    tail -n 20 "$build_log" >&2
    say "installing failed; the whole output is in $build_log. By hand:"
    printf '  %s\n' "$by_hand" >&2
    exit 2
  fi
}

# Runs the command in the arguments with its output in the log; on a terminal the newest "[n/m]" of ninja is shown.
# Exits 3 with the end of the log where it fails.
logged() {
  local what=$1 line
  shift
  mkdir -p "$root/build"
  if ! NINJA_STATUS='[%f/%t] ' "$@" 2>&1 </dev/null | while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ -t 2 && $line =~ ^\[[0-9]+/[0-9]+\] ]]; then printf '\rorrery: %s %s ' "$what" "${BASH_REMATCH[0]}" >&2; fi
  done >"$build_log"; then
    [[ -t 2 ]] && printf '\n' >&2
    tail -n 40 "$build_log" >&2
    say "$what failed; the whole output is in $build_log"
    exit 3
  fi
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
}

# configure_and_build <preset> <target> <cmake options>...: configures where options are given or nothing stands yet; ninja
# itself configures again when a CMake file changed.
configure_and_build() {
  local preset=$1 target=$2 folder=$root/build/$1
  shift 2
  # A clone that was moved leaves a cache that names its old place; cmake refuses it, so it goes.
  if [[ -f $folder/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
    rm -rf "$folder"
  fi
  if (($#)) || [[ ! -f $folder/build.ninja ]]; then
    logged "configuring $preset" cmake -S "$root" --preset "$preset" "$@"
  fi
  logged "building $preset" cmake --build "$folder" --target "$target"
}

# One build of the release at a time: waits for the lock, which the shell holds until it ends or closes descriptor 9.
lock_release() {
  mkdir -p "$root/build"
  exec 9>"$root/build/.lock"
  flock -n 9 && return
  say "waiting for another build here to end"
  flock 9
}

# build_release <target> <cmake options>...: also dates the stamp by which ./orrery knows that nothing changed since; dated
# before the build starts, so that an edit made meanwhile is seen.
build_release() {
  touch "$root/build/.started"
  configure_and_build release "$@"
  mv "$root/build/.started" "$root/build/release/orrery.stamp"
}
