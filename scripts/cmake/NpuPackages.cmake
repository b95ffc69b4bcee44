# SPDX-License-Identifier: Apache-2.0
# Packages for Debian: cpack --config build/CPackConfig.cmake (or `cmake --build build --target package`) makes
#   npu-tools, npu-backend-onednn, npu-backend-aten, npu-backend-opencl and npu-transport-mpi (where OpenCL
#   and MPI were found)   and   libnpu-dev
# from the components of NpuInstall.cmake. NpuDebianFiles.cmake adds the files that Debian requires in each of them.
# dpkg-shlibdeps (Debian package dpkg-dev) reads from a package's binaries which shared libraries it needs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME npu-tools)
set(CPACK_PACKAGE_VENDOR "npu-tools")
# Debian requires an address; this domain is reserved for examples.
set(CPACK_PACKAGE_CONTACT "npu-tools developers <npu-tools@example.org>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/NpuDebianFiles.cmake")

set(CPACK_COMPONENTS_ALL tools dev)
foreach(backend onednn aten opencl)
  if(TARGET npu_backend_${backend})
    list(APPEND CPACK_COMPONENTS_ALL ${backend})
  endif()
endforeach()
if(TARGET npu_transport_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

# A description begins with the first line of CPACK_COMPONENT_<NAME>_DESCRIPTION; the rest follows it.
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME npu-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "python3:any")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "npu-backend-onednn, npu-backend-aten")
set(CPACK_DEBIAN_OPENCL_PACKAGE_NAME npu-backend-opencl)
set(CPACK_DEBIAN_OPENCL_PACKAGE_SECTION science)
set(CPACK_DEBIAN_OPENCL_PACKAGE_ENHANCES npu-tools)
set(CPACK_DEBIAN_OPENCL_PACKAGE_RECOMMENDS "opencl-icd")
set(CPACK_COMPONENT_OPENCL_DESCRIPTION "backend of npu-tools that runs models on OpenCL devices
The device gpu of the built-in targets opencl and trio: kernels that are
generated for each group of operators, on graphics cards and through pocl on
any CPU.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "make, python3-numpy, python3-torch, python3-torchvision, graphviz")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "place, partition and run neural networks on several devices
Small command-line programs that split a PyTorch model between an NPU and a
CPU, plan the transfers, compile it and run it; and that do the same for graph
neural networks over big graphs. With manual pages, completions for bash and
zsh, and exporters from PyTorch.")

set(CPACK_DEBIAN_ONEDNN_PACKAGE_NAME npu-backend-onednn)
set(CPACK_DEBIAN_ONEDNN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_ONEDNN_PACKAGE_ENHANCES npu-tools)
set(CPACK_COMPONENT_ONEDNN_DESCRIPTION "backend of npu-tools that compiles models for the CPU with oneDNN
The device npu of the built-in target: fused kernels with blocked layouts,
compiled ahead of time into bundles that load without compiling.")

set(CPACK_DEBIAN_ATEN_PACKAGE_NAME npu-backend-aten)
set(CPACK_DEBIAN_ATEN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_ATEN_PACKAGE_ENHANCES npu-tools)
set(CPACK_DEBIAN_ATEN_PACKAGE_DEPENDS "libopenblas0-openmp | libblas3")
set(CPACK_COMPONENT_ATEN_DESCRIPTION "backend of npu-tools that runs every operator of PyTorch
The device cpu of the built-in target: any ATen operator, through libtorch,
one after another. It runs what other devices do not.")

set(CPACK_DEBIAN_MPI_PACKAGE_NAME npu-transport-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_ENHANCES npu-tools)
set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS "openmpi-bin")
set(CPACK_COMPONENT_MPI_DESCRIPTION "transport of npu-tools between the processes of a plan
Carries rows of features and sums between the processes, on one machine or
several, that run the plan of a graph neural network together, over MPI; and
cuts a graph in several processes by PT-Scotch.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libnpu-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "nlohmann-json3-dev (>= 3.11), libsimdjson-dev (>= 3), libfmt-dev (>= 9), libmetis-dev (>= 5.1)")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "npu-tools, cmake (>= 3.25)")
set(CPACK_COMPONENT_DEV_DESCRIPTION "library and headers of npu-tools, and how to write a backend
The static library that the programs of npu-tools are made of, the header
that a vendor's backend is built against, custom operators, find_package(npu)
for CMake, and a backend of under 200 lines to start from.")

include(CPack)
