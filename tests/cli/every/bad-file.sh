# SPDX-License-Identifier: Apache-2.0
# npu-plan has files of many kinds; see its bad-file.sh.
. "$CASES/lib.sh"
mkdir folder
: >empty.json
bad_file() {
  for file in missing.json folder empty.json missing/model.json empty.json/model.json; do try "$1" $file; done
}
alike "bad file" bad_file $graph_programs npu-profile
