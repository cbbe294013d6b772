#include <fmt/format.h>

#include <filesystem>
#include <unordered_set>

#include "core/error.h"
#include "core/file.h"
#include "engine/formats/torch/file.h"
#include "engine/formats/torch/pickle.h"
#include "engine/formats/torch/tensor_pickler.h"
#include "engine/formats/zip.h"

namespace tenon::formats {

void save_torch(const std::string& path, const NamedTensors& tensors) {
  std::unordered_set<std::string> names;
  TensorPickler pickler;
  // No versions of layers are written beside the values: PyTorch then fills in what a layer of its own has more
  // (num_batches_tracked).
  PickleWriter w(2);
  w.global("collections", "OrderedDict");
  w.begin_tuple();
  w.end_tuple();
  w.call();
  w.begin_items();
  for (const auto& [name, t] : tensors) {
    if (!names.insert(name).second) throw Error(fmt::format("{}: two tensors are named \"{}\"", path, name));
    w.text(name);
    pickler.write(w, t);
  }
  w.end_dict();

  FileWriter file(path);
  ZipWriter zip(file);
  const std::string stem = std::filesystem::path(path).stem().string(),
                    prefix = (stem.empty() ? "archive" : stem) + "/";
  zip.add(prefix + "data.pkl", w.finish());
  zip.add(prefix + "byteorder", "little");
  pickler.add_storages(zip, prefix + "data/");
  zip.add(prefix + "version", "3\n");
  zip.finish();
  file.commit();
}

}  // namespace tenon::formats
