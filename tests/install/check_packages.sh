#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages of a build tree, has lintian read them, installs them into an empty root, runs the first
# pipeline of the README and the skeleton of a backend from there, and removes the packages again.
#
# Usage: check_packages.sh SOURCE-DIR BUILD-DIR SCRATCH-DIR
# As any user: dpkg installs into a folder as root, or under fakeroot; without either, packages are only unpacked.
# Exits 77 if there is no dpkg.
set -eu
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
scratch=$3
LC_ALL=C
export LC_ALL
unset NPU_BACKEND_PATH

fail() {
  echo "check_packages.sh: $*" >&2
  exit 1
}

for program in dpkg dpkg-deb dpkg-shlibdeps cpack; do
  command -v $program >/dev/null || {
    echo "$program not found; on Debian: apt-get install dpkg-dev" >&2
    exit 77
  }
done

rm -rf "$scratch"
mkdir -p "$scratch"
scratch=$(cd "$scratch" && pwd)
cd "$scratch"

# --- Making them: gzip, since xz takes ten times as long ---

(cd "$build" && cpack -B "$scratch/cpack" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip) >cpack.log 2>&1 || {
  cat cpack.log >&2
  fail "cpack failed"
}
packages="npu-tools npu-backend-onednn npu-backend-aten libnpu-dev"
# Built where MPI is installed.
if [ -e "$build/lib/npu/transports/npu_transport_mpi.so" ]; then packages="$packages npu-transport-mpi"; fi
if [ -f "$build/lib/npu/backends/npu_backend_opencl.so" ]; then packages="$packages npu-backend-opencl"; fi
for package in $packages; do
  file=$(ls cpack/"${package}"_*.deb) || fail "cpack made no $package"
  dpkg-deb -f "$file" >"$package.control"
  grep -q "^Package: $package\$" "$package.control" || fail "$file is not $package"
done
# The dependencies of each package cover what its binaries need; see NpuPackages.cmake.
while read -r package needed; do
  [ -e "$package.control" ] || continue
  sed -n 's/^Depends: //p' "$package.control" | grep -q "$needed" || fail "$package does not depend on $needed"
done <<END
npu-tools libsimdjson
npu-tools libmetis5
npu-tools python3
npu-backend-onednn libdnnl2
npu-backend-aten libtorch1
npu-transport-mpi libopenmpi3
npu-backend-opencl ocl-icd-libopencl1
libnpu-dev nlohmann-json3-dev
END

# Built where PT-Scotch is installed.
if [ -e "$build/lib/npu/transports/npu_partitioner_ptscotch.so" ]; then
  sed -n 's/^Depends: //p' npu-transport-mpi.control | grep -q libptscotch-7 || fail "npu-transport-mpi does not depend on libptscotch"
fi

if command -v lintian >/dev/null; then
  # As root it wants to be told that this is meant.
  lintian --allow-root --fail-on error cpack/*.deb || fail "lintian finds errors"
else
  echo "lintian not found; packages are not checked by it (Debian package lintian)"
fi

# --- Installing them into an empty root ---

root=$scratch/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
: >"$root/var/lib/dpkg/status"
: >"$root/var/lib/dpkg/available"

# dpkg in that root. Nothing else is installed there, so dependencies are missing.
dpkg_root() {
  set -- dpkg --root="$root" --log="$scratch/dpkg.log" --force-depends --force-not-root --force-bad-path "$@"
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    fakeroot -- "$@"
  fi
}

can_install=1
if [ "$(id -u)" -ne 0 ] && ! command -v fakeroot >/dev/null; then
  echo "not root and no fakeroot: packages are unpacked, not installed"
  can_install=0
fi
if [ $can_install -eq 1 ]; then
  dpkg_root --install cpack/*.deb >dpkg.out 2>&1 || {
    cat dpkg.out >&2
    fail "dpkg cannot install the packages"
  }
else
  for file in cpack/*.deb; do dpkg-deb -x "$file" "$root"; done
fi
PATH=$root/usr/bin:$PATH
export PATH
XDG_CACHE_HOME=$scratch/cache
export XDG_CACHE_HOME

for file in share/npu/export_torch.py share/npu/export_gnn.py share/npu/make_graph.py share/npu/batch.mk \
  share/bash-completion/completions/npu-run share/zsh/vendor-completions/_npu share/man/man1/npu-run.1.gz \
  share/man/man3/npu-backend.3.gz share/man/man5/npu-ir.5.gz share/man/man7/npu.7.gz share/doc/npu-tools/copyright; do
  [ -f "$root/usr/$file" ] || fail "no package has usr/$file"
done

# --- Using them ---

mkdir run
ln -s "$source/testdata" run/testdata
awk '/^```sh$/ && !seen { here = 1; seen = 1; next } /^```$/ { here = 0 } here' "$source/README.md" >commands
[ -s commands ] || fail "README.md has no example"
(cd run && [ "$(command -v npu-run)" = "$root/usr/bin/npu-run" ] && bash -eu -x ../commands) >run.out 2>&1 || {
  tail -n 20 run.out >&2
  fail "the first example of README.md fails with the installed packages"
}

"$root/usr/share/npu/export_gnn.py" gcn --features 6 4 -o run/gcn.json || fail "the installed exporter fails"

example=$scratch/example
cp -r "$root/usr/share/npu/examples/skeleton" "$example"
if ! { cmake -S "$example" -B "$example/build" -G Ninja -DCMAKE_PREFIX_PATH="$root/usr" \
  -DCMAKE_C_FLAGS='-Wall -Wextra -Wpedantic -Werror' && cmake --build "$example/build"; } >example.log 2>&1; then
  tail -n 30 example.log >&2
  fail "the skeleton does not build"
fi
cd "$example"
NPU_BACKEND_PATH=$example/build
export NPU_BACKEND_PATH
npu-tag --target ./skeleton_target.json "$source/tests/cli/npu-compile/branches.json" |
  npu-partition -s contiguous >parts.json
npu-run --random-weights 0 --random-inputs 0 --verify cpu parts.json >report.json ||
  fail "the skeleton computes something else"
grep -q '"skeleton": "1.0"' report.json || fail "the skeleton does not run: $(cat report.json)"
[ "$(grep -c '"kind":"partition".*"device":"npu"' report.json)" -ge 1 ] ||
  fail "expected a partition on the skeleton: $(cat report.json)"
cd "$scratch"

# --- Removing them ---

if [ $can_install -eq 1 ]; then
  # shellcheck disable=SC2086 # a list of names
  dpkg_root --purge $packages >dpkg.out 2>&1 || {
    cat dpkg.out >&2
    fail "dpkg cannot remove the packages"
  }
  left=$(cd "$root" && find . -type f ! -path './var/lib/dpkg/*')
  [ -z "$left" ] || fail "removed packages leave these files: $left"
fi
rm -rf "$scratch"
