# tenon_room(NAME [BELOW rooms...] [LINK libraries...]): every .cpp of the folder as one object library.
# Files named *_view.cpp and the folders views/frame, views/shell and views/canvas belong to the window, not to the room.
function(tenon_room name)
  cmake_parse_arguments(R "" "" "BELOW;LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_view\\.cpp$|/views/(frame|shell|canvas)/|/core/cuda/")
  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${name}.cpp "")
    set(sources ${CMAKE_BINARY_DIR}/empty_${name}.cpp)
  endif()
  add_library(tenon_${name} OBJECT ${sources})
  target_include_directories(tenon_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  # What the room needs from outside, apart from its objects: whoever links the room's objects links this too.
  add_library(tenon_${name}_needs INTERFACE)
  target_link_libraries(tenon_${name}_needs INTERFACE ${R_LINK})
  foreach(below ${R_BELOW})
    target_link_libraries(tenon_${name}_needs INTERFACE tenon_${below}_needs)
  endforeach()
  target_link_libraries(tenon_${name} PRIVATE tenon_${name}_needs)
endfunction()

# Files that hold inner loops are compiled for speed in every build type but a sanitized one.
function(tenon_kernels)
  if(TENON_SANITIZE)
    return()
  endif()
  foreach(room ${ARGN})
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${room}/trace/*.cpp ${CMAKE_SOURCE_DIR}/${room}/snapshot/*.cpp ${CMAKE_SOURCE_DIR}/${room}/ops/*.cpp ${CMAKE_SOURCE_DIR}/${room}/kernels/*.cpp
         ${CMAKE_SOURCE_DIR}/${room}/optim/*.cpp)
    set_source_files_properties(${kernels} TARGET_DIRECTORY tenon_${room} PROPERTIES COMPILE_OPTIONS "-O3")
  endforeach()
endfunction()

# tenon_link(target rooms...): an executable made of whole rooms.
function(tenon_link target)
  foreach(room ${ARGN})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:tenon_${room}>)
    target_link_libraries(${target} PRIVATE tenon_${room}_needs)
  endforeach()
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
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
  add_library(tenon_window OBJECT ${sources} ${qrc})
  set_target_properties(tenon_window PROPERTIES AUTOMOC ON AUTORCC ON)
  target_include_directories(tenon_window PUBLIC ${CMAKE_SOURCE_DIR})
  add_library(tenon_window_needs INTERFACE)
  target_link_libraries(tenon_window_needs INTERFACE Qt6::Widgets Qt6::OpenGLWidgets Qt6::Svg imgui tenon_views_needs)
  target_link_libraries(tenon_window PRIVATE tenon_window_needs)
endfunction()
