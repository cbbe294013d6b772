#include "views/model_file/model_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <optional>
#include <set>

#include "core/error.h"
#include "engine/formats/onnx/runnable.h"
#include "views/shared/document.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

using formats::ModelFile;
using formats::OnnxModel;

namespace {
constexpr int kRunBins = 64;

std::string nodes_text(int64_t n) { return n == 1 ? tr("1 node") : tr("{} nodes", format_grouped(n)); }
std::string outputs_text(size_t n) {
  return n == 1 ? tr("1 output") : tr("{} outputs", format_grouped(static_cast<int64_t>(n)));
}
}  // namespace

std::string ModelRun::sentence() const {
  if (stopped) return tr("The run was stopped.");
  if (!error.empty()) return error + (hint.empty() ? "" : ". " + hint);
  return tr("{} ran in {}: {}", nodes_text(nodes), format_ns(seconds * 1e9), outputs_text(outputs.size())) +
         (integer ? tr("; {} multiplied integers", nodes_text(integer)) : "") +
         (random ? tr("; random numbers were drawn, another run may give others") : "");
}

Table ModelRun::table() const {
  Table t;
  t.columns = {{tr("Output")},    {.title = tr("Shape"), .whole = true},
               {tr("Min"), true}, {tr("Mean"), true},
               {tr("Max"), true}, {"NaN", true},
               {tr("Type")}};
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [name, value] = outputs[i];
    const TensorStats& s = stats[i];
    Table::Row row;
    row.selection = Selection::file_tensor(Document::kProject, name, "model run");
    row.cells = {{name, 0, {}, Ink::none}, {to_string(value.size()), 0, {}, Ink::none}};
    for (const double v : {s.min, s.mean, s.max}) {
      auto cell = s.finite() ? Table::Cell::number(v, format_value(v)) : Table::Cell::number(0, "–");
      if (s.finite()) cell.tip = format_exact(v);
      row.cells.push_back(std::move(cell));
    }
    auto nan = Table::Cell::number(static_cast<double>(s.nan), format_grouped(s.nan));
    if (s.nan) nan.mark = Ink::bad;
    row.cells.push_back(std::move(nan));
    row.cells.push_back({tenon::name(value.dtype()), 0, {}, Ink::none});
    t.rows.push_back(std::move(row));
  }
  return t;
}

std::shared_ptr<const ModelFile> ModelRun::as_file() const {
  auto file = std::make_shared<ModelFile>();
  for (const auto& [name, t] : outputs) {
    ModelFile::Entry e{.name = name, .dtype = tenon::name(t.dtype()), .bytes = t.nbytes()};
    e.shape.assign(t.size().begin(), t.size().end());
    file->tensors.push_back(std::move(e));
  }
  file->values = [all = outputs](size_t i) { return all.at(i).second; };
  return file;
}

ModelRun run_model(const OnnxModel& model, const std::vector<formats::OnnxFeed>& feeds,
                   const std::function<bool(int64_t, int64_t)>& go_on, Arithmetic quantized) {
  using Clock = std::chrono::steady_clock;
  ModelRun run;
  run.nodes = static_cast<int64_t>(model.graph.nodes.size());
  int64_t at = -1;
  std::optional<formats::PreparedModel> prepared;
  try {
    prepared.emplace(model, quantized);
    run.integer = prepared->integers().integer;
    const auto inputs = formats::fed(formats::wanted_inputs(model), feeds);
    const auto began = Clock::now();
    formats::OnnxLimits limits;
    limits.go_on = [&](int64_t node, int64_t of) {
      at = node;
      run.stopped = go_on && !go_on(node, of);
      return !run.stopped;
    };
    const formats::OnnxResult result = prepared->run(inputs, limits);
    run.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    at = -1;
    run.random = result.random;
    run.outputs = formats::named_outputs(model, result.outputs);
    for (const auto& output : run.outputs)
      run.stats.push_back(tensor_stats(output.second, kRunBins, [&](int64_t, int64_t) {
        run.stopped = run.stopped || (go_on && !go_on(run.nodes, run.nodes));
        return !run.stopped;
      }));
  } catch (...) {
    const Error e = caught_error();
    if (!run.stopped) run.error = e.message(), run.hint = e.hint();
    if (!run.stopped && at >= 0)
      for (const std::string& made : prepared->model().graph.nodes[static_cast<size_t>(at)].outputs)
        if (run.failed_value.empty()) run.failed_value = made;
  }
  if (!run.ok()) run.outputs.clear(), run.stats.clear();
  return run;
}

NoRun why_no_run(const ModelFile& file) {
  if (formats::is_runnable(file.kind)) return {};
  return {tr("The file holds weights alone: nothing in it says how a model is made of them."),
          tr("Export the model as ONNX with torch.onnx.export() and open that; or begin a model of your own with these "
             "weights, which the view Initial weights does.")};
}

NoRun why_no_run(const OnnxModel& model) {
  std::set<std::string> missing;
  for (const formats::OnnxNode& n : model.graph.nodes)
    if (std::string why = formats::onnx_unsupported(n); !why.empty()) missing.insert(std::move(why));
  if (!missing.empty())
    return {tr("The model needs what is not supported here: {}.", fmt::format("{}", fmt::join(missing, ", "))),
            tr("Export it with operators of the standard domain, or load a plug-in that brings these.")};
  for (const formats::OnnxValue& v : formats::wanted_inputs(model)) {
    if (v.form != formats::OnnxValue::Form::tensor)
      return {tr("Its input {} is no tensor but a sequence or an optional, which cannot be given here.", v.name),
              tr("Export it with tensors as inputs.")};
    if (!v.unsupported.empty())
      return {tr("Its input {} has the type {}, which is not supported.", v.name, v.unsupported),
              tr("Export it with inputs of another type.")};
  }
  return {};
}

}  // namespace tenon::views
