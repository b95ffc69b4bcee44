# SPDX-License-Identifier: Apache-2.0
# PT-Scotch, which comes without a CMake or pkg-config file. Defines PTScotch_FOUND and PTScotch::PTScotch.
#
# Debian has builds with numbers of several sizes side by side: those of 64 bits in folders scotch-int64, and one of 32
# bits in the usual places. All have the same names, and the same soname, so a program has to carry the folder of its
# own as the place where the loader looks (RPATH): else it gets the library of 32 bits.
#
# A PT-Scotch of another MPI than the one that was found does not count. libscotchmetis and libptscotchparmetis, which
# define METIS's functions a second time, are not looked for.
# Each pair is the folder of the header and that of the library.
foreach(_folders "scotch-int64 scotch-int64" "scotch " " ")
  string(REPLACE " " ";" _folders "${_folders}")
  list(POP_FRONT _folders _of_header)
  list(POP_FRONT _folders _of_library)
  # NO_CACHE, and unset: the next pair is looked for if this one is not complete.
  unset(PTScotch_INCLUDE_DIR)
  unset(PTScotch_LIBRARY)
  find_path(PTScotch_INCLUDE_DIR NAMES "${_of_header}/ptscotch.h" NO_CACHE)
  find_library(PTScotch_LIBRARY ptscotch NO_CACHE
    PATH_SUFFIXES "${CMAKE_LIBRARY_ARCHITECTURE}/${_of_library}" "${_of_library}")
  if(PTScotch_INCLUDE_DIR AND PTScotch_LIBRARY MATCHES "/${_of_library}/*libptscotch[^/]*$")
    cmake_path(APPEND PTScotch_INCLUDE_DIR "${_of_header}")
    cmake_path(NORMAL_PATH PTScotch_INCLUDE_DIR)
    break()
  endif()
  unset(PTScotch_INCLUDE_DIR)
endforeach()

if(PTScotch_INCLUDE_DIR AND EXISTS "${PTScotch_INCLUDE_DIR}/scotch.h")
  file(STRINGS "${PTScotch_INCLUDE_DIR}/scotch.h" _numbers REGEX "define[ \t]+SCOTCH_(VERSION|RELEASE|PATCHLEVEL)[ \t]+[0-9]")
  string(REGEX REPLACE "[^0-9;]+" "" _numbers "${_numbers}")
  list(JOIN _numbers "." PTScotch_VERSION)
endif()

# The name of the MPI library that it was linked with is among the strings of the file.
set(_same_mpi TRUE)
if(PTScotch_LIBRARY AND MPI_C_LIBRARIES AND PTScotch_LIBRARY MATCHES "\\.so$")
  file(STRINGS "${PTScotch_LIBRARY}" _needed REGEX "^libmpi[a-z]*[.]so[.0-9]*$")
  set(_same_mpi FALSE)
  foreach(_library IN LISTS MPI_C_LIBRARIES)
    file(REAL_PATH "${_library}" _real)
    get_filename_component(_name "${_real}" NAME)
    foreach(_need IN LISTS _needed)
      string(FIND "${_name}" "${_need}" _at)
      if(_at EQUAL 0)
        set(_same_mpi TRUE)
      endif()
    endforeach()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PTScotch
  REQUIRED_VARS PTScotch_LIBRARY PTScotch_INCLUDE_DIR _same_mpi VERSION_VAR PTScotch_VERSION)
if(PTScotch_FOUND AND NOT TARGET PTScotch::PTScotch)
  add_library(PTScotch::PTScotch UNKNOWN IMPORTED)
  set_target_properties(PTScotch::PTScotch PROPERTIES IMPORTED_LOCATION "${PTScotch_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${PTScotch_INCLUDE_DIR}")
endif()
