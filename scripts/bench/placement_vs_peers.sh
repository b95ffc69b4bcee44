#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# torch.fx's CapabilityBasedPartitioner and pytorch-ir's contiguous grouping against convex and mincut,
# on the same graphs and support tables; see placement_vs_peers.py. Needs a release build in build/.
# Debian's python3-torch is installed if no torch is found (root or sudo).
#
# Usage: scripts/bench/placement_vs_peers.sh [--target NAME|FILE]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3 /usr/bin/python3; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import torch.fx.passes.infra.partitioner' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

if ! python=$(find_python); then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends python3-torch >/dev/null
  python=$(find_python) || {
    echo "placement_vs_peers.sh: no python3 with torch.fx even after installing python3-torch" >&2
    exit 1
  }
fi
exec "$python" scripts/bench/placement_vs_peers.py "$@"
