#include "core/processor.h"

#include <fstream>

namespace tenon {

std::string processor_fact(const std::string& key) {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line))
    if (line.starts_with(key) && line.find(": ") != line.npos) return line.substr(line.find(": ") + 2);
  return {};
}

std::string processor_name() {
  const std::string name = processor_fact("model name");
  return name.empty() ? "unknown processor" : name;
}

}  // namespace tenon
