#include <algorithm>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "core/file.h"
#include "engine/data/dataset.h"
#include "engine/data/image.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;

/// Files that lie among the images and are none that is read here.
struct Others {
  std::map<std::string, int64_t> endings;
  Remark remark{Remark::Kind::warning, "not_read", {}};
  void add(const fs::path& file) {
    std::string ending = file.extension().string();
    ++endings[ending.empty() ? "without an ending" : ending];
    remark.add({file.string(), {}});
  }
  void tell(std::vector<Remark>& remarks) {
    if (remark.count == 0) return;
    std::string kinds;
    for (const auto& [ending, n] : endings) kinds += (kinds.empty() ? "" : ", ") + ending + " " + std::to_string(n);
    remark.text = std::to_string(remark.count) + " files are passed over, since only PNG and JPEG are read (" + kinds +
                  "); convert them if they are images";
    remarks.push_back(std::move(remark));
  }
};

std::vector<fs::path> sorted(const fs::path& dir, bool folders, Others* others = nullptr) {
  std::vector<fs::path> list;
  std::error_code ec;
  for (const auto& e : fs::directory_iterator(dir, ec)) {
    if (e.path().filename().string().starts_with(".")) continue;
    std::error_code ignored;
    const bool image = !folders && is_image_name(e.path().filename().string());
    if (folders ? e.is_directory(ignored) : image) list.push_back(e.path());
    if (others && !image && e.is_regular_file(ignored)) others->add(e.path());
  }
  if (ec) throw Error("the folder " + dir.string() + " cannot be read: " + ec.message());
  std::sort(list.begin(), list.end());
  return list;
}

/// A folder for each class, images in it.
class ImageFolder : public Dataset {
 public:
  ImageFolder(const fs::path& dir, std::vector<std::string> classes, Shape size, bool leave_out,
              std::vector<Remark>& remarks)
      : classes_(std::move(classes)), size_(size) {
    Others others;
    for (size_t c = 0; c < classes_.size(); ++c) {
      std::error_code ec;
      if (!fs::is_directory(dir / classes_[c], ec)) continue;
      for (const fs::path& file : sorted(dir / classes_[c], false, &others))
        files_.push_back({file.string(), static_cast<int64_t>(c)});
    }
    others.tell(remarks);
    if (leave_out) leave_out_bad(dir, remarks);
    if (files_.empty())
      throw Error("no image was found in the folders of " + dir.string(),
                  "images end in .png, .jpg or .jpeg and lie in one folder a class");
  }
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Meta input() const override { return {DType::f32, {}, size_}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  int64_t classes() const override { return static_cast<int64_t>(classes_.size()); }
  std::string class_name(int64_t i) const override {
    return i >= 0 && i < classes() ? classes_[static_cast<size_t>(i)] : std::to_string(i);
  }
  Source source(int64_t row) const override { return {files_[static_cast<size_t>(row)].path, {}}; }
  std::vector<int64_t> labels() const override {
    std::vector<int64_t> all;
    for (const File& f : files_) all.push_back(f.label);
    return all;
  }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      const File& f = files_[static_cast<size_t>(rows[i])];
      to_planes(image_of(f), size_[1], size_[2], static_cast<float*>(x) + i * size_.product());
      static_cast<int64_t*>(y)[i] = f.label;
    }
  }

 private:
  struct File {
    std::string path;
    int64_t label;
  };

  Image image_of(const File& f) const {
    try {
      return read_image(f.path, size_[0]);
    } catch (const Error& e) {
      throw Error(e.message(), "leave images out that cannot be read: data.unreadable = leave-out", e.kind());
    }
  }

  void leave_out_bad(const fs::path& dir, std::vector<Remark>& remarks) {
    std::vector<std::string> paths;
    for (const File& f : files_) paths.push_back(f.path);
    const std::vector<BadImage> bad = bad_images(paths);
    if (bad.empty()) return;
    Remark r{Remark::Kind::warning, "unreadable", {}};
    for (const BadImage& b : bad) r.add({paths[b.index], {}});
    r.text = std::to_string(bad.size()) + " of " + std::to_string(paths.size()) + " images in " + dir.string() +
             " cannot be read and are left out (" + bad.front().why + ")";
    remarks.push_back(std::move(r));
    for (auto b = bad.rbegin(); b != bad.rend(); ++b) files_.erase(files_.begin() + static_cast<int64_t>(b->index));
  }

  std::vector<std::string> classes_;
  Shape size_;
  std::vector<File> files_;
};

std::vector<std::string> class_folders(const fs::path& dir) {
  std::vector<std::string> names;
  for (const fs::path& p : sorted(dir, true)) names.push_back(p.filename().string());
  return names;
}

void warn_of_one_class(Split& split) {
  if (split.train->classes() != 1) return;
  split.remarks.push_back(
      {Remark::Kind::warning, "one_class",
       "there is one folder, so one class (" + split.train->class_name(0) + "): there is nothing to tell apart"});
}

Split open_image_folder(const Options& o, const AttrValues& v) {
  if (o.dir.empty()) throw Error("the data set image-folder is read from a folder", "name it: --data DIR");
  fs::path dir = o.dir;
  std::error_code ec;
  if (!fs::is_directory(dir, ec))
    throw Error("the folder " + o.dir + " of images does not exist",
                "name the folder that holds one folder a class: --data DIR");
  Shape size{v.integer("channels"), v.integer("height"), v.integer("width")};
  const bool leave_out = v.text("unreadable") == "leave-out";
  Split split;
  fs::path train = dir / "train", test;
  for (const char* name : {"test", "val", "valid", "validation"})
    if (test.empty() && fs::is_directory(dir / name, ec)) test = dir / name;
  if (fs::is_directory(train, ec) && !test.empty()) {
    auto names = class_folders(train);
    for (const std::string& other : class_folders(test))
      if (std::find(names.begin(), names.end(), other) == names.end())
        throw Error("the class " + other + " of " + test.string() + " has no folder in " + train.string());
    split.train = std::make_shared<ImageFolder>(train, names, size, leave_out, split.remarks);
    split.test = std::make_shared<ImageFolder>(test, names, size, leave_out, split.remarks);
    warn_of_one_class(split);
    return split;
  }
  auto all = std::make_shared<ImageFolder>(dir, class_folders(dir), size, leave_out, split.remarks);
  Parts parts = split_rows(all->size(), v.number("test_share"));
  if (parts.train.empty()) throw Error(o.dir + " holds too few images to train with");
  split.train = subset(all, parts.train);
  split.test = subset(all, parts.test);
  warn_of_one_class(split);
  return split;
}

const bool registered_image_folder =
    register_dataset({"image-folder",
                      "JPEG and PNG images, one folder a class, with or without folders train and test above them",
                      {{"channels", int64_t{3}, 1, 3, "1: grey, 3: colours"},
                       {"height", int64_t{32}, 1, 1 << 13, "images are scaled and cut to this", {}, "pixels"},
                       {"width", int64_t{32}, 1, 1 << 13, "images are scaled and cut to this", {}, "pixels"},
                       {"unreadable",
                        std::string("stop"),
                        0,
                        0,
                        "what is done about images that cannot be read; to leave them out all are read once",
                        {"stop", "leave-out"}},
                       test_share_attr()},
                      open_image_folder,
                      true});

}  // namespace
}  // namespace tenon::data
