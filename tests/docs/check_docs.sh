#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the documents against the programs.
#
# Usage: check_docs.sh CHECK SOURCE-DIR BIN-DIR
#   options    every option in --help is in the manual page and in the completion, and the other way round
#   pages      every program has a page, and groff has nothing to say about any page
#   examples   the EXAMPLES of every page run
#   readme     the first example of README.md runs
#   changelog  its first section is Unreleased
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
  for page in "$source"/man/*.[157]; do
    groff -ww -mdoc -z "$page" >"$scratch/groff" 2>&1 || true # it exits 0 despite warnings
    [ ! -s "$scratch/groff" ] || fault "$(cat "$scratch/groff")"
    sections=$(sed -n 's/^\.Sh //p' "$page" | grep -v -x ENVIRONMENT | paste -sd,)
    case $page in
      *.5) expected="NAME,SYNOPSIS,DESCRIPTION,EXAMPLES,SEE ALSO,BUGS" ;;
      *) expected="NAME,SYNOPSIS,DESCRIPTION,OPTIONS,EXIT STATUS,EXAMPLES,SEE ALSO,BUGS" ;;
    esac
    [ "$sections" = "$expected" ] || fault "$page: sections are $sections, expected $expected"
    # Every page that is referred to exists.
    sed -n 's/^\.\(It \)\{0,1\}Xr \(npu[a-z-]*\) \([157]\).*/\2.\3/p' "$page" | sort -u >"$scratch/references"
    while read -r reference; do
      [ -f "$source/man/$reference" ] || fault "$page refers to man/$reference, which does not exist"
    done <"$scratch/references"
  done
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
  awk '/^```sh$/ && !seen { here = 1; seen = 1; next } /^```$/ { here = 0 } here' "$source/README.md" \
    >"$scratch/commands"
  [ -s "$scratch/commands" ] || fault "README.md has no example"
  run_commands "$scratch/commands" README.md
  for tool in $tools; do
    head -n 40 "$source/README.md" | grep -q "^- \`$tool\` " || fault "README.md has no bullet for $tool"
  done
  head -n 40 "$source/README.md" | grep -q -i '^licence' || fault "README.md: no licence in the first 40 lines"
}

check_changelog() {
  first=$(sed -n '/^## /{p;q;}' "$source/CHANGELOG.md")
  [ "$first" = "## Unreleased" ] || fault "CHANGELOG.md: the first section is '$first', expected '## Unreleased'"
}

case $check in
  options) check_options ;;
  pages) check_pages ;;
  examples) check_examples ;;
  readme) check_readme ;;
  changelog) check_changelog ;;
  *) fault "unknown check '$check'" ;;
esac
exit $failed
