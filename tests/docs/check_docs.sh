#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the documents against the programs.
#
# Usage: check_docs.sh CHECK SOURCE-DIR BIN-DIR
#   options    every option in --help is in the manual page and in the completions, and the other way round
#   pages      every program has a page, and groff has nothing to say about any page
#   examples   the EXAMPLES of every page run
#   readme     the sh blocks of README.md run (those marked bash need a device, a checkout or minutes), and its sample of a
#              report is what the first one prints
#   changelog  its first section is an unreleased one
#   kernels    npu-onednn(7) says of every kernel of the onednn backend what it promises
#   differences a page states each difference that the generator of networks leaves out
#   versions   the table of versions in npu(7) is what the sources say, and other versions are met as it says
# Exits 1 with a line for each fault, 77 if groff is missing.
set -eu

check=$1
source=$2
bin=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PATH="$bin:$PATH"
export PATH
LC_ALL=C
export LC_ALL
XDG_CACHE_HOME=$scratch/cache
export XDG_CACHE_HOME
failed=0

fault() {
  echo "check_docs.sh: $*" >&2
  failed=1
}

tools=$(sed -n 's/^npu_add_tool(\([a-z-]*\) .*/\1/p' "$source/tools/CMakeLists.txt")
[ -n "$tools" ] || fault "no npu_add_tool() in tools/CMakeLists.txt"

need_groff() {
  command -v groff >/dev/null && return
  echo "groff not found; on Debian: apt-get install groff-base" >&2
  exit 77
}

# What _npu gives to zsh's _arguments, without explanations and values.
zsh_options() {
  # shellcheck disable=SC2016 # for zsh
  zsh -f -c '
    setopt extendedglob
    _call_program() { shift; "$@" }
    _arguments() { print -l -- ${${(M)@:#\*-*}%%\[*} }
    words=($2 -) CURRENT=2 service=$2
    source $1' - "$source/scripts/completions/_npu" "$1" | sed 's/^\*//; s/=$//' | sort -u
}

# "  -h,--help   text" -> -h and --help
help_options() {
  "$1" --help | sed -n 's/^  \(-[^ ]*\).*/\1/p' | tr ',' '\n' | sort -u
}

# ".It Fl h , Fl -help" of the section OPTIONS -> -h and --help
page_options() {
  sed -n '/^\.Sh OPTIONS/,/^\.Sh EXIT/p' "$source/man/$1.1" |
    awk '/^\.It .*Fl/ { for (i = 1; i < NF; ++i) if ($i == "Fl") print "-" $(i + 1) }' | sort -u
}

completed_options() {
  bash -c '
    set -eu
    source "$1"
    COMP_WORDS=("$2" -) COMP_CWORD=1
    _npu_complete
    printf "%s\n" "${COMPREPLY[@]}"' - "$source/scripts/completions/npu.bash" "$1" | sort -u
}

# The lines of $2 that $3 lacks, as faults. $1: text
report_missing() {
  comm -23 "$2" "$3" >"$scratch/missing"
  while read -r option; do
    fault "$1: $option"
  done <"$scratch/missing"
}

check_options() {
  for tool in $tools; do
    help_options "$tool" >"$scratch/help"
    page_options "$tool" >"$scratch/page"
    completed_options "$tool" >"$scratch/completion"
    [ -s "$scratch/help" ] || fault "$tool --help lists no option"
    report_missing "man/$tool.1 lacks an option of $tool" "$scratch/help" "$scratch/page"
    report_missing "$tool has no option that stands in man/$tool.1" "$scratch/page" "$scratch/help"
    report_missing "npu.bash does not complete an option of $tool" "$scratch/help" "$scratch/completion"
    report_missing "npu.bash completes what $tool does not have" "$scratch/completion" "$scratch/help"
    if command -v zsh >/dev/null; then
      zsh_options "$tool" >"$scratch/completion"
      cmp -s "$scratch/help" "$scratch/completion" || fault "_npu completes for $tool: $(paste -sd' ' "$scratch/completion")"
    fi
  done
  # What --verify takes: a device, a file, or nothing, so that GRAPH follows.
  for row in npu-run:cpu npu-plan:part.json npu-align:part.json npu-partition:part.json; do
    (cd "$scratch" && touch part.json && bash -c 'source "$1"; COMP_WORDS=("$2" --verify "") COMP_CWORD=2; _npu_complete
       printf "%s\n" "${COMPREPLY[@]}"' - "$source/scripts/completions/npu.bash" "${row%:*}") >"$scratch/verify"
    [ "$(grep -xE 'cpu|part.json' "$scratch/verify")" = "${row#*:}" ] ||
      fault "npu.bash offers behind ${row%:*} --verify: $(paste -sd' ' "$scratch/verify")"
  done
  # Strategies are written out in the completion; npu-partition lists them in this message.
  npu-partition --strategy '?' "$source/testdata/models/small/empty.json" 2>&1 |
    sed -n 's/.*expected one of //p' | tr -d ' ' | tr ',' '\n' | sort >"$scratch/strategies"
  bash -c 'source "$1"; COMP_WORDS=(npu-partition -s "") COMP_CWORD=2; _npu_complete
           printf "%s\n" "${COMPREPLY[@]}"' - "$source/scripts/completions/npu.bash" |
    sort >"$scratch/completion"
  cmp -s "$scratch/strategies" "$scratch/completion" ||
    fault "strategies: npu-partition has $(paste -sd, "$scratch/strategies")," \
      "npu.bash $(paste -sd, "$scratch/completion")"
}

check_pages() {
  need_groff
  for tool in $tools; do
    [ -f "$source/man/$tool.1" ] || fault "$tool has no page man/$tool.1"
  done
  for page in "$source"/man/*.[1357] "$bin"/../man/*.7; do # the latter with lists of ops, see NpuInstall.cmake
    [ -f "$page" ] || continue
    groff -ww -mdoc -z "$page" >"$scratch/groff" 2>&1 || true # it exits 0 despite warnings
    [ ! -s "$scratch/groff" ] || fault "$(cat "$scratch/groff")"
    sections=$(sed -n 's/^\.Sh //p' "$page" | grep -v -x ENVIRONMENT | paste -sd,)
    case $page in
      *.3 | *.5 | *-cluster.7 | *-generate.7 | *-internals.7 | *-onednn.7 | *-onnx.7 | *-opencl.7 | *-security.7) expected="NAME,SYNOPSIS,DESCRIPTION,EXAMPLES,SEE ALSO,BUGS" ;;
      *) expected="NAME,SYNOPSIS,DESCRIPTION,OPTIONS,EXIT STATUS,EXAMPLES,SEE ALSO,BUGS" ;;
    esac
    [ "$sections" = "$expected" ] || fault "$page: sections are $sections, expected $expected"
    # Every page that is referred to exists.
    sed -n 's/^\.\(It \)\{0,1\}Xr \(npu[a-z-]*\) \([1357]\).*/\2.\3/p' "$page" | sort -u >"$scratch/references"
    while read -r reference; do
      [ -f "$source/man/$reference" ] || fault "$page refers to man/$reference, which does not exist"
    done <"$scratch/references"
  done
}

check_kernels() {
  sed -n 's/.*kName = "\([a-z0-9-]*\)";.*/\1/p' "$source"/libcore/backends/onednn/kernels/*/*.hpp | sort -u >"$scratch/kernels"
  [ -s "$scratch/kernels" ] || fault "no kernel with a name in libcore/backends/onednn/kernels"
  sed -n '/^\.Ss Kernels/,/^\.Ss Winograd/s/^\.It //p' "$source/man/npu-onednn.7" | tr -d ' ' | tr ',' '\n' | sort -u >"$scratch/page"
  for kernel in $(comm -23 "$scratch/kernels" "$scratch/page"); do
    fault "man/npu-onednn.7, section Kernels: kernel '$kernel' is not in the list"
  done
}

check_differences() {
  "$bin/npu_network_generator" --differences >"$scratch/differences"
  [ -s "$scratch/differences" ] || fault "npu_network_generator lists no difference"
  while read -r page sentence; do
    sed 's/^\.[A-Z][a-z] //' "$source/man/$page" | tr -s '\n ' ' ' | grep -qF -- "$sentence" ||
      fault "man/$page does not say '$sentence', which tests/generator/reference.cpp leaves out"
  done <"$scratch/differences"
}

# A folder to run examples in, which begin at the top of the repository.
prepare_scratch() {
  mkdir -p "$scratch/run"
  ln -s "$source/testdata" "$scratch/run/testdata"
}

# Runs a file of commands with bash in the scratch folder. $1: file, $2: name for messages
run_commands() {
  if ! (cd "$scratch/run" && bash -euo pipefail -x "$1") >"$scratch/output" 2>&1; then
    tail -n 20 "$scratch/output" >&2
    fault "an example of $2 fails; see above"
  fi
}

# Examples are taken from the rendered page, so that what runs is what a reader copies: lines that begin with "$ ",
# continued by lines that begin with "> ".
check_examples() {
  need_groff
  prepare_scratch
  # The examples of section 3 are those of an installation; tests/install runs them.
  for page in "$source"/man/*.[157]; do
    GROFF_NO_SGR=1 groff -mdoc -Tascii -P-cbou "$page" | awk '
      /^[A-Z]/ { here = /^EXAMPLES/ }
      here && /^ +\$ / { sub(/^ +\$ /, ""); print }
      here && /^ +> / { sub(/^ +> /, ""); print }' >"$scratch/commands"
    [ -s "$scratch/commands" ] || fault "$page has no example"
    run_commands "$scratch/commands" "$page"
  done
}

check_readme() {
  prepare_scratch
  mkdir "$scratch/tmp"
  block=1
  while :; do
    awk -v wanted="$block" '/^```sh$/ { here = ++seen == wanted; next } /^```$/ { here = 0 } here' "$source/README.md" |
      sed "s#/tmp/#$scratch/tmp/#g" >"$scratch/commands"
    [ -s "$scratch/commands" ] || break
    run_commands "$scratch/commands" "README.md (block $block)"
    [ $block -gt 1 ] || cp "$scratch/output" "$scratch/first"
    block=$((block + 1))
  done
  [ $block -gt 1 ] || fault "README.md has no example"
  awk '/^```text$/ { here = 1; next } /^```$/ { here = 0 } here' "$source/README.md" | grep -vx -F ... >"$scratch/sample" ||
    fault "README.md has no sample of a report"
  sed 's/ *$//' "$scratch/first" | sort -u >"$scratch/printed"
  sort -u "$scratch/sample" >"$scratch/shown"
  report_missing "README.md: the sample has a line that the first example does not print" "$scratch/shown" "$scratch/printed"
  for tool in $tools; do
    head -n 60 "$source/README.md" | grep -q "^- \[\`$tool\`\](man/$tool.1) " || fault "README.md has no bullet for $tool"
  done
  head -n 40 "$source/README.md" | grep -q -i '^licence' || fault "README.md: no licence in the first 40 lines"
}

check_changelog() {
  first=$(sed -n '/^## /{p;q;}' "$source/CHANGELOG.md")
  expr "$first" : '## [0-9.]* (unreleased)$' >/dev/null ||
    fault "CHANGELOG.md: the first section is '$first', expected '## X.Y.Z (unreleased)'"
}

# The number that the table of npu(7) gives for format $1.
stated_version() {
  sed -n "s/^\.It $1 Ta \([0-9]*\) Ta .*/\1/p" "$source/man/npu.7"
}

# The version of format $1 is the number behind $2 in file $3.
same_version() {
  found=$(grep -o "$2[0-9]*" "$source/$3" | head -n 1 | grep -o '[0-9]*$')
  [ -n "$found" ] || fault "no version of '$1' in $3"
  [ "$(stated_version "$1")" = "$found" ] ||
    fault "npu.7 says version $(stated_version "$1") of '$1', $3 has $found"
}

# The command has to refuse with status 1 and a message that matches $2. $1: format
refuses() {
  format=$1
  message=$2
  shift 2
  status=0
  "$@" >"$scratch/output" 2>"$scratch/message" || status=$?
  { [ $status -eq 1 ] && grep -q "$message" "$scratch/message"; } ||
    fault "another version of '$format': exit $status, $(head -n 1 "$scratch/message")"
}

# Copies $1 to $2 with npu.version one higher.
raise_version() {
  awk '!done && sub(/"version": *1/, "\"version\": 2") { done = 1 } { print }' "$1" >"$2"
  ! cmp -s "$1" "$2" || fault "no npu.version in $1"
}

check_versions() {
  same_version document 'kIrVersion = ' libcore/include/npu/ir/json_reader.hpp
  same_version 'node table' 'kVersion = ' libcore/src/cost/node_table.cpp
  same_version ranges 'kVersion = ' libcore/src/quant/tensor_ranges.cpp
  same_version bundle 'kBundleVersion = ' libcore/include/npu/compile/bundle.hpp
  same_version 'cache entry' 'kEntryMagic = "npucach' libcore/src/compile/cache.cpp
  same_version 'backend ABI' 'NPU_ABI_VERSION ' libcore/include/npu/backend.h
  same_version 'custom operators' 'NPU_CUSTOM_OP_ABI_VERSION ' libcore/include/npu/custom_op.hpp

  prepare_scratch
  cd "$scratch/run"
  cp testdata/gnn/* .
  npu-plan graph.mtx --model graphsage.json --profile profile.json -k 2 -o plan.json 2>/dev/null
  npu-profile testdata/models/small/mlp.json --quick --runs 1 --threads 1 -o nodes.json 2>/dev/null
  npu-tag testdata/models/small/mlp.json >model.json
  npu-compile model.json -o model.npub
  for format in graphsage profile nodes plan model; do
    raise_version $format.json $format.2.json
  done
  for format in 'staged model:graphsage' 'stage table:profile' 'node table:nodes' plan:plan; do
    written=$(sed -n 's/.*"version": *\([0-9]*\).*/\1/p' "${format#*:}.json" | head -n 1)
    [ "$(stated_version "${format%:*}")" = "$written" ] ||
      fault "npu.7 says version $(stated_version "${format%:*}") of '${format%:*}', ${format#*:}.json has $written"
  done
  refuses document 'version 2 is unknown, this program reads 1' npu-partition model.2.json
  refuses 'staged model' 'expected version 1' npu-plan graph.mtx --model graphsage.2.json --profile profile.json -k 2
  refuses 'stage table' 'expected version 1' npu-plan graph.mtx --model graphsage.json --profile profile.2.json -k 2
  refuses 'node table' 'expected version 1' npu-partition --profile nodes.2.json model.json
  if grep -q '^\.It plan Ta 1 Ta refused' "$source/man/npu.7"; then
    refuses plan 'expected version 1' npu-plan --verify plan.2.json
    refuses plan 'expected version 1' npu-run plan.2.json --simulate
  fi
  echo '{"npu": {}, "graph_inputs": [], "graph_outputs": [], "nodes": []}' | npu-tag >/dev/null ||
    fault "npu.7 says that a document without a version counts as 1"

  { head -c 8 model.npub; printf '\002'; tail -c +10 model.npub; } >model.2.npub
  refuses bundle 'has bundle version 2, this program reads version 1' npu-run model.2.npub --random-inputs 0
  for entry in "$XDG_CACHE_HOME"/npu/*.npublob; do
    { printf npucach2; tail -c +9 "$entry"; } >other-version
    cp other-version "$entry"
  done
  NPU_LOG=cache=info npu-compile model.json -o again.npub 2>"$scratch/message"
  grep -q 'cache: miss .*damaged and is removed' "$scratch/message" || fault "a cache entry of another version is used"
  cmp -s model.npub again.npub || fault "the partition was not compiled again"
}

case $check in
  options) check_options ;;
  pages) check_pages ;;
  examples) check_examples ;;
  readme) check_readme ;;
  changelog) check_changelog ;;
  versions) check_versions ;;
  kernels) check_kernels ;;
  differences) check_differences ;;
  *) fault "unknown check '$check'" ;;
esac
exit $failed
