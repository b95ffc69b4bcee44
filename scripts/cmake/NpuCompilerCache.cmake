# SPDX-License-Identifier: Apache-2.0
# Compiles through ccache where it is installed, unless a launcher is given. The folder of the checkout is left out of
# what ccache compares, so that clean clones take from the cache what another one has compiled.

option(NPU_CCACHE "compile through ccache where it is installed" ON)

if(NPU_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  find_program(NPU_CCACHE_PROGRAM ccache)
  mark_as_advanced(NPU_CCACHE_PROGRAM)
  if(NPU_CCACHE_PROGRAM)
    # Precompiled headers need the sloppiness, and the option of GCC.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${NPU_CCACHE_PROGRAM}")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      string(PREPEND CMAKE_CXX_FLAGS "-fpch-preprocess ")
    endif()
  endif()
endif()
