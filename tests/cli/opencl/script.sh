# SPDX-License-Identifier: Apache-2.0
# scripts/check/opencl.sh on models of a few kernels: whole, split over two and three devices, and one whose groups are said
# to be more than its kernels, which fails.
. "$CASES/lib.sh"
need_opencl many
bin=$(cd "$(dirname "$(command -v npu-run)")" && pwd)
here=$(pwd)
check() {
  "$here/$CASES/../../scripts/check/opencl.sh" --build "$@" 2>messages >lines
  echo "exit $?"
  tr -s ' ' <lines | sed 's/ max abs .*//'
  cat messages
}
check "${bin%/bin}" --no-cases "$here/$CASES/opencl/product.json"
check "${bin%/bin}" --split 2 "$here/$CASES/opencl/two_inputs.json"
check "${bin%/bin}" --split 3 "$here/$CASES/opencl/two_inputs.json"
check "${bin%/bin}" --split 4
mkdir -p more/bin
for tool in npu-run npu-tag npu-fuse npu-partition; do ln -s "$bin/$tool" more/bin; done
printf '#!/bin/sh\n%s "$@" | sed "s/predicted_kernels.:1/predicted_kernels\\":2/"\n' "$bin/npu-compile" >more/bin/npu-compile
chmod +x more/bin/npu-compile
check "$here/more" --no-cases "$here/$CASES/opencl/product.json"
