#include "projects/teacher_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/sha256.h"
#include "engine/formats/onnx/import.h"
#include "engine/formats/onnx/runnable.h"
#include "engine/nn/module.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "engine/train/teacher.h"

namespace tenon::projects {
namespace {

TeacherFile of_model_file(const std::string& path) {
  TeacherFile t;
  const auto file = MappedFile::open(path);
  t.text = path + ", " + formats::describe(formats::file_kind(file->bytes()));
  t.sha256 = hex(sha256(file->bytes().data(), file->bytes().size()));
  try {
    formats::ImportedModel in =
        formats::import_model(formats::load_runnable(path), std::filesystem::path(path).stem().string());
    t.model = std::move(in.model);
    t.tensors = {in.weights.begin(), in.weights.end()};
  } catch (const Error& e) {
    throw e.in(path + " cannot be a teacher");
  }
  return t;
}

TeacherFile of_a_run(Project& project, const std::string& which, const Progress& progress) {
  WeightsFile w = weights_of_run(project, which, progress);
  TeacherFile t{w.text, w.sha256, std::move(w.model), {}};
  for (GivenTensor& g : w.tensors) t.tensors.emplace_back(g.name, g.tensor);
  return t;
}

/// "big.tenon" and "cnn-01@best" of "big.tenon:cnn-01@best"; the first is empty where no file is named.
std::pair<std::string, std::string> file_and_run(const std::string& from) {
  constexpr const char* kEnding = ".tenon";
  const size_t at = from.find(kEnding);
  const size_t end = at == from.npos ? at : at + std::string(kEnding).size();
  if (at == from.npos || (end < from.size() && from[end] != ':')) return {"", from};
  return {from.substr(0, end), end < from.size() ? from.substr(end + 1) : ""};
}

}  // namespace

TeacherFile read_teacher(Project& project, const Recipe& recipe, const Progress& progress) {
  const std::string& from = recipe.text("distill.from");
  TeacherFile t;
  try {
    constexpr const char* kEndings[] = {".onnx", ".pt2", ".pt", ".torchscript"};
    if (std::any_of(std::begin(kEndings), std::end(kEndings), [&](const char* e) { return from.ends_with(e); })) {
      t = of_model_file(from);
    } else if (const auto [file, run] = file_and_run(from); file.empty()) {
      t = of_a_run(project, run, progress);
    } else {
      t = of_a_run(*Project::open(file, true), run, progress);
    }
  } catch (const Error& e) {
    if (e.message() == "cancelled") throw;
    throw e.in("distill.from = " + from);
  }
  const std::string& wanted = recipe.text("distill.sha256");
  if (!wanted.empty() && wanted != t.sha256)
    throw Error(fmt::format("{} is not what distill.sha256 says: it is {}, not {}", t.text, t.sha256, wanted),
                "Bring the teacher back as it was, or reset distill.sha256 to learn from the one that is there.");
  return t;
}

void give_teacher(TrainingSession& session, TeacherFile teacher) {
  try {
    const Device device = session.model().parameters().at(0).tensor.device();
    session.learn_from(std::make_unique<Teacher>(teacher.model, std::move(teacher.tensors), device));
  } catch (const Error& e) {
    throw e.in(teacher.text);
  }
}

}  // namespace tenon::projects
