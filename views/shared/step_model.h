#pragma once
#include "views/shared/canvas_model.h"
#include "views/shared/document.h"
#include "views/shared/filter.h"

namespace tenon::views {

/// A canvas that follows the window: the step that is loaded, and what is selected.
class StepModel : public CanvasModel {
 public:
  /// Another step is loaded; empty links: none is, as when another run is shown.
  virtual void set_step(const Links&) {}
  /// Another document is shown; null: the project, with the step that is loaded.
  virtual void set_document(const Document*) {}
  /// The beginning of a trace or snapshot that is being read, or more of it; null: it is over. What was seen of it is
  /// seen of the whole, which set_document() brings before that.
  virtual void set_beginning(const Document*) {}
  /// It is what is shown; and the person has gone to a place of it.
  virtual bool shows_beginning() const { return false; }
  virtual bool looks_into_beginning() const { return false; }
  virtual void set_selection(const Selection&) {}
  /// Of the document that is shown; told after another one is.
  virtual void set_filter(const Filter&) {}
};

}  // namespace tenon::views
