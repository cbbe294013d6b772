#pragma once
#include <map>
#include <string>

#include "engine/formats/python/class_text.h"
#include "engine/formats/python/forms.h"
#include "engine/model/examine.h"

namespace tenon::python {

/// The value of an attribute, or its default; a list of one where the default has more stands for as many.
AttrValue value_of(const LayerSpec& layer, const AttrDef& def);
/// Whether two values of an attribute mean the same.
bool same_value(const AttrDef& def, const AttrValue& a, const AttrValue& b);

/// nn.Conv2d(1, 32, kernel_size=3): sizes that the layer takes from what arrives are those of the report.
Text constructor(const LayerSpec& layer, const LayerReport& report);

/// Whether a way of calling a layer says what its attributes say.
bool holds(const Call& call, const LayerSpec& layer, const LayerInfo& info);
/// How many inputs a pattern reads.
size_t inputs_in(const Expr& pattern);
/// A pattern with what is known in place of its names (m, x0, x1, ...) and of attributes'.
Expr written(const Expr& pattern, const std::map<std::string, Expr>& known, const LayerSpec& layer,
             const LayerInfo& info, const PythonForm& form);

}  // namespace tenon::python
