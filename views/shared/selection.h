#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::tracing {
struct StepRecord;
}

namespace tenon::views {

/// The one thing that is selected in the whole window. Ids are numbers where the thing has one, names where it has not.
struct Selection {
  enum class Kind : uint8_t {
    none,
    op,           ///< id: sequence number within the step
    tensor,       ///< id: index into StepRecord::tensors
    grad_node,    ///< id: index into StepRecord::grad_nodes
    alloc,        ///< id: block number; of a snapshot, see allocation()
    module,       ///< name: module path; a builder's layer is the module of the same name
    step,         ///< id: step of the shown run
    run,          ///< id: of the project
    checkpoint,   ///< id: of the project
    range,        ///< from, to: nanoseconds within the step, or after the trace's first event
    event,        ///< id: of a trace; of a snapshot, counted through all its devices
    document,     ///< the whole of it
    sample,       ///< id: row of the test split of the shown run
    place,        ///< name: a line of code of a snapshot's stacks: all that was allocated there
    file_tensor,  ///< name: of a tensor of a model file
    file_node,    ///< id: index into ModelFile::nodes
  };
  Kind kind = Kind::none;
  int64_t id = 0;
  std::string name;
  double from = 0, to = 0;
  std::string source;  ///< the view that chose it: a view does not scroll to its own choice
  int document = 0;    ///< it belongs to (Document::id); 0: the project

  explicit operator bool() const { return kind != Kind::none; }
  bool same(const Selection& o) const {
    return kind == o.kind && id == o.id && name == o.name && from == o.from && to == o.to && document == o.document;
  }

  static Selection op(int64_t seq, std::string source = {}) { return {Kind::op, seq, {}, 0, 0, std::move(source)}; }
  static Selection tensor(int64_t index, std::string source = {}) {
    return {Kind::tensor, index, {}, 0, 0, std::move(source)};
  }
  static Selection grad_node(int64_t index, std::string source = {}) {
    return {Kind::grad_node, index, {}, 0, 0, std::move(source)};
  }
  static Selection alloc(int64_t block, std::string source = {}) {
    return {Kind::alloc, block, {}, 0, 0, std::move(source)};
  }
  static Selection module(std::string path, std::string source = {}) {
    return {Kind::module, 0, std::move(path), 0, 0, std::move(source)};
  }
  static Selection step(int64_t step, std::string source = {}) {
    return {Kind::step, step, {}, 0, 0, std::move(source)};
  }
  static Selection run(int64_t id, std::string source = {}) { return {Kind::run, id, {}, 0, 0, std::move(source)}; }
  static Selection checkpoint(int64_t id, std::string source = {}) {
    return {Kind::checkpoint, id, {}, 0, 0, std::move(source)};
  }
  static Selection sample(int64_t row, std::string source = {}) {
    return {Kind::sample, row, {}, 0, 0, std::move(source)};
  }
  static Selection range(double a, double b, std::string source = {}) {
    return {Kind::range, 0, {}, a, b, std::move(source)};
  }
  static Selection event(int document, int64_t id, std::string source = {}) {
    return {Kind::event, id, {}, 0, 0, std::move(source), document};
  }
  /// Of a snapshot: an element of the timeline of one of its traces (devices).
  static Selection allocation(int document, size_t trace, uint32_t element, std::string source = {}) {
    return {Kind::alloc, static_cast<int64_t>(trace << 32 | element), {}, 0, 0, std::move(source), document};
  }
  size_t allocation_trace() const { return static_cast<uint64_t>(id) >> 32; }
  uint32_t allocation_element() const { return static_cast<uint32_t>(id); }
  static Selection place(int document, std::string name, std::string source = {}) {
    return {Kind::place, 0, std::move(name), 0, 0, std::move(source), document};
  }
  static Selection file_tensor(int document, std::string name, std::string source = {}) {
    return {Kind::file_tensor, 0, std::move(name), 0, 0, std::move(source), document};
  }
  static Selection file_node(int document, int64_t node, std::string source = {}) {
    return {Kind::file_node, node, {}, 0, 0, std::move(source), document};
  }
  static Selection of_document(int document, std::string source = {}) {
    return {Kind::document, document, {}, 0, 0, std::move(source), document};
  }
};
const char* name(Selection::Kind k);
/// "op:12", "tensor:3", "module:features.3", "step:120": the text of a selection on the command line. What belongs to
/// another document than the project ends in its number: "event:7@1", "weight:fc.weight@1".
std::string to_text(const Selection& s);
/// The inverse; a Selection of kind none where the text is none.
Selection parse_selection(const std::string& text);

/// Holds the selection, tells listeners of it, and remembers where one has been.
class SelectionBus {
 public:
  using Listener = std::function<void(const Selection&)>;
  /// Listeners are called in the order they came; the returned number takes one away again.
  int listen(Listener l);
  void forget(int id);
  void select(const Selection& s);
  const Selection& current() const { return current_; }
  bool can_go_back() const { return at_ > 0; }
  bool can_go_forward() const { return at_ + 1 < history_.size(); }
  void back();
  void forward();
  /// A document was closed: nothing leads back to it. The current selection goes, too, where it was of it.
  void forget_document(int document);

 private:
  void tell();
  struct Entry {
    int id;
    Listener call;
  };
  Selection current_;
  std::vector<Selection> history_{Selection{}};
  size_t at_ = 0;
  int next_ = 1;
  std::vector<Entry> listeners_;
};

/// Who belongs to whom within one step: every view asks for its own side of the selection.
class Links {
 public:
  using Record = std::shared_ptr<const tracing::StepRecord>;
  Links() = default;
  explicit Links(Record record);
  const Record& record() const { return record_; }
  explicit operator bool() const { return record_ != nullptr; }

  /// Of a selection that belongs to another document a step knows nothing.
  /// The op a selection is about; 0 where it is about none (a tensor: its producer, or its first reader when the step
  /// did not make it).
  uint32_t op_of(const Selection& s) const;
  int tensor_of(const Selection& s) const;     ///< -1: none. An op: its first output
  int grad_node_of(const Selection& s) const;  ///< -1: none
  int64_t block_of(const Selection& s) const;  ///< 0: none
  std::string module_of(const Selection& s) const;
  /// The step has what is selected, or is it.
  bool hold(const Selection& s) const;
  /// All ops that a selection covers: one, those of a module (and below it), or those that overlap a time range.
  std::vector<uint32_t> ops_of(const Selection& s) const;
  std::vector<uint32_t> readers_of(int tensor) const;
  /// Ops of the backward pass that belong to a forward op.
  std::vector<uint32_t> backward_of(uint32_t seq) const;
  std::vector<int> aliases_of(int tensor) const;
  /// Blocks that an op asked for.
  std::vector<int64_t> blocks_of(uint32_t seq) const;
  const std::vector<int>& grad_nodes_of(uint32_t forward_seq) const;

 private:
  Record record_;
  std::vector<std::vector<int>> nodes_;          // by seq
  std::vector<std::vector<uint32_t>> backward_;  // by seq
  std::vector<std::vector<uint32_t>> readers_;   // by tensor
  std::vector<std::vector<int64_t>> blocks_;     // by seq
};

/// True where `path` is `module` or lies below it ("features" holds "features.3").
bool in_module(const std::string& path, const std::string& module);

}  // namespace tenon::views
