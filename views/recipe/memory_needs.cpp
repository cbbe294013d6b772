#include "views/recipe/memory_needs.h"

#include <fmt/format.h>

#include <array>

#include "core/machine_memory.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

struct Part {
  Category category;
  const char* title;
};
/// In the order of their columns.
constexpr std::array<Part, kCategories> kParts{{{Category::parameter, tr_later("Parameters")},
                                                {Category::gradient, tr_later("Gradients")},
                                                {Category::optimizer, tr_later("Optimizer")},
                                                {Category::buffer, tr_later("Buffers")},
                                                {Category::activation, tr_later("Activations")},
                                                {Category::workspace, tr_later("Workspace")},
                                                {Category::data, tr_later("Batches")},
                                                {Category::other, tr_later("Other")}}};

std::string size(int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }
Table::Cell bytes_cell(int64_t bytes) {
  Table::Cell c = Table::Cell::number(static_cast<double>(bytes), bytes ? size(bytes) : "");
  c.tip = format_grouped(bytes);
  return c;
}

std::string moment_word(Phase p) {
  switch (p) {
    case Phase::forward:
      return tr("forward");
    case Phase::backward:
      return tr("backward");
    case Phase::optimizer:
      return tr("the update");
    case Phase::data:
      return tr("waiting for the batch");
    default:
      return tr("building the model");
  }
}

}  // namespace

MemoryNeeds memory_needs(const ModelSpec& spec, const Recipe& recipe, const std::shared_ptr<const data::Split>& data,
                         int64_t limit, const Cancelled& cancelled) {
  MemoryNeeds n;
  n.limit = limit;
  n.now = forecast_memory(spec, recipe, data);
  n.largest = largest_batch(spec, recipe, data, limit, cancelled);
  return n;
}

std::string memory_line(const MemoryNeeds& n) {
  const std::string batch = format_grouped(n.now.batch), largest = format_grouped(n.largest.batch);
  const std::string needs = size(n.now.needed_bytes()), here = size(n.limit);
  if (!n.fits())
    return n.largest.batch > 0 ? tr("needs about {} at batch {}; {} are here: it will not fit · batch {} does", needs,
                                    batch, here, largest)
                               : tr("needs about {} at batch {}; {} are here: no batch fits", needs, batch, here);
  if (n.largest.whole_data) return tr("about {} of {} at batch {} · any batch fits", needs, here, batch);
  return tr("about {} of {} at batch {} · fits up to batch {}", needs, here, batch, largest);
}

std::string memory_moment(const MemoryNeeds& n) {
  const MemoryForecast& f = n.now;
  const std::string where = f.layer.empty() ? f.op : f.op + ", " + f.layer;
  return tr("At its highest moment a step holds {}: in {} ({}). The pool takes {} from the system for it, and a "
            "checkpoint {} more while it is written.",
            size(f.peak_bytes), moment_word(f.phase), where, size(f.held_bytes), size(f.checkpoint_bytes)) +
         (f.held_with_evaluation > f.held_bytes ? " " + tr("An evaluation holds {}; with it the pool takes {}.",
                                                           size(f.evaluation_bytes), size(f.held_with_evaluation))
                                                : std::string());
}

Table memory_layers(const MemoryForecast& f) {
  Table t;
  t.columns = {{tr("Layer")}, {tr("Sum"), true}};
  std::vector<Category> shown;
  for (const Part& p : kParts)
    if (f.at_peak[static_cast<size_t>(p.category)] != 0) {
      shown.push_back(p.category);
      t.columns.push_back({tr(p.title), true});
    }
  t.columns.push_back({tr("Largest workspace"), true, tr("The most that one operation works in, at any moment")});
  const auto add = [&](const std::string& name, const BytesByCategory& at_peak, int64_t workspace, Selection s) {
    int64_t sum = 0;
    for (int64_t b : at_peak) sum += b;
    Table::Row row{{{name, 0, {}, Ink::none}, bytes_cell(sum)}, std::move(s)};
    for (Category c : shown) row.cells.push_back(bytes_cell(at_peak[static_cast<size_t>(c)]));
    row.cells.push_back(bytes_cell(workspace));
    t.rows.push_back(std::move(row));
  };
  int64_t largest = 0;
  for (const LayerMemory& l : f.layers) {
    largest = std::max(largest, l.largest_workspace);
    add(l.layer.empty() ? tr("(no layer: batches, loss)") : l.layer, l.at_peak, l.largest_workspace,
        l.layer.empty() ? Selection() : Selection::module(l.layer, "recipe"));
  }
  add(tr("all"), f.at_peak, largest, {});
  return t;
}

std::string proposal_title(const MemoryProposal& p) {
  const std::string& value = p.set.at(0).second;
  switch (p.kind) {
    case MemoryProposal::Kind::recompute:
      return tr("Gradient checkpointing in {} stretches", value);
    case MemoryProposal::Kind::accumulate:
      return tr("Gradients added up over {} parts of the batch", value);
    case MemoryProposal::Kind::low_precision:
      return tr("Mixed precision, bf16");
    case MemoryProposal::Kind::optimizer:
      return tr("Optimizer {}", value);
    case MemoryProposal::Kind::smaller_batch:
      return tr("Batch {}", value);
  }
  return {};
}

std::string proposal_caution(const MemoryProposal& p) {
  switch (p.kind) {
    case MemoryProposal::Kind::recompute:
      return tr("the same steps, bit for bit");
    case MemoryProposal::Kind::accumulate:
      return tr("the same steps but for rounding; norms over the batch see its parts");
    case MemoryProposal::Kind::low_precision:
      return tr("products are rounded to 8 bits");
    case MemoryProposal::Kind::optimizer:
      return tr("another way to learn: its rate is to be found anew");
    case MemoryProposal::Kind::smaller_batch:
      return tr("more steps an epoch, of noisier gradients");
  }
  return {};
}

std::string proposal_time(const MemoryProposal& p) { return fmt::format("{:.2f} ×", p.time); }

std::string proposal_settings(const MemoryProposal& p) {
  std::string all;
  for (const auto& [key, text] : p.set) all += (all.empty() ? "--set " : " --set ") + key + "=" + text;
  return all;
}

Table memory_proposals_table(const std::vector<MemoryProposal>& all, int64_t limit) {
  Table t;
  t.columns = {{tr("Proposal")},
               {tr("Saves"), true},
               {tr("Then needs"), true},
               {tr("Time a sample"), true,
                tr("Worked out from what the operations compute and move, as a multiple of now; real times differ")},
               {tr("How")},
               {tr("Bear in mind")}};
  for (const MemoryProposal& p : all) {
    Table::Cell then = bytes_cell(p.then.needed_bytes());
    then.mark = p.then.needed_bytes() <= limit ? Ink::good : Ink::warning;
    t.rows.push_back({{{proposal_title(p), 0, {}, Ink::none},
                       bytes_cell(p.saved_bytes),
                       std::move(then),
                       Table::Cell::number(p.time, proposal_time(p)),
                       {proposal_settings(p), 0, {}, Ink::none},
                       {proposal_caution(p), 0, {}, Ink::none}},
                      {}});
  }
  return t;
}

}  // namespace tenon::views
