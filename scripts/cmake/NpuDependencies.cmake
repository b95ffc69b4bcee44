# SPDX-License-Identifier: Apache-2.0
# Every library that the project uses, with the minimum version and its Debian package.

function(npu_missing what package)
  message(FATAL_ERROR "${what} not found. Install Debian's '${package}' (./scripts/quickstart.sh installs all of them).")
endfunction()

find_package(Threads REQUIRED)

find_package(nlohmann_json 3.11 CONFIG QUIET)
if(NOT nlohmann_json_FOUND)
  npu_missing("nlohmann/json >= 3.11" "nlohmann-json3-dev")
endif()
get_target_property(_json_include nlohmann_json::nlohmann_json INTERFACE_INCLUDE_DIRECTORIES)

find_package(simdjson 3.0 CONFIG QUIET)
if(NOT simdjson_FOUND)
  npu_missing("simdjson >= 3.0" "libsimdjson-dev")
endif()

find_package(CLI11 2.1 CONFIG QUIET)
if(NOT CLI11_FOUND)
  npu_missing("CLI11 >= 2.1" "libcli11-dev")
endif()

find_package(spdlog 1.10 CONFIG QUIET)
if(NOT spdlog_FOUND)
  npu_missing("spdlog >= 1.10" "libspdlog-dev")
endif()

find_package(fmt 9 CONFIG QUIET)
if(NOT fmt_FOUND)
  npu_missing("fmt >= 9 (spdlog's formatting library)" "libfmt-dev")
endif()

find_package(Boost 1.74 QUIET)
if(NOT Boost_FOUND OR NOT EXISTS "${Boost_INCLUDE_DIRS}/boost/graph/boykov_kolmogorov_max_flow.hpp")
  npu_missing("Boost.Graph >= 1.74" "libboost-graph-dev")
endif()

find_package(Catch2 2.13 CONFIG QUIET)
if(NPU_BUILD_TESTS AND NOT Catch2_FOUND)
  npu_missing("Catch2 >= 2.13" "catch2")
endif()

find_package(METIS 5.1 QUIET)  # scripts/cmake/FindMETIS.cmake
if(NOT METIS_FOUND)
  npu_missing("METIS >= 5.1" "libmetis-dev")
endif()

# Only the transport between the processes of a plan links it; a machine without it builds everything else.
if(NPU_TRANSPORT_MPI)
  enable_language(C)
  find_package(MPI QUIET COMPONENTS C)
  if(NOT MPI_C_FOUND)
    message(STATUS "MPI not found (Debian: libopenmpi-dev): plans run in one process")
  else()
    find_package(PTScotch 7 QUIET)  # scripts/cmake/FindPTScotch.cmake
    if(NOT PTScotch_FOUND)
      message(STATUS "PT-Scotch not found (Debian: libptscotch-dev): METIS cuts every graph")
    endif()
  endif()
endif()

# SHA-256 of bundles; only npu-run and npu-compile link it.
find_path(NPU_NETTLE_INCLUDE_DIR nettle/sha2.h)
find_library(NPU_NETTLE_LIBRARY nettle)
if(NOT NPU_NETTLE_INCLUDE_DIR OR NOT NPU_NETTLE_LIBRARY)
  npu_missing("nettle >= 3.8" "nettle-dev")
endif()

# A header: its code is compiled into the library (XXH_INLINE_ALL).
find_path(NPU_XXHASH_INCLUDE_DIR xxhash.h)
if(NOT NPU_XXHASH_INCLUDE_DIR)
  npu_missing("xxHash >= 0.8" "libxxhash-dev")
endif()
