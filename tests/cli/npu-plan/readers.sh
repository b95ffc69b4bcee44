# SPDX-License-Identifier: Apache-2.0
# The same graph in every format gives the same sizes; stdin works.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
sed -n '3,$p' graph.mtx | awk '{ print $1 - 1, $2 - 1 }' >graph.txt
(echo 'id1,id2'; sed 's/ /,/' graph.txt) >graph.csv
for input in graph.mtx graph.txt graph.csv; do
  npu-plan $input --nodes 60 --model graphsage.json --profile profile.json -k 3 2>/dev/null | grep -c '"halo"'
  npu-plan $input --nodes 60 --model graphsage.json --profile profile.json -k 3 2>/dev/null | grep '"id":1,"n"'
done
try_silent npu-plan - --model graphsage.json --profile profile.json -k 3 <graph.mtx
printf '3 2\n2\n1 3\n2\n' >path.graph
try_silent npu-plan path.graph --model graphsage.json --profile profile.json -k 2
try_silent npu-plan graph.txt --undirected --model graphsage.json --profile profile.json -k 2
