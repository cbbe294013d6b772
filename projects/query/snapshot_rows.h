#pragma once
#include <memory>
#include <string>
#include <vector>

#include "projects/query/query_table.h"
#include "tracing/snapshot/snapshot.h"

namespace tenon::projects {

/// What the tables of a memory snapshot share: cells of streams, pools, stacks and places in the code.
class SnapshotRows : public QueryRows {
 public:
  explicit SnapshotRows(std::shared_ptr<const snapshot::Snapshot> of);
  void put_time(QueryCell& out, int64_t event) const;
  void put_stream(QueryCell& out, uint32_t stream) const;  ///< by its index
  void put_pool(QueryCell& out, int64_t event) const;
  void put_pool(QueryCell& out, const snapshot::PoolId& pool) const;
  void put_text(QueryCell& out, uint32_t text) const;
  void put_stack(QueryCell& out, uint32_t stack) const;
  /// Finding the place takes long beside a cell: each stack's is found once.
  void put_site(QueryCell& out, uint32_t stack) const;
  int64_t device_of(int64_t event) const;

  const std::shared_ptr<const snapshot::Snapshot> s;

 private:
  mutable std::vector<std::string> sites_;  ///< by stack; empty: not looked for yet
};

}  // namespace tenon::projects
