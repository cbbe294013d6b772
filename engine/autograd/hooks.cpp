#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/backend.h"
#include "core/disk.h"
#include "core/error.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/node.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

std::atomic<int> g_next_hook{1};
thread_local SavedTensorHooks* t_saved_hooks = nullptr;

Edge hooked(const Tensor& t) {
  Edge e = edge_of(t);
  if (!e.fn) throw Error("a hook was put on a tensor that requires no gradient");
  if (!e.fn->hooks) e.fn->hooks = std::make_unique<NodeHooks>();
  return e;
}

NodeHooks& node_hooks(const Tensor& t) {
  Edge e = hooked(t);
  if (!e.fn->op) throw Error("a node hook was put on a leaf, which no op made", "use add_hook() or add_leaf_hook()");
  return *e.fn->hooks;
}

/// A tensor in a file that has no name any more: it goes when it is closed, however the process ends.
class OffloadedTensor : public PackedTensor {
 public:
  OffloadedTensor(const Tensor& t, const std::string& folder) : meta_(t.meta()) {
    file_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file_ < 0) {
      std::string path = folder + "/tenon-offload-XXXXXX";
      file_ = mkstemp(path.data());
      if (file_ < 0) fail("make a file in", folder);
      unlink(path.c_str());
    }
    const Tensor dense = to_host(contiguous(t));
    const char* from = static_cast<const char*>(dense.raw());
    for (size_t done = 0, bytes = dense.nbytes(); done < bytes;) {
      ssize_t n = pwrite(file_, from + done, bytes - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail("write to", folder);
      done += static_cast<size_t>(n);
    }
  }
  ~OffloadedTensor() override { close(file_); }

  Tensor unpack() override {
    Tensor t = empty(meta_.shape, meta_.dtype);
    char* to = static_cast<char*>(t.raw());
    for (size_t done = 0, bytes = t.nbytes(); done < bytes;) {
      ssize_t n = pread(file_, to + done, bytes - done, static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail("read back from", "the offload folder");
      done += static_cast<size_t>(n);
    }
    return to_device(t, meta_.device);
  }

 private:
  [[noreturn]] void fail(const char* what, const std::string& folder) {
    const int code = errno;
    if (file_ >= 0) close(file_);
    file_ = -1;
    throw Error(fmt::format("could not {} {} for a tensor of {} bytes that backward needs: {}", what, folder,
                            static_cast<size_t>(meta_.shape.product()) * itemsize(meta_.dtype), std::strerror(code)),
                "choose a folder with room", is_no_space(code) ? Error::Kind::no_space : Error::Kind::failure);
  }
  Meta meta_;
  int file_ = -1;
};

}  // namespace

int add_hook(const Tensor& t, std::function<Tensor(const Tensor&)> hook) {
  Edge e = hooked(t);
  e.fn->hooks->gradient.push_back({g_next_hook, e.slot, std::move(hook)});
  return g_next_hook++;
}

int add_leaf_hook(const Tensor& leaf, std::function<void(const Tensor&)> hook) {
  Edge e = hooked(leaf);
  if (e.fn->op) throw Error("a leaf hook was put on the result of an op", "use add_hook()");
  autograd_meta(leaf)->self = leaf.impl();
  e.fn->hooks->leaf.push_back({g_next_hook, std::move(hook)});
  return g_next_hook++;
}

int add_node_pre_hook(const Tensor& t, std::function<void(std::vector<Tensor>&)> hook) {
  node_hooks(t).before.push_back({g_next_hook, std::move(hook)});
  return g_next_hook++;
}

int add_node_hook(const Tensor& t, std::function<void(std::vector<Tensor>&, const std::vector<Tensor>&)> hook) {
  node_hooks(t).after.push_back({g_next_hook, std::move(hook)});
  return g_next_hook++;
}

void remove_hook(const Tensor& t, int id) {
  Edge e = edge_of(t);
  if (!e.fn || !e.fn->hooks) return;
  auto drop_from = [&](auto& list) { std::erase_if(list, [&](const auto& h) { return h.id == id; }); };
  drop_from(e.fn->hooks->gradient);
  drop_from(e.fn->hooks->leaf);
  drop_from(e.fn->hooks->before);
  drop_from(e.fn->hooks->after);
}

SavedTensorHooks::SavedTensorHooks(Pack pack) : pack_(std::move(pack)), outer_(std::exchange(t_saved_hooks, this)) {}
SavedTensorHooks::~SavedTensorHooks() { t_saved_hooks = outer_; }
const SavedTensorHooks::Pack* SavedTensorHooks::current() { return t_saved_hooks ? &t_saved_hooks->pack_ : nullptr; }

SavedTensorHooks::Pack offload_to(const std::string& folder, size_t least) {
  return [folder, least](const Tensor& t) -> std::unique_ptr<PackedTensor> {
    if (t.nbytes() < least || !t.storage()) return nullptr;
    return std::make_unique<OffloadedTensor>(t, folder);
  };
}

}  // namespace tenon
