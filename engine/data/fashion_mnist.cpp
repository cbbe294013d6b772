#include <array>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/error.h"
#include "engine/data/data_place.h"
#include "engine/data/dataset.h"
#include "engine/data/idx.h"

namespace tenon::data {
namespace {

constexpr const char* kDefaultDir = "/usr/share/datasets/fashion-mnist";
constexpr float kMean = 0.2860f, kDeviation = 0.3530f;  // over the 60,000 training images, of values in 0..1
constexpr std::array<const char*, 10> kClasses = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                  "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

/// Images of bytes with a class each, normalised as they are fetched.
class Images : public Dataset {
 public:
  Images(const std::string& dir, const std::string& prefix)
      : path_(idx_path(dir + "/" + prefix + "-images-idx3-ubyte.gz")), images_(read_idx(path_, 3)) {
    Idx labels = read_idx(dir + "/" + prefix + "-labels-idx1-ubyte.gz", 1);
    if (labels.shape[0] != images_.shape[0])
      throw Error(dir + "/" + prefix + "-labels-idx1-ubyte.gz holds " + std::to_string(labels.shape[0]) +
                  " labels for " + std::to_string(images_.shape[0]) + " images");
    for (size_t i = 0; i < labels.values.size(); ++i)
      if (labels.values[i] >= kClasses.size())
        throw Error(dir + "/" + prefix + "-labels-idx1-ubyte.gz: label " + std::to_string(labels.values[i]) +
                    " of row " + std::to_string(i) + " is no class of 0..9");
    labels_ = std::move(labels.values);
    for (int i = 0; i < 256; ++i)
      value_[static_cast<size_t>(i)] = (static_cast<float>(i) / 255.0f - kMean) / kDeviation;
  }
  int64_t size() const override { return images_.shape[0]; }
  Meta input() const override { return {DType::f32, {}, {1, images_.shape[1], images_.shape[2]}}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  int64_t classes() const override { return static_cast<int64_t>(kClasses.size()); }
  std::string class_name(int64_t i) const override {
    return i >= 0 && i < classes() ? kClasses[static_cast<size_t>(i)] : std::to_string(i);
  }
  Source source(int64_t row) const override { return {path_, "image " + std::to_string(row)}; }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    int64_t pixels = images_.shape[1] * images_.shape[2];
    auto* to = static_cast<float*>(x);
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t* from = images_.values.data() + rows[i] * pixels;
      for (int64_t p = 0; p < pixels; ++p) to[i * pixels + p] = value_[from[p]];
      static_cast<int64_t*>(y)[i] = labels_[static_cast<size_t>(rows[i])];
    }
  }

 private:
  std::string path_;
  Idx images_;
  std::vector<uint8_t> labels_;
  std::array<float, 256> value_;
};

Split open_files(const std::string& dir) {
  return {std::make_shared<Images>(dir, "train"), std::make_shared<Images>(dir, "t10k")};
}

/// Sessions come and go (replays, evaluations) over the same unpacked 55 MB: kept while any of them lives and the files
/// are the same.
Split open_cached(const Options& options, const AttrValues&) {
  namespace fs = std::filesystem;
  std::string dir = options.dir.empty() ? kDefaultDir : options.dir;
  std::error_code ec;
  if (!fs::is_directory(dir, ec))
    throw Error("the folder " + dir + " of Fashion-MNIST does not exist",
                (options.dir.empty() ? "install the package dataset-fashion-mnist; or " : "") +
                    data_place("a folder with its four files"));
  std::string key = fs::weakly_canonical(dir, ec).string();
  for (const char* prefix : {"train", "t10k"})
    for (const char* rest : {"-images-idx3-ubyte", "-labels-idx1-ubyte"})
      for (const char* end : {"", ".gz"}) {
        fs::path file = fs::path(dir) / (std::string(prefix) + rest + end);
        auto bytes = fs::file_size(file, ec);
        if (ec) continue;
        key += "|" + file.filename().string() + ":" + std::to_string(bytes) + ":" +
               std::to_string(fs::last_write_time(file, ec).time_since_epoch().count());
      }
  struct Kept {
    std::weak_ptr<const Dataset> train, test;
  };
  static std::mutex mutex;
  static std::map<std::string, Kept> kept;
  std::lock_guard lock(mutex);
  Split split{kept[key].train.lock(), kept[key].test.lock()};
  if (!split.train || !split.test) {
    split = open_files(dir);
    kept[key] = {split.train, split.test};
  }
  return split;
}

const bool registered_fashion_mnist =
    register_dataset({"fashion-mnist",
                      "60,000 + 10,000 grey images of clothes, 28 x 28, in 10 classes (four IDX files)",
                      {},
                      open_cached,
                      true,
                      [](const std::string& path) {
                        std::error_code ec;
                        const std::string images = path + "/train-images-idx3-ubyte";
                        return std::filesystem::exists(images, ec) || std::filesystem::exists(images + ".gz", ec)
                                   ? Recognised::yes
                                   : Recognised::no;
                      }});

}  // namespace
}  // namespace tenon::data
