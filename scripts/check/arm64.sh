#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cross-builds for 64-bit ARM and runs the unit tests and some models with qemu-user. No part of CI: emulated tests
# take long. The libraries are unpacked into a folder of their own, since several packages cannot be installed for two
# architectures at once; nothing on this system changes. Without the device "cpu": libtorch for ARM would be 215 MB of
# packages more.
#
# Usage: scripts/check/arm64.sh [OPTION] [CTEST-OPTION...]     e.g. -R unit.kernels; default: all unit tests
#   --sysroot-only   unpack the libraries and stop; then: cmake --preset arm64 && cmake --build --preset arm64
#   --models-only    build and run no unit tests
#
# The folder is ${XDG_CACHE_HOME:-~/.cache}/npu-arm64/sysroot, or $NPU_ARM64_SYSROOT; remove it to unpack anew.
# The cross compiler and the emulator are installed where they are missing (quickstart.sh --packages-only --arm64).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${XDG_CACHE_HOME:-$HOME/.cache}/npu-arm64
export NPU_ARM64_SYSROOT=${NPU_ARM64_SYSROOT:-$folder/sysroot}
packages=(
  libc6-dev libstdc++-12-dev
  libcli11-dev nlohmann-json3-dev libsimdjson-dev libspdlog-dev libfmt-dev libmetis-dev libboost-graph-dev libxxhash-dev
  nettle-dev libdnnl-dev catch2
)

fail() {
  echo "arm64.sh: $*" >&2
  exit 1
}

need() { # PROGRAM PACKAGE
  command -v "$1" >/dev/null || fail "$1 not found; on Debian: apt-get install $2"
}

# The packages with all that they depend on, for arm64, by an apt that knows of no installed package.
unpack_sysroot() {
  local apt=$folder/apt options file
  [ "$(cat "$NPU_ARM64_SYSROOT/.packages" 2>/dev/null)" != "${packages[*]}" ] || return 0
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources.list.d"
  : >"$apt/status"
  : >"$apt/sources.list"
  [ ! -f /etc/apt/sources.list ] || cp /etc/apt/sources.list "$apt/"
  # Debian's own: others may have nothing for this architecture.
  for file in /etc/apt/sources.list.d/*; do
    ! grep -qs debian-archive-keyring "$file" || cp "$file" "$apt/sources.list.d/"
  done
  options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false
    -o APT::Sandbox::User= -o Debug::NoLocking=true -o Dir::State="$apt" -o Dir::State::lists="$apt/lists"
    -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o Dir::Etc::sourcelist="$apt/sources.list"
    -o Dir::Etc::sourceparts="$apt/sources.list.d")
  apt-get "${options[@]}" update
  apt-get "${options[@]}" install --yes --download-only "${packages[@]}" ||
    fail "cannot fetch the packages for arm64: ${packages[*]}"
  rm -rf "$NPU_ARM64_SYSROOT"
  mkdir -p "$NPU_ARM64_SYSROOT"
  for file in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$file" "$NPU_ARM64_SYSROOT"; done
  echo "${packages[*]}" >"$NPU_ARM64_SYSROOT/.packages"
  rm -rf "$apt"
}

emulated() { # PROGRAM ARGUMENT...
  local program=$1
  shift
  qemu-aarch64 -L "$NPU_ARM64_SYSROOT" "build-arm64/bin/$program" "$@"
}

# Puts a script that starts the emulator in place of a program that others start: the system cannot execute it.
wrap() { # PROGRAM
  [ "$(head -c 4 "$1" | tail -c 3)" = ELF ] || return 0
  mv "$1" "$1.arm64"
  printf '#!/bin/sh\nexec qemu-aarch64 -L "%s" "%s.arm64" "$@"\n' "$NPU_ARM64_SYSROOT" "$PWD/$1" >"$1"
  chmod +x "$1"
}

# FILE.json beside its inputs and PyTorch's outputs, at each level that there is.
run_model() {
  local model=${1%.json} level
  for level in generic neon; do
    NPU_MAX_ISA=$level emulated npu-run -q --no-cache --devices npu "$1" \
      --inputs "$model.inputs.safetensors" --expect "$model.outputs.safetensors" >/dev/null ||
      fail "${model##*/} differs at level $level"
    echo "${model##*/}, $level: as PyTorch's"
  done
}

# Small ones, and those that vs_peers.sh -i has exported.
run_models() {
  local name zoo=${XDG_CACHE_HOME:-$HOME/.cache}/npu-bench/zoo
  for name in residual encoder lstm squeeze_excite; do run_model "testdata/models/small/$name.json"; done
  for name in resnet18 mobilenet_v2 squeezenet1_1; do
    if [ -f "$zoo/$name.outputs.safetensors" ]; then
      run_model "$zoo/$name.json"
    else
      echo "$name: left out; scripts/bench/vs_peers.sh -i $name exports it"
    fi
  done
}

only=
case ${1-} in
  --sysroot-only | --models-only) only=$1; shift ;;
  -h | --help) sed -n '3,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
need dpkg-deb dpkg
need apt-get apt
unpack_sysroot
[ "$only" != --sysroot-only ] || exit 0
scripts/quickstart.sh --packages-only --arm64
cmake --preset arm64 >/dev/null
cmake --build --preset arm64 --parallel "$(nproc)" --target programs
wrap build-arm64/libexec/npu/probe-library
run_models
[ "$only" != --models-only ] || exit 0
cmake --build --preset arm64 --parallel "$(nproc)" --target npu_unit_tests
wrap build-arm64/libexec/npu/probe-library
# qemu-user 7.2 has no openat2, without which a link in a model's folder is refused: one case is left out.
emulated npu_unit_frontend '~onnx: external data comes from below*'
ctest --preset arm64 -L unit --exclude-regex '^unit[.]frontend$' --parallel "$(nproc)" "$@"
