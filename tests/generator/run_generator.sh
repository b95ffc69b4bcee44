#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the generator: what failed once, 400 seeds, and 10 on the device gpu where there is one.
#
# Usage: run_generator.sh SOURCE-DIR BIN-DIR
# NPU_GENERATOR_SEEDS, NPU_GENERATOR_GPU_SEEDS and NPU_GENERATOR_START take others.
set -eu

source=$1
bin=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
POCL_CACHE_DIR=$scratch
XDG_CACHE_HOME=$scratch
export POCL_CACHE_DIR XDG_CACHE_HOME
gpu=0
if "$bin/npu-run" --list-backends 2>/dev/null | grep -q '"id":"opencl:0".*"usable":true'; then
  gpu=${NPU_GENERATOR_GPU_SEEDS:-10}
fi
"$bin/npu_network_generator" --seeds "${NPU_GENERATOR_SEEDS:-400}" --gpu-seeds "$gpu" \
  --start "${NPU_GENERATOR_START:-1}" --programs "$bin" "$source"/testdata/least/*.json
