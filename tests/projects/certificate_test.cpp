// A certificate says what left the house; whatever is changed afterwards is seen.
#include "projects/certificate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "core/file.h"
#include "engine/formats/npy.h"
#include "engine/formats/onnx/model.h"
#include "projects/certificate_text.h"
#include "projects/finish.h"
#include "tests/messages.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

using testing_words::error_of;

struct CertificateTest : testing_files::SpiralsTest {
  std::string file;
  CertifyReport report;
  void SetUp() override {
    SpiralsTest::SetUp();
    train("r", {}, 30);
    file = dir / "m.onnx";
    export_run(*project, project->run("r"), 30, ExportFormat::onnx, file, false);
    report = certify(*project, project->run("r"), 30, file, {});
  }
  bool fits(const std::string& what, const VerifyOptions& options = {}) {
    for (const Check& c : verify_certified(file, options).checks)
      if (c.what == what) return c.ok;
    ADD_FAILURE() << "nobody checked " << what;
    return false;
  }
  nlohmann::json body() { return nlohmann::json::parse(unsealed(read_file(report.path), {}, "c").body); }
};

TEST_F(CertificateTest, what_was_exported_is_what_was_trained) {
  EXPECT_EQ(report.path, file + ".certificate");
  EXPECT_LT(report.from_engine, 1e-5);
  EXPECT_LT(report.from_f64, 1e-4);
  EXPECT_GT(report.from_f64, 0);
  const VerifyReport v = verify_certified(file);
  EXPECT_TRUE(v.ok());
  EXPECT_EQ(v.checks.size(), 3u);
  EXPECT_SAYS(v.provenance, "run r of a.tenon, step 30");
  const nlohmann::json j = body();
  EXPECT_EQ(j.at("provenance").at("digest"), digest_at(*project, project->run("r").id, 30));
  EXPECT_EQ(j.at("errors").at("from_trained").at("worst_by_class").size(), 2u);
  EXPECT_EQ(j.at("errors").at("from_f64").at("nodes").size(), formats::load_onnx(file).graph.nodes.size());
  EXPECT_EQ(j.at("data").at("classes").size(), 2u);
  EXPECT_EQ(unpacked_tensor(j.at("canaries").at("input")).size(0), 8);
}

TEST_F(CertificateTest, external_data_is_certified_too_and_its_check_can_be_cancelled) {
  write_file(file + ".data", std::string(5 << 20, 'w'));
  certify(*project, project->run("r"), 30, file, {});
  int64_t done = 0, total = 0;
  verify_certified(file, {}, [&](int64_t d, int64_t t) {
    EXPECT_GE(d, done);
    done = d, total = t;
    return true;
  });
  EXPECT_EQ(done, total);
  EXPECT_GE(total, 5);
  EXPECT_SAYS(error_of([&] { verify_certified(file, {}, [](int64_t, int64_t) { return false; }); }), "cancelled");
  std::string changed(5 << 20, 'w');
  changed.back() = 'v';
  write_file(file + ".data", changed);
  EXPECT_FALSE(fits("bytes"));
}

TEST_F(CertificateTest, any_byte_that_changes_is_seen) {
  const std::string model = read_file(file), certificate = read_file(report.path);
  std::mt19937 random(3);
  for (int round = 0; round < 150; ++round) {
    std::string changed = model;
    changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
    write_file(file, changed);
    EXPECT_FALSE(fits("bytes")) << round;
  }
  write_file(file, model + "x");
  EXPECT_FALSE(fits("bytes"));
  write_file(file, model);
  for (int round = 0; round < 150; ++round) {
    std::string changed = certificate;
    changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
    write_file(report.path, changed);
    bool seen = false;
    try {
      seen = !verify_certified(file).ok();
    } catch (const Error&) {
      seen = true;
    }
    EXPECT_TRUE(seen) << round;
  }
  write_file(report.path, certificate);
  EXPECT_TRUE(verify_certified(file).ok());
}

TEST_F(CertificateTest, a_model_that_computes_something_else_is_seen_by_its_canaries) {
  formats::OnnxModel model = formats::load_onnx(file);
  for (auto& [name, t] : model.graph.initializers)
    if (t.dtype() == DType::f32 && t.numel() > 100) t.data<float>()[0] += 1;
  formats::save_onnx(file, model);
  EXPECT_FALSE(fits("bytes"));
  EXPECT_FALSE(fits("canaries"));
}

TEST_F(CertificateTest, a_signature_is_the_keys) {
  CertifyOptions with;
  with.key = "a secret";
  certify(*project, project->run("r"), 30, file, with);
  VerifyOptions options;
  options.key = "a secret";
  EXPECT_TRUE(fits("signature", options));
  options.key = "another";
  EXPECT_FALSE(fits("signature", options));
  // Who changes the text and makes its digest anew still lacks the key.
  nlohmann::json j = body();
  j["provenance"]["text"] = "run of someone else";
  write_file(report.path, sealed(j, "another"));
  options.key = "a secret";
  EXPECT_TRUE(fits("certificate", options));
  EXPECT_FALSE(fits("signature", options));
  certify(*project, project->run("r"), 30, file, {});
  EXPECT_FALSE(fits("signature", options)) << "none at all";
}

TEST_F(CertificateTest, other_inputs_are_told_from_those_it_was_certified_with) {
  const Tensor same = unpacked_tensor(body().at("canaries").at("input"));
  const Tensor x = empty({400, 2}, DType::f32);
  std::mt19937 random(1);
  std::normal_distribution<float> draw(40, 1);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = draw(random);
  formats::save_npy(dir / "x.npy", x);
  VerifyOptions options;
  options.inputs = dir / "x.npy";
  EXPECT_FALSE(fits("inputs", options));
  EXPECT_EQ(same.size(1), 2);
}

TEST_F(CertificateTest, a_program_of_torch_export_is_certified_as_an_onnx_file_is) {
  file = dir / "m.pt2";
  export_run(*project, project->run("r"), 30, ExportFormat::pt2, file, false);
  const CertifyReport r = certify(*project, project->run("r"), 30, file, {});
  EXPECT_EQ(r.path, file + ".certificate");
  EXPECT_LT(r.from_engine, 1e-5);
  EXPECT_GT(r.from_f64, 0);
  EXPECT_FALSE(r.worst_node.empty());
  EXPECT_TRUE(verify_certified(file).ok());
  std::string changed = read_file(file);
  changed[changed.size() / 2] ^= 1;
  write_file(file, changed);
  EXPECT_FALSE(fits("bytes"));
  // What names no file says nothing of one.
  report.path = r.path;
  nlohmann::json j = body();
  j["files"] = nlohmann::json::array();
  write_file(r.path, sealed(j, {}));
  EXPECT_FALSE(fits("bytes"));
}

TEST_F(CertificateTest, the_model_of_another_run_is_not_certified_and_nothing_is_no_certificate) {
  EXPECT_SAYS(error_of([&] { verify_certified(dir / "none.onnx"); }), "is not there");
  write_file(dir / "bad.onnx.certificate", "no\n");
  EXPECT_SAYS(error_of([&] { verify_certified(dir / "bad.onnx"); }), "is no certificate");
  write_file(dir / "bad.onnx.certificate", sealed({{"tenon_certificate", 1}}, {}));
  EXPECT_SAYS(error_of([&] { verify_certified(dir / "bad.onnx"); }), "damaged");
  write_file(dir / "bad.onnx.certificate", sealed({{"tenon_certificate", 2}}, {}));
  EXPECT_SAYS(error_of([&] { verify_certified(dir / "bad.onnx"); }), "no certificate that this version reads");
}

TEST(CertificateText, a_spread_knows_its_own_values_again) {
  std::mt19937 random(5);
  std::normal_distribution<double> draw(1, 2);
  std::vector<double> values, others, moved;
  for (int i = 0; i < 5000; ++i) {
    values.push_back(draw(random));
    others.push_back(draw(random));
    moved.push_back(draw(random) + 2);
  }
  const nlohmann::json spread = spread_of(values);
  EXPECT_EQ(spread.at("shares").size(), 10u);
  EXPECT_NEAR(stability_index(spread, values), 0, 1e-9);
  EXPECT_LT(stability_index(spread, others), 0.02);
  EXPECT_GT(stability_index(spread, moved), 0.5);
  const nlohmann::json constant = spread_of({3, 3, 3, NAN});
  EXPECT_EQ(constant.at("not_finite"), 1);
  EXPECT_NEAR(stability_index(constant, {3, 3}), 0, 1e-9);
  EXPECT_GT(stability_index(constant, {2, 2}), 1);
}

TEST(CertificateText, a_tensor_goes_there_and_back_and_a_bad_one_is_refused) {
  const Tensor t = empty({2, 3}, DType::f32);
  for (int i = 0; i < 6; ++i) t.data<float>()[i] = static_cast<float>(i) / 7;
  const nlohmann::json j = packed_tensor(view_of(t, t.layout().transpose(0, 1)));
  const Tensor back = unpacked_tensor(j);
  EXPECT_EQ(back.size(), (Shape{3, 2}));
  EXPECT_EQ(value_at(back, {2, 1}), value_at(t, {1, 2}));
  for (const auto& [key, value] : std::vector<std::pair<std::string, nlohmann::json>>{
           {"size", {2, 2}}, {"size", {-1, 3}}, {"dtype", "f31"}, {"base64", "Zm9*"}, {"base64", "Zm9v"}}) {
    nlohmann::json bad = j;
    bad[key] = value;
    EXPECT_NE(error_of([&] { unpacked_tensor(bad); }), "no error") << key << value;
  }
}

}  // namespace
}  // namespace tenon::projects
