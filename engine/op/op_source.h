#pragma once
#include <string>

#include "core/registry.h"

namespace tenon {

/// The text of the definition that is registered at this place: the op's struct with the comment before it, or the one
/// line that a pointwise op is. Tenon's own ops bring their text with them; of a plug-in's it is read from where it was
/// compiled. Empty where it is not there any more.
std::string definition_text(const Place& place);

}  // namespace tenon
