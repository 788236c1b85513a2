# Code shared by the scripts beside this folder: Fovea's requirements, and its
# build. Source it; it changes to the repository's root.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

FOVEA_PACKAGES=(
  cmake ninja-build python3 python3-venv
  clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  libcurl4-openssl-dev libedit-dev libxml2-dev libzstd-dev zlib1g-dev
)

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Installs those of the given Debian packages that are missing.
install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    check_tools
    return
  fi
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
      grep -q '^install ok installed' || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "Installing ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die "these packages are missing and need root to install: ${missing[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" \
    apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get could not install: ${missing[*]}"
}

# On other systems than Debian: prints what is missing.
check_tools() {
  local tool missing=()
  for tool in cmake ninja python3 clang-22 clang++-22 ld.lld-22 llvm-config-22; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  ((${#missing[@]} == 0)) ||
    die "not a Debian system: install LLVM, Clang, LLD and MLIR 22.1 with their" \
      "headers, CMake 3.25 and Ninja; not found: ${missing[*]}"
}

# build PRESET TARGET...: configures once and builds.
build() {
  local preset=$1
  shift
  say "Building $*"
  local log
  log=$(cmake --preset "$preset" 2>&1) || die "cmake failed:"$'\n'"$log"
  cmake --build --preset "$preset" --target "$@"
}
