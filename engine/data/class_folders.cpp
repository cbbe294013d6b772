#include "engine/data/class_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "core/error.h"
#include "engine/data/data_place.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;

/// Files that lie among the samples and are of another kind.
struct Others {
  std::map<std::string, int64_t> endings;
  Remark remark{Remark::Kind::warning, "not_read", {}};
  /// `folder`: that of its class.
  void add(const fs::path& file, const fs::path& folder) {
    const std::string ending = file.extension().string();
    ++endings[ending.empty() ? "without an ending" : ending];
    remark.add({file.string(), {}, file.lexically_relative(folder.parent_path()).generic_string()});
  }
  void tell(const FileKind& kind, std::vector<Remark>& remarks) {
    if (remark.count == 0) return;
    std::string kinds;
    for (const auto& [ending, n] : endings) kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", ending, n);
    remark.text = fmt::format("{} files are passed over, since only {} are read ({})", remark.count, kind.names, kinds);
    remarks.push_back(std::move(remark));
  }
};

bool hidden(const fs::path& p) { return p.filename().string().starts_with("."); }

std::vector<std::string> names_of_folders(const fs::path& dir) {
  std::vector<std::string> names;
  std::error_code ec, ignored;
  for (const auto& e : fs::directory_iterator(dir, ec))
    if (!hidden(e.path()) && e.is_directory(ignored)) names.push_back(e.path().filename().string());
  if (ec) throw Error("the folder " + dir.string() + " cannot be read: " + ec.message());
  std::sort(names.begin(), names.end());
  return names;
}

/// The files of one class, by their paths. Links to folders are not followed: they may lead round in a circle.
void list_class(const fs::path& folder, int64_t label, const FileKind& kind, Others& others,
                std::vector<ClassFile>& to) {
  std::error_code ec, ignored;
  if (!fs::is_directory(folder, ec)) return;
  const size_t first = to.size();
  for (auto at = fs::recursive_directory_iterator(folder, ec); !ec && at != fs::recursive_directory_iterator();
       at.increment(ec)) {
    const fs::path& path = at->path();
    if (hidden(path)) {
      if (at->is_directory(ignored)) at.disable_recursion_pending();
      continue;
    }
    if (at->is_directory(ignored)) continue;
    if (kind.is(path.filename().string()))
      to.push_back({path.string(), path.lexically_relative(folder).generic_string(), label,
                    path.lexically_relative(folder.parent_path()).generic_string()});
    else if (at->is_regular_file(ignored))
      others.add(path, folder);
  }
  if (ec) throw Error("the folder " + folder.string() + " cannot be read: " + ec.message());
  std::sort(to.begin() + static_cast<std::ptrdiff_t>(first), to.end(),
            [](const ClassFile& a, const ClassFile& b) { return a.path < b.path; });
}

Split divide_files(const std::vector<ClassFile>& files, const std::shared_ptr<const Dataset>& all,
                   const SplitRule& rule, std::vector<Remark> remarks) {
  SplitWords words;
  const bool by_class = rule.way == SplitRule::Way::stratified && rule.by.empty();
  const bool by_folder = !by_class && (rule.by == "folder" || rule.by.empty());
  if (rule.way == SplitRule::Way::time && rule.by.empty())
    throw Error::usage("data.split = time: data.split_by names no pattern of files' names",
                       "as ([0-9]{4}-[0-9]{2}-[0-9]{2}), which takes 2024-03-01 of cam_2024-03-01_12.png");
  if (rule.by_words()) {
    words.what = by_class ? "the folder" : by_folder ? "the folder below the class" : "the part of the name " + rule.by;
    const auto part = by_class || by_folder ? nullptr : name_pattern(rule.by, "data.split_by");
    for (const ClassFile& f : files)
      words.of.push_back(by_class    ? std::to_string(f.label)
                         : by_folder ? fs::path(f.within).parent_path().generic_string()
                                     : part(f.within));
  }
  Remark told;
  const Parts parts = divide(
      rule, all->size(), words, [&](int64_t r) { return all->source(r); }, told);
  if (parts.train.empty()) throw Error("there are too few samples to train with: " + std::to_string(all->size()));
  remarks.insert(remarks.begin(), std::move(told));
  Split split;
  split.train = subset(all, parts.train);
  split.test = subset(all, parts.test);
  split.remarks = std::move(remarks);
  return split;
}

/// Folders with nothing to read in them are classes still: the model has a score for each.
void tell_empty_classes(const std::vector<ClassFile>& files, const std::vector<std::string>& classes,
                        const fs::path& folder, std::vector<Remark>& remarks) {
  std::vector<bool> met(classes.size());
  for (const ClassFile& f : files) met[static_cast<size_t>(f.label)] = true;
  Remark r{Remark::Kind::warning, "empty_class", {}};
  std::string names;
  for (size_t c = 0; c < classes.size(); ++c) {
    if (met[c]) continue;
    r.add({(folder / classes[c]).string(), {}});
    names += (names.empty() ? "" : ", ") + classes[c];
  }
  if (r.count == 0) return;
  r.text = fmt::format("{} of {} classes have no sample to learn from: {}", r.count, classes.size(), names);
  remarks.push_back(std::move(r));
}

}  // namespace

AttrDef unreadable_attr(const std::string& what) {
  return {"unreadable",
          std::string("stop"),
          0,
          0,
          "what is done about " + what + " that cannot be read; to leave them out all are looked at once",
          {"stop", "leave-out"}};
}

void leave_out_bad(std::vector<ClassFile>& files, const std::vector<BadFile>& bad, const std::string& what,
                   std::vector<Remark>& remarks) {
  if (bad.empty()) return;
  if (bad.size() == files.size()) throw Error(fmt::format("none of the {} can be read: {}", what, bad.front().why));
  Remark r{Remark::Kind::warning, "unreadable", {}};
  for (const BadFile& b : bad) r.add(files[b.index].source());
  r.text =
      fmt::format("{} of {} {} cannot be read and are left out ({})", bad.size(), files.size(), what, bad.front().why);
  remarks.push_back(std::move(r));
  for (auto b = bad.rbegin(); b != bad.rend(); ++b) files.erase(files.begin() + static_cast<int64_t>(b->index));
}

Error with_way_out(const Error& e, const std::string& what) {
  const std::string leave = "leave " + what + " out that cannot be read: data.unreadable = leave-out";
  return Error(e.message(), e.hint().empty() ? leave : e.hint() + ", or " + leave, e.kind());
}

bool has_class_folders(const std::string& dir, bool (*is)(const std::string& name)) {
  constexpr int kLookedAt = 200;  // files: a large folder of something else is not gone through
  std::error_code ec;
  if (!fs::is_directory(dir, ec)) return false;
  int seen = 0;
  for (auto at = fs::recursive_directory_iterator(dir, ec);
       !ec && at != fs::recursive_directory_iterator() && seen < kLookedAt; at.increment(ec)) {
    std::error_code ignored;
    if (hidden(at->path())) {
      if (at->is_directory(ignored)) at.disable_recursion_pending();
      continue;
    }
    if (at->is_directory(ignored) || at.depth() == 0) continue;
    ++seen;
    if (is(at->path().filename().string())) return true;
  }
  return false;
}

std::string ClassFiles::class_name(int64_t i) const {
  return i >= 0 && i < classes() ? classes_[static_cast<size_t>(i)] : std::to_string(i);
}

std::vector<int64_t> ClassFiles::labels() const {
  std::vector<int64_t> all;
  for (const ClassFile& f : files_) all.push_back(f.label);
  return all;
}

void ClassFiles::fetch(const int64_t* rows, int64_t count, void* x, void* y) const {
  for (int64_t i = 0; i < count; ++i) {
    const ClassFile& f = files_[static_cast<size_t>(rows[i])];
    read_(f.path, static_cast<float*>(x) + i * input_.product());
    static_cast<int64_t*>(y)[i] = f.label;
  }
}

Split open_class_folders(const std::string& where, const FileKind& kind, const SplitRule& rule) {
  const fs::path dir = where;
  std::error_code ec;
  if (!fs::is_directory(dir, ec))
    throw Error("the folder " + where + " does not exist", data_place("the folder that holds one folder a class"));
  fs::path test;
  for (const char* name : {"test", "val", "valid", "validation"})
    if (test.empty() && fs::is_directory(dir / name, ec)) test = dir / name;
  const bool divided = fs::is_directory(dir / "train", ec) && !test.empty();
  if (divided) refuse_rule(rule, where);
  const fs::path train = divided ? dir / "train" : dir;
  const std::vector<std::string> classes = names_of_folders(train);
  if (divided)
    for (const std::string& other : names_of_folders(test))
      if (std::find(classes.begin(), classes.end(), other) == classes.end())
        throw Error("the class " + other + " of " + test.string() + " has no folder in " + train.string());
  Split split;
  Others others;
  Shape input = kind.input;
  const auto list = [&](const fs::path& folder) {
    std::vector<ClassFile> files;
    for (size_t c = 0; c < classes.size(); ++c)
      list_class(folder / classes[c], static_cast<int64_t>(c), kind, others, files);
    if (files.empty())
      throw Error(fmt::format("nothing was found in the folders of {}: only {} are read", folder.string(), kind.names),
                  fmt::format("{} and lie in one folder a class", kind.endings));
    kind.look(files, split.remarks, input);
    return files;
  };
  const std::vector<ClassFile> files = list(train);
  split.train = std::make_shared<ClassFiles>(files, classes, input, kind.read);
  if (divided) {
    std::vector<ClassFile> rest = list(test);
    split.test = std::make_shared<ClassFiles>(std::move(rest), classes, input, kind.read);
  }
  others.tell(kind, split.remarks);
  if (!divided) split = divide_files(files, split.train, rule, std::move(split.remarks));
  tell_empty_classes(files, classes, train, split.remarks);
  if (classes.size() == 1)
    split.remarks.push_back({Remark::Kind::warning, "one_class",
                             "there is one folder, so one class (" + classes[0] + "): there is nothing to tell apart"});
  return split;
}

}  // namespace tenon::data
