# SPDX-License-Identifier: Apache-2.0
# Models on the OpenCL device give what the CPU gives, with a launch for each group of npu-fuse; a bundle runs as well, and a
# second compile finds everything in the cache.
. "$CASES/lib.sh"
need_opencl many
for model in mlp conv_kinds; do
  path=$TESTDATA/models/small/$model
  npu-tag --target opencl "$path.json" | npu-fuse | npu-partition >$model.json
  npu-run $model.json --weights "$path.safetensors" --inputs "$path.inputs.safetensors" --verify cpu --rtol 1e-3 --atol 1e-4 \
    --expect "$path.outputs.safetensors" >report
  echo "$model: exit $?, $(comparison verify <report), $(comparison expect <report)"
  npu-compile $model.json --weights "$path.safetensors" -o $model.npub --report 2>table
  launches=$(npu-fuse $model.json --report 2>&1 >/dev/null | awk '/^kernel launches/ { print $4 }')
  kernels=$(awk '$2 == "gpu" && $3 == "opencl" { print $5 }' table)
  if [ "$launches" = "$kernels" ]; then echo "$model: a kernel for each group"; else echo "$model: $launches groups, $kernels kernels"; fi
  awk '$1 == "cache" { print $1, $2, $3, $4, $5 }' table
  # A second start, on a machine that has nothing but the bundle: the driver compiles nothing.
  POCL_CACHE_DIR=$(pwd)/kernels-$model
  mkdir "$POCL_CACHE_DIR"
  npu-compile $model.json --weights "$path.safetensors" --no-cache -o $model.npub
  there=$(find "$POCL_CACHE_DIR" -name '*.so' | wc -l)
  rm -rf "${POCL_CACHE_DIR:?}"/*
  npu-run $model.npub --inputs "$path.inputs.safetensors" --expect "$path.outputs.safetensors" --rtol 1e-3 --atol 1e-4 >report
  echo "$model.npub: exit $?, $(comparison expect <report), $(($(find "$POCL_CACHE_DIR" -name '*.so' | wc -l) - there)) kernels compiled"
done
