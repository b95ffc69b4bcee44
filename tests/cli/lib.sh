# SPDX-License-Identifier: Apache-2.0
# What the cases share; a case reads it with: . "$CASES/lib.sh"

# Runs a command with stderr on stdout and says how it ended.
try() {
  echo "\$ $*"
  "$@" 2>&1
  echo "exit $?"
}

# As try, without the command's stdout.
try_silent() {
  echo "\$ $*"
  "$@" 2>&1 >/dev/null
  echo "exit $?"
}

# Runs "TOOL OPTION... FILE" for every FILE, prints each message as "NAME: exit N: message" and
# complains about output bytes, silence, signals and internal errors.
#   refuse_all PREFIX FILE... -- COMMAND...   ({} stands for the file, PREFIX is cut from its name)
refuse_all() {
  refuse_prefix=$1
  shift
  refuse_files=
  while [ "$1" != -- ]; do
    refuse_files="$refuse_files $1"
    shift
  done
  shift
  refuse_count=0
  for refuse_file in $refuse_files; do
    refuse_name=${refuse_file#"$refuse_prefix"}
    refuse_count=$((refuse_count + 1))
    refuse_command=
    for refuse_word in "$@"; do
      case $refuse_word in
        *'{}'*) refuse_word=${refuse_word%%'{}'*}$refuse_file${refuse_word#*'{}'} ;;
      esac
      refuse_command="$refuse_command $refuse_word"
    done
    $refuse_command >refuse.out 2>refuse.err
    refuse_status=$?
    sed "s|^$1: $refuse_file|&|; s|^$1: ||; s|^$refuse_file|-|; s|^|$refuse_name: exit $refuse_status: |" refuse.err
    [ -s refuse.err ] || echo "$refuse_name: exit $refuse_status: NO MESSAGE"
    [ -s refuse.out ] && echo "$refuse_name: WROTE OUTPUT"
    if [ "$refuse_status" -ge 128 ] || [ "$refuse_status" -eq 70 ] || [ "$refuse_status" -eq 99 ]; then
      echo "$refuse_name: CRASHED"
    fi
  done
  rm -f refuse.out refuse.err
  echo "$refuse_count files"
}

# The first number that NAME has in a document or report:
#   number NAME <report
number() {
  grep -o "\"$1\": *-\{0,1\}[0-9][0-9.e+-]*" | head -n 1 | sed 's/.*: *//'
}

# Closes the read end of a pipe before COMMAND writes to it, and prints how COMMAND ended.
#   into_closed_pipe COMMAND...
into_closed_pipe() {
  rm -f pipe.closed pipe.status
  {
    while [ ! -e pipe.closed ]; do sleep 0.02; done
    "$@"
    echo "exit $?" >pipe.status
  } | {
    exec <&-
    : >pipe.closed
  }
  while [ ! -s pipe.status ]; do sleep 0.02; done
  cat pipe.status
  rm -f pipe.closed pipe.status
}

# "NAME DEVICE REASON" of every node of a document.
placement() {
  awk '
    function value(key,  text) {
      if (!match($0, "\"" key "\": \"[^\"]*\"")) return ""
      text = substr($0, RSTART, RLENGTH)
      gsub(/^"[^"]*": "|"$/, "", text)
      return text
    }
    /^  "nodes": / { inside = 1; next }
    /^  \]/ { inside = 0 }
    inside { text = value("name") " " value("device") " " value("device_reason"); sub(/ +$/, "", text); print text }'
}

# Whether the comparison SECTION (expect or verify) of a report holds:
#   comparison SECTION <report
comparison() {
  sed -n "/^  \"$1\": /,/^  }/s/^    \"ok\": \\([a-z]*\\).*/\\1/p"
}
