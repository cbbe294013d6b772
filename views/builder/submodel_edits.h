#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/model/examine.h"
#include "engine/spec/submodel.h"

namespace tenon::views::edits {

/// What is known of a layer; null: nothing.
using ReportOf = std::function<const LayerReport*(const std::string&)>;

/// Makes layers a sub-model: a group that has all of them, or a new one. Sets the scope that it stands in then. Returns
/// what is wrong, and changes nothing then.
std::string make_submodel(ModelSpec& spec, const std::set<std::string>& layers, const std::string& name,
                          std::string& scope);
std::string rename_submodel(ModelSpec& spec, const std::string& from, const std::string& to);
/// One more instance, which nothing feeds yet; the names of its layers and its scope.
ModelSpec with_instance(ModelSpec spec, const std::string& submodel, std::vector<std::string>& added,
                        std::string& scope);
/// The layers of an instance are layers like any others, in the group around it.
void dissolve(ModelSpec& spec, const std::string& scope, std::set<std::string>& now);

/// Of a layer or an instance: what it could share weights with. Layers are of one type with the same attributes.
std::vector<std::string> weight_owners(const ModelSpec& spec, const std::string& of, const ReportOf& report);
/// A layer or an instance has the weights of another from now on; with an empty owner its own.
void share_weights(ModelSpec& spec, const std::string& of, const std::string& owner, const ReportOf& report);

}  // namespace tenon::views::edits
