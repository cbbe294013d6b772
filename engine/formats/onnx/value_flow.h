#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/formats/onnx/model.h"

namespace tenon::formats {

/// Who makes and who reads the values of a graph. Bodies of nodes are readers too. The graph must outlive it.
class ValueFlow {
 public:
  explicit ValueFlow(const OnnxGraph& graph);
  /// The node that makes a value; -1: it is given.
  int maker(const std::string& value) const;
  /// The nodes that read it, in their order; a body counts as its node.
  const std::vector<size_t>& readers(const std::string& value) const;
  bool is_output(const std::string& value) const { return outputs_.contains(value); }
  bool is_constant(const std::string& value) const { return constants_.contains(value); }
  /// Whether a body within a node reads it.
  bool is_read_within(const std::string& value) const { return within_.contains(value); }
  /// Moves values of its first input about, or leaves some out, and computes none: MaxPool, Reshape, Transpose, ...
  bool passes_on(size_t node) const;
  /// The value whose numbers these are, behind nodes that pass them on.
  const std::string& root(const std::string& value) const;

 private:
  const OnnxGraph& graph_;
  std::map<std::string, int> makers_;
  std::map<std::string, std::vector<size_t>> readers_;
  std::set<std::string> outputs_, constants_, within_;
};

/// Two names of one graph that are not taken: each call gives `wanted`, or `wanted` with a number.
class FreeNames {
 public:
  explicit FreeNames(const OnnxGraph& graph);
  std::string take(const std::string& wanted);

 private:
  std::set<std::string> taken_;
};

}  // namespace tenon::formats
