#pragma once
#include <string>

#include "engine/formats/python/syntax.h"
#include "engine/spec/attr.h"

namespace tenon::python {

/// As Python has it.
std::string text_of(const Expr& e);
/// A value as an expression: 3, 0.1, True, "same", (3, 1). `whole`: a list of equal numbers stays a list.
Expr literal(const AttrValue& v, bool whole);

/// Whether a text can be a variable or an attribute.
bool is_identifier(const std::string& s);
/// Whether nn.Module has something of that name, which a layer must not hide.
bool is_taken(const std::string& s);
/// A text as an identifier, in small letters: "layer 1" is layer_1.
std::string identifier(const std::string& s);
/// A text as the name of a class: "fashion-cnn" is FashionCnn.
std::string class_name(const std::string& s);

}  // namespace tenon::python
