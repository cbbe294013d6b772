#pragma once
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/model_file.h"

namespace tenon {
class MappedFile;
}

namespace tenon::formats {

/// What lies in an archive of torch.export.save: weights and constants, one file of torch.save (before PyTorch 2.9) or
/// each as the bytes of its storage beside a list of them, and the program as JSON. Up to PyTorch 2.7 the archive has
/// another layout and no member "archive_format". What the JSON says is in PyTorch's
/// torch/_export/serde/schema.py. Nothing in it is ever run; of pickles only tensors are read.
struct ExportedArchive {
  ModelFile held;              ///< tensors, facts and warnings; no graph
  std::vector<Tensor> values;  ///< of held.tensors; undefined where the entry tells a problem
  nlohmann::json program;      ///< null where there is none
};
/// Throws Error naming the file and the member that is wrong.
ExportedArchive read_exported(const std::shared_ptr<const MappedFile>& file);

/// The names of ScalarType's numbers, "float32", and back; "type 99" of a number that has none, 0 of such a name.
std::string exported_type(int64_t number);
int64_t exported_type_number(std::string_view name);

/// A member by its way through objects; null where one of them is missing.
const nlohmann::json& member_at(const nlohmann::json& j, std::initializer_list<const char*> way);
/// The same; an empty list where it is none.
const nlohmann::json& list_at(const nlohmann::json& j, std::initializer_list<const char*> way);
/// "" where it is no text.
std::string text_of_json(const nlohmann::json& j);
/// A whole number, or one within {"as_int": 3}; -1 where it is none, or less than 0.
int64_t whole_of_json(const nlohmann::json& j);
/// "s0" of the expression "Symbol('s0', positive=True, integer=True)", which sympy prints.
std::string exported_symbol(std::string expression);
/// The module that a node stands in, "layer1.0.conv1", by its metadata.
std::string exported_scope(const nlohmann::json& node);

}  // namespace tenon::formats
