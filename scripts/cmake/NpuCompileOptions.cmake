# SPDX-License-Identifier: Apache-2.0
# Compile and link options of every target of the project.

add_library(npu_compile_options INTERFACE)
target_compile_options(npu_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align -Wconversion
  -Wno-sign-conversion -Wdouble-promotion -Wimplicit-fallthrough)
if(NPU_WERROR)
  target_compile_options(npu_compile_options INTERFACE -Werror)
endif()
# g++ 12 reports false positives from libstdc++'s own templates at -O2 and above.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(npu_compile_options INTERFACE
    -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-maybe-uninitialized
    -Wno-dangling-pointer -Wno-free-nonheap-object)
else()
  # clang++ counts every float that becomes a double, g++ what arithmetic does unasked. The conversion is exact.
  target_compile_options(npu_compile_options INTERFACE -Wno-double-promotion)
endif()
# lld links the programs and the test programs in a fifth of GNU ld's time.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=lld NPU_HAS_LLD)
if(NPU_HAS_LLD)
  add_link_options(-fuse-ld=lld)
endif()
if(NPU_SANITIZE)
  add_compile_options(-fsanitize=${NPU_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${NPU_SANITIZE})
  if(NPU_NO_SANITIZE)
    add_compile_options(-fno-sanitize=${NPU_NO_SANITIZE})
  endif()
endif()
if(NPU_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# With NPU_UNITY the files of `target` in one folder are one translation unit, since most of a file's compile time goes
# into the same instances of nlohmann/json's templates. So names in anonymous namespaces have to be unique in their
# folder. Files with their own compile options stay separate. Call it in the directory that creates the target.
function(npu_unity_by_folder target)
  if(NOT NPU_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source MATCHES "[.]cpp$" AND NOT IS_ABSOLUTE "${source}")
      cmake_path(GET source PARENT_PATH folder)
      string(REPLACE "/" "_" folder "folder/${folder}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # g++ takes a type of one file, with a member of that file's own type, for one of a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
