# SPDX-License-Identifier: Apache-2.0
# Flags that every target of the project is built with.

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
    -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-maybe-uninitialized
    -Wno-dangling-pointer -Wno-free-nonheap-object)
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
