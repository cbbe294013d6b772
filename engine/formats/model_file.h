#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/registry.h"
#include "core/tensor.h"
#include "engine/formats/file_kind.h"

namespace tenon {
class MappedFile;
}

namespace tenon::formats {

/// What stands in a file that holds a model or weights, whichever format it has. Opening one reads names, shapes and
/// places alone: a file of any size is listed at once, and values are read tensor by tensor.
struct ModelFile {
  struct Entry {
    std::string name;   ///< there once in a file
    std::string dtype;  ///< as the file names it: "BF16", "float32"
    std::vector<int64_t> shape;
    uint64_t bytes = 0;         ///< of its values
    std::string problem = {};   ///< why its values cannot be read: "is quantized"; empty: they can
    std::string category = {};  ///< "parameter" or "buffer", where the file tells them apart
    // Of formats that keep views of storages.
    std::string storage = {}, device = {};
    std::vector<int64_t> stride = {};
    int64_t offset = 0;  ///< in elements

    /// The product of the shape; INT64_MAX where that is no number.
    int64_t elements() const;
  };
  /// An operation of the file's graph. Values go from node to node by their names.
  struct Node {
    std::string name, op, domain;
    std::string scope;                         ///< the module it stands in, "layer1.0.conv1"; empty: nothing says so
    std::vector<std::string> inputs, outputs;  ///< "" is one that was left out
    std::vector<std::pair<std::string, std::string>> attributes;  ///< as text
  };
  /// What goes into the graph or comes out of it: "f32 [N, 3, 224, 224]".
  struct Value {
    std::string name, type;
    std::vector<int64_t> shape = {};  ///< -1: left open; none where the file does not say how many axes there are
  };
  /// What the format says of the file: its versions, and who wrote it.
  struct Fact {
    std::string name;  ///< "ir_version"
    std::variant<int64_t, std::string> value;
    std::string text() const;
    std::string head() const;  ///< its name for people: "ir version"
  };
  /// Plain values that the writer added, by name: metadata, the epoch of a checkpoint.
  using Texts = std::vector<std::pair<std::string, std::string>>;

  /// A listing of code that the file brings: shown, never run.
  struct Source {
    std::string name;    ///< "__torch__/net.py"
    uint64_t bytes = 0;  ///< of its text
  };

  FileKind kind = FileKind::unknown;
  std::string path;
  uint64_t file_bytes = 0;
  std::vector<Fact> facts;
  Texts texts;
  std::vector<std::string> foreign;   ///< what a pickle asks for that is no data: shown, never run
  std::vector<std::string> warnings;  ///< what is odd about the file
  std::vector<Value> inputs, outputs;
  std::vector<Entry> tensors;
  std::vector<Node> nodes;           ///< none: the format has no graph
  std::vector<Source> sources = {};  ///< by name; none: the format has no code
  /// Reads the values of an entry; a window of the file where that can be. From any thread.
  std::function<Tensor(size_t entry)> values;
  /// Reads the text of a source. Throws Error naming the file where that cannot be. From any thread.
  std::function<std::string(size_t source)> source_text = {};

  /// By its content. Throws Error naming the file and what is wrong with it, or that no reader takes its kind.
  static std::shared_ptr<const ModelFile> open(const std::string& path);
  static std::shared_ptr<const ModelFile> parse(const std::shared_ptr<const MappedFile>& file);

  /// The index of a tensor or node; -1: there is none of the name.
  int find_tensor(const std::string& name) const;
  int64_t elements() const;
  uint64_t bytes() const;
  /// Bytes of all tensors of a dtype, the most first.
  std::vector<std::pair<std::string, uint64_t>> bytes_by_dtype() const;
  /// Throws Error naming the file and the tensor where its values cannot be read.
  Tensor tensor(size_t entry) const;
  /// Throws Error with the near names where there is none of that name.
  size_t at(const std::string& name) const;
};

/// How a kind of file becomes a ModelFile; registered in the file of its format.
struct ModelFileReader {
  std::string name;  ///< "onnx": what `tenon inspect --json` calls the kind
  FileKind kind = FileKind::unknown;
  std::function<ModelFile(const std::shared_ptr<const MappedFile>&)> read;
};
const Registry<ModelFileReader>& model_file_readers();
bool register_model_file(ModelFileReader reader, Place place = Place::current());
/// Null where no reader takes the kind.
const ModelFileReader* model_file_reader(FileKind kind);

}  // namespace tenon::formats
