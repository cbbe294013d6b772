#pragma once
#include <string>

namespace tenon::data {

/// What to do where the data of a set is not there or does not fit: "data.dir (on the command line: --data DIR) names
/// the folder with x.npy and y.npy". In the window it is a key of the recipe.
inline std::string data_place(const std::string& what, const std::string& argument = "DIR") {
  return "data.dir (on the command line: --data " + argument + ") names " + what;
}

}  // namespace tenon::data
