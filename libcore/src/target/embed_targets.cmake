# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C++ source with the text of each of FILES (a list) as string literals.
#
#   cmake -DFILES=a.json;b.json -DOUTPUT=embedded_targets.cpp -P embed_targets.cmake
#
# A device {"target": "NAME", "name": "DEVICE"} stands for that device of the file NAME.json beside it.
#
# No literal exceeds 8000 bytes: the standard asks compilers for 65536 characters only, some take 16380.
cmake_minimum_required(VERSION 3.16)

set(piece_size 8000)
set(by_name "")
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME_WE)
  list(APPEND by_name "${name}=${file}")
endforeach()
list(SORT by_name)

set(source "// Written by embed_targets.cmake; do not edit.
#include \"target/embedded_targets.hpp\"

namespace npu {

const std::vector<EmbeddedTarget>& embedded_targets() {
  static const std::vector<EmbeddedTarget> targets = {
")
foreach(entry IN LISTS by_name)
  string(FIND "${entry}" "=" split)
  string(SUBSTRING "${entry}" 0 ${split} name)
  math(EXPR split "${split} + 1")
  string(SUBSTRING "${entry}" ${split} -1 file)
  file(READ "${file}" text)
  get_filename_component(folder "${file}" DIRECTORY)
  while(text MATCHES "    {\"target\": \"([^\"]+)\", \"name\": \"([^\"]+)\"}")
    set(reference "${CMAKE_MATCH_0}")
    set(device "${CMAKE_MATCH_2}")
    file(READ "${folder}/${CMAKE_MATCH_1}.json" other)
    string(FIND "${other}" "    {\n      \"name\": \"${device}\"," begin)
    if(begin EQUAL -1)
      message(FATAL_ERROR "${file}: ${CMAKE_MATCH_1}.json has no device ${device}")
    endif()
    string(SUBSTRING "${other}" ${begin} -1 other)
    string(FIND "${other}" "\n    }" end)
    math(EXPR end "${end} + 6")
    string(SUBSTRING "${other}" 0 ${end} other)
    string(REPLACE "${reference}" "${other}" text "${text}")
  endwhile()
  string(FIND "${text}" ")npu_target\"" terminator)
  if(NOT terminator EQUAL -1)
    message(FATAL_ERROR "${file}: contains the text that ends its literal")
  endif()
  string(APPEND source "      {\"${name}\",\n")
  string(LENGTH "${text}" length)
  if(length EQUAL 0)
    message(FATAL_ERROR "${file}: empty")
  endif()
  set(position 0)
  while(position LESS length)
    string(SUBSTRING "${text}" ${position} ${piece_size} piece)
    string(APPEND source "R\"npu_target(${piece})npu_target\"\n")
    math(EXPR position "${position} + ${piece_size}")
  endwhile()
  string(APPEND source "      },\n")
endforeach()
string(APPEND source "  };
  return targets;
}

}  // namespace npu
")
file(WRITE "${OUTPUT}" "${source}")
