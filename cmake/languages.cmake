# The window's texts in other languages: resources/languages/CODE.po, compiled into the program as
# ":/languages/CODE.mo".
find_program(MSGFMT_EXECUTABLE msgfmt REQUIRED)

# tenon_languages(variable): the resource file of all of them, for a target with AUTORCC.
function(tenon_languages variable)
  set(folder ${CMAKE_BINARY_DIR}/languages)
  file(GLOB all CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/resources/languages/*.po)
  set(files "")
  foreach(po ${all})
    get_filename_component(code ${po} NAME_WE)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${folder}/${code}.mo COMMAND ${MSGFMT_EXECUTABLE} -o ${folder}/${code}.mo ${po}
                       DEPENDS ${po} VERBATIM)
    string(APPEND files "<file>${code}.mo</file>")
    list(APPEND compiled ${folder}/${code}.mo)
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/languages.qrc CONTENT
       "<RCC><qresource prefix=\"/languages\">${files}</qresource></RCC>\n" @ONLY)
  add_custom_target(tenon_languages_compiled DEPENDS ${compiled})
  set(${variable} ${folder}/languages.qrc PARENT_SCOPE)
endfunction()
