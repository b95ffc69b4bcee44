#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that text is read only where it comes from outside of the process: from files, or across a C boundary. Inside, a
# graph is handed over as a graph (extract, GraphEditor, DocumentBuilder), a document as Json (valid_graph).
#
# A call may be in any file if what it reads is read_file(...); else its file is in the list below, with what it reads
# there. Text that the same expression has just written is read nowhere.
#
# Usage: check_text.sh SOURCE-DIR   exits 1 with a line for each call that is not in the list, and for each line of it
# that no call needs
set -eu
LC_ALL=C
export LC_ALL
cd "$1"

readers='
aten_backend.cpp      sub-IRs and blobs of the C interface, device and compile options
backend.cpp           option keys of a backend; options of a device and of a compile
blob.cpp              plan of a blob
boundary.cpp          compile options
bundle.cpp            manifest of a bundle
cache.cpp             report of an entry of the cache
check_backend.cpp     what a case found, in a process of its own
cost_case.cpp         answer of a backend
device_cases.cpp      option keys of a backend
device_check.cpp      answer of a backend
device_instance.cpp   report of a backend
device_options.cpp    device options
document_input.cpp    the document of a program
facts.cpp             device options
feature_cases.cpp     report of a backend
frontend.cpp          ops of a frontend
import_model.cpp      document of a frontend
import_template.cpp   what the writer of documents made, at several sizes
interface_cases.cpp   texts of a backend
json_reader.cpp       documents
layout_case.cpp       answer of a backend
memory.cpp            blobs of the C interface
models.cpp            report of a compile, which a blob holds
npu_profile.cpp       a file, of which the first look says what it is
prepare_bundle.cpp    document of a bundle
program_cases.cpp     report of a backend
query_case.cpp        answer of a backend
questions.hpp         sub-IRs of the C interface
report.cpp            blob of the C interface
safetensors.cpp       header of a file
session.cpp           template of a bundle
sized_request.cpp     template of a bundle
tap_case.cpp          report of a backend
target.cpp            targets that are embedded
time_cases.cpp        report of a backend
'
files=$(find libcore/src libcore/backends libcore/frontends libcore/transports tools -name '*.[ch]pp' | sort)
# shellcheck disable=SC2086 # a list of files without blanks
exec awk -v readers="$readers" '
  BEGIN {
    count = split(readers, rows, "\n")
    for (i = 1; i <= count; ++i) {
      if (rows[i] == "") continue
      split(rows[i], words, " ")
      listed[words[1]] = 1
    }
    reads = "(^|[^A-Za-z_.>])([a-z]+::)*(read_graph|read_sized_graph|read_valid_graph|parse_json|parse_python_json|[Jj]son::parse)[(]"
    writes = "dump[(]|write_(graph|document|subgraph|sub_ir)[(]|sub_ir_text[(]"
  }

  # A statement that reads text: declarations and definitions of readers begin with what they return.
  function check(text, line,    rest) {
    if (!match(text, reads)) return
    if (text ~ /^ *(Graph|Json) (read_graph|read_sized_graph|read_valid_graph|parse_json|parse_python_json)[(]std::string_view/) return
    rest = substr(text, RSTART + RLENGTH)
    if (rest ~ /^[)]/) return  # another one, which reads what a program was given
    ++calls
    if (rest ~ writes) {
      print FILENAME ":" line ": reads what it has written; hand over the graph, or its Json to valid_graph"
      failed = 1
    } else if (base in listed) {
      used[base] = 1
    } else if (rest !~ /^read_file[(]/) {
      print FILENAME ":" line ": reads text that is no file; tests/tree/check_text.sh lists who may"
      failed = 1
    }
  }

  FNR == 1 {
    base = FILENAME
    sub(/.*\//, "", base)
    statement = ""
  }
  {
    text = $0
    sub(/ *\/\/.*/, "", text)
    if (statement == "") start = FNR
    statement = statement text
    if (text ~ /[;{}]$/) {
      check(statement, start)
      statement = ""
    }
  }
  END {
    for (name in listed) {
      if (!(name in used)) {
        print "tests/tree/check_text.sh: nothing in " name " reads text"
        failed = 1
      }
    }
    if (calls < 30) {
      print "only " calls + 0 " calls were found"
      failed = 1
    }
    exit failed
  }' $files
