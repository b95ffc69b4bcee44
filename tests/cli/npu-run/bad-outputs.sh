# SPDX-License-Identifier: Apache-2.0
. "$CASES/lib.sh"
small=$TESTDATA/models/small
mkdir folder
model=$small/empty.json
try_silent npu-run "$model" --random-inputs 0 --outputs folder
try_silent npu-run "$model" --random-inputs 0 --outputs missing/y.safetensors
try_silent npu-run "$model" --random-inputs 0 --outputs /dev/full
try_silent npu-run "$model" --random-inputs 0 --trace missing/trace.json
try_silent npu-run "$model" --random-inputs 0 --trace /dev/full
try npu-run "$CASES/npu-run/two_inputs.json" --random-inputs 0 --outputs y.npy
ls
