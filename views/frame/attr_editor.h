#pragma once
#include <functional>

#include "engine/spec/attr.h"

class QLineEdit;
class QString;
class QWidget;

namespace tenon::views {

/// The editor of an attribute: a box to tick, a number with its unit, a list of choices, or a line that reads what is
/// typed as the command line does. `set` is called with every value that fits; what it throws, and what does not fit,
/// is told by the editor itself.
QWidget* make_attr_editor(const AttrDef& def, const AttrValue& value, std::function<void(const AttrValue&)> set,
                          QWidget* parent);
/// Shows another value, without a call of `set`. A line with something typed that was not entered yet is left alone.
void show_attr(QWidget* editor, const AttrValue& value);

/// What was typed is refused: the line says so in its colour, and why in words beside it, until take_fault_back().
void tell_fault(QLineEdit* line, const QString& why);
void take_fault_back(QLineEdit* line, const QString& text);

/// In a form that scrolls the wheel scrolls: from now on it changes a value only where the editor was clicked first.
void let_wheel_scroll(QWidget* editor);

}  // namespace tenon::views
