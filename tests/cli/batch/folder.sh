# SPDX-License-Identifier: Apache-2.0
# scripts/batch.mk compiles a folder with make -j, makes again only what changed, and goes on after
# a model that fails.
command -v make >/dev/null || { cat "$CASES/batch/folder.stdout"; exit; }
small=$TESTDATA/models/small
mkdir zoo
for name in mlp residual depthwise; do cp "$small/$name.json" "$small/$name.safetensors" zoo; done
echo "include $(cd "$CASES" && pwd -P)/../../scripts/batch.mk" >Makefile
batch() {
  make -s -j3 npu-batch NPU_MODELS=zoo "$@" >log 2>&1
  echo "exit $?"
  make -n npu-batch NPU_MODELS=zoo "$@" 2>&1 | grep -c '^npu-' | sed 's/$/ left to do/'
}
changed() {
  find zoo -newer mark -name '*.npub' -o -newer mark -name '*.part.json' -o -newer mark -name '*.tagged.json' | sort
  sleep 0.02
  touch mark
  sleep 0.02
}
touch mark
sleep 0.02
echo "all:"; batch; changed
echo "nothing changed:"; batch; changed
echo "one document:"; touch zoo/mlp.json; batch; changed
echo "one file of weights:"; touch zoo/residual.safetensors; batch; changed
echo "flags of npu-compile:"; batch NPU_COMPILE_FLAGS='--precision bf16'; changed
npu-compile --info zoo/mlp.npub | grep '^  "precision"'
echo "flags of npu-partition:"; batch NPU_COMPILE_FLAGS='--precision bf16' NPU_PARTITION_FLAGS='--strategy contiguous'; changed
echo "a bundle by name, with a quote in its flags:"
rm zoo/mlp.npub
make -s zoo/mlp.npub NPU_TAG_FLAGS="--force 'cpu=aten.gelu*'" 2>&1
npu-compile --info zoo/mlp.npub | grep -c '"device":"cpu"'
npu-run zoo/mlp.npub --inputs "$small/mlp.inputs.safetensors" --expect "$small/mlp.outputs.safetensors" >report
echo "exit $?"
echo "with a launcher:"
cat >launch <<'END'
#!/bin/sh
# As srun: options of its own, then the program.
[ "$1" = -n1 ] || exit 1
shift
echo "$1" >>started
exec "$@"
END
chmod +x launch
touch zoo/depthwise.json
batch NPU_LAUNCH='./launch -n1'; changed
sort started
rm launch started
echo "a broken document:"
echo '{"nodes": [' >zoo/broken.json
touch zoo/*.json
make -s -k -j2 npu-batch NPU_MODELS=zoo 2>&1 | grep -v '^make' | sort
ls zoo | grep -c 'npub$'
echo "clean:"
make -s npu-batch-clean NPU_MODELS=zoo
ls -A . zoo | grep -v report
