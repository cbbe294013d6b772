#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"

namespace tenon {

/// One view in a chain of them, and what it makes of the layout before it.
struct ViewStep {
  std::string text;    ///< ".permute(1, 0)"
  Layout layout;       ///< after it; of a copy in memory of its own
  std::string copies;  ///< why the elements have to be copied for it; empty: the same memory, read otherwise
};

/// What a view is given: numbers, and lists of them: "(1, [2, 3])".
class ViewArgs {
 public:
  struct Arg {
    bool list = false;
    std::vector<int64_t> numbers;
  };
  ViewArgs(std::string usage, std::vector<Arg> args) : usage_(std::move(usage)), args_(std::move(args)) {}
  size_t count() const { return args_.size(); }
  /// Throws Error (usage) with how the view is written where there is no such number.
  int64_t number(size_t i) const;
  int64_t number(size_t i, int64_t without) const { return i < args_.size() ? number(i) : without; }
  /// One list, or all of the numbers: ".permute(1, 0)" and ".permute([1, 0])" say the same.
  Dims dims() const;
  Dims dims(size_t i) const;
  /// Throws Error (usage) where there are more, or fewer.
  void expect(size_t least, size_t most) const;

 private:
  [[noreturn]] void refuse() const;
  std::string usage_;
  std::vector<Arg> args_;
};

/// What a view makes of a layout, and why that takes a copy; see ViewStep.
struct ViewResult {
  Layout layout;
  std::string copies = {};
};

/// A view that a chain may hold. To add one, register it in view_defs.cpp.
struct ViewFormDef {
  std::string name;   ///< "permute"
  std::string usage;  ///< ".permute(1, 0)"
  std::string help;   ///< "the axes in another order"
  /// `storage`: elements of the memory. Throws Error (usage) where it does not fit.
  ViewResult (*apply)(const Layout& of, const ViewArgs& args, int64_t storage);
};
bool register_view_form(ViewFormDef def, Place place = Place::current());
const Registry<ViewFormDef>& view_forms();

/// Reads a chain as PyTorch writes it, ".permute(1, 0)[::2, -1].reshape(6, -1)", and applies it to a layout in a memory
/// of so many elements. An index may step backwards. Throws Error (usage) that says at which character, and why.
std::vector<ViewStep> view_chain(const std::string& text, const Layout& of, int64_t storage);

/// Why no strides walk these axes in that shape; empty where some do.
std::string why_no_view(const Layout& of, const Shape& to);

}  // namespace tenon
