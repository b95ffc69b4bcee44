# SPDX-License-Identifier: Apache-2.0
# Run by cpack between installing and packing: adds the files that Debian's policy requires in every package,
# usr/share/doc/PACKAGE/{copyright,changelog.gz}, and compresses manual pages. The date in the change log is today, or
# SOURCE_DATE_EPOCH if that is set.
find_program(GZIP gzip REQUIRED)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(root "${CPACK_TEMPORARY_DIRECTORY}/${component}")
  set(doc "${root}${CPACK_PACKAGING_INSTALL_PREFIX}/share/doc/${package}")
  file(WRITE "${doc}/copyright" "npu-tools

Copyright 2026 the npu-tools developers

Licensed under the Apache License, version 2.0. On Debian systems its complete text is in
/usr/share/common-licenses/Apache-2.0.
")
  string(TIMESTAMP date "%a, %d %b %Y 00:00:00 +0000" UTC)
  file(WRITE "${doc}/changelog" "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * See CHANGELOG.md in the sources.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  # PT-Scotch of 64 bits lies in a folder of its own, under the name of the one of 32; see FindPTScotch.cmake.
  if(EXISTS "${root}${CPACK_PACKAGING_INSTALL_PREFIX}/lib/npu/transports/npu_partitioner_ptscotch.so")
    file(WRITE "${root}${CPACK_PACKAGING_INSTALL_PREFIX}/share/lintian/overrides/${package}"
      "${package}: custom-library-search-path\n")
    file(CHMOD_RECURSE "${root}${CPACK_PACKAGING_INSTALL_PREFIX}/share/lintian"
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
      DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
  file(GLOB pages "${root}${CPACK_PACKAGING_INSTALL_PREFIX}/share/man/man*/*.[1-9]")
  foreach(file IN LISTS pages ITEMS "${doc}/changelog")
    execute_process(COMMAND ${GZIP} -9nf "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(GLOB_RECURSE files "${doc}/*")
  file(CHMOD ${files} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  foreach(folder "${doc}" "${root}${CPACK_PACKAGING_INSTALL_PREFIX}/share/doc")
    file(CHMOD "${folder}" PERMISSIONS
      OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endforeach()
endforeach()
