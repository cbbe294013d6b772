#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/data/data_place.h"
#include "engine/data/dataset.h"

namespace tenon::data {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kPixels = 3 * 32 * 32, kRecord = kPixels + 1;
constexpr const char* kCifarClasses[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                         "dog",      "frog",       "horse", "ship", "truck"};
constexpr float kCifarMean[] = {0.4914f, 0.4822f, 0.4465f},
                kCifarDeviation[] = {0.2470f, 0.2435f, 0.2616f};  // of the training images, in 0..1

/// Records of a label byte and 3,072 bytes of planes (https://www.cs.toronto.edu/~kriz/cifar.html, binary version).
class Cifar10 : public Dataset {
 public:
  explicit Cifar10(const std::vector<fs::path>& files) {
    for (const fs::path& path : files) {
      auto file = MappedFile::open(path.string());
      auto bytes = static_cast<int64_t>(file->bytes().size());
      if (bytes == 0 || bytes % kRecord != 0)
        throw Error(path.string() + " is no file of CIFAR-10: its " + std::to_string(bytes) +
                    " bytes are no multiple of " + std::to_string(kRecord));
      for (int64_t r = 0; r < bytes / kRecord; ++r) {
        const char* at = file->bytes().data() + r * kRecord;
        if (static_cast<uint8_t>(*at) > 9)
          throw Error(path.string() + ": label " + std::to_string(static_cast<uint8_t>(*at)) + " of image " +
                      std::to_string(r) + " is no class of 0..9");
        records_.push_back(at);
      }
      ends_.push_back(static_cast<int64_t>(records_.size()));
      paths_.push_back(path.string());
      files_.push_back(std::move(file));
    }
  }
  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  Meta input() const override { return {DType::f32, {}, {3, 32, 32}}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  int64_t classes() const override { return 10; }
  std::string class_name(int64_t i) const override { return i >= 0 && i < 10 ? kCifarClasses[i] : std::to_string(i); }
  Source source(int64_t row) const override {
    const auto f = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
    return {paths_[f], "image " + std::to_string(row - (f > 0 ? ends_[f - 1] : 0))};
  }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    auto* to = static_cast<float*>(x);
    for (int64_t i = 0; i < count; ++i) {
      const auto* at = reinterpret_cast<const uint8_t*>(records_[static_cast<size_t>(rows[i])]);
      static_cast<int64_t*>(y)[i] = at[0];
      for (int64_t p = 0; p < kPixels; ++p) {
        auto c = static_cast<size_t>(p / 1024);
        *to++ = (static_cast<float>(at[1 + p]) / 255.0f - kCifarMean[c]) / kCifarDeviation[c];
      }
    }
  }

 private:
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<const char*> records_;
  std::vector<int64_t> ends_;  ///< of each file's images, among all
  std::vector<std::string> paths_;
};

Split open_cifar10(const Options& o, const AttrValues&) {
  if (o.dir.empty())
    throw Error("the data set cifar10 is read from a folder",
                data_place("the folder with data_batch_1.bin to 5 and test_batch.bin"));
  fs::path dir = o.dir;
  std::error_code ec;
  if (fs::is_directory(dir / "cifar-10-batches-bin", ec)) dir /= "cifar-10-batches-bin";
  std::vector<fs::path> train;
  for (int i = 1; i <= 5; ++i)
    if (fs::path file = dir / ("data_batch_" + std::to_string(i) + ".bin"); fs::exists(file, ec)) train.push_back(file);
  if (train.empty() || !fs::exists(dir / "test_batch.bin", ec))
    throw Error(o.dir + " does not hold the files of CIFAR-10's binary version",
                "it needs data_batch_1.bin to 5 and test_batch.bin");
  return {std::make_shared<Cifar10>(train), std::make_shared<Cifar10>(std::vector<fs::path>{dir / "test_batch.bin"})};
}

const bool registered_cifar10 =
    register_dataset({"cifar10",
                      "50,000 + 10,000 colour images, 32 x 32, in 10 classes (the binary version's files)",
                      {},
                      open_cifar10,
                      true,
                      [](const std::string& path) {
                        std::error_code ec;
                        return fs::exists(fs::path(path) / "data_batch_1.bin", ec) ||
                                       fs::is_directory(fs::path(path) / "cifar-10-batches-bin", ec)
                                   ? Recognised::yes
                                   : Recognised::no;
                      }});

}  // namespace
}  // namespace tenon::data
