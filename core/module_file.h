#pragma once
#include <string>

namespace tenon {

/// Where a module of Tenon lies that is opened at run time ("window.so", "cuda.so"): beside the running program, as it
/// is installed or as it is built. The file need not be there. Throws Error where /proc does not say which program
/// runs.
std::string module_file(const std::string& name);

}  // namespace tenon
