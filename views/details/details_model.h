#pragma once
#include <string>
#include <utility>
#include <vector>

#include "projects/results.h"
#include "views/builder/builder_model.h"
#include "views/shared/document.h"
#include "views/shared/project_contents.h"
#include "views/shared/selection.h"

namespace tenon::views {

/// The selected thing in words and numbers, with a way into each view that shows a side of it.
struct Details {
  struct Row {
    std::string name, value;
    std::string exact;  ///< what a click copies
    Selection link;     ///< kind none: no link
    Ink mark = Ink::none;
  };
  struct Section {
    std::string title;
    std::vector<Row> rows;
  };
  /// A way into a view that shows a side of it.
  struct Jump {
    std::string view, text;
  };
  std::string title, subtitle;
  Ink mark = Ink::none;
  std::vector<Section> sections;
  std::vector<Jump> jumps;
  bool bad = false;
};

/// Everything that the details may draw from; what is missing is left out of them.
struct DetailsSources {
  const Links* links = nullptr;
  const BuilderModel* builder = nullptr;
  const ProjectContents* project = nullptr;
  const projects::Results* results = nullptr;
  const Document* document = nullptr;  ///< that the selection belongs to
  const std::vector<std::pair<std::string, std::string>>* arguments =
      {};  ///< of the selected event, once they are read
};
Details details_of(const Selection& s, const DetailsSources& from);

}  // namespace tenon::views
