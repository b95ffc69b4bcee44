# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of the npu-tools for bash. Source it, or install it under the name of each program. Options, and what each
# takes, come from --help of the program itself; what stands here is how values are completed.

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
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} names kind value='' options=''
  COMPREPLY=()
  # bash splits words at "="; what stands behind one is a pattern, or the value of a long option.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]] && ((COMP_CWORD >= 2)); then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  # "  -o,--output FILE=-   text": names, then what the value is called, or two blanks and the text.
  while read -r names kind; do
    options+=" ${names//,/ }"
    [[ ,$names, != *",$previous,"* ]] || value=$kind
  done < <("${COMP_WORDS[0]/#\~/$HOME}" --help 2>/dev/null | sed -n 's/^  \(-[^ ]*\) \([^ ]*\).*/\1 \2/p')

  case $previous in
    -t | --target)
      _npu_files "$current"
      local files=("${COMPREPLY[@]}")
      _npu_words "$(npu-tag --list-targets 2>/dev/null | awk 'NR > 1 { print $1 }')" "$current"
      COMPREPLY+=("${files[@]}")
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
    -s | --strategy) value='blocks|contiguous|convex|metis|mincut|resources' ;;
    --json-infinity) value='keep|text|bare' ;;
    --dot-level) value='group|node|partition' ;;
    -a | --algorithm | --select) value='optimal|greedy' ;;
    --interpolation) value='bilinear|nearest' ;;
    --isa) value='generic|neon|avx2|avx2_vnni|avx512|avx512_vnni|avx512_bf16|avx512_fp16|amx' ;;
    --partitioner) value='auto|metis|multilevel|ptscotch' ;;
    --calibration) value='minmax|average|percentile|entropy|mse' ;;
    -w | --weight) value='count|bytes|time' ;;
  esac

  case $value in
    '' | Needs: | Excludes:) ;; # a flag
    DEVICE | '[DEVICE]')
      _npu_words "$(_npu_devices)" "$current"
      [[ $value == '[DEVICE]' && ${#COMPREPLY[@]} -eq 0 ]] || return # it may be left out
      ;;
    DEVICE=GLOB)
      compopt -o nospace 2>/dev/null
      _npu_words "$(_npu_devices | sed 's/$/=/')" "$current"
      return
      ;;
    [a-z]*'|'*)
      _npu_words "${value//|/ }" "$current"
      return
      ;;
    FILE* | INPUT=FILE | DIR | LIBRARY | PLAN)
      _npu_files "$current"
      return
      ;;
    *) return ;; # free text and numbers
  esac
  if [[ $current == -* ]]; then
    _npu_words "$options" "$current"
  else
    _npu_files "$current"
  fi
}

complete -F _npu_complete npu-tag npu-fuse npu-partition npu-align npu-plan npu-profile npu-compile npu-run
