# SPDX-License-Identifier: Apache-2.0
# What is installed, in five components, which NpuPackages.cmake turns into packages:
#   tools    programs, pages, completions, exporters, batch.mk
#   onednn   the backend that is the device npu          aten   the backend that is the device cpu
#   mpi      the transport between the processes of a plan, where MPI is installed, and PT-Scotch's partitioner
#   opencl   the backend of OpenCL devices, where OpenCL was found
#   dev      library, headers, find_package(npu), backends to start from, and the page about them
# The programs and each backend's component are installed in the directories that build them.
include(CMakePackageConfigHelpers)

# Folders have the same permissions whoever builds, as packages require.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# ---- dev ----

install(TARGETS core EXPORT npu-targets ARCHIVE DESTINATION lib COMPONENT dev)
install(DIRECTORY libcore/include/ DESTINATION include COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT npu-targets NAMESPACE npu:: DESTINATION lib/cmake/npu COMPONENT dev)
configure_package_config_file(scripts/cmake/npu-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/npu-config.cmake INSTALL_DESTINATION lib/cmake/npu)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/npu-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/npu-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/npu-config-version.cmake scripts/cmake/FindMETIS.cmake
  DESTINATION lib/cmake/npu COMPONENT dev)
install(DIRECTORY scripts/examples/ DESTINATION share/npu/examples COMPONENT dev)
install(FILES man/npu-backend.3 DESTINATION share/man/man3 COMPONENT dev)

# ---- tools ----

file(GLOB pages CONFIGURE_DEPENDS man/*.[157])
# Two pages name the option of npu-tag that lists ops; where what is built can run, they get the list, too.
if(NOT CMAKE_CROSSCOMPILING AND NOT NPU_SANITIZE AND TARGET npu_frontend_onnx)
  set(script ${PROJECT_SOURCE_DIR}/scripts/cmake/page_with_ops.sh)
  foreach(name npu-onnx.7 npu-opencl.7)
    set(source ${PROJECT_SOURCE_DIR}/man/${name})
    set(page ${PROJECT_BINARY_DIR}/man/${name})
    add_custom_command(OUTPUT ${page}
      COMMAND sh ${script} $<TARGET_FILE:npu-tag> ${source} ${page}
      DEPENDS npu-tag npu_frontend_onnx ${source} ${script}
      COMMENT "Listing ops in ${name}"
      VERBATIM)
    list(REMOVE_ITEM pages ${source})
    list(APPEND pages_with_ops ${page})
  endforeach()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/man)
  add_custom_target(pages ALL DEPENDS ${pages_with_ops})
  add_dependencies(programs pages)
endif()
foreach(page IN LISTS pages pages_with_ops)
  string(REGEX MATCH ".$" section ${page})
  install(FILES ${page} DESTINATION share/man/man${section} COMPONENT tools)
endforeach()
get_property(programs GLOBAL PROPERTY NPU_TOOLS)
foreach(program IN LISTS programs)
  install(FILES scripts/completions/npu.bash DESTINATION share/bash-completion/completions RENAME ${program}
    COMPONENT tools)
endforeach()
# The folder in which Debian's zsh looks for completions of packages.
install(FILES scripts/completions/_npu DESTINATION share/zsh/vendor-completions COMPONENT tools)
install(FILES scripts/batch.mk DESTINATION share/npu COMPONENT tools)
install(PROGRAMS scripts/export_torch.py scripts/export_gnn.py scripts/make_graph.py
  DESTINATION share/npu COMPONENT tools)
install(DIRECTORY scripts/export DESTINATION share/npu COMPONENT tools FILES_MATCHING PATTERN "*.py")

include(NpuPackages)
