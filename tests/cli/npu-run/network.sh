# SPDX-License-Identifier: Apache-2.0
# Two ranks on a link of 100 Mbit/s, each in a network namespace of its own: the exchange takes what npu-plan predicts.
. "$CASES/lib.sh"
skip() {
  echo "skipped: $*" >&2
  exit 77
}
need_mpi
for program in ip tc; do command -v $program >/dev/null || skip "there is no $program (Debian package iproute2)"; done
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
a=npu$$a
b=npu$$b
trap 'ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null; :' EXIT
{ ip netns add $a && ip netns add $b; } 2>/dev/null || skip "the system allows no network namespaces"
ip link add np$$a netns $a type veth peer name np$$b netns $b 2>/dev/null || skip "the system allows no veth"
for end in a b; do
  address=10.77.0.1
  [ $end = a ] || address=10.77.0.2
  ip -n npu$$$end addr add $address/24 dev np$$$end
  ip -n npu$$$end link set np$$$end up
  ip -n npu$$$end link set lo up
  tc -n npu$$$end qdisc add dev np$$$end root tbf rate 100mbit burst 32kb latency 50ms 2>/dev/null || skip "the system has no tbf"
done
# Open MPI starts its helpers by this instead of ssh: the host's name is that of a namespace.
cat >agent <<'END'
#!/bin/sh
host=$1
shift
mkdir -p "$host"
exec ip netns exec "$host" env TMPDIR="$PWD/$host" sh -c "$*"
END
chmod +x agent
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks() {
  ip netns exec $a mpirun -n 2 --oversubscribe --bind-to none --host $a:1,$b:1 --mca plm rsh --mca plm_rsh_agent "$PWD/agent" \
    --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 "$@"
}
ranks true 2>/dev/null || skip "MPI does not start in the namespaces"

cp "$TESTDATA"/gnn/* .
# 20,000 nodes with random edges, and features that are 0.
awk 'BEGIN {
  for (i = 0; i < 100000; ++i) {
    x = (x * 69069 + 12345) % 4294967296; u = int(x / 65536) % 20000
    x = (x * 69069 + 12345) % 4294967296; print u, int(x / 65536) % 20000
  }
}' >big.txt
{ head -c 128 x.npy | LC_ALL=C sed 's/(60, 6), }   /(20000, 6), }/' && head -c 480000 /dev/zero; } >big.npy
npu-plan -q big.txt --nodes 20000 --model graphsage.json --profile profile.json --partitioner metis --devices cpu --select greedy -k 2 --pad 16 --ranks 2 \
  --rank-bandwidth 12500000 --csr big.csr -o plan.json
predicted=$(sed -n 's/.*"exchange_ms": *\[\(.*\)\].*/\1/p' plan.json)
echo "$predicted" | tr ',' '\n' | wc -l
# Other work on the machine can only make an exchange longer. An exchange that is faster than predicted, or much slower
# each time, is a wrong prediction.
for _ in 1 2 3 4 5 6 7 8; do
  ranks "$(command -v npu-run)" "$PWD/plan.json" --features "$PWD/big.npy" --threads 1 --bench 3 >report.json 2>err || cat err
  tr -d ' \n' <report.json | sed 's/.*"ranks":{//' | awk -v "list=$predicted" -F'[:,]' '
    { for (i = 1; i < NF; ++i) value[$i] = $(i + 1) }
    END {
      layers = split(list, layer, ",")
      for (i = 1; i <= layers; ++i) predicted += layer[i]
      if (value["\"exchanges\""] == 0 || predicted == 0) exit 1
      print value["\"exchange_ms\""] / (value["\"exchanges\""] / layers) / predicted
    }' >>ratios
  awk 'BEGIN { least = 9 } $1 < least { least = $1 } END { exit !(least >= 0.9 && least <= 1.1) }' ratios &&
    echo "as predicted" && exit
done
sort -n ratios | head -n 1 | awk '{ exit !($1 > 1.1 && $1 <= 2.5) }' &&
  skip "the machine is busy: the shortest exchange took $(sort -n ratios | head -n 1) of its predicted time"
cat ratios
