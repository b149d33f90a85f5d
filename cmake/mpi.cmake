# Builds the MPI plug-in libtfc_mpi.so (runtime/transport/mpi), if MPI is found. Without it, programs run as one task
# only.
pkg_check_modules(MPI IMPORTED_TARGET ompi-c)
if(MPI_FOUND)
  add_library(tfc_mpi SHARED ${CMAKE_SOURCE_DIR}/runtime/transport/mpi/mpi.c)
  target_link_libraries(tfc_mpi PRIVATE tfc_options tfc_runtime PkgConfig::MPI)
  list(APPEND TFC_PROGRAMS tfc_mpi)
else()
  message(STATUS "No MPI (libopenmpi-dev): there is one task")
endif()
