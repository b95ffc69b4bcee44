# SPDX-License-Identifier: Apache-2.0
# scripts/plot.sh passes the drawings of npu-partition to Graphviz, for which a fake `dot` stands in.
. "$CASES/lib.sh"
plot=$CASES/../../scripts/plot.sh
mkdir bin
printf '#!/bin/sh\n[ "$1 $3" = "-Tsvg -o" ] && cp "$2" "$4"\n' >bin/dot
chmod +x bin/dot
PATH=$PWD/bin:$PATH
bash "$plot" -d out -s blocks -x --depth -x 2 "$TESTDATA/models/resnet18.json"
ls out
grep -c 'subgraph cluster' out/resnet18.blocks.svg
bash "$plot" -d out -t pytorch-apple -f 'cpu=aten.add_*' "$TESTDATA/models/resnet18.json"
grep -c 'color="#ffe3c2"' out/resnet18.convex.svg
cp out/resnet18.blocks.dot drawing.dot
bash "$plot" -d out drawing.dot
try bash "$plot" -d out missing.json
ls out
