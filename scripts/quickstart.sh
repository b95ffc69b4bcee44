#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds Release, and runs the main job on a shipped ResNet-18.
#
# Usage: scripts/quickstart.sh                        everything
#        scripts/quickstart.sh --with-opencl          and the backend opencl, with pocl, which runs it on the CPU
#        scripts/quickstart.sh --packages-only        only the installation (scripts/test.sh shares it)
#        scripts/quickstart.sh --packages-only --with-opencl   with those of the backend opencl
#        scripts/quickstart.sh --packages-only --ci   and what .ci/run, gates.sh, format.sh, lint.sh and fuzz.sh need
#        scripts/quickstart.sh --packages-only --arm64         with those of scripts/check/arm64.sh
#
# Needs Debian's apt for what is missing, and root or sudo then. Nothing is installed twice: a second run
# takes seconds. The build tree is build/, the one that scripts/test.sh uses.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The only list of packages. libopenblas0-openmp serves libtorch's matrix products, which are many times slower
# with the reference BLAS; groff-base and catch2 are for the tests.
packages=(
  build-essential cmake ninja-build pkg-config
  libcli11-dev nlohmann-json3-dev libsimdjson-dev libspdlog-dev libfmt-dev libmetis-dev libboost-graph-dev libxxhash-dev
  nettle-dev
  libtorch-dev libopenblas0-openmp libdnnl-dev
  libopenmpi-dev openmpi-bin libptscotch-dev
  catch2 groff-base
)
# What the backend opencl needs: the loader, and a driver that is there on any machine.
opencl_packages=(ocl-icd-opencl-dev pocl-opencl-icd)
# What .ci/run and gates.sh need beside them. Versions matter: formatting and checks are those of clang 14.
ci_packages=(
  git clang clang-format-14 clang-tidy-14 libclang-rt-14-dev
  shellcheck pyflakes3 python3
  dpkg-dev fakeroot lintian zsh valgrind
  python3-torch python3-numpy libonnx-testdata
  slurm-wlm munge ccache
)
# What scripts/check/arm64.sh needs beside them.
arm64_packages=(g++-aarch64-linux-gnu qemu-user)

say() { printf '\n==> %s\n' "$*"; }

fail() {
  printf 'quickstart.sh: %s\n' "$*" >&2
  exit "${status:-1}"
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    if ! command -v cmake >/dev/null || ! command -v ninja >/dev/null; then
      fail "this is not a Debian system: install a C++20 compiler, CMake >= 3.25, Ninja and the" \
        "libraries of these Debian packages first: ${packages[*]}"
    fi
    say "Packages: no dpkg here, so CMake will tell what is missing"
    return
  fi
  local missing=() package
  for package in "${packages[@]}"; do
    if [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" != installed ]]; then
      missing+=("$package")
    fi
  done
  if [[ ${#missing[@]} -eq 0 ]]; then
    say "Packages: all ${#packages[@]} are installed"
    return
  fi
  say "Packages: installing ${missing[*]}"
  command -v apt-get >/dev/null || fail "apt-get not found; install these packages first: ${missing[*]}"
  local as_root=()
  if [[ "$(id -u)" -ne 0 ]]; then
    command -v sudo >/dev/null || fail "not root and no sudo here; run as root:" \
      "apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "${missing[@]}"
}

build() {
  say "Build: Release, in build/ (some minutes the first time)"
  # The tests are configured but not built, so that scripts/test.sh only adds to this tree.
  mkdir -p build
  if ! cmake --preset release >build/configure.log 2>&1; then
    cat build/configure.log >&2
    fail "CMake failed; see above"
  fi
  cmake --build --preset release --parallel "$(nproc)" \
    --target programs
}

# Prints what a program wrote to stderr under a title. $1: title, $2: file
show() {
  say "$1"
  sed 's/^./    &/' "$2"
}

run_main_job() {
  local out=build/quickstart status=0
  mkdir -p "$out"
  say "Measure: the rates of this machine (5 s), so that predicted times are for it"
  echo "    npu-profile --machine --report -o $out/host.json"
  build/bin/npu-profile --machine --report -o "$out/host.json" 2>"$out/machine.txt" ||
    fail "$(cat "$out/machine.txt")"
  show "npu-profile: what was measured" "$out/machine.txt"
  say "Run: ResNet-18 on two devices, max_pool2d forced to the CPU, checked against a run all on the CPU"
  cat <<EOF
    npu-tag --target $out/host.json --force 'cpu=aten.max_pool2d*' --report testdata/models/resnet18.json |
      npu-partition --report |
      npu-run --random-weights 0 --random-inputs 0 --verify cpu --bench 10 --report
EOF
  PATH="$PWD/build/bin:$PATH"
  npu-tag --target "$out/host.json" --force 'cpu=aten.max_pool2d*' --report testdata/models/resnet18.json 2>"$out/tag.txt" |
    npu-partition --report 2>"$out/partition.txt" |
    npu-run --random-weights 0 --random-inputs 0 --verify cpu --bench 10 --report \
      >"$out/report.json" 2>"$out/run.txt" || status=$?
  show "npu-tag: which op goes where, and why" "$out/tag.txt"
  show "npu-partition: the plan, its transfers and predicted times" "$out/partition.txt"
  show "npu-run: devices, steps, latency, and the comparison with the CPU" "$out/run.txt"
  [[ $status -eq 0 ]] || fail "the run above ended with status $status"
  say "Done. This report as JSON: $out/report.json; the programs: build/bin; how they work: man ./man/npu.7"
}

case "$*" in
  "") install_packages && build && run_main_job ;;
  --with-opencl)
    packages+=("${opencl_packages[@]}")
    install_packages && build && run_main_job
    ;;
  --packages-only) install_packages ;;
  "--packages-only --with-opencl")
    packages+=("${opencl_packages[@]}")
    install_packages
    ;;
  "--packages-only --ci")
    packages+=("${opencl_packages[@]}" "${ci_packages[@]}")
    install_packages
    ;;
  "--packages-only --arm64")
    packages+=("${arm64_packages[@]}")
    install_packages
    ;;
  *)
    printf 'Usage: %s [--with-opencl] [--packages-only [--with-opencl | --ci | --arm64]]\n' "$0" >&2
    exit 2
    ;;
esac
