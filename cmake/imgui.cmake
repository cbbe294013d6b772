# Debian's Dear ImGui is a static archive without a CMake package; link order needs stb and freetype after it.
find_path(IMGUI_INCLUDE_DIR imgui.h PATH_SUFFIXES imgui)
find_library(IMGUI_LIBRARY imgui)
find_package(Freetype QUIET)
if(IMGUI_INCLUDE_DIR AND IMGUI_LIBRARY AND Freetype_FOUND AND NOT TARGET imgui)
  find_library(STB_LIBRARY stb)
  add_library(imgui STATIC IMPORTED)
  set_target_properties(imgui PROPERTIES IMPORTED_LOCATION ${IMGUI_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${IMGUI_INCLUDE_DIR};${IMGUI_INCLUDE_DIR}/backends"
    INTERFACE_LINK_LIBRARIES "${STB_LIBRARY};Freetype::Freetype;dl")
endif()
