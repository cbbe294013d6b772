# cmake --install: the program, libtenon with its headers (CMake package, pkg-config), and what a desktop asks for.
include(CMakePackageConfigHelpers)

install(TARGETS tenon RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET tenon_window_module)
  install(TARGETS tenon_window_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tenon)
endif()
if(TARGET tenon_cuda)
  install(TARGETS tenon_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tenon)
endif()
install(TARGETS libtenon tenon_headers EXPORT TenonTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(room core engine tracing projects)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon
          FILES_MATCHING PATTERN "*.h")
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/generated/core/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon/core)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION ${package})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/TenonConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/generated/TenonConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/TenonConfig.cmake ${CMAKE_BINARY_DIR}/generated/TenonConfigVersion.cmake
        DESTINATION ${package})
file(RELATIVE_PATH prefix_from_pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_SOURCE_DIR}/cmake/tenon.pc.in ${CMAKE_BINARY_DIR}/generated/tenon.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${CMAKE_SOURCE_DIR}/packaging/tenon.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/tenon-project.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages)
install(FILES ${CMAKE_SOURCE_DIR}/resources/icons/tenon.svg
        DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
