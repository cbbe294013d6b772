# Debian's own CMake package of oneDNN asks for OpenCL headers that a CPU build never includes.
find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(DNNL::dnnl SHARED IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                                   INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
