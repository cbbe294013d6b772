#include "projects/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "core/quiet.h"
#include "core/tree_digest.h"
#include "core/utf8.h"
#include "core/version.h"
#include "engine/data/dataset.h"
#include "engine/formats/npy.h"
#include "engine/formats/onnx/node_errors.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/onnx/runnable.h"
#include "engine/formats/tensor_difference.h"
#include "engine/nn/module.h"
#include "engine/ops/view.h"
#include "engine/train/session.h"
#include "projects/certificate_text.h"
#include "projects/finish.h"

namespace tenon::projects {

using nlohmann::json;

namespace {

constexpr int64_t kBatch = 32, kNodeRows = 8;

/// Its external data is part of the file.
std::vector<std::string> files_of(const std::string& file) {
  std::vector<std::string> all = {file};
  if (std::filesystem::exists(file + ".data")) all.push_back(file + ".data");
  return all;
}

/// Of every file its digest. Progress is told in MiB; what was read does not stay in memory.
json digests_of(const std::string& file, const Progress& progress) {
  std::vector<std::shared_ptr<const MappedFile>> files;
  size_t total = 0, done = 0;
  for (const std::string& f : files_of(file)) total += files.emplace_back(MappedFile::open(f))->bytes().size();
  json all = json::array();
  for (const auto& f : files) {
    const Sha256Digest digest = tree_digest(f->bytes(), [&](std::string_view stretch) {
      f->forget(stretch);
      done += stretch.size();
      const auto mib = [](size_t bytes) { return static_cast<int64_t>((bytes + (1 << 20) - 1) >> 20); };
      if (progress && !progress(mib(done), mib(total))) throw Error("cancelled");
    });
    all.push_back({{"name", as_utf8(std::filesystem::path(f->name()).filename().string())},
                   {"bytes", f->bytes().size()},
                   {"tree_sha256", hex(digest)}});
  }
  return all;
}

Tensor first_rows(const data::Dataset& set, int64_t from, int64_t count) {
  std::vector<int64_t> rows;
  for (int64_t i = from; i < std::min(from + count, set.size()); ++i) rows.push_back(i);
  return data::fetch(set, std::move(rows)).x;
}

json values_json(const std::vector<formats::OnnxValue>& values) {
  json all = json::array();
  for (const auto& v : values) {
    json size = json::array();
    for (const auto& d : v.shape) size.push_back(d.value >= 0 ? json(d.value) : json(d.name));
    all.push_back({{"name", v.name}, {"dtype", name(v.dtype)}, {"size", size}});
  }
  return all;
}

/// Of the largest output. Where integers are computed with, another runtime may round a value to the step beside it.
double tolerance_of(const formats::OnnxModel& model) {
  const bool integers = std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(), [](const formats::OnnxNode& n) {
    return n.op_type.find("Quantize") != n.op_type.npos || n.op_type.find("Integer") != n.op_type.npos;
  });
  return integers ? 0.05 : 1e-4;
}

/// Numbers of a tensor, as far as they are wanted.
void gather(const Tensor& t, std::vector<double>& to, size_t most) {
  const Tensor wide = contiguous(cast(t, DType::f64));
  const auto n = std::min(static_cast<size_t>(wide.numel()), most - std::min(most, to.size()));
  to.insert(to.end(), wide.data<double>(), wide.data<double>() + n);
}

/// What the file gives beside what the trained model gives, over test samples.
class Measured {
 public:
  Measured(TrainingSession& session, const formats::OnnxModel& model, int64_t samples, const Progress& progress) {
    const data::Dataset& test = session.test_data();
    samples = std::min(samples, test.size());
    if (samples == 0) throw Error("the test set has no samples to measure with");
    session.model().train(false);
    for (int64_t at = 0; at < samples; at += kBatch) {
      if (progress && !progress(at, samples)) throw Error("cancelled");
      const Tensor x = first_rows(test, at, std::min(kBatch, samples - at));
      const Tensor ours = session.model()(x);
      const std::vector<Tensor> theirs = formats::run_onnx(model, {x});
      if (theirs.empty() || !(theirs[0].size() == ours.size()))
        throw Error(fmt::format("the file gives {} where the trained model gives {}",
                                theirs.empty() ? "nothing" : to_string(theirs[0].size()), to_string(ours.size())),
                    "Certify an export of this run.");
      add(ours, theirs[0]);
      gather(x, inputs_, kMostValues);
      gather(theirs[0], outputs_, kMostValues);
      this->samples_ += x.size(0);
    }
  }
  json outputs() const {
    json j = {{"worst_relative", relative()}, {"samples", samples_}};
    // Of a class its largest difference, beside the largest number of all of them.
    if (!by_class_.empty()) {
      j["worst_by_class"] = json::array();
      for (const double d : by_class_) j["worst_by_class"].push_back(largest_ > 0 ? d / largest_ : d);
    }
    return j;
  }
  json baseline() const { return {{"inputs", spread_of(inputs_)}, {"outputs", spread_of(outputs_)}}; }
  double relative() const { return largest_ > 0 ? worst_ / largest_ : worst_; }
  int64_t samples() const { return samples_; }

 private:
  static constexpr size_t kMostValues = size_t{1} << 20;

  void add(const Tensor& ours, const Tensor& theirs) {
    const formats::TensorDifference d = formats::tensor_difference(ours, theirs);
    worst_ = std::max(worst_, d.worst());
    largest_ = std::max(largest_, d.largest_a);
    constexpr int64_t kMostClasses = 1000;
    if (ours.ndim() != 2 || ours.size(1) < 2 || ours.size(1) > kMostClasses) return;
    by_class_.resize(static_cast<size_t>(ours.size(1)), 0.0);
    const Tensor a = contiguous(cast(ours, DType::f64)), b = contiguous(cast(theirs, DType::f64));
    for (int64_t i = 0; i < a.numel(); ++i) {
      double& most = by_class_[static_cast<size_t>(i % a.size(1))];
      most = std::max(most, std::abs(a.data<double>()[i] - b.data<double>()[i]));
    }
  }

  double worst_ = 0, largest_ = 0;
  int64_t samples_ = 0;
  std::vector<double> by_class_, inputs_, outputs_;
};

json nodes_json(const formats::OnnxModel& model, const Tensor& x, CertifyReport& report) {
  json nodes = json::array();
  try {
    for (const formats::NodeError& e : formats::node_errors(model, {x})) {
      nodes.push_back({{"name", e.name}, {"op", e.op_type}, {"worst_relative", e.worst}});
      if (e.worst > report.from_f64) report.from_f64 = e.worst, report.worst_node = e.name + " (" + e.op_type + ")";
    }
    return {{"reference", "f64"}, {"samples", x.size(0)}, {"nodes", nodes}};
  } catch (const Error& e) {  // an operator that has no kernel in f64 is a reason, not an end
    return {{"reference", nullptr}, {"why", e.message()}};
  }
}

json data_json(const TrainingSession& session, const RunInfo& run) {
  const data::Dataset& test = session.test_data();
  json j = {{"task", test.task()}, {"recipe", run.recipe.value("data", json::object())}};
  constexpr int64_t kMostNames = 1000;
  if (test.classes() > 0 && test.classes() <= kMostNames && test.token_text(0).empty()) {
    j["classes"] = json::array();
    for (int64_t c = 0; c < test.classes(); ++c) j["classes"].push_back(test.class_name(c));
  }
  return j;
}

/// A file that says which state it was exported from must be of this one: "run r of p.tenon, step 30; ..." is what
/// export_doc() writes. A run or a project may have another name since.
void check_named(const formats::OnnxModel& model, const Project& project, const RunInfo& run, int64_t step,
                 const std::string& file) {
  const std::string_view doc(model.doc), said = doc.substr(0, doc.find(';'));
  const size_t at = said.rfind(", step ");
  if (!said.starts_with("run ") || said.find(" of ") == said.npos || at == said.npos) return;
  const std::string_view its_step = said.substr(at + std::string_view(", step ").size());
  const auto names = [&](const RunInfo& r) { return said.starts_with("run " + r.name + " of "); };
  const std::vector<RunInfo> all = project.runs();
  const bool of_another = !names(run) && std::any_of(all.begin(), all.end(), names);
  if (its_step == std::to_string(step) && !of_another) return;
  throw Error::usage(
      fmt::format("{} is no export of step {} of run {}: it says of itself \"{}\"", file, step, run.name, said),
      "Name that run and its step (--checkpoint), or export it anew.");
}

}  // namespace

CertifyReport certify(Project& project, const RunInfo& run, int64_t step, const std::string& file,
                      const CertifyOptions& options, const Progress& progress) {
  const formats::OnnxModel model = formats::load_runnable(file);
  check_named(model, project, run, step, file);
  const auto session = replay_to(project, run.id, step, progress);
  const Quiet quiet;
  const Measured measured(*session, model, options.samples, progress);
  const Tensor canary = first_rows(session->test_data(), 0, options.canaries);
  CertifyReport report;
  report.path = file + ".certificate";
  report.samples = measured.samples();
  report.from_engine = measured.relative();

  json body = {{"tenon_certificate", 1}, {"files", digests_of(file, progress)}, {"piece_bytes", kTreeDigestPiece}};
  body["inputs"] = values_json(model.graph.inputs);
  body["outputs"] = values_json(model.graph.outputs);
  body["data"] = data_json(*session, run);
  body["canaries"] = {{"input", packed_tensor(canary)},
                      {"output", packed_tensor(formats::run_onnx(model, {canary}).at(0))},
                      {"tolerance", tolerance_of(model)}};
  body["errors"] = {{"from_trained", measured.outputs()},
                    {"from_f64", nodes_json(model, first_rows(session->test_data(), 0, kNodeRows), report)}};
  body["baseline"] = measured.baseline();
  body["provenance"] = {{"text", export_doc(project, run, step)},
                        {"run", run.name},
                        {"step", step},
                        {"digest", digest_at(project, run.id, step, 0, progress)},
                        {"producer", "tenon " TENON_VERSION}};
  write_file(report.path, sealed(body, options.key));
  report.text = fmt::format(
      "{}: {} nodes, {} canaries, measured on {} test samples\nfrom the trained model: {:.3g} relative at most",
      report.path, model.graph.nodes.size(), canary.size(0), report.samples, report.from_engine);
  if (!report.worst_node.empty())
    report.text += fmt::format("\nfrom f64: {:.3g} relative at most, at {}", report.from_f64, report.worst_node);
  if (!options.key.empty()) report.text += "\nsigned with the key";
  return report;
}

namespace {

Check bytes_check(const std::string& file, const json& body, const Progress& progress) {
  const json now = digests_of(file, progress);
  if (body.at("files").empty()) return {"bytes", false, "the certificate names no file"};
  for (const json& was : body.at("files")) {
    const std::string& name = was.at("name").get_ref<const std::string&>();
    // A file may be named otherwise where it lies now; its data goes with it.
    const size_t place = static_cast<size_t>(&was - &body.at("files")[0]);
    if (place >= now.size()) return {"bytes", false, name + " is missing"};
    if (now[place].at("bytes") != was.at("bytes"))
      return {"bytes", false,
              fmt::format("{} has {} bytes, and had {}", name, now[place].at("bytes").dump(), was.at("bytes").dump())};
    if (now[place].at("tree_sha256") != was.at("tree_sha256"))
      return {"bytes", false, name + " has other bytes than those that were certified"};
  }
  return {"bytes", true, "every byte is as it was certified"};
}

Check canaries_check(const formats::OnnxModel& model, const json& body) {
  const json& c = body.at("canaries");
  const Tensor x = unpacked_tensor(c.at("input")), want = unpacked_tensor(c.at("output"));
  const std::vector<Tensor> got = formats::run_onnx(model, {x});
  if (got.empty() || !(got[0].size() == want.size()))
    return {"canaries", false, "the model gives outputs of another size"};
  const double worst = formats::tensor_difference(want, got[0]).worst_relative();
  return {"canaries", worst <= c.at("tolerance").get<double>(),
          fmt::format("{} samples, {:.3g} relative at most", x.size(0), worst)};
}

Check drift_check(const std::string& inputs, const json& body) {
  std::vector<double> values;
  gather(formats::load_npy(inputs), values, size_t{1} << 22);
  const json& was = body.at("baseline").at("inputs");
  if (!was.contains("edges")) return {"inputs", false, "the baseline has no values"};
  const double index = stability_index(was, values);
  const json now = spread_of(values);
  constexpr double kMoved = 0.25;
  return {"inputs", index < kMoved,
          fmt::format("stability index {:.3f} ({}); mean {:.4g} beside {:.4g}, deviation {:.4g} beside {:.4g}", index,
                      index < 0.1      ? "nothing moved"
                      : index < kMoved ? "moved a little"
                                       : "other inputs than it was certified with",
                      now.value("mean", NAN), was.value("mean", NAN), now.value("std", NAN), was.value("std", NAN))};
}

}  // namespace

bool VerifyReport::ok() const {
  return std::all_of(checks.begin(), checks.end(), [](const Check& c) { return c.ok; });
}

VerifyReport verify_certified(const std::string& file, const VerifyOptions& options, const Progress& progress) {
  const std::string path = options.certificate.empty() ? file + ".certificate" : options.certificate;
  if (!std::filesystem::exists(path))
    throw Error(path + " is not there",
                "File › Certify an exported model…, or tenon certify, writes it; "
                "tenon verify takes another one with --certificate.");
  return verify_with(read_file(path), path, file, options, progress);
}

VerifyReport verify_with(const std::string& certificate, const std::string& path, const std::string& file,
                         const VerifyOptions& options, const Progress& progress) {
  const Unsealed seal = unsealed(certificate, options.key, path);
  const Quiet quiet;
  VerifyReport report;
  report.checks.push_back(
      {"certificate", seal.whole,
       seal.whole ? "as it was written" : "was changed after it was written: nothing below is sure"});
  if (!options.key.empty())
    report.checks.push_back({"signature", seal.signature_fits,
                             seal.signature_fits ? "made with this key"
                             : seal.is_signed    ? "made with another key, or for another text"
                                                 : "there is none"});
  const json body = json::parse(seal.body, nullptr, false);
  try {
    if (body.is_discarded() || body.value("tenon_certificate", 0) != 1)
      throw Error(path + " is no certificate that this version reads");
    report.provenance = body.at("provenance").at("text").get<std::string>() + ", by " +
                        body.at("provenance").at("producer").get<std::string>();
    report.checks.push_back(bytes_check(file, body, progress));
    try {
      report.checks.push_back(canaries_check(formats::load_runnable(file), body));
    } catch (const Error& e) {
      report.checks.push_back({"canaries", false, e.message()});
    }
    if (!options.inputs.empty()) report.checks.push_back(drift_check(options.inputs, body));
  } catch (const json::exception& e) {
    throw Error(path + " is damaged: " + e.what());
  }
  return report;
}

}  // namespace tenon::projects
