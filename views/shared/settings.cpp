#include "views/shared/settings.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/file.h"
#include "views/shared/language.h"

namespace tenon::views::settings {

using nlohmann::json;

std::string folder() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config && *config) return std::string(config) + "/tenon";
  const char* home = std::getenv("HOME");
  return std::string(home && *home ? home : ".") + "/.config/tenon";
}

namespace {
constexpr size_t kMostRecent = 30;
std::mutex g_changing;  ///< a job's change and the window's own at once: none is lost

std::string file() { return folder() + "/settings.json"; }

json read() {
  try {
    if (!std::filesystem::exists(file())) return json::object();
    json all = json::parse(read_file(file()), nullptr, false);
    return all.is_object() ? all : json::object();
  } catch (const std::exception&) {
    return json::object();
  }
}

/// The object under a key, empty where the file has something else there.
json part(const json& all, const char* key) {
  const auto found = all.find(key);
  return found != all.end() && found->is_object() ? *found : json::object();
}

template <class Change>
void change(const Change& make) {
  const std::lock_guard lock(g_changing);
  std::error_code code;
  std::filesystem::create_directories(folder(), code);
  if (code) throw Error(folder() + ": the folder cannot be made: " + code.message(), "Nothing was set.");
  json all = read();
  // What somebody wrote by hand, and wrongly, is not lost with the first click.
  if (all.empty() && std::filesystem::exists(file(), code) && std::filesystem::file_size(file(), code) > 2)
    std::filesystem::copy_file(file(), file() + ".damaged", std::filesystem::copy_options::overwrite_existing, code);
  make(all);
  write_file(file(), all.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

/// An object with a key set, or without it where the value is null.
void put(json& all, const char* key, const std::string& name, const json& value) {
  json object = part(all, key);
  if (value.is_null())
    object.erase(name);
  else
    object[name] = value;
  all[key] = std::move(object);
}
}  // namespace

const std::vector<AttrDef>& defs() {
  static const std::vector<AttrDef> all = {
      {"theme",
       std::string("system"),
       0,
       0,
       tr_later("colours of the window; system: as the desktop has it"),
       {"system", "dark", "light", "contrast"}},
      {"language",
       std::string("system"),
       0,
       0,
       tr_later("language of the window from its next start on; system: as the desktop has it"),
       {"system", "en", "de"}},
      {"text_size",
       int64_t{13},
       11,
       17,
       tr_later("how tall letters are in the window; other sizes follow"),
       {},
       "pixels"},
      {"threads", int64_t{0}, 0, 1024,
       tr_later("threads that compute, where a command or a run is not told otherwise; never changes a result. 0: "
                "every core")},
      {"keep_read_traces", true, 0, 0,
       tr_later("keep what was read of a large trace or snapshot in the cache folder: it opens at once the next time")},
      {"cache_limit",
       cache::kUsualLimit >> 30,
       0,
       100'000,
       tr_later("what the cache folder may take; what was not used for longest goes first, what is open stays. 0: "
                "nothing is kept there"),
       {},
       "GiB"},
      {"python", std::string(), 0, 0,
       tr_later("the Python that has onnxruntime and numpy, which exported models are compared with; empty: the first "
                "on the path that has them")}};
  return all;
}

const AttrDef& find_def(const std::string& name) {
  std::vector<std::string> names;
  for (const AttrDef& d : defs()) {
    if (d.name == name) return d;
    names.push_back(d.name);
  }
  const std::string near = near_names(name, names.data(), names.size());
  throw Error::usage("there is no setting \"" + name + "\"" + (near.empty() ? "" : " (" + near + ")"),
                     "`tenon settings` lists them.");
}

AttrValue get(const std::string& name) {
  const AttrDef& def = find_def(name);
  const json values = part(read(), "values");
  try {
    if (const auto found = values.find(name); found != values.end())
      return fit_attr(def, attr_from_json(*found, name), name);
  } catch (const Error&) {  // of another version, or written by hand
  }
  return def.fallback;
}

std::string text(const std::string& name) { return std::get<std::string>(get(name)); }
int64_t cache_bytes() { return integer("cache_limit") << 30; }
int64_t integer(const std::string& name) { return std::get<int64_t>(get(name)); }
bool flag(const std::string& name) { return std::get<bool>(get(name)); }

void set(const std::string& name, const AttrValue& value) {
  const AttrDef& def = find_def(name);
  const AttrValue fits = fit_attr(def, value, name);
  change([&](json& all) { put(all, "values", name, fits == def.fallback ? json() : attr_to_json(fits)); });
}

void reset(const std::string& name) { set(name, find_def(name).fallback); }

std::map<std::string, std::string> shortcuts() {
  std::map<std::string, std::string> keys;
  const json stored = part(read(), "shortcuts");
  for (const auto& [command, text] : stored.items())
    if (text.is_string()) keys[command] = text.get<std::string>();
  return keys;
}
void set_shortcut(const std::string& command, const std::string& keys) {
  change([&](json& all) { put(all, "shortcuts", command, keys); });
}
void reset_shortcut(const std::string& command) {
  change([&](json& all) { put(all, "shortcuts", command, {}); });
}
void reset_shortcuts() {
  change([](json& all) { all.erase("shortcuts"); });
}

std::vector<RecentFile> recent() {
  std::vector<RecentFile> files;
  const json all = read();
  const auto list = all.find("recent");
  if (list == all.end() || !list->is_array()) return files;
  for (const json& j : *list)
    if (j.is_object() && j.contains("path") && j["path"].is_string())
      files.push_back({j["path"].get<std::string>(),
                       j.contains("kind") && j["kind"].is_string() ? j["kind"].get<std::string>() : "",
                       j.contains("opened") && j["opened"].is_number_integer() ? j["opened"].get<int64_t>() : 0});
  return files;
}

static json without(const std::vector<RecentFile>& files, const std::string& path) {
  json list = json::array();
  for (const RecentFile& f : files)
    if (f.path != path) list.push_back({{"path", f.path}, {"kind", f.kind}, {"opened", f.opened}});
  return list;
}

void add_recent(const std::string& path, const std::string& kind) {
  const std::string whole = std::filesystem::absolute(path).lexically_normal().string();
  const int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  change([&](json& all) {
    json list = without(recent(), whole);
    list.insert(list.begin(), json{{"path", whole}, {"kind", kind}, {"opened", now}});
    while (list.size() > kMostRecent) list.erase(list.size() - 1);
    all["recent"] = std::move(list);
  });
}

void forget_recent(const std::string& path) {
  change([&](json& all) { all["recent"] = without(recent(), path); });
}

json queries() {
  const json all = read();
  const auto found = all.find("queries");
  return found == all.end() ? json() : *found;
}
void set_queries(const json& list) {
  change([&](json& all) { all["queries"] = list; });
}

bool tour_seen() {
  const json all = read();
  return all.contains("tour_seen") && all["tour_seen"].is_boolean() && all["tour_seen"].get<bool>();
}
void set_tour_seen(bool seen) {
  change([seen](json& all) { all["tour_seen"] = seen; });
}

}  // namespace tenon::views::settings
