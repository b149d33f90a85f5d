# Finds the libraries that tfc uses; each becomes an imported target. An optional library sets TFC_HAVE_<NAME>.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(CYAML REQUIRED IMPORTED_TARGET libcyaml)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(CBC REQUIRED IMPORTED_TARGET cbc)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)

find_path(TFC_OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-serial x86_64-linux-gnu/openblas-serial
                                                      aarch64-linux-gnu/openblas-serial REQUIRED)
find_library(TFC_OPENBLAS NAMES openblas PATH_SUFFIXES openblas-serial x86_64-linux-gnu/openblas-serial
                                                        aarch64-linux-gnu/openblas-serial REQUIRED)
find_path(TFC_METIS_INCLUDE metis.h REQUIRED)
find_library(TFC_METIS metis REQUIRED)
find_path(TFC_SCOTCH_INCLUDE scotch.h PATH_SUFFIXES scotch scotch-int32 scotch-int64 REQUIRED)
find_library(TFC_SCOTCH scotch REQUIRED)
find_library(TFC_SCOTCHERR scotcherr REQUIRED)

find_path(TFC_DNNL_INCLUDE oneapi/dnnl/dnnl.h)
find_library(TFC_DNNL dnnl)
if(TFC_DNNL AND TFC_DNNL_INCLUDE)
  set(TFC_HAVE_DNNL ON)
endif()

pkg_check_modules(SECCOMP IMPORTED_TARGET libseccomp) # without it, --untrusted denies no system calls, and prints that
# for image files: without it, ops that read and write them fail with a message
pkg_check_modules(PNG IMPORTED_TARGET libpng)
pkg_check_modules(JPEG IMPORTED_TARGET libjpeg)
