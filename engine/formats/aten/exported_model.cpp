#include "engine/formats/aten/exported_model.h"

#include <fmt/format.h>

#include <map>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/state.h"
#include "engine/formats/aten/conversion.h"
#include "engine/formats/onnx/runnable.h"
#include "engine/formats/torch/exported_archive.h"

namespace tenon::formats {
namespace {

struct Refused {
  std::string why, node;
  int count = 0;
};

OnnxModel converted(const ExportedArchive& archive) {
  const NoGrad off;
  const AtenProgram program = read_aten_program(archive.program);
  std::map<std::string, Tensor> weights;
  for (size_t i = 0; i < archive.held.tensors.size(); ++i)
    weights.try_emplace(archive.held.tensors[i].name, archive.values[i]);
  AtenConversion conversion(program, weights);
  std::map<std::string, Refused> refused;
  std::map<std::string, bool> lost;
  for (const AtenNode& n : program.nodes) {
    // Behind a node that is told of.
    bool behind = false;
    for (const auto& [name, a] : n.inputs) {
      for (const std::string& read : a.names) behind = behind || lost.contains(read);
      for (const AtenInt& read : a.ints) behind = behind || lost.contains(read.name);
    }
    if (!behind) try {
        conversion.step(n);
        continue;
      } catch (const Error& e) {
        Refused& r = refused[n.target];
        if (r.count++ == 0) r = {e.message(), n.name, 1};
      }
    for (const std::string& out : n.outputs)
      if (!out.empty()) lost[out] = true;
  }
  if (refused.empty()) {
    OnnxModel model = conversion.finish();
    validate(model.graph, "the program");
    return model;
  }
  std::string list;
  for (const auto& [target, r] : refused)
    list += fmt::format("{}{} ('{}'){}: {}", list.empty() ? "" : "; ", target, r.node,
                        r.count > 1 ? fmt::format(" and {} more", r.count - 1) : "", r.why);
  throw OnnxUnsupported("it cannot be run: " + list,
                        "The model can be looked at. torch.onnx.export() may write it as ONNX, which can be opened.");
}

const bool registered_exported = register_runnable(
    {"pt2", FileKind::torch_export, [](const std::string& path, const auto&) { return load_exported(path); }});

}  // namespace

OnnxModel parse_exported(const std::shared_ptr<const MappedFile>& file) {
  const ExportedArchive archive = read_exported(file);
  if (archive.program.is_null()) throw Error(file->name() + ": there is no program in the archive");
  try {
    return converted(archive);
  } catch (const OnnxUnsupported& e) {
    throw OnnxUnsupported(file->name() + ": " + e.message(), e.hint());
  } catch (const Error& e) {
    throw e.in(file->name());
  }
}

OnnxModel load_exported(const std::string& path) { return parse_exported(MappedFile::open(path)); }

}  // namespace tenon::formats
