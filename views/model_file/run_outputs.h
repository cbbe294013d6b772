#pragma once
#include <functional>
#include <memory>
#include <string>

#include "views/model_file/model_run.h"
#include "views/model_file/tensor_pane.h"
#include "views/shared/canvas_model.h"

namespace tenon::views {

/// The chosen output of a run: a slice of it in colours, statistics, a histogram, as of a tensor of a file.
class RunOutputs : public CanvasModel {
 public:
  /// Null: none.
  void show(std::shared_ptr<const ModelRun> run);
  const std::shared_ptr<const ModelRun>& run() const { return run_; }
  /// By its name; another is chosen, or the values of another slice are to be read.
  void choose(const std::string& output);
  std::function<void()> on_choose;
  const TensorPane& pane() const { return pane_; }
  /// Whether the slice that is asked for is not there.
  bool wants_slice() const;
  void set_slice(const TensorPane::File& file, int output, ValueSlice slice);

  bool pointer(const PointerEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  void tell() const {
    if (on_choose) on_choose();
    changed();
  }

  std::shared_ptr<const ModelRun> run_;
  TensorPane::File file_;
  TensorPane pane_;
};

}  // namespace tenon::views
