# Installs a tree that works in any folder: programs find the libraries, and libraries find each other and the plug-ins,
# relative to their own location. Components: tfc (programs), libtfc (libraries, with the MPI plug-in), libtfc-dev
# (header), tfc-cuda (plug-ins).
include(GNUInstallDirs)
set(private ${CMAKE_INSTALL_LIBDIR}/tfc) # libraries that no other program links
file(RELATIVE_PATH from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH from_pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})

foreach(folder runtime profiler placer rl reports)
  get_target_property(type tfc_${folder} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    set_target_properties(tfc_${folder} PROPERTIES INSTALL_RPATH "$ORIGIN")
    install(TARGETS tfc_${folder} LIBRARY DESTINATION ${private} COMPONENT libtfc)
  endif()
endforeach()
# the libraries that load them find them in their own folder; their rpath is set where they are built
foreach(plugin tfc_cuda tfc_cupti)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION ${private} COMPONENT tfc-cuda)
  endif()
endforeach()
if(TARGET tfc_mpi)
  set_target_properties(tfc_mpi PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS tfc_mpi LIBRARY DESTINATION ${private} COMPONENT libtfc)
endif()
set(programs ${TFC_PROGRAMS})
list(FILTER programs INCLUDE REGEX "^tfc-") # the other targets are examples
foreach(program ${programs})
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${from_bin}/tfc")
  install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tfc)
endforeach()

# Manual pages and completions, which are made from the programs' tables of flags.
if(NOT TFC_FUZZ)
  set(manual ${CMAKE_BINARY_DIR}/manual)
  foreach(program ${programs})
    add_custom_command(OUTPUT ${manual}/${program}.1
      COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}/bash ${manual}/zsh ${manual}/fish
      COMMAND ${program} --generate man > ${manual}/${program}.1
      COMMAND ${program} --generate bash > ${manual}/bash/${program}
      COMMAND ${program} --generate zsh > ${manual}/zsh/_${program}
      COMMAND ${program} --generate fish > ${manual}/fish/${program}.fish
      DEPENDS ${program} VERBATIM)
    list(APPEND pages ${manual}/${program}.1)
  endforeach()
  add_custom_target(manual ALL DEPENDS ${pages})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tfc)
  install(DIRECTORY ${manual}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tfc)
  install(DIRECTORY ${manual}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT tfc)
  install(DIRECTORY ${manual}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tfc)
endif()

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
# The learned policy that programs use is in ../share/tfc, relative to the programs' folder, in the build tree and when
# installed.
configure_file(${CMAKE_SOURCE_DIR}/configs/policy.json ${CMAKE_BINARY_DIR}/share/tfc/policy.json COPYONLY)
install(FILES ${CMAKE_SOURCE_DIR}/configs/policy.json DESTINATION ${CMAKE_INSTALL_DATADIR}/tfc COMPONENT tfc)

# The Python package finds the library in the tree in which it is installed.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tfc_python/tfc DESTINATION lib/python3/dist-packages COMPONENT python3-tfc
        PATTERN "__pycache__" EXCLUDE PATTERN "_programs.py" EXCLUDE)
# The same as a wheel that contains everything (tfc_python/wheel.py): build/release/wheel/*.whl
if(NOT TFC_FUZZ)
  add_custom_target(wheel COMMAND python3 ${CMAKE_SOURCE_DIR}/tfc_python/wheel.py ${CMAKE_BINARY_DIR} ${CMAKE_BINARY_DIR}/wheel
                    DEPENDS tfc ${programs} VERBATIM)
  add_dependencies(wheel manual)
endif()

# Debian packages: cpack --config build/release/CPackConfig.cmake -G DEB
set(CPACK_PACKAGE_NAME tfc)
set(CPACK_PACKAGE_CONTACT "maintainers of tfc <maintainers@tfc.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Finds out where each operation of a TensorFlow graph should run")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL tfc libtfc libtfc-dev python3-tfc)
if(TARGET tfc_cuda)
  list(APPEND CPACK_COMPONENTS_ALL tfc-cuda)
endif()
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
foreach(package tfc libtfc libtfc-dev python3-tfc tfc-cuda)
  string(TOUPPER ${package} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION ${CPACK_PACKAGE_DESCRIPTION_SUMMARY})
endforeach()
set(same "(= ${PROJECT_VERSION})")
# dpkg-shlibdeps finds which libraries the programs link; tfc's own libraries are in the tree that it searches.
set(CPACK_DEBIAN_TFC_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBTFC_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_TFC_PACKAGE_DEPENDS "libtfc ${same}, gnuplot-nox")
set(CPACK_DEBIAN_LIBTFC_PACKAGE_DEPENDS libopenblas0-serial)
set(CPACK_DEBIAN_LIBTFC-DEV_PACKAGE_DEPENDS "libtfc ${same}")
set(CPACK_DEBIAN_PYTHON3-TFC_PACKAGE_DEPENDS "libtfc ${same}, python3-numpy")
set(CPACK_DEBIAN_PYTHON3-TFC_PACKAGE_RECOMMENDS tfc)
set(CPACK_DEBIAN_TFC-CUDA_PACKAGE_DEPENDS "libtfc ${same}")
if(TARGET tfc_cuda)
  # CUDA's libraries are no packages of Debian. NVIDIA's packages have them; an installation of another kind serves as well.
  set(cuda ${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR})
  set(CPACK_DEBIAN_TFC-CUDA_PACKAGE_RECOMMENDS
      "cuda-cudart-${cuda}, libcublas-${cuda}, libcudnn9-cuda-${CUDAToolkit_VERSION_MAJOR}, cuda-cupti-${cuda}")
  set(CPACK_DEBIAN_TFC-CUDA_DESCRIPTION "Plug-ins with which tfc runs and times graphs on NVIDIA's GPUs")
endif()
include(CPack)
