# SPDX-License-Identifier: Apache-2.0
# Under RLIMIT_FSIZE a cache costs a warning and an output is an error; neither ends the program by SIGXFSZ.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/mlp.json
(ulimit -f 4; try npu-compile "$model" --cache-dir cache -o x.npub)
ls cache
ls
