# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of the npu-tools for bash. Source it, or install it under the name of each program.

# The devices of the target on the command line; those of the default target where it names none.
_npu_devices() {
  local i target=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      -t | --target) target=(--target "${COMP_WORDS[i + 1]}") ;;
    esac
  done
  npu-tag "${target[@]}" --list-ops 2>/dev/null | awk 'NR > 1 && !seen[$1]++ { print $1 }'
}

_npu_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_npu_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_npu_complete() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options
  local common='-h --help --version -v --verbose -q --quiet --report --assert'
  COMPREPLY=()
  # bash splits words at "="; what stands behind one is a pattern, or the value of a long option.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]] && ((COMP_CWORD >= 2)); then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi

  case $previous in
    -t | --target)
      _npu_files "$current"
      local files=("${COMPREPLY[@]}")
      _npu_words "$(npu-tag --list-targets 2>/dev/null | awk 'NR > 1 { print $1 }')" "$current"
      COMPREPLY+=("${files[@]}")
      return
      ;;
    -s | --strategy)
      _npu_words 'blocks contiguous convex metis mincut resources' "$current"
      return
      ;;
    --force)
      compopt -o nospace 2>/dev/null
      _npu_words "$(_npu_devices | sed 's/$/=/')" "$current"
      return
      ;;
    --list-ops)
      _npu_words "$(_npu_devices)" "$current"
      [[ ${#COMPREPLY[@]} -gt 0 ]] && return
      ;;
    --verify) # of the other programs it is a flag
      case ${COMP_WORDS[0]##*/} in
        npu-run)
          _npu_words "$(_npu_devices)" "$current"
          return
          ;;
        npu-plan)
          _npu_files "$current"
          return
          ;;
      esac
      ;;
    --json-infinity)
      _npu_words 'keep text bare' "$current"
      return
      ;;
    --exclude-device)
      _npu_words "$(_npu_devices)" "$current"
      return
      ;;
    --dot-level)
      _npu_words 'group node partition' "$current"
      return
      ;;
    --select)
      _npu_words 'optimal greedy' "$current"
      return
      ;;
    --interpolation)
      _npu_words 'bilinear nearest' "$current"
      return
      ;;
    --model | --profile | --bandwidths | --subgraphs | --graph | --partition-file | --gantt | --import | --features | --calibrate | --ranges | --links)
      _npu_files "$current"
      return
      ;;
    --precision)
      _npu_words 'f32 bf16 f16' "$current"
      return
      ;;
    --isa)
      _npu_words 'generic neon avx2 avx2_vnni avx512 avx512_vnni avx512_bf16 avx512_fp16 amx' "$current"
      return
      ;;
    -a | --algorithm)
      _npu_words 'optimal greedy' "$current"
      return
      ;;
    --quantize)
      _npu_words 'int8 mixed' "$current"
      return
      ;;
    --partitioner)
      _npu_words 'auto metis multilevel ptscotch' "$current"
      return
      ;;
    --calibration)
      _npu_words 'minmax average percentile entropy mse' "$current"
      return
      ;;
    -w | --weight)
      _npu_words 'count bytes time' "$current"
      return
      ;;
    -p | --patterns)
      compopt -o nospace 2>/dev/null
      local before=
      [[ $current == *,* ]] && before=${current%,*},
      _npu_words "default all none $(npu-fuse --list-patterns 2>/dev/null | awk 'NR > 1 { print $1 }')" "${current##*,}"
      COMPREPLY=("${COMPREPLY[@]/#/$before}")
      return
      ;;
    -o | --output | --tune | --weights-out | --cache-dir | --pattern-file | --dot | --weights | --inputs | --outputs | --expect | --trace | --load-ops | --units)
      _npu_files "$current"
      return
      ;;
    --require-digest | --assert | --min-nodes | --depth | --max-ops | --min-flops | --max-partitions | --memory-limit | --deadline | -k | --parts | --imbalance | --seed | --random-weights | --random-inputs | --rtol | --atol | --bench | --in-flight | --threads | -j | --jobs | --cache-limit | \
      --seeds | --node-imbalance | --edge-imbalance | --nodes | --pad | --ratios | --segments | --top-k | --devices | \
      --device | --exclude | --memory | --resource | --degrees | --runs | --error-samples | --max-error | --max-bytes)
      return # free text and numbers
      ;;
  esac

  case ${COMP_WORDS[0]##*/} in
    npu-tag)
      options="$common --bind --freeze -o --output --json-infinity --weights-out -t --target --devices --exclude-device --force --keep-tags --no-fold --ask --load-ops --list-ops --frontend --list-targets --print-target"
      ;;
    npu-fuse)
      options="$common --bind --freeze -o --output --json-infinity -p --patterns --pattern-file --max-ops --list-patterns"
      ;;
    npu-partition)
      options="$common --bind --freeze -o --output --json-infinity -s --strategy --min-nodes --depth --min-flops --max-partitions --memory-limit --dot --dot-level"
      options+=" -k --parts --imbalance --best-effort --seed --what-if --verify --profile"
      ;;
    npu-compile)
      options="$common --bind --freeze -o --output -t --target --devices --exclude-device --precision --quantize --calibrate --calibration --full --max-error --no-smooth --no-bias-correction --isa --device --weights --random-weights -j --jobs --threads"
      options+=" --no-fallback --load-ops --promote --tune --cache-dir --no-cache --cache-limit --memory-limit --deadline --info"
      ;;
    npu-align)
      options="$common --bind --freeze -o --output --json-infinity -a --algorithm -w --weight -t --target --explain --dot --quantize --ranges --calibration --full --max-error --no-smooth --no-bias-correction --profile --verify --onnx-qdq --weights --random-weights"
      ;;
    npu-plan)
      options="$common -o --output --model --profile --bandwidths --subgraphs --target -k --parts --seeds --seed"
      options+=" --node-imbalance --edge-imbalance --minimize-halo --partitioner --threads --nodes --undirected --pad --ratios --segments --top-k"
      options+=" --select --interpolation --no-transfers --devices --exclude --memory --resource --partition-file"
      options+=" --ranks --rank-memory --rank-bandwidth --rank-latency --links --exchange --csr --gantt --trace --verify"
      ;;
    npu-profile)
      options="${common% --assert} --bind --freeze -o --output --weights --random-weights --target --devices --nodes --degrees --graph -k --parts --undirected"
      options+=" --runs --threads --max-bytes --precision --quick --machine --backend --links --import --bandwidths --calibrate --error-samples --ranges"
      ;;
    npu-run)
      options="$common --bind --freeze --weights --random-weights --inputs --random-inputs --outputs --expect --verify"
      options+=" --each --isolate --bisect --reduce --tap"
      options+=" --rtol --atol --bench --threads --target --devices --exclude-device --trace --no-overlap --in-flight --precision --cache-dir --no-cache --cache-limit --memory-limit --deadline --load-ops --promote --list-ops"
      options+=" --require-digest --no-verify-digests --list-backends --check-backend --quick --case --random-nodes --case-limit"
      options+=" --features --device --units --simulate"
      ;;
  esac
  if [[ $current == -* ]]; then
    _npu_words "$options" "$current"
  else
    _npu_files "$current"
  fi
}

complete -F _npu_complete npu-tag npu-fuse npu-partition npu-align npu-plan npu-profile npu-compile npu-run
