# Compiler, linker and sanitizer settings shared by every target.
find_program(TENON_CCACHE ccache)
if(TENON_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_SLOPPINESS=pch_defines,time_macros ${TENON_CCACHE})
endif()
find_program(TENON_MOLD mold)
if(TENON_MOLD)
  # Never with -z keep-text-section-prefix, which would save pages: with mold 1.10 exceptions then miss their handlers.
  add_link_options(-fuse-ld=mold)
endif()

# What is built to be tested compiles faster so, and frames keep their names; inner loops have -O3 in every build, see
# tenon_room.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
# Every build but the released one stops at an index past the end, an empty container's front, a null smart pointer.
add_compile_definitions($<$<NOT:$<CONFIG:Release>>:_GLIBCXX_ASSERTIONS>)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc looks for memory that it could use again from 128 MiB on, again and again: from here on it takes a tenth less
  # time, and a file takes up to 150 MiB more.
  add_compile_options("SHELL:--param ggc-min-expand=200" "SHELL:--param ggc-min-heapsize=600000")
endif()
# gcc 12 warns of overlaps inside std::string's operator+ that cannot be (its bug 105651): -Wno-restrict.
add_compile_options(-Wall -Wextra -Wno-restrict -Wno-missing-field-initializers -fno-math-errno -fno-trapping-math)
# Objects go into libtenon and into test programs alike. What is thread-local is reached as from a program, at a fixed
# place: the library is there from the start, it is never loaded later by something that was not linked with it.
add_compile_options(-fPIC -ftls-model=initial-exec)
# What a program knows of its sources begins at their root ("core/registry.cpp"), wherever they were compiled: the same
# bits from every folder, and an object out of the compiler cache names no other one.
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
# Integers of tensors wrap, as everywhere in the field.
add_compile_options(-fwrapv)
# A product and a sum are never contracted: dense, strided, fused and composite forms of one formula give the same bits.
add_compile_options(-ffp-contract=off)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v3)
endif()
if(TENON_SANITIZE)
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  if(TENON_SANITIZE MATCHES undefined)
    # A null pointer faults by itself, and the address sanitizer names the frames; numbers that lie across are read as
    # they are here. Checks of every access for both were a third of the time to compile.
    add_compile_options(-fno-sanitize=null,alignment)
  endif()
  add_link_options(-fsanitize=${TENON_SANITIZE})
endif()

# tenon_precompile(target STD|JSON [TEST] [QT] | target REUSE other): headers of libraries that nearly every file
# includes are read once a target. Files include what they use all the same: a build with -DTENON_PRECOMPILE=OFF (fuzz,
# headless) proves it.
function(tenon_precompile target)
  cmake_parse_arguments(P "STD;JSON;TEST;QT" "REUSE" "" ${ARGN})
  if(NOT TENON_PRECOMPILE)
    return()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # ccache needs it
  endif()
  if(P_REUSE)
    target_precompile_headers(${target} REUSE_FROM ${P_REUSE})
    return()
  endif()
  set(headers <algorithm> <atomic> <cmath> <cstring> <filesystem> <fstream> <functional> <map> <memory> <mutex>
      <optional> <sstream> <string> <thread> <unordered_map> <vector> <fmt/format.h>)
  if(P_JSON)
    list(APPEND headers <nlohmann/json.hpp>)
  endif()
  if(P_TEST)
    list(APPEND headers <gtest/gtest.h>)
  endif()
  if(P_QT)
    list(APPEND headers <QApplication> <QClipboard> <QDockWidget> <QFileDialog> <QKeyEvent> <QLabel> <QLineEdit>
         <QMainWindow> <QPainter> <QSplitter> <QTimer> <QToolButton> <QVBoxLayout>)
    if(P_TEST)
      list(APPEND headers <QTest>)
    endif()
  endif()
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()

# tenon_unity(target): with -DTENON_UNITY=ON files are compiled sixteen at a time, which takes less time for whoever
# builds once (a fifth less than eight at a time). Contributors build without it: a change compiles one file, and every
# file is seen to include what it uses.
function(tenon_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TENON_UNITY} UNITY_BUILD_BATCH_SIZE 16)
  # Snapshots and traces stand beside each other there, and both have events, kinds and a kNone.
  file(GLOB alone ${CMAKE_SOURCE_DIR}/tracing/analyses/snapshot_*.cpp ${CMAKE_SOURCE_DIR}/tracing/analyses/memory_*.cpp)
  set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
