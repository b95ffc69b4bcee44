# SPDX-License-Identifier: Apache-2.0
# The installed package: tools, backends, library, headers, pages, completions and find_package(npu).
include(CMakePackageConfigHelpers)

install(TARGETS core EXPORT npu-targets ARCHIVE DESTINATION lib)
install(DIRECTORY libcore/include/ DESTINATION include FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT npu-targets NAMESPACE npu:: DESTINATION lib/cmake/npu)
configure_package_config_file(scripts/cmake/npu-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/npu-config.cmake INSTALL_DESTINATION lib/cmake/npu)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/npu-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/npu-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/npu-config-version.cmake scripts/cmake/FindMETIS.cmake
  DESTINATION lib/cmake/npu)

file(GLOB NPU_MAN_1 CONFIGURE_DEPENDS man/*.1)
file(GLOB NPU_MAN_5 CONFIGURE_DEPENDS man/*.5)
file(GLOB NPU_MAN_7 CONFIGURE_DEPENDS man/*.7)
install(FILES ${NPU_MAN_1} DESTINATION share/man/man1)
install(FILES ${NPU_MAN_5} DESTINATION share/man/man5)
install(FILES ${NPU_MAN_7} DESTINATION share/man/man7)
install(FILES scripts/completions/npu.bash DESTINATION share/bash-completion/completions RENAME npu-tag)
install(FILES scripts/completions/npu.bash DESTINATION share/bash-completion/completions RENAME npu-fuse)
install(FILES scripts/completions/npu.bash DESTINATION share/bash-completion/completions RENAME npu-partition)
install(FILES scripts/completions/npu.bash DESTINATION share/bash-completion/completions RENAME npu-align)
install(FILES scripts/completions/npu.bash DESTINATION share/bash-completion/completions RENAME npu-run)
install(FILES scripts/completions/npu.bash DESTINATION share/bash-completion/completions RENAME npu-compile)
install(FILES scripts/batch.mk DESTINATION share/npu)
