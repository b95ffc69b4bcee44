# SPDX-License-Identifier: Apache-2.0
# A cluster of one node, started here: scripts/batch.mk compiles a folder by srun, and ranks that srun starts give the bits of one process.
. "$CASES/lib.sh"
PATH=$PATH:/usr/sbin
skip() {
  echo "skipped: $*" >&2
  [ -z "$run" ] || tail -n 3 "$run"/*.log >&2 2>/dev/null
  exit 77
}
run=
for program in make munged slurmctld slurmd srun; do command -v $program >/dev/null || skip "there is no $program (Debian packages slurm-wlm, munge)"; done
[ "$(id -u)" = 0 ] || skip "the daemons of Slurm are started by root here"
# Sockets have short names.
run=$(mktemp -d /tmp/npu-slurm.XXXXXX)
stop() {
  pids=$(cat "$run"/*.pid 2>/dev/null)
  # shellcheck disable=SC2086 # process numbers
  kill $pids 2>/dev/null
  tries=0
  # shellcheck disable=SC2086 # process numbers
  while ps -p "$(echo $pids | tr ' ' ',')" >/dev/null 2>&1 && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  rm -rf "$run"
}
trap stop EXIT
trap 'exit 1' INT TERM
dd if=/dev/urandom of="$run/munge.key" bs=128 count=1 2>/dev/null
chmod 400 "$run/munge.key"
munged --force --key-file="$run/munge.key" --socket="$run/munge" --pid-file="$run/munged.pid" --log-file="$run/munged.log" \
  --seed-file="$run/munge.seed" 2>/dev/null || skip "munged does not start"
host=$(hostname -s)
port=$((20000 + $$ % 20000))
mkdir "$run/state" "$run/spool"
cat >"$run/slurm.conf" <<END
ClusterName=npu
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$run/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmctldPidFile=$run/slurmctld.pid
SlurmdPidFile=$run/slurmd.pid
SlurmctldLogFile=$run/slurmctld.log
SlurmdLogFile=$run/slurmd.log
StateSaveLocation=$run/state
SlurmdSpoolDir=$run/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP OverSubscribe=FORCE:16
END
# slurmd wants a kind of cgroups though nothing here uses them.
echo CgroupPlugin=cgroup/v1 >"$run/cgroup.conf"
export SLURM_CONF="$run/slurm.conf"
timeout 20 slurmctld -c 2>/dev/null || skip "slurmctld does not start"
timeout 20 slurmd -N "$host" 2>/dev/null || skip "slurmd does not start"
on_node() { timeout 60 srun -Q --immediate=30 "$@"; }
on_node -n1 true 2>"$run/srun.log" || skip "srun starts nothing"

# The launcher notes that it was one of Slurm's jobs.
cat >note <<'END'
#!/bin/sh
[ -n "$SLURM_JOB_ID" ] && echo "$1" >>jobs
exec "$@"
END
chmod +x note
small=$TESTDATA/models/small
mkdir zoo
for name in mlp residual; do cp "$small/$name.json" "$small/$name.safetensors" zoo; done
echo "include $(cd "$CASES" && pwd -P)/../../scripts/batch.mk" >Makefile
timeout 200 make -s -j2 npu-batch NPU_MODELS=zoo NPU_LAUNCH='timeout 60 srun -Q -n1 ./note' >log 2>&1
echo "batch: exit $?"
sort jobs | uniq -c
npu-run zoo/mlp.npub --inputs "$small/mlp.inputs.safetensors" --expect "$small/mlp.outputs.safetensors" >report
echo "exit $?"
# A job that fails fails the build, and leaves no file.
echo '{"nodes": [' >zoo/broken.json
timeout 200 make -s -k -j2 npu-batch NPU_MODELS=zoo NPU_LAUNCH='timeout 60 srun -Q -n1' >log 2>&1
echo "broken: exit $?"
ls zoo/broken*

# Ranks, if the MPI that is here and this Slurm have a way to find each other in common.
cp "$TESTDATA"/gnn/* .
plan() { npu-plan -q graph.mtx --profile profile.json --partitioner metis --devices cpu,npu --select greedy --pad 16 --model graphsage.json -k 8 "$@"; }
plan --ranks 1 -o one.json
npu-run one.json --features x.npy --threads 1 --outputs one.npy >report.json 2>err || cat err
plan --ranks 2 -o two.json
ranks() { on_node -n2 --overcommit --kill-on-bad-exit "$@" npu-run two.json --features x.npy --threads 1 --outputs two.npy; }
for way in pmix pmi2; do
  [ -e "$(dirname "$(command -v npu-run)")/../lib/npu/transports/npu_transport_mpi.so" ] || break
  srun --mpi=list 2>&1 | grep -qw $way || continue
  ranks --mpi=$way >report.json 2>err || {
    # Alone or without MPI is Slurm's affair, all else is not.
    grep '^npu-run' err | grep -v 'were started\|was started\|cannot start MPI\|MPI found' && exit 1
    continue
  }
  cmp one.npy two.npy || exit 1
  # One report, with what crossed.
  tr -d ' \n' <report.json | grep -o '"planned_rows":29,"bytes"' >ran
  break
done
[ -s ran ] || {
  tail -n 2 err >&2
  skip "no way of srun to start MPI processes works here"
}
echo "two ranks: the same bits"
# Started without MPI each would be alone: one of them says so.
on_node -n3 --overcommit npu-run two.json --features x.npy >report.json 2>err
echo "three for two: exit $?"
sed 's/^srun.*//' err | grep '^npu-run'
