#pragma once
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Note [Registries]
// What Tenon can do is listed in registries: ops, layers, losses, data sets, analyses, commands, views. A definition
// adds itself where it is written, in a static initialiser: before main() and in any order. Those of a plug-in come
// later, those of a test stay as long as its RegistryScope.
// A name is there once. An addition never throws, because nothing can catch what a static initialiser throws: a second
// definition of a name is left out, and the next read of the registry throws an Error that names both places. Inside a
// RegistryScope the registry stays readable, and the scope's close() throws instead.
// Every thread may read at any time. A list that is being walked stays as it was when the walk began, and keeps its
// definitions alive. A definition found by its name lives as long as the scope it came from; Tenon's own live for ever.
namespace tenon {

/// Where a definition is written. (clang 14, which builds the fuzz targets, has no std::source_location.)
class Place {
 public:
  constexpr Place() = default;
  static constexpr Place current(const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE()) {
    return Place(file, line);
  }
  constexpr const char* file_name() const { return file_; }
  constexpr uint32_t line() const { return line_; }

 private:
  constexpr Place(const char* file, uint32_t line) : file_(file), line_(line) {}
  const char* file_ = "";
  uint32_t line_ = 0;
};
/// "engine/nn/linear.cpp:40". Tenon's own sources are named from their root on.
std::string place_text(const Place& place);

/// Differs from what it was before whenever any registry has changed.
uint64_t registry_generation();

/// What all registries have in common.
class RegistryBase {
 public:
  /// What one definition is called in messages: "layer", "data set".
  const std::string& what() const { return what_; }

 protected:
  friend class RegistryScope;
  struct Origin {
    Place place;
    class RegistryScope* scope = nullptr;  ///< null: for the life of the process
  };
  explicit RegistryBase(std::string what) : what_(std::move(what)) {}
  ~RegistryBase() = default;
  virtual void remove(const std::string& name) = 0;
  /// After an addition: the scope that is open on this thread will take it back.
  void added(const std::string& name, const Origin& by);
  /// A name that was there: an Error for the open scope, or for the next read.
  void refused(const std::string& name, const Origin& first, const Origin& second);
  static RegistryScope* open_scope();
  static void changed();
  /// Throws Error for the first definition that was refused outside of scopes.
  void check() const;
  [[noreturn]] void no_such(const std::string& name, const std::vector<std::string>& there) const;

  mutable std::mutex mutex_;

 private:
  std::string what_;
  std::string clash_;
};

/// The definitions of one kind, each of its own name: its member `name`, `id`, `info.name` or `info.type`. Walking over
/// a registry goes by `order`, by the name where that is null. Made as a static that is never destroyed, beside the
/// function that adds to it.
template <class Def>
class Registry final : public RegistryBase {
  using Entry = std::shared_ptr<const Def>;
  using List = std::vector<Entry>;

 public:
  explicit Registry(std::string what, std::string (*order)(const Def&) = nullptr)
      : RegistryBase(std::move(what)), order_(order ? order : name_of) {}

  /// Returns true, so that a static can be initialised by it. See Note [Registries] for a name that is there already.
  bool add(Def def, Place place = Place::current()) { return add(std::make_shared<const Def>(std::move(def)), place); }
  /// A definition that lives elsewhere, longer than it is listed here.
  bool add_static(const Def& def, Place place) { return add(Entry(Entry(), &def), place); }

  /// Null where there is none of that name.
  const Def* find(std::string_view name) const {
    std::lock_guard lock(mutex_);
    check();
    auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : at->second.def.get();
  }
  /// Throws Error (usage) with the near names and all there are.
  const Def& at(const std::string& name) const {
    if (const Def* def = find(name)) return *def;
    no_such(name, names());
  }
  /// Where the definition of that name is written. Throws as at().
  Place place_of(const std::string& name) const {
    at(name);
    std::lock_guard lock(mutex_);
    return by_name_.find(name)->second.by.place;
  }
  size_t size() const { return list()->size(); }
  /// In the order of a walk.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Entry& def : *list()) all.push_back(name_of(*def));
    return all;
  }

  class Iterator {
   public:
    const Def& operator*() const { return *(*list_)[at_]; }
    const Def* operator->() const { return (*list_)[at_].get(); }
    Iterator& operator++() { return ++at_, *this; }
    bool operator==(std::default_sentinel_t) const { return at_ == list_->size(); }

   private:
    friend Registry;
    explicit Iterator(std::shared_ptr<const List> list) : list_(std::move(list)) {}
    std::shared_ptr<const List> list_;
    size_t at_ = 0;
  };
  Iterator begin() const { return Iterator(list()); }
  std::default_sentinel_t end() const { return {}; }

 private:
  struct Item {
    Entry def;
    Origin by;
  };
  static std::string name_of(const Def& def) {
    if constexpr (requires { def.name; })
      return def.name;
    else if constexpr (requires { def.info.name; })
      return def.info.name;
    else if constexpr (requires { def.info.type; })
      return def.info.type;
    else
      return def.id;
  }

  bool add(Entry def, Place place) {
    std::string name = name_of(*def);
    const Origin by{place, open_scope()};
    std::lock_guard lock(mutex_);
    auto [at, fresh] = by_name_.emplace(name, Item{std::move(def), by});
    if (!fresh) return refused(name, at->second.by, by), true;
    list_.reset();
    added(name, by);
    return true;
  }
  void remove(const std::string& name) override {
    std::lock_guard lock(mutex_);
    by_name_.erase(name);
    list_.reset();
    changed();
  }
  std::shared_ptr<const List> list() const {
    std::lock_guard lock(mutex_);
    check();
    if (!list_) {
      std::map<std::pair<std::string, std::string>, Entry> sorted;
      for (const auto& [name, item] : by_name_) sorted.emplace(std::pair(order_(*item.def), name), item.def);
      auto list = std::make_shared<List>();
      for (auto& [key, def] : sorted) list->push_back(std::move(def));
      list_ = std::move(list);
    }
    return list_;
  }

  std::string (*order_)(const Def&);
  std::map<std::string, Item, std::less<>> by_name_;
  mutable std::shared_ptr<const List> list_;  ///< null after a change
};

/// While it is open, what this thread adds to any registry belongs to it, and is taken back when it ends: a plug-in
/// that failed, a test that is done. What a scope brought must no longer be in use when it ends.
class RegistryScope {
 public:
  /// `from` says where the definitions come from ("plug-in noise.so"); errors name it.
  explicit RegistryScope(std::string from);
  ~RegistryScope();
  RegistryScope(const RegistryScope&) = delete;
  /// Ends the collecting. Throws Error naming both places where a name was there already.
  void close();

  struct Added {
    std::string what, name;  ///< "layer", "Swish"
  };
  std::vector<Added> added() const;
  const std::string& from() const { return from_; }

 private:
  friend RegistryBase;
  std::string from_, clash_;
  std::vector<std::pair<RegistryBase*, std::string>> added_;
  RegistryScope* outer_;
  bool open_ = true;
};

/// Something that is made of registries: made again when one of them has changed. What was given out stays as it was.
template <class T>
class MadeOfRegistries {
 public:
  explicit MadeOfRegistries(T (*make)()) : make_(make) {}
  const T& get() {
    std::lock_guard lock(mutex_);
    const uint64_t now = registry_generation();
    if (made_.empty() || made_of_ != now) {
      made_.push_back(std::make_unique<const T>(make_()));
      made_of_ = now;
    }
    return *made_.back();
  }

 private:
  T (*make_)();
  std::mutex mutex_;
  std::vector<std::unique_ptr<const T>> made_;
  uint64_t made_of_ = 0;
};

}  // namespace tenon
