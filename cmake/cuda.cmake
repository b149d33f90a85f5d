# Builds the CUDA plug-ins libtfc_cuda.so (runtime/device/cuda) and libtfc_cupti.so (profiler/cupti), if the toolkit is
# found. Neither links libcuda, so both load on machines without NVIDIA's driver. Code that needs no toolkit (the
# driver's bookkeeping, the collector's logic) is in tfc_cuda_core, which the tests link with a fake of the CUDA calls.
#
#   runtime/device/cuda/*.c           no toolkit        runtime/device/cuda/toolkit/*.c   CUDA's headers
#   runtime/device/cuda/kernels/*     CUDA's headers and nvcc
#   profiler/cupti/*.c                no toolkit        profiler/cupti/toolkit/*.c        CUPTI's headers
file(GLOB core CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/device/cuda/*.c ${CMAKE_SOURCE_DIR}/profiler/cupti/*.c)
if(core)
  add_library(tfc_cuda_core OBJECT EXCLUDE_FROM_ALL ${core})
  target_link_libraries(tfc_cuda_core PRIVATE tfc_options tfc_profiler tfc_runtime)
endif()
if(NOT TFC_CUDA)
  return()
endif()

# By default one architecture and its PTX are compiled; newer GPUs compile the PTX themselves, and it takes nvcc no
# extra time. (scripts/gpu_carry --all sets "80-real;90-real;100-real;100-virtual".)
set(TFC_CUDA_ARCHITECTURES "90" CACHE STRING "GPU architectures, as CMAKE_CUDA_ARCHITECTURES takes them")
find_package(CUDAToolkit 13.0 QUIET)
if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
  message(STATUS "No CUDA toolkit (13.0 or later) with nvcc: GPUs are left out")
  return()
endif()
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
set(CMAKE_CUDA_ARCHITECTURES ${TFC_CUDA_ARCHITECTURES})
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "nvcc does not work here: GPUs are left out")
  return()
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
option(TFC_CUDA_QUICK "Compile device code in a third of the time, into code that runs slowly" OFF)
if(TFC_CUDA_QUICK)
  string(APPEND CMAKE_CUDA_FLAGS_RELEASE " --Ofast-compile=max")
endif()
if(TFC_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${TFC_CCACHE})
endif()
find_path(TFC_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(TFC_CUDNN NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
find_path(TFC_CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)
find_library(TFC_CUPTI NAMES cupti HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/lib64)
set(TFC_HAVE_CUDA ON)
message(STATUS "CUDA ${CUDAToolkit_VERSION} for ${TFC_CUDA_ARCHITECTURES}, cuDNN: ${TFC_CUDNN}, CUPTI: ${TFC_CUPTI}")

# Include folders and libraries for all code that uses CUDA's headers.
add_library(tfc_cuda_options INTERFACE)
target_include_directories(tfc_cuda_options SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_include_directories(tfc_cuda_options INTERFACE ${CMAKE_SOURCE_DIR})
target_link_libraries(tfc_cuda_options INTERFACE tfc_runtime CUDA::cudart CUDA::cublasLt)
if(TFC_CUDNN AND TFC_CUDNN_INCLUDE)
  target_include_directories(tfc_cuda_options SYSTEM INTERFACE ${TFC_CUDNN_INCLUDE})
  target_compile_definitions(tfc_cuda_options INTERFACE TFC_HAVE_CUDNN=1)
  target_link_libraries(tfc_cuda_options INTERFACE ${TFC_CUDNN})
endif()

# Kernels: rows in C, device code in CUDA C++. Fast-math is off. Multiply-adds are contracted, as in the CPU's fast
# kernels, and denormals are flushed, as on the CPU.
file(GLOB_RECURSE kernels_c CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/device/cuda/kernels/*.c)
file(GLOB_RECURSE kernels_cu CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/device/cuda/kernels/*.cu)
file(GLOB toolkit CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/device/cuda/toolkit/*.c)
if(core AND toolkit)
  file(GLOB driver CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/device/cuda/*.c)
  add_library(tfc_cuda SHARED ${driver} ${toolkit} ${kernels_c} ${kernels_cu})
  target_compile_definitions(tfc_cuda PRIVATE _GNU_SOURCE)
  target_compile_options(tfc_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -fno-math-errno -ffp-contract=off -fno-common>
    $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda -ftz=true -prec-div=true -prec-sqrt=true -lineinfo -Xcompiler=-Wall,-Wextra,-Wno-unused-parameter>
    $<$<AND:$<BOOL:${TFC_WERROR}>,$<COMPILE_LANGUAGE:C>>:-Werror>
    $<$<AND:$<BOOL:${TFC_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>)
  target_link_libraries(tfc_cuda PRIVATE tfc_cuda_options)
  set_target_properties(tfc_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Shared BUILD_RPATH ${CUDAToolkit_LIBRARY_DIR}
                                            INSTALL_RPATH "$ORIGIN;${CUDAToolkit_LIBRARY_DIR}")
  target_link_options(tfc_cuda PRIVATE -Wl,--no-undefined)
endif()
if(EXISTS ${CMAKE_SOURCE_DIR}/cmake/cuda_kernels.cmake)
  include(${CMAKE_SOURCE_DIR}/cmake/cuda_kernels.cmake) # tests of kernels on the host
endif()

file(GLOB cupti_core CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/profiler/cupti/*.c)
file(GLOB cupti_toolkit CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/profiler/cupti/toolkit/*.c)
if(TFC_CUPTI AND TFC_CUPTI_INCLUDE AND cupti_toolkit)
  add_library(tfc_cupti SHARED ${cupti_core} ${cupti_toolkit})
  target_include_directories(tfc_cupti SYSTEM PRIVATE ${TFC_CUPTI_INCLUDE})
  target_link_libraries(tfc_cupti PRIVATE tfc_options tfc_profiler tfc_runtime ${TFC_CUPTI})
  target_include_directories(tfc_cupti SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  set_target_properties(tfc_cupti PROPERTIES BUILD_RPATH ${CUDAToolkit_LIBRARY_DIR}
                                             INSTALL_RPATH "$ORIGIN;${CUDAToolkit_LIBRARY_DIR}")
  target_link_options(tfc_cupti PRIVATE -Wl,--no-undefined)
endif()
if(TARGET tfc_cupti) # for its test
  add_library(tfc_cupti_decode STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/profiler/cupti/toolkit/decode.c)
  target_include_directories(tfc_cupti_decode SYSTEM PUBLIC ${TFC_CUPTI_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(tfc_cupti_decode PRIVATE tfc_options PUBLIC tfc_profiler tfc_runtime ${TFC_CUPTI})
endif()
