# SPDX-License-Identifier: Apache-2.0
# No name makes a message that does something to a terminal, or that fills it; a drawing stays one that XML can hold.
. "$CASES/lib.sh"
controls() { LC_ALL=C tr -d '\n' | LC_ALL=C grep -c "$(printf '[\001-\037\177]\\|\302[\200-\237]\\|\342\200\256')"; }
printf '{"a\\u001b[2J":1,"a\\u001b[2J":2}' >key.json
try npu-tag key.json
printf '{"\302\233J\\u202egnp\\u0007":1, "\302\233J\\u202egnp\\u0007":2}' >c1.json
try npu-tag c1.json
echo "a file name:"
try npu-tag "$(printf 'no\033]0;title\007such\nnpu-tag: forged line')"
echo "an option:"
try npu-tag "$(printf -- '--\033[31m')"
echo "a key of a megabyte:"
key=$(head -c 1000000 /dev/zero | tr '\0' k)
printf '{"%s":1,"%s":2}' "$key" "$key" >long.json
npu-tag long.json >long.txt 2>&1
echo "exit $?, $([ "$(wc -c <long.txt)" -lt 500 ] && echo short)"
sed 's/kk*/K/g' long.txt
echo "names in reports and drawings:"
sed 's/"linear\([^"]*\)"/"linear\1\\u001b[31m\\u009b\\u202e\&#27;"/g' "$TESTDATA/models/small/mlp.json" >escapes.json
npu-tag --report escapes.json 2>report.txt |
  npu-partition -v --report --dot plan.dot --dot-level node 2>>report.txt |
  npu-align --explain --dot align.dot 2>>report.txt >aligned.json
echo "$(printf '\033' | controls) $(printf '\302\233' | controls) $(printf '\342\200\256' | controls): what to look for is found"
for file in report.txt plan.dot align.dot; do
  echo "$file: $(controls <$file) lines with controls, $(grep -c '&#27' $file) with entities, $([ -s $file ] && echo written)"
done
grep -c '&amp;#27' plan.dot
