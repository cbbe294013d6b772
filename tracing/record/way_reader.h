#pragma once
#include <map>
#include <string>
#include <vector>

#include "tracing/record/memory_owners.h"
#include "tracing/record/pointer_walk.h"

namespace tenon::tracing {

/// What is known of a block by the one that leads to it: see PointerWalk::Part::leads_to.
enum StopKind { kAnything, kNode };

/// A way through memory in words, read from its root on.
class WayReader {
 public:
  /// Of the variables that were come upon, by their addresses: to find one takes a pass over its file.
  using Names = std::map<uint64_t, std::string>;
  WayReader(const MemoryImage& image, const PointerWalk& walk, const KnownObjects& known, Names& names);

  /// Of a way that ends at `target`, which is alive.
  Holding read(const std::vector<PointerWalk::Stop>& way, const Storage& target);
  /// Of a way that ends at a tensor.
  TensorOwner owner(const std::vector<PointerWalk::Stop>& way);

 private:
  void follow(const std::vector<PointerWalk::Stop>& way);
  void begin(const PointerWalk::Root& root, const PointerWalk::Stop& first);
  void own(OwnerKind kind, const std::string& name);
  void say(const std::string& text);
  void tell_nodes();
  void stop(const PointerWalk::Stop& before, const PointerWalk::Stop& here, const PointerWalk::Stop& next);
  void tensor(const HeapBlock& block, const TensorImpl& t, const PointerWalk::Stop& before);
  void history(const AutogradMeta& m, uint64_t next);
  bool graph_node(const HeapBlock& block, const PointerWalk::Stop& next);
  void object(const HeapBlock& block, const PointerWalk::Stop& next);
  bool by_class(const HeapBlock& object);

  const MemoryImage& image_;
  const PointerWalk& walk_;
  const KnownObjects& known_;
  Names& names_;
  Holding out_;
  std::string of_, layer_;         ///< the named tensor and the layer that were come through last
  uint64_t node_ = 0, hooks_ = 0;  ///< what the next stop is, by the one before
  bool gradient_ = false;          ///< the next tensor is the gradient of `of_`
  int nodes_ = 0;                  ///< of a graph, that are not told yet
  std::string last_node_;
};

}  // namespace tenon::tracing
