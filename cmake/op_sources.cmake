# cmake -DROOT=... -DOUT=file.cpp -P op_sources.cmake: the sources of ops as text, for those who look inside one.
file(GLOB sources ${ROOT}/engine/ops/*.cpp ${ROOT}/engine/ops/*_formulas.h)
list(SORT sources)
string(CONCAT text "#include <cstddef>\n#include <utility>\n\nnamespace tenon {\n"
  "extern const std::pair<const char*, const char*> kOpSources[];\nextern const size_t kOpSourceCount;\n"
  "const std::pair<const char*, const char*> kOpSources[] = {\n")
foreach(source ${sources})
  file(RELATIVE_PATH name ${ROOT} ${source})
  file(READ ${source} content)
  string(APPEND text "{\"${name}\", R\"tenon-op(${content})tenon-op\"},\n")
endforeach()
string(APPEND text "};\nconst size_t kOpSourceCount = sizeof kOpSources / sizeof *kOpSources;\n}  // namespace tenon\n")
file(WRITE ${OUT} "${text}")
