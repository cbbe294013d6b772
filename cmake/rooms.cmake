# tenon_room(NAME [PRECOMPILED_AS room | PRECOMPILE STD|JSON] [BELOW rooms...] [LINK libraries...] [HOT files...]
#            [LOOPS folders and files...]): every .cpp of the folder as object libraries.
# All objects are position-independent code, so that programs, tests and libtenon are made of the same ones. But the few
# files that an op on a few elements runs through (HOT, from the room's folder) are compiled twice: as a program's code,
# where thread-local state and other variables are reached directly (a nanosecond an op), and for libtenon.
# Folders and files that hold inner loops (LOOPS) are compiled for speed in every build type but a sanitized one.
# Files named *_view.cpp and the folders views/frame, views/shell and views/canvas belong to the window, not to the
# room.
function(tenon_room name)
  cmake_parse_arguments(R "" "PRECOMPILED_AS;PRECOMPILE" "BELOW;LINK;HOT;LOOPS" ${ARGN})
  # What the room needs from outside, apart from its objects: whoever links the room's objects links this too.
  add_library(tenon_${name}_needs INTERFACE)
  target_link_libraries(tenon_${name}_needs INTERFACE ${R_LINK})
  foreach(below ${R_BELOW})
    target_link_libraries(tenon_${name}_needs INTERFACE tenon_${below}_needs)
  endforeach()

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_view\\.cpp$|/views/(frame|shell|canvas)/|/core/cuda/")
  set(loops ${sources})
  list(JOIN R_LOOPS "|" folders)
  list(FILTER loops INCLUDE REGEX "/${name}/(${folders})(/|$)")

  if(R_HOT)
    list(TRANSFORM R_HOT PREPEND ${CMAKE_SOURCE_DIR}/${name}/)
    list(REMOVE_ITEM sources ${R_HOT})
    foreach(form program library)
      tenon_objects(${name} _hot_${form} ${R_HOT})
    endforeach()
    target_compile_options(tenon_${name}_hot_program PRIVATE -fPIE -ftls-model=local-exec)
    foreach(file ${R_HOT})
      if(file IN_LIST loops AND NOT TENON_SANITIZE)
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -O3)
      endif()
    endforeach()
    list(REMOVE_ITEM loops ${R_HOT})
  endif()
  if(loops AND TENON_SANITIZE)
    set_source_files_properties(${loops} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  elseif(loops)
    # gcc takes the optimization level of precompiled headers for its own: these have their own.
    list(REMOVE_ITEM sources ${loops})
    tenon_objects(${name} _loops ${loops})
    target_compile_options(tenon_${name}_loops PRIVATE -O3)
    if(R_PRECOMPILED_AS)
      tenon_precompile(tenon_${name}_loops REUSE tenon_${R_PRECOMPILED_AS}_loops)
    else()
      tenon_precompile(tenon_${name}_loops STD)
    endif()
  endif()

  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${name}.cpp "")
    set(sources ${CMAKE_BINARY_DIR}/empty_${name}.cpp)
  endif()
  tenon_objects(${name} "" ${sources})
  tenon_unity(tenon_${name})
  if(R_PRECOMPILED_AS)
    tenon_precompile(tenon_${name} REUSE tenon_${R_PRECOMPILED_AS})
  elseif(R_PRECOMPILE)
    tenon_precompile(tenon_${name} ${R_PRECOMPILE})
  endif()
endfunction()

# tenon_op_sources(target): the text of engine/ops as a file of its own, see engine/op/op_source.h.
function(tenon_op_sources target)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/engine/ops/*.cpp ${CMAKE_SOURCE_DIR}/engine/ops/*_formulas.h)
  set(made ${CMAKE_BINARY_DIR}/generated/op_sources.cpp)
  add_custom_command(OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUT=${made} -P ${CMAKE_SOURCE_DIR}/cmake/op_sources.cmake
    DEPENDS ${sources} ${CMAKE_SOURCE_DIR}/cmake/op_sources.cmake VERBATIM)
  set_source_files_properties(${made} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${made})
endfunction()

# tenon_objects(room suffix files...): some files of a room as an object library.
function(tenon_objects room suffix)
  set(target tenon_${room}${suffix})
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_link_libraries(${target} PRIVATE tenon_${room}_needs)
endfunction()

# tenon_link(target rooms...): an executable made of whole rooms.
function(tenon_link target)
  get_target_property(type ${target} TYPE)
  set(form program)
  if(type STREQUAL "SHARED_LIBRARY")
    set(form library)
  endif()
  foreach(room ${ARGN})
    foreach(objects "" _loops _hot_${form})
      if(TARGET tenon_${room}${objects})
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:tenon_${room}${objects}>)
      endif()
    endforeach()
    target_link_libraries(${target} PRIVATE tenon_${room}_needs)
  endforeach()
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
endfunction()

# tenon_library(rooms...): libtenon, the rooms as one shared library, for programs of others. Calls within it are bound
# when it is linked; what is one object for everybody stays open, so that it is one. A plug-in links neither it nor
# anything else of Tenon: it finds everything in the process that loads it, Tenon's own program or one that links
# libtenon, so that there is one copy of every registry.
function(tenon_library)
  add_library(libtenon SHARED)
  add_library(Tenon::tenon ALIAS libtenon)
  tenon_link(libtenon ${ARGN})
  set_target_properties(libtenon PROPERTIES OUTPUT_NAME tenon EXPORT_NAME tenon VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  target_link_options(libtenon PRIVATE -Wl,-Bsymbolic-functions)
  add_library(tenon_headers INTERFACE)
  set_target_properties(tenon_headers PROPERTIES EXPORT_NAME headers)
  target_include_directories(tenon_headers INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
    $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tenon>)
  target_link_libraries(tenon_headers INTERFACE nlohmann_json::nlohmann_json)
  target_compile_features(tenon_headers INTERFACE cxx_std_20)
  # Numbers come out the same in a plug-in: see toolchain.cmake.
  target_compile_options(tenon_headers INTERFACE -fwrapv -ffp-contract=off -fno-math-errno -fno-trapping-math)
  target_link_libraries(libtenon INTERFACE tenon_headers)
endfunction()

# The Qt half of the views: *_view.cpp, views/frame, views/shell, views/canvas.
function(tenon_window)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/views/*.cpp ${CMAKE_SOURCE_DIR}/views/*_view.h
       ${CMAKE_SOURCE_DIR}/views/frame/*.h ${CMAKE_SOURCE_DIR}/views/shell/*.h ${CMAKE_SOURCE_DIR}/views/canvas/*.h)
  list(FILTER sources INCLUDE REGEX "_view\\.(cpp|h)$|/views/(frame|shell|canvas)/")
  file(GLOB_RECURSE qrc CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/resources/*.qrc)
  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/empty_window.cpp "")
    set(sources ${CMAKE_BINARY_DIR}/empty_window.cpp)
  endif()
  tenon_languages(languages)
  add_library(tenon_window OBJECT ${sources} ${qrc} ${languages})
  set_target_properties(tenon_window PROPERTIES AUTOGEN_TARGET_DEPENDS tenon_languages_compiled)
  tenon_unity(tenon_window)
  set_target_properties(tenon_window PROPERTIES AUTOMOC ON AUTORCC ON)
  target_include_directories(tenon_window PUBLIC ${CMAKE_SOURCE_DIR})
  add_library(tenon_window_needs INTERFACE)
  target_link_libraries(tenon_window_needs INTERFACE Qt6::Widgets Qt6::OpenGLWidgets Qt6::Svg imgui tenon_views_needs)
  target_link_libraries(tenon_window PRIVATE tenon_window_needs)
  tenon_precompile(tenon_window QT JSON)
endfunction()
