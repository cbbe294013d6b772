#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/command.h"
#include "engine/formats/model_file.h"

namespace tenon::app {

/// What `tenon inspect` says of a file: as JSON, and as facts and tables for a reader.
struct FileReport {
  using Rows = std::vector<std::vector<std::string>>;
  std::string what;  ///< "a safetensors file"
  nlohmann::json j;  ///< with its "kind"
  Rows facts;
  std::vector<std::pair<Rows, std::vector<bool>>> tables = {};
};

/// "[64, 3, 7, 7]"
std::string sizes_text(const std::vector<int64_t>& sizes);
/// Names in a file are anyone's: none may move the terminal's cursor.
FileReport::Rows shown(FileReport::Rows rows);

FileReport report_of(const formats::ModelFile& m);
/// The statistics of one tensor, or of each with a row; the exit status.
int print_tensor(const formats::ModelFile& m, const std::string& name, const Args& args);
int print_all_tensors(const formats::ModelFile& m, const Args& args);
/// Every listing of code that the file brings, each below its name. Throws Error where it brings none.
int print_code(const formats::ModelFile& m, const Args& args);

}  // namespace tenon::app
