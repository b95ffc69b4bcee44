# SPDX-License-Identifier: Apache-2.0
# The document may come from stdin; a relative weights_file is then resolved against the working directory.
. "$CASES/lib.sh"
small=$PWD/$TESTDATA/models/small
cd "$TESTDATA/models/small" || exit
npu-run --inputs mlp.inputs.safetensors --expect mlp.outputs.safetensors <mlp.json >"$OLDPWD/report"
cd "$OLDPWD" || exit
comparison expect <report
npu-run --inputs "$small/mlp.inputs.safetensors" <"$small/mlp.json"
