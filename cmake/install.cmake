# A tree that runs from wherever it is put: programs find the libraries, and these each other and the plug-ins, by where
# they lie themselves. Components: tfc (programs), libtfc (libraries), libtfc-dev (header), tfc-cuda (plug-ins).
include(GNUInstallDirs)
set(private ${CMAKE_INSTALL_LIBDIR}/tfc) # libraries that nobody else links
file(RELATIVE_PATH from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH from_pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})

foreach(folder runtime profiler placer rl reports)
  get_target_property(type tfc_${folder} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    set_target_properties(tfc_${folder} PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS tfc_${folder} LIBRARY DESTINATION ${private} COMPONENT libtfc)
  endif()
endforeach()
foreach(plugin tfc_cuda tfc_cupti) # found beside the libraries that load them; their rpath is set where they are made
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION ${private} COMPONENT tfc-cuda)
  endif()
endforeach()
foreach(program ${TFC_PROGRAMS})
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${from_bin}/tfc")
  install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tfc)
endforeach()

set_target_properties(tfc PROPERTIES INSTALL_RPATH "$ORIGIN/tfc")
install(TARGETS tfc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libtfc NAMELINK_COMPONENT libtfc-dev
                    PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libtfc-dev)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tfc-config-version.cmake COMPATIBILITY SameMajorVersion)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tfc-config.cmake.in ${CMAKE_BINARY_DIR}/tfc-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tfc
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
install(FILES ${CMAKE_BINARY_DIR}/tfc-config.cmake ${CMAKE_BINARY_DIR}/tfc-config-version.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tfc
        COMPONENT libtfc-dev)
configure_file(${CMAKE_SOURCE_DIR}/cmake/tfc.pc.in ${CMAKE_BINARY_DIR}/tfc.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tfc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libtfc-dev)
# The learned policy that programs use: ../share/tfc beside their folder, built or installed.
configure_file(${CMAKE_SOURCE_DIR}/configs/policy.json ${CMAKE_BINARY_DIR}/share/tfc/policy.json COPYONLY)
install(FILES ${CMAKE_SOURCE_DIR}/configs/policy.json DESTINATION ${CMAKE_INSTALL_DATADIR}/tfc COMPONENT tfc)

# The Python package finds the library in the tree that it lies in.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tfc_python/tfc DESTINATION lib/python3/dist-packages COMPONENT python3-tfc
        PATTERN "__pycache__" EXCLUDE)
