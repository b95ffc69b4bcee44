# SPDX-License-Identifier: Apache-2.0
# Installs the build tree to a scratch prefix, compares the files there with installed_files.txt both ways, runs
# the programs from there, and builds a project that uses the library.
#
# UPDATE_GOLDENS=1 in the environment rewrites the list instead.
cmake_minimum_required(VERSION 3.25)
set(prefix "${SCRATCH}/prefix")
set(list "${CMAKE_CURRENT_LIST_DIR}/installed_files.txt")
set(ENV{NPU_BACKEND_PATH})  # backends are to be found beside the programs
set(ENV{XDG_CACHE_HOME} "${SCRATCH}/cache")

# Runs a command; fails with its output if it does. The output on stdout is left in `output`.
macro(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${SCRATCH}"
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "exit ${result}: ${ARGN}\n${output}${errors}")
  endif()
endmacro()

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}")

# ---- The files ----

file(GLOB_RECURSE found LIST_DIRECTORIES false RELATIVE "${prefix}" "${prefix}/*")
# One file for each build type.
string(REGEX REPLACE "npu-targets-[a-z]+\\.cmake" "npu-targets-CONFIG.cmake" found "${found}")
list(SORT found)
if(DEFINED ENV{UPDATE_GOLDENS} AND HAS_ATEN AND HAS_ONEDNN AND HAS_MPI AND HAS_PTSCOTCH AND HAS_OPENCL)
  list(JOIN found "\n" text)
  file(WRITE "${list}" "${text}\n")
endif()
file(STRINGS "${list}" expected)
if(NOT HAS_ATEN)
  list(FILTER expected EXCLUDE REGEX "npu_backend_aten")
endif()
if(NOT HAS_ONEDNN)
  list(FILTER expected EXCLUDE REGEX "npu_backend_onednn")
endif()
if(NOT HAS_MPI)
  list(FILTER expected EXCLUDE REGEX "npu_transport_mpi")
endif()
if(NOT HAS_PTSCOTCH)
  list(FILTER expected EXCLUDE REGEX "npu_partitioner_ptscotch")
endif()
if(NOT HAS_OPENCL)
  list(FILTER expected EXCLUDE REGEX "npu_backend_opencl")
endif()
set(missing ${expected})
list(REMOVE_ITEM missing ${found})
set(extra ${found})
list(REMOVE_ITEM extra ${expected})
if(missing OR extra)
  list(JOIN missing "\n  " missing)
  list(JOIN extra "\n  " extra)
  message(FATAL_ERROR "the install differs from tests/install/installed_files.txt "
    "(scripts/update_goldens.sh -L install rewrites it)\nnot installed:\n  ${missing}\nnot in the list:\n  ${extra}")
endif()

# ---- The programs ----

file(GLOB tools RELATIVE "${prefix}/bin" "${prefix}/bin/*")
foreach(tool IN LISTS tools)
  run("${prefix}/bin/${tool}" --version)
  if(NOT output STREQUAL "${tool} ${VERSION}\n")
    message(FATAL_ERROR "${tool} --version prints '${output}'")
  endif()
endforeach()

if(HAS_ATEN AND HAS_ONEDNN)
  set(model "${SOURCE_DIR}/testdata/models/small/residual")
  execute_process(
    COMMAND "${prefix}/bin/npu-tag" --force "cpu=aten.max_pool2d*" "${model}.json"
    COMMAND "${prefix}/bin/npu-partition"
    COMMAND "${prefix}/bin/npu-run" --inputs "${model}.inputs.safetensors"
            --expect "${model}.outputs.safetensors"
    WORKING_DIRECTORY "${SCRATCH}" RESULTS_VARIABLE results OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT results STREQUAL "0;0;0")
    message(FATAL_ERROR "the installed pipeline exits with ${results}\n${output}${errors}")
  endif()
  foreach(backend aten onednn)
    string(JSON version ERROR_VARIABLE absent GET "${output}" backends ${backend})
    if(absent)
      message(FATAL_ERROR "the installed pipeline does not run on the backend ${backend}: ${absent}")
    endif()
  endforeach()
endif()

run(sh "${CMAKE_CURRENT_LIST_DIR}/check_op_lists.sh" "${prefix}" "${SCRATCH}")

# ---- The package ----

run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${SCRATCH}/consumer" -G "${GENERATOR}"
  "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}" "-DNPU_EXPECTED_VERSION=${VERSION}"
  "-DCMAKE_C_COMPILER=${C_COMPILER}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
run("${CMAKE_COMMAND}" --build "${SCRATCH}/consumer")
if(HAS_ATEN AND HAS_ONEDNN)
  # Backends lie beside a program, or where the library was configured to be installed.
  file(CREATE_LINK "${prefix}/lib" "${SCRATCH}/lib" SYMBOLIC)
  file(CREATE_LINK "${prefix}/libexec" "${SCRATCH}/libexec" SYMBOLIC)
  run("${SCRATCH}/consumer/consumer" "${SOURCE_DIR}/testdata/models/small/residual.json" "${SCRATCH}/residual.npub")
endif()
if(HAS_ATEN AND HAS_ONEDNN AND NOT output MATCHES "^residual: [0-9]+ nodes, [1-9][0-9]* on npu\n$")
  message(FATAL_ERROR "the consumer prints '${output}'")
endif()

# ---- Custom ops ----

if(HAS_ATEN AND HAS_ONEDNN)
  file(GLOB library "${SCRATCH}/consumer/libmy_ops.so")
  if(NOT library)
    message(FATAL_ERROR "the consumer's custom ops were not built")
  endif()
  # The document compares the custom op with ATen's own and stops if they differ.
  execute_process(
    COMMAND "${prefix}/bin/npu-tag" --load-ops "${library}" "${CMAKE_CURRENT_LIST_DIR}/consumer/row_max.json"
    COMMAND "${prefix}/bin/npu-partition"
    COMMAND "${prefix}/bin/npu-run" --load-ops "${library}" --random-inputs 1
    WORKING_DIRECTORY "${SCRATCH}" RESULTS_VARIABLE results OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT results STREQUAL "0;0;0")
    message(FATAL_ERROR "the installed pipeline with custom ops exits with ${results}\n${output}${errors}")
  endif()
  string(JSON name ERROR_VARIABLE absent GET "${output}" outputs 0 name)
  if(NOT name STREQUAL "row_max_0")
    message(FATAL_ERROR "the first output of the custom op is '${name}'")
  endif()
endif()

# ---- A vendor's backend ----

# The examples of npu-backend(3), which need nothing but the installation.
set(models "")
if(NOT HAS_ATEN)
  set(models no-models)
endif()
run(sh "${CMAKE_CURRENT_LIST_DIR}/vendor_hour.sh" "${prefix}" "${SOURCE_DIR}" "${SCRATCH}/vendor_hour" ${models})

if(HAS_ATEN)
  # It is found only through NPU_BACKEND_PATH; then it runs a partition of a bundle. The partitions are made beforehand:
  # by cost, so small a model would run on libtorch alone.
  run("${prefix}/bin/npu-tag" "${SOURCE_DIR}/tests/cli/npu-compile/branches.json"
    --target "${prefix}/share/npu/examples/skeleton/skeleton_target.json" -o vendor_tagged.json)
  run("${prefix}/bin/npu-partition" vendor_tagged.json -s contiguous -o vendor_plan.json)
  set(compile "${prefix}/bin/npu-compile" vendor_plan.json --no-cache --random-weights 1 -o vendor.npub)
  execute_process(COMMAND ${compile} WORKING_DIRECTORY "${SCRATCH}" RESULT_VARIABLE result ERROR_VARIABLE errors)
  if(NOT result EQUAL 1 OR NOT errors MATCHES "set NPU_BACKEND_PATH to its folder")
    message(FATAL_ERROR "without its folder, compiling for the vendor exits with ${result}\n${errors}")
  endif()
  set(ENV{NPU_BACKEND_PATH} "${SCRATCH}/vendor_hour/build-skeleton")
  run(${compile})
  run("${prefix}/bin/npu-run" vendor.npub --random-inputs 1 --verify cpu)
  string(JSON version ERROR_VARIABLE absent GET "${output}" backends skeleton)
  string(JSON verified ERROR_VARIABLE absent GET "${output}" verify ok)
  if(NOT version STREQUAL "1.0" OR NOT verified)
    message(FATAL_ERROR "the vendor's backend does not run the bundle: ${output}")
  endif()
  set(ENV{NPU_BACKEND_PATH})
endif()

# ---- Compiling a folder ----

find_program(make_program make)
if(HAS_ATEN AND HAS_ONEDNN AND make_program)
  file(MAKE_DIRECTORY "${SCRATCH}/zoo")
  file(COPY "${SOURCE_DIR}/testdata/models/small/mlp.json" "${SOURCE_DIR}/testdata/models/small/mlp.safetensors"
    DESTINATION "${SCRATCH}/zoo")
  file(WRITE "${SCRATCH}/Makefile" "include ${prefix}/share/npu/batch.mk\n")
  run("${CMAKE_COMMAND}" -E env "PATH=${prefix}/bin:$ENV{PATH}"
    "${make_program}" -j2 npu-batch NPU_MODELS=zoo)
  if(NOT EXISTS "${SCRATCH}/zoo/mlp.npub")
    message(FATAL_ERROR "batch.mk made no bundle\n${output}")
  endif()
endif()
