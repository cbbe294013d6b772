#include "views/data/data_fit.h"

#include "engine/templates/templates.h"
#include "engine/train/open_data.h"
#include "engine/train/recipe.h"
#include "views/shared/language.h"

namespace tenon::views {

DataFit fit_of(const ModelSpec& model, const Recipe& recipe, const data::Split& raw) {
  DataFit f{fit_model(model, recipe, *transformed_as(recipe, raw).train), {}};
  if (f.open()) f.templates = templates_for(recipe, raw);
  return f;
}

std::string fit_text(const DataFit& f) {
  if (!f.open()) return tr("The model takes these samples and answers as the loss wants it");
  if (f.fit.bare) return tr("The model has no layers yet: begin with one that suits these data, or build it");
  const std::string why = tr("The model does not suit these data: {}", f.fit.problem);
  if (!f.fit.changes.empty()) return why;
  return f.fit.hint.empty() ? why : why + "; " + f.fit.hint;
}

}  // namespace tenon::views
