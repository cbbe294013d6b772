#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/spec/layer_edits.h"
#include "engine/spec/model_spec.h"

namespace tenon::views {

/// Edits of a model as values: each makes another model of one. Names are of layers.
namespace edits {

/// Another type of layer with the wires, the place and the name (where that was not made of the type) of one; what it
/// was told and the new type knows, too, it keeps.
std::string replace_type(ModelSpec& spec, const std::string& name, const LayerInfo& info);
/// Other names for some layers, by their old ones: wires, shared weights and instances follow. Returns what is wrong,
/// and changes nothing then.
std::string rename_all(ModelSpec& spec, const std::map<std::string, std::string>& names);
/// Names within a scope are changed to names within another: "layer1.0" to "stem", or to nothing.
/// Returns what is wrong, and changes nothing then.
std::string rename_scope(ModelSpec& spec, const std::string& from, const std::string& to);
/// Puts layers into a scope of that name: "conv1" becomes "stem.conv1".
std::string put_into_scope(ModelSpec& spec, const std::set<std::string>& names, const std::string& scope);

/// Layers as text, with the wires between them, and those from and to others: JSON as the project file has it.
std::string part_as_text(const ModelSpec& spec, const std::set<std::string>& names);
/// Adds the layers of such a text under free names; they are in `added`. Behind a layer (where `behind` is one) a part
/// that was fed by one layer, and of which one was read, is wired in. Throws Error where the text is no part of a
/// model.
ModelSpec with_part(ModelSpec spec, const std::string& text, const std::string& behind,
                    std::vector<std::string>& added);

enum class Line { left, center, right, top, bottom };
/// On one line along an edge of theirs, or along their middles (sizes as the canvas draws them).
ModelSpec aligned(ModelSpec spec, const std::set<std::string>& names, Line line);
/// With equal gaps from the first to the last, in the direction in which they lie further apart.
ModelSpec spread(ModelSpec spec, const std::set<std::string>& names);

}  // namespace edits
}  // namespace tenon::views
