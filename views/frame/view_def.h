#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "views/shared/document.h"
#include "views/shared/language.h"
#include "views/shared/step_model.h"

class QWidget;

namespace tenon::views {

class Bench;
class View;

/// Where a view stands in the window.
enum class Spot : uint8_t { left, middle, below, right };

/// A view, as the window knows it. Docks, menus, the palette, layouts, the links of the details, `tenon shot` and the
/// tests walk the list of these; it is the only one that names views.
struct ViewDef {
  /// Where the view stands in one of the named layouts, where that is not its usual spot. Of those below, the lowest
  /// `rank` stands in front.
  struct Place {
    const char* layout;
    Spot spot = Spot::below;
    int rank = 0;
    bool leads = false;  ///< in front of the middle
  };

  /// What F1 in the view says, in sentences marked with tr_later(); a test asks every view for all of it.
  struct Help {
    const char* shows = "";  ///< what one sees
    const char* mouse = "";  ///< what clicks, drags and the wheel do
    const char* keys = "";   ///< beside those of its commands, which are listed with it
  };

  const char* id;     ///< "timeline": of its command `view.timeline`, and of `tenon shot --view timeline`
  const char* title;  ///< tr_later("Timeline")
  const char* icon;   ///< a name in resources/icons
  int order;          ///< among the tabs of one spot, and in the menus
  Spot spot = Spot::middle;
  int rank = 0;  ///< of the usual spot
  std::vector<Place> places;
  /// The named layouts it has a tab in from the beginning; none: every one. In the others it is there once it is asked
  /// for: by the View menu, a link, a file that is opened.
  std::vector<const char*> layouts = {};
  /// The command that brings it something to show, for a picture made without a hand; null: an open project is enough.
  const char* fill = nullptr;
  /// The name of the link to it among the details of a selection; null: it is no side of any.
  const char* link = nullptr;
  /// The kind of file that it comes to the front for, when one is opened.
  std::optional<Document::Kind> opens = {};
  /// Whether the view shows a side of what is selected.
  std::function<bool(const Selection& s, const Bench& bench)> shows;
  Help help;

  std::function<std::unique_ptr<StepModel>()> make_model;  ///< none: the view keeps its state itself
  std::function<View*(const ViewDef&, Bench&, QWidget* parent)> make;
};

/// Every view, by `order`. Two of one id are an Error that names both places, told when the list is first read.
const Registry<ViewDef>& view_defs();
bool add_view(ViewDef def, Place place);

/// A view that keeps its state itself. Called by a static object in the view's own file.
template <class V>
bool register_view(ViewDef def, Place place = Place::current()) {
  def.make = [](const ViewDef& d, Bench& bench, QWidget* parent) -> View* { return new V(d, bench, parent); };
  return add_view(std::move(def), place);
}

/// A view whose state is a model of the class `Model`.
template <class V, class Model>
bool register_view(ViewDef def, Place place = Place::current()) {
  def.make_model = [] { return std::make_unique<Model>(); };
  return register_view<V>(std::move(def), place);
}
}  // namespace tenon::views
