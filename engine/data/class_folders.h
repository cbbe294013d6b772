#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/data/split_rule.h"

namespace tenon::data {

/// A sample that is a file, in the folder of its class or in a folder below that.
struct ClassFile {
  std::string path;
  std::string within;  ///< its path below the folder of its class: "p12/left.png"
  int64_t label = 0;
  std::string called = {};  ///< its path with that of the class: "cat/p12/left.png"
  Source source() const { return {path, {}, called}; }
};
/// Samples that are files, with a class each.
class ClassFiles : public Dataset {
 public:
  /// Reads a file as a sample of the set's input. Throws Error naming the file.
  using Read = std::function<void(const std::string& path, float* to)>;
  ClassFiles(std::vector<ClassFile> files, std::vector<std::string> classes, Shape input, Read read)
      : files_(std::move(files)), classes_(std::move(classes)), input_(input), read_(std::move(read)) {}
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Meta input() const override { return {DType::f32, {}, input_}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  int64_t classes() const override { return static_cast<int64_t>(classes_.size()); }
  std::string class_name(int64_t i) const override;
  Source source(int64_t row) const override { return files_[static_cast<size_t>(row)].source(); }
  std::vector<int64_t> labels() const override;
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override;

 private:
  std::vector<ClassFile> files_;
  std::vector<std::string> classes_;
  Shape input_;
  Read read_;
};

/// What a kind of file is to those who look for it.
struct FileKind {
  bool (*is)(const std::string& name);
  std::string names;    ///< "PNG and JPEG"
  std::string endings;  ///< "images end in .png, .jpg or .jpeg"
  Shape input;
  ClassFiles::Read read;
  /// Looks at the files that were found, may take some out, and remarks it. Called once for each split of the files,
  /// the training set first, before any is read; it may say what size the samples of both have.
  std::function<void(std::vector<ClassFile>& files, std::vector<Remark>& remarks, Shape& input)> look;
};
/// A file that cannot be read, by its place among others, with the reason.
struct BadFile {
  size_t index;
  std::string why;
};
/// What is done about these: data.unreadable.
AttrDef unreadable_attr(const std::string& what);
/// Takes bad files out and remarks it; `what`: "images". Throws Error where none is left.
void leave_out_bad(std::vector<ClassFile>& files, const std::vector<BadFile>& bad, const std::string& what,
                   std::vector<Remark>& remarks);
/// The same error, with the way to go on without such a file.
Error with_way_out(const Error& e, const std::string& what);

/// Whether files of a kind lie in folders below `dir`, as open_class_folders() wants them. It looks at the first ones.
bool has_class_folders(const std::string& dir, bool (*is)(const std::string& name));

/// One folder a class below `dir`, or below its folders train and test. Without these `rule` divides the files: by
/// class, by the folder below that of the class (split_by folder, or empty), or by a pattern of the path there. Files
/// of other kinds are remarked, with how many there are of each. Throws Error naming the folder that is missing or
/// cannot be read, and a class that only the test has.
Split open_class_folders(const std::string& dir, const FileKind& kind, const SplitRule& rule);

}  // namespace tenon::data
