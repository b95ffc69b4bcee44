# SPDX-License-Identifier: Apache-2.0
# --report -v: the kernel of every step, whether it has an estimate, and why the others were not taken. With the choices of
# a CPU that has AVX2 alone, which every machine that runs the tests can make; implementations are oneDNN's affair.
. "$CASES/lib.sh"
NPU_MAX_ISA=avx2
export NPU_MAX_ISA
for model in conv_kinds mlp; do
  echo "$model:"
  NPU_LOG=off npu-compile --report -v --no-cache --threads 1 --random-weights 0 "$TESTDATA/models/small/$model.json" -o m.npub 2>&1 |
    sed -n '/^partition  node/,$p' | tr -s ' ' |
    sed -e 's/ ([a-z0-9:_]*)//' -e 's/ [0-9][0-9]* \([a-z]*: \)/ N \1/' -e 's/is [0-9][0-9]* cycles/is N cycles/'
done
