# SPDX-License-Identifier: Apache-2.0
# A backend is a name, never a path, and has to exist.
backend() {
  sed "s|\"backend\": \"[a-z]*\"|\"backend\": \"$1\"|g" "$CASES/npu-run/three_steps.json" |
    npu-run --random-inputs 0 --random-weights 0 2>&1 | sed 's|is in none of: .*; set|is in none of: FOLDERS; set|'
}
backend no-such-backend
backend ../../aten
backend /tmp/aten
backend Aten
backend ''
