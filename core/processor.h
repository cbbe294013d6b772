#pragma once
#include <string>

namespace tenon {

/// What the system says of the first processor under a key of /proc/cpuinfo: "flags", "model name". Empty where it says
/// nothing.
std::string processor_fact(const std::string& key);

/// As people call it: "AMD EPYC 7763 64-Core Processor"; "unknown processor" where the system names none.
std::string processor_name();

}  // namespace tenon
