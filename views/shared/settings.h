#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/spec/attr.h"

// What holds for a person and not for one project: tenon/settings.json in $XDG_CONFIG_HOME, or in ~/.config. It is read
// anew each time: another window, or `tenon settings`, may have written it. Reading never throws, and a file that
// cannot be read counts as empty; what writes throws Error naming the file.
namespace tenon::views::settings {

/// Where it lies; it may not be there yet.
std::string folder();
/// What may be set. The window's dialog and `tenon settings` walk this list.
const std::vector<AttrDef>& defs();
/// Throws Error (usage) that lists the near names.
const AttrDef& find_def(const std::string& name);
/// The value that was set and still fits, else the default.
AttrValue get(const std::string& name);
std::string text(const std::string& name);
int64_t integer(const std::string& name);
bool flag(const std::string& name);
int64_t cache_bytes();  ///< of "cache_limit"
/// Throws Error (usage) where the value does not fit.
void set(const std::string& name, const AttrValue& value);
/// Back to its default.
void reset(const std::string& name);

/// The keys of commands that are not the usual ones: portable text by command; empty: none.
std::map<std::string, std::string> shortcuts();
void set_shortcut(const std::string& command, const std::string& keys);
void reset_shortcut(const std::string& command);
void reset_shortcuts();

/// A file that was opened.
struct RecentFile {
  std::string path, kind;  ///< "project", "trace", "snapshot" or "model"
  int64_t opened = 0;      ///< seconds since 1970, UTC
};
/// The latest first, also those that are gone.
std::vector<RecentFile> recent();
void add_recent(const std::string& path, const std::string& kind);
void forget_recent(const std::string& path);

/// Queries that were saved without a project, as who saved them wrote them; null: none.
nlohmann::json queries();
void set_queries(const nlohmann::json& list);

/// The tour was taken or turned down.
bool tour_seen();
void set_tour_seen(bool seen);

}  // namespace tenon::views::settings
