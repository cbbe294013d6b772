#include "core/kept_forms.h"

#include <mutex>
#include <unordered_map>

namespace tenon {
namespace {

struct Forms {
  std::mutex mutex;
  std::unordered_map<const Storage*, std::shared_ptr<KeptForms>> of;
};
Forms& forms() {
  static auto* f = new Forms;  // leaked: storages may outlive statics
  return *f;
}

}  // namespace

std::shared_ptr<KeptForms> kept_forms(Storage& s, const std::function<std::shared_ptr<KeptForms>()>& make) {
  Forms& f = forms();
  const std::lock_guard lock(f.mutex);
  std::shared_ptr<KeptForms>& kept = f.of[&s];
  if (!kept) kept = make();
  s.has_forms.store(true, std::memory_order_relaxed);
  return kept;
}

void drop_kept_forms(Storage& s) {
  std::shared_ptr<KeptForms> gone;  // which give back storages themselves, outside the lock
  Forms& f = forms();
  const std::lock_guard lock(f.mutex);
  s.has_forms.store(false, std::memory_order_relaxed);
  if (const auto found = f.of.find(&s); found != f.of.end()) {
    gone = std::move(found->second);
    f.of.erase(found);
  }
}

}  // namespace tenon
