# SPDX-License-Identifier: Apache-2.0
# Functions that the cases share; a case reads them with: . "$CASES/lib.sh"

# Runs a command with stderr on stdout and prints how it ended.
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

# All programs, and those that read the document of a model, from stdin where none is named.
# shellcheck disable=SC2034 # the cases use them
programs="npu-tag npu-fuse npu-partition npu-align npu-compile npu-run npu-profile npu-plan"
# shellcheck disable=SC2034
graph_programs="npu-tag npu-fuse npu-partition npu-align npu-compile npu-run"

# Calls "FUNCTION PROGRAM" for each program, in a shell of its own and with stderr on stdout, and prints once what several
# print: below LABEL and their names, with PROGRAM in place of the name.
#   alike LABEL FUNCTION PROGRAM...
alike() {
  alike_label=$1
  alike_function=$2
  shift 2
  mkdir alike
  for alike_program in "$@"; do
    ($alike_function "$alike_program") >"alike/$alike_program" 2>&1
  done
  (
    cd alike || exit
    awk -v label="$alike_label" '
      {
        # Not in the names of files.
        gsub(FILENAME " ", "PROGRAM ")
        gsub(FILENAME ":", "PROGRAM:")
        sub(FILENAME "$", "PROGRAM")
        text[FILENAME] = text[FILENAME] $0 "\n"
      }
      END {
        for (i = 1; i < ARGC; i++) {
          if (!(text[ARGV[i]] in names)) order[++count] = text[ARGV[i]]
          names[text[ARGV[i]]] = names[text[ARGV[i]]] " " ARGV[i]
        }
        for (i = 1; i <= count; i++) printf "== %s:%s\n%s", label, names[order[i]], order[i]
      }' "$@"
  )
  rm -r alike
}

# Lets PROGRAM write a document, without its notes, of what document_inputs has put into the scratch folder: of MODEL, or of
# a model without nodes where the others would load a backend.
#   document_inputs MODEL; document PROGRAM OPTION...
document_inputs() {
  cp "$TESTDATA/gnn/subgraphs.json" "$TESTDATA/gnn/published.json" .
  npu-tag "$1" >model.json
  npu-tag "$TESTDATA/models/small/empty.json" >empty.json
}
document() {
  case $1 in
    npu-compile) set -- "$@" empty.json ;;
    npu-run) set -- "$@" --random-inputs 0 empty.json ;;
    npu-profile) set -- "$@" --import published.json ;;
    npu-plan) set -- "$@" --subgraphs subgraphs.json --profile published.json --no-transfers ;;
    *) set -- "$@" model.json ;;
  esac
  "$@" --quiet
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
    # By the shell: a process for each file would cost as much as the program.
    while IFS= read -r refuse_line; do
      refuse_line=${refuse_line#"$1: "}
      case $refuse_line in "$refuse_file"*) refuse_line=-${refuse_line#"$refuse_file"} ;; esac
      printf '%s\n' "$refuse_name: exit $refuse_status: $refuse_line"
    done <refuse.err
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

# Presses Ctrl-C while COMMAND runs, which takes long; once on a terminal and once without. Says how it ended, whether
# it showed its progress, and which files of the scratch folder are new. script(1) makes the terminal.
#   interrupt COMMAND...
interrupt() {
  ls >files.before
  for interrupt_where in terminal pipe; do
    # A slow machine may need longer to install the handler.
    for interrupt_after in 1.5 3 6 12; do
      interrupt_command="timeout --preserve-status -s INT $interrupt_after $*"
      if [ $interrupt_where = terminal ] && command -v script >/dev/null; then
        script -qec "$interrupt_command" script.log </dev/null >interrupt.out 2>&1
      else
        $interrupt_command >interrupt.out 2>&1
      fi
      interrupt_status=$?
      [ $interrupt_status -eq 1 ] && break
    done
    echo "$interrupt_where: exit $interrupt_status"
    if grep -q '[0-9] %, ' interrupt.out ||
      { [ $interrupt_where = terminal ] && ! command -v script >/dev/null; }; then
      echo "shows its progress"
    fi
    tr '\r' '\n' <interrupt.out | grep -o "$1: .*interrupted.*"
  done
  rm -f script.log interrupt.out
  ls | grep -v files.before | diff files.before - | sed -n 's/^> /new: /p' | grep -v files.before
  rm -f files.before
}

# Log messages without anything that differs from run to run and from machine to machine: times, keys of the cache,
# folders, versions, sizes of blobs and numbers of kernels.
mask_log() {
  sed 's/([0-9.]* ms)/(N ms)/; s/first run [0-9.]* ms/first run N ms/; s/\(hit\|miss\|kept\) [0-9a-f]\{32\}/\1 KEY/
    s|from /[^ ]*/|from FOLDER/|; s| in /[^ ]*| in FOLDER|; s|[^ ]*/no/such|FOLDER|; s/\(backend .[a-z]*.\) .* loaded/\1 VERSION loaded/
    s/fingerprint .*/fingerprint F/; s/\([:,]\) [0-9.]* [kM]*B (N ms)/\1 N B (N ms)/; s/[0-9]* kernels, [0-9]* reorders/N kernels/
    s/"threads":[0-9]*/"threads":N/' "$@"
}

# Ends a case, as skipped, where the backend opencl or a device for it is missing. Kernels that a driver keeps belong to
# the case, which says how many it builds at most: opencl/budget.sh adds that up, and pocl's are counted when the case
# ends. One that builds many is skipped unless NPU_TEST_MANY_KERNELS is 1, which scripts/check/opencl.sh --tests sets.
#   need_opencl COUNT|many
need_opencl() {
  opencl_budget=$1
  if [ "$opencl_budget" = many ] && [ "${NPU_TEST_MANY_KERNELS:-}" != 1 ]; then
    echo "skipped: it builds more kernels than the tests may; scripts/check/opencl.sh --tests runs it"
    exit 77
  fi
  POCL_CACHE_DIR=$(pwd)/kernels
  export POCL_CACHE_DIR
  mkdir -p "$POCL_CACHE_DIR"
  npu-run --list-backends >backends 2>&1
  if ! grep -q '"backend":"opencl"' backends; then
    echo "skipped: built without OpenCL (Debian package ocl-icd-opencl-dev)"
    exit 77
  fi
  if ! grep -q '"id":"opencl:0".*"usable":true' backends; then
    echo "skipped: no OpenCL device (Debian package pocl-opencl-icd)"
    exit 77
  fi
  [ "$opencl_budget" = many ] || trap count_opencl_kernels EXIT
}
count_opencl_kernels() {
  # pocl keeps a general form of each, and those of the work groups that were started; a kernel that comes from a binary lies
  # there a second time.
  opencl_built=$(find . -path '*/0-0-0/*.so' -exec cksum {} + | cut -d ' ' -f 1,2 | sort -u | wc -l)
  [ "$opencl_built" -le "$opencl_budget" ] || echo "$opencl_built kernels were built, $opencl_budget announced"
}

# numbers NAME N...: int64 numbers below 256, or negative ones above -257, as NAME.npy
numbers() {
  name=$1
  shift
  printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<i8', 'fortran_order': False, 'shape': ($#,), }" >"$name.npy"
  for n in "$@"; do
    sign=000
    [ "$n" -lt 0 ] && sign=377
    # shellcheck disable=SC2059 # the format is the number
    printf "$(printf '\\%03o' $(((n + 256) % 256)))\\$sign\\$sign\\$sign\\$sign\\$sign\\$sign\\$sign" >>"$name.npy"
  done
}

# The target of tests/install with two devices of BACKEND, beside a cpu of onednn, since libtorch takes most of a second to
# load.
#   vendor_target BACKEND >target.json
vendor_target() {
  sed "s/\"vendor\"/\"$1\"/; s/\"aten\"/\"onednn\"/" "$CASES/../unit/device/vendor_target.json"
}

# Ends a case, as skipped, where processes that speak over MPI cannot be started; together() starts COUNT of them.
#   need_mpi; together COUNT COMMAND...
# MPI does not start everywhere, for example without a network or shared memory.
need_mpi() {
  transports=$(dirname "$(command -v npu-plan)")/../lib/npu/transports
  mpi_lacks=
  command -v mpirun >/dev/null || mpi_lacks="there is no mpirun (Debian package openmpi-bin)"
  [ -e "$transports/npu_transport_mpi.so" ] || mpi_lacks="the transport over MPI is not built (Debian package libopenmpi-dev)"
  # Open MPI refuses to run as root and on fewer processors than ranks unless it is told to.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  [ -n "$mpi_lacks" ] || together 2 true 2>/dev/null || mpi_lacks="MPI does not start here"
  [ -z "$mpi_lacks" ] && return
  echo "skipped: $mpi_lacks"
  exit 77
}
together() {
  together_count=$1
  shift
  timeout 300 mpirun --oversubscribe --bind-to none -n "$together_count" "$@"
}
