# SPDX-License-Identifier: Apache-2.0
# A graph that does not fit in what one process may hold runs in four, each of which holds its share and its halo.
. "$CASES/lib.sh"
need_mpi
command -v prlimit >/dev/null || { echo "skipped: there is no prlimit (Debian package util-linux)"; exit 77; }
# Sanitizers keep memory of their own for every byte and every allocation.
if LC_ALL=C grep -q -e __asan_init -e __tsan_init -e __msan_init "$(command -v npu-run)"; then
  echo "skipped: memory is not what it is without a sanitizer"
  exit 77
fi
nodes=32000
width=1024
# So many numbers of the features that tests have, again and again.
floats() {
  tail -c +129 "$TESTDATA/gnn/x.npy" >some
  while [ "$(wc -c <some)" -lt $((4 * $1)) ]; do
    cat some some some some >longer
    mv longer some
  done
  head -c $((4 * $1)) some
}
# GraphSAGE with wide features.
sed "s/\(\"[nm]\"\), 6\]/\1, $width]/g; s/\[8, 6\]/[8, $width]/g; s/graphsage.safetensors/wide.safetensors/" \
  "$TESTDATA/gnn/graphsage.json" >wide.json
weights=$((32 * width))
header=$(printf '{"layers.0.lin_l.weight":{"dtype":"F32","shape":[8,%d],"data_offsets":[0,%d]}' $width $weights)
header=$header$(printf ',"layers.0.lin_l.bias":{"dtype":"F32","shape":[8],"data_offsets":[%d,%d]}' $weights $((weights + 32)))
header=$header$(printf ',"layers.0.lin_r.weight":{"dtype":"F32","shape":[8,%d],"data_offsets":[%d,%d]}' $width $((weights + 32)) $((2 * weights + 32)))
rest=$((2 * weights + 32))
header=$header$(printf ',"layers.1.lin_l.weight":{"dtype":"F32","shape":[4,8],"data_offsets":[%d,%d]}' $rest $((rest + 128)))
header=$header$(printf ',"layers.1.lin_l.bias":{"dtype":"F32","shape":[4],"data_offsets":[%d,%d]}' $((rest + 128)) $((rest + 144)))
header=$header$(printf ',"layers.1.lin_r.weight":{"dtype":"F32","shape":[4,8],"data_offsets":[%d,%d]}}' $((rest + 144)) $((rest + 272)))
{
  # The length, 512 to 767, in eight bytes.
  printf '\0\002\0\0\0\0\0\0%-512s' "$header"
  floats $(((rest + 272) / 4))
} >wide.safetensors
features() {
  printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($1, $width), }"
  floats $(($1 * width))
}
# Rings with some far edges; the small one shows what a process takes before it holds anything.
graph() {
  awk -v n="$1" 'BEGIN {
    for (v = 0; v < n; ++v) {
      print (v + 1) % n, v; print (v + n - 1) % n, v; print (v + 7) % n, v
      if (v % 16 == 0) print (v * 37 + 11) % n, v
    }
  }'
}
for name in small:640 big:$nodes; do
  graph ${name#*:} >${name%:*}.edges
  features ${name#*:} >${name%:*}.npy
  for ranks in 1 4; do
    npu-plan -q ${name%:*}.edges --model wide.json --profile "$TESTDATA/gnn/profile.json" --partitioner metis --devices cpu --select greedy -k 64 \
      --csr ${name%:*}.csr --ranks $ranks -o ${name%:*}$ranks.json
  done
done
run() {
  name=$1
  ranks=$2
  shift 2
  together "$ranks" "$@" npu-run $name$ranks.json --features $name.npy --threads 1 --outputs $name$ranks.npy --device=cpu=onednn
}
# Bytes that a process may have of its own, code and files left out.
limit=--data=140000000
run small 4 prlimit $limit >small.report 2>err || cat err
run big 4 prlimit $limit >report.json 2>err || cat err
echo "four: exit $?"
run big 1 prlimit $limit >one.report 2>err
status=$?
[ $status -ne 0 ] && echo "one: does not fit"
grep '^npu-run' err | sed 's/[0-9][0-9]*/N/g'
ls big1.npy* 2>/dev/null
# Wherever memory ends, that is what is said, with status 3: that of the process's own, or that of mappings as well.
for near in 4:data=76 4:data=84 4:data=92 4:data=100 4:data=108 4:data=116 1:as=140; do
  run big ${near%:*} prlimit --${near#*:}000000 >near.report 2>err
  status=$?
  [ $status -eq 0 ] && continue
  [ $status -eq 3 ] && grep -q '^npu-run: .*out of memory' err && continue
  echo "$near MB: exit $status"
  cat err
done
run big 1 env >one.report 2>err || cat err
cmp big1.npy big4.npy && echo "the same bits as without a limit in one"
# Share and halo by the plan, a tenth of that, and what the small graph took, whose rows are 1/50 of this one's; 16 MB for a
# part's own values and buffers, which the system may give in pages of 2 MB.
each() { tr -d ' \n' <"$1" | grep -o "\"$2\":[0-9]*" | cut -d: -f2; }
each report.json planned_bytes >planned
each report.json peak_bytes >peak
each small.report peak_bytes | sort -n | tail -n 1 >before
paste planned peak | awk -v before="$(cat before)" '
  { if ($2 <= 1.1 * $1 + before + 16e6) ++held; else print "planned " $1 ", peak " $2 ", before " before }
  END { print held " ranks hold their share and halo" }'
