# libtfc: the library for other programs. It exports what libtfc/exports.map lists, and links the private libraries of
# the folders.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/libtfc/*.c)
add_library(tfc SHARED ${sources})
target_link_libraries(tfc PRIVATE tfc_options tfc_placer tfc_profiler tfc_runtime)
target_link_options(tfc PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/libtfc/exports.map ${TFC_PATH_FOR_ALL})
if(NOT TFC_SANITIZE)
  target_link_options(tfc PRIVATE -Wl,--no-undefined)
endif()
target_include_directories(tfc INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/libtfc> $<INSTALL_INTERFACE:include>)
set_property(TARGET tfc APPEND PROPERTY LINK_DEPENDS ${CMAKE_SOURCE_DIR}/libtfc/exports.map)
set_target_properties(tfc PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                                     PUBLIC_HEADER ${CMAKE_SOURCE_DIR}/libtfc/tfc.h)
