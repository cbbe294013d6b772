# lib/tenon/cuda.so (Note [The CUDA module] of core/cuda/abi.h), where a CUDA toolkit is: nvcc on the PATH, CUDACXX, or
# /usr/local/cuda. A folder that packaging/cuda.sh made is named by -DTENON_CUDA_ROOT.
if(NOT TENON_CUDA)
  file(REMOVE ${CMAKE_BINARY_DIR}/lib/tenon/cuda.so)  # of a build that had one
  return()
endif()
include(CheckLanguage)
if(TENON_CUDA_ROOT)
  set(ENV{CUDACXX} ${TENON_CUDA_ROOT}/bin/nvcc)
elseif(NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
  set(ENV{CUDACXX} /usr/local/cuda/bin/nvcc)
endif()
# nvcc knows gcc. Architectures are given below: CMake 3.25 has no word for code of one and PTX of another.
if(NOT CMAKE_CUDA_HOST_COMPILER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "")
endif()
set(CMAKE_CUDA_ARCHITECTURES OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT TENON_SANITIZE)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
  endif()
endif()
if(NOT CMAKE_CUDA_COMPILER_VERSION OR CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
  if(TENON_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TENON_CUDA=ON, and no CUDA toolkit of version 12 or above was found; packaging/cuda.sh gets one")
  endif()
  message(STATUS "No CUDA toolkit: building without the CUDA module")
  file(REMOVE ${CMAKE_BINARY_DIR}/lib/tenon/cuda.so)  # of a build that had one
  return()
endif()
message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION}: building the CUDA module")

file(GLOB cuda_sources CONFIGURE_DEPENDS core/cuda/*.cu engine/cuda/*.cu)
add_library(tenon_cuda MODULE ${cuda_sources})
target_include_directories(tenon_cuda PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
set_target_properties(tenon_cuda PROPERTIES PREFIX "" OUTPUT_NAME cuda CUDA_RUNTIME_LIBRARY Static
  COMPILE_OPTIONS "" CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED OFF CXX_VISIBILITY_PRESET hidden
  CUDA_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/tenon)
# Code for A100 and H100, and PTX that the driver makes code of for what comes after. CMake 3.25 leaves out -std=c++20
# without a word, and options of the host's compiler need a word before them: those of the project are not taken. No
# product and sum become one operation: formulas have the bits that the CPU gives them.
target_compile_options(tenon_cuda PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-std=c++20 --fmad=false\
 --expt-relaxed-constexpr --extended-lambda -Werror cross-execution-space-call\
 -gencode arch=compute_80,code=[sm_80,sm_90,compute_80]\
 -Xcompiler -Wall,-Wextra,-ffp-contract=off,-fwrapv>")
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)  # a fifth of the size
  target_compile_options(tenon_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
endif()
target_compile_definitions(tenon_cuda PRIVATE TENON_CUDA_BUILD="sm_80 sm_90")
# What is missing in the module shows here and not where it is opened.
target_link_options(tenon_cuda PRIVATE LINKER:-z,defs)
target_link_libraries(tenon_cuda PRIVATE ${CMAKE_DL_LIBS} Threads::Threads rt)
add_dependencies(tenon tenon_cuda)
