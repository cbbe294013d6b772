#include "views/shared/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>

#include "tracing/record/step_record.h"
#include "views/shared/document.h"

namespace tenon::views {

static constexpr const char* kKinds[] = {"none",   "op",    "tensor",     "grad",  "alloc", "module",
                                         "step",   "run",   "checkpoint", "range", "event", "document",
                                         "sample", "place", "weight",     "node"};
const char* name(Selection::Kind k) { return kKinds[static_cast<int>(k)]; }

std::string to_text(const Selection& s) {
  if (!s) return {};
  if (s.kind == Selection::Kind::document) return fmt::format("document:{}", s.document);
  const std::string at = s.document ? fmt::format("@{}", s.document) : std::string();
  if (s.kind == Selection::Kind::module) return "module:" + s.name;
  if (s.kind == Selection::Kind::place) return "place:" + s.name + at;
  if (s.kind == Selection::Kind::file_tensor) return "weight:" + s.name + at;
  if (s.kind == Selection::Kind::range) return fmt::format("range:{}-{}{}", s.from, s.to, at);
  return fmt::format("{}:{}{}", name(s.kind), s.id, at);
}

Selection parse_selection(const std::string& text) {
  size_t colon = text.find(':');
  if (colon == std::string::npos) return {};
  std::string kind = text.substr(0, colon), rest = text.substr(colon + 1);
  for (int k = 1; k < static_cast<int>(std::size(kKinds)); ++k) {
    if (kind != kKinds[k] || rest.empty()) continue;
    Selection s;
    s.kind = static_cast<Selection::Kind>(k);
    const bool named =
        s.kind == Selection::Kind::module || s.kind == Selection::Kind::file_tensor || s.kind == Selection::Kind::place;
    if (const size_t at = rest.rfind('@'); at != std::string::npos && s.kind != Selection::Kind::module) {
      const char* last = rest.c_str() + rest.size();
      int document = 0;
      const auto read = std::from_chars(rest.c_str() + at + 1, last, document);
      const bool number = read.ec == std::errc() && read.ptr == last && document >= 0;
      if (!number && !named) return {};  // the name of a tensor may have the sign in it
      if (number) {
        s.document = document;
        rest.resize(at);
      }
    }
    char* end = nullptr;
    if (named) {
      s.name = rest;
    } else if (s.kind == Selection::Kind::range) {
      const char* last = rest.c_str() + rest.size();
      const auto from = std::from_chars(rest.c_str(), last, s.from);
      if (from.ec != std::errc() || from.ptr == last || *from.ptr != '-') return {};
      const auto to = std::from_chars(from.ptr + 1, last, s.to);
      if (to.ec != std::errc() || to.ptr != last) return {};
    } else {
      s.id = std::strtoll(rest.c_str(), &end, 10);
      if (*end) return {};
      if (s.kind == Selection::Kind::document) s.document = static_cast<int>(s.id);
    }
    return s;
  }
  return {};
}

int SelectionBus::listen(Listener l) {
  listeners_.push_back({next_, std::move(l)});
  return next_++;
}
void SelectionBus::forget(int id) {
  std::erase_if(listeners_, [id](const Entry& e) { return e.id == id; });
}
void SelectionBus::tell() {
  auto copy = listeners_;  // a listener may add or drop listeners
  for (const Entry& e : copy) e.call(current_);
}
void SelectionBus::select(const Selection& s) {
  if (s.same(current_) || s.document == Document::kBeginning) return;
  current_ = s;
  history_.resize(at_ + 1);
  history_.push_back(s);
  constexpr size_t kRemembered = 200;
  if (history_.size() > kRemembered) history_.erase(history_.begin());
  at_ = history_.size() - 1;
  tell();
}
void SelectionBus::back() {
  if (!can_go_back()) return;
  current_ = history_[--at_];
  current_.source = "history";
  tell();
}
void SelectionBus::forward() {
  if (!can_go_forward()) return;
  current_ = history_[++at_];
  current_.source = "history";
  tell();
}

void SelectionBus::forget_document(int document) {
  std::vector<Selection> kept;
  size_t at = 0;
  for (size_t i = 0; i < history_.size(); ++i) {
    const bool gone = history_[i] && history_[i].document == document;
    if (!gone && (kept.empty() || !history_[i].same(kept.back()))) kept.push_back(history_[i]);
    if (i <= at_ && !kept.empty()) at = kept.size() - 1;
  }
  history_ = kept.empty() ? std::vector<Selection>{Selection{}} : std::move(kept);
  at_ = at;
  if (!current_ || current_.document != document) return;
  current_ = history_[at_];
  current_.source = "history";
  tell();
}

bool in_module(const std::string& path, const std::string& module) {
  if (module.empty()) return true;
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

Links::Links(Record record) : record_(std::move(record)) {
  if (!record_) return;
  size_t n = record_->ops.size() + 1;
  nodes_.resize(n);
  backward_.resize(n);
  blocks_.resize(n);
  readers_.resize(record_->tensors.size());
  for (size_t i = 0; i < record_->grad_nodes.size(); ++i) {
    uint32_t seq = record_->grad_nodes[i].forward_seq;
    if (seq && seq < n) nodes_[seq].push_back(static_cast<int>(i));
  }
  for (const auto& op : record_->ops) {
    if (op.forward_seq && op.forward_seq < n) backward_[op.forward_seq].push_back(op.seq);
    for (int t : op.inputs)
      if (t >= 0 && t < static_cast<int>(readers_.size()) && (readers_[t].empty() || readers_[t].back() != op.seq))
        readers_[t].push_back(op.seq);
  }
  for (const auto& a : record_->allocs)
    if (a.bytes > 0 && a.origin.seq && a.origin.seq < n) blocks_[a.origin.seq].push_back(a.block);
}

uint32_t Links::op_of(const Selection& s) const {
  if (!record_ || s.document) return 0;
  const auto& r = *record_;
  switch (s.kind) {
    case Selection::Kind::op:
      return s.id >= 1 && s.id <= static_cast<int64_t>(r.ops.size()) ? static_cast<uint32_t>(s.id) : 0;
    case Selection::Kind::tensor:
      if (s.id < 0 || s.id >= static_cast<int64_t>(r.tensors.size())) return 0;
      if (r.tensors[s.id].producer) return r.tensors[s.id].producer;
      return readers_[s.id].empty() ? 0 : readers_[s.id].front();
    case Selection::Kind::grad_node:
      if (s.id < 0 || s.id >= static_cast<int64_t>(r.grad_nodes.size())) return 0;
      if (r.grad_nodes[s.id].leaf) {
        int t = tensor_of(s);
        return t >= 0 ? op_of(Selection::tensor(t)) : 0;
      }
      return r.grad_nodes[s.id].forward_seq;
    case Selection::Kind::alloc:
      for (const auto& a : r.allocs)
        if (a.block == s.id && a.bytes > 0) return a.origin.seq;
      return 0;
    case Selection::Kind::module: {
      auto ops = ops_of(s);
      return ops.empty() ? 0 : ops.front();
    }
    default:
      return 0;
  }
}

int Links::tensor_of(const Selection& s) const {
  if (!record_ || s.document) return -1;
  const auto& r = *record_;
  if (s.kind == Selection::Kind::tensor)
    return s.id >= 0 && s.id < static_cast<int64_t>(r.tensors.size()) ? static_cast<int>(s.id) : -1;
  if (s.kind == Selection::Kind::grad_node) {
    if (s.id < 0 || s.id >= static_cast<int64_t>(r.grad_nodes.size())) return -1;
    const auto& node = r.grad_nodes[s.id];
    if (node.leaf)
      for (size_t i = 0; i < r.tensors.size(); ++i)
        if (r.tensors[i].name == node.name) return static_cast<int>(i);
  }
  uint32_t seq = op_of(s);
  if (!seq) return -1;
  const auto& op = r.ops[seq - 1];
  if (!op.outputs.empty()) return op.outputs.front();
  return op.inputs.empty() ? -1 : op.inputs.front();
}

int Links::grad_node_of(const Selection& s) const {
  if (!record_ || s.document) return -1;
  const auto& r = *record_;
  if (s.kind == Selection::Kind::grad_node)
    return s.id >= 0 && s.id < static_cast<int64_t>(r.grad_nodes.size()) ? static_cast<int>(s.id) : -1;
  if (s.kind == Selection::Kind::tensor) {
    int t = tensor_of(s);
    if (t >= 0) {
      std::string leaf = r.tensors[t].name;
      if (leaf.starts_with("grad of ")) leaf = leaf.substr(8);
      for (size_t i = 0; i < r.grad_nodes.size(); ++i)
        if (r.grad_nodes[i].leaf && r.grad_nodes[i].name == leaf) return static_cast<int>(i);
    }
  }
  uint32_t seq = op_of(s);
  if (!seq) return -1;
  if (nodes_[seq].empty() && r.ops[seq - 1].forward_seq) seq = r.ops[seq - 1].forward_seq;
  return seq < nodes_.size() && !nodes_[seq].empty() ? nodes_[seq].front() : -1;
}

int64_t Links::block_of(const Selection& s) const {
  if (!record_ || s.document) return 0;
  if (s.kind == Selection::Kind::alloc) return s.id;
  uint32_t seq = op_of(s);
  return seq && !blocks_[seq].empty() ? blocks_[seq].front() : 0;
}

std::string Links::module_of(const Selection& s) const {
  if (s.kind == Selection::Kind::module) return s.name;
  if (!record_) return {};
  if (s.kind == Selection::Kind::grad_node && s.id >= 0 && s.id < static_cast<int64_t>(record_->grad_nodes.size()))
    return module_path(record_->grad_nodes[s.id].module);
  if (s.kind == Selection::Kind::alloc) {
    for (const auto& a : record_->allocs)
      if (a.block == s.id && a.bytes > 0) return module_path(a.origin.module);
  }
  uint32_t seq = op_of(s);
  return seq ? module_path(record_->ops[seq - 1].origin.module) : std::string();
}

bool Links::hold(const Selection& s) const {
  if (!record_ || s.document) return false;
  switch (s.kind) {
    case Selection::Kind::op:
    case Selection::Kind::module:
      return op_of(s) != 0;
    case Selection::Kind::tensor:
      return tensor_of(s) >= 0;
    case Selection::Kind::grad_node:
      return grad_node_of(s) >= 0;
    case Selection::Kind::alloc:
      return std::any_of(record_->allocs.begin(), record_->allocs.end(),
                         [&](const auto& a) { return a.block == s.id && a.bytes > 0; });
    case Selection::Kind::range:
      return true;
    case Selection::Kind::step:
      return record_->step == s.id;
    default:
      return false;
  }
}

std::vector<uint32_t> Links::ops_of(const Selection& s) const {
  std::vector<uint32_t> out;
  if (!record_ || s.document) return out;
  if (s.kind == Selection::Kind::module) {
    for (const auto& op : record_->ops)
      if (in_module(module_path(op.origin.module), s.name)) out.push_back(op.seq);
  } else if (s.kind == Selection::Kind::range) {
    for (const auto& op : record_->ops)
      if (op.start_ns < s.to && op.start_ns + op.duration_ns > s.from) out.push_back(op.seq);
  } else if (uint32_t seq = op_of(s)) {
    out.push_back(seq);
  }
  return out;
}

std::vector<uint32_t> Links::readers_of(int tensor) const {
  return tensor >= 0 && tensor < static_cast<int>(readers_.size()) ? readers_[tensor] : std::vector<uint32_t>();
}
std::vector<uint32_t> Links::backward_of(uint32_t seq) const {
  return seq < backward_.size() ? backward_[seq] : std::vector<uint32_t>();
}
std::vector<int64_t> Links::blocks_of(uint32_t seq) const {
  return seq < blocks_.size() ? blocks_[seq] : std::vector<int64_t>();
}
const std::vector<int>& Links::grad_nodes_of(uint32_t seq) const {
  static const std::vector<int> nothing;
  return seq < nodes_.size() ? nodes_[seq] : nothing;
}
std::vector<int> Links::aliases_of(int tensor) const {
  std::vector<int> out;
  if (!record_ || tensor < 0 || tensor >= static_cast<int>(record_->tensors.size()) ||
      !record_->tensors[tensor].storage)
    return out;
  for (size_t i = 0; i < record_->tensors.size(); ++i)
    if (static_cast<int>(i) != tensor && record_->tensors[i].storage == record_->tensors[tensor].storage)
      out.push_back(static_cast<int>(i));
  return out;
}

}  // namespace tenon::views
