// What checks look for is planted in a real project and named, and none of it is said of the templates.
#include "projects/checks/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <random>

#include "core/file.h"
#include "core/registry.h"
#include "engine/data/image.h"
#include "engine/formats/npy.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"
#include "projects/run_driver.h"
#include "tests/projects/leaks/plants.h"
#include "tests/projects/project_files.h"

namespace tenon::projects {
namespace {

using KeyValues = std::vector<std::pair<std::string, std::string>>;
using I = int64_t;

/// A project of arrays x [n, 4] and classes y, with a small network.
class Planted : public ::testing::Test {
 protected:
  Tensor x_ = empty({240, 4}), y_ = empty({240}, DType::i64);
  ModelSpec model_ = network({"Linear", "ReLU", "Linear"}, 2);
  KeyValues set_ = {{"data.dataset", "npy"},
                    {"epochs", "4"},
                    {"data.batch_size", "32"},
                    {"optimizer.type", "adam"},
                    {"optimizer.lr", "0.01"}};
  testing_files::TempDir folder_;

  void SetUp() override {
    std::mt19937 random(7);
    for (I i = 0; i < x_.numel(); ++i) x_.data<float>()[i] = static_cast<float>(random() % 200001) / 100000.0f - 1.0f;
    for (I i = 0; i < 240; ++i) y_.data<I>()[i] = x_.data<float>()[i * 4] + x_.data<float>()[i * 4 + 1] > 0;
  }
  static ModelSpec network(const std::vector<std::string>& types, I outputs) {
    Chain c("planted", {4});
    for (size_t i = 0; i < types.size(); ++i) {
      std::vector<Attr> attrs;
      if (types[i] == "Linear")
        attrs = {{"out_features", i + 1 == types.size() || i + 2 == types.size() ? outputs : I{16}}};
      if (types[i] == "Dropout") attrs = {{"p", 0.95}};
      c.add("layers." + std::to_string(i), types[i], attrs);
    }
    return c.done();
  }
  std::shared_ptr<Project> make() {
    formats::save_npy((folder_ / "x.npy"), x_);
    formats::save_npy((folder_ / "y.npy"), y_);
    Recipe r;
    r.set("data.dir", folder_.path());
    for (const auto& [key, text] : set_) r.set(key, text);
    return Project::create((folder_ / "p.tenon"), model_, r.to_json());
  }
  static void train(const std::shared_ptr<Project>& p) {
    const auto driver = RunDriver::start(p, {});
    driver->wait();
  }
  /// What a check says of the project; fails where any other check but `also` says anything.
  std::vector<Complaint> only(const std::shared_ptr<Project>& p, const std::string& name,
                              const std::vector<std::string>& also = {}) {
    Checked checked(p, "", {});
    std::vector<Complaint> of;
    for (const CheckResult& r : check_project(checked)) {
      if (r.name == name) of = r.complaints;
      if (r.name == name || std::find(also.begin(), also.end(), r.name) != also.end()) continue;
      for (const Complaint& c : r.complaints) ADD_FAILURE() << r.name << ": " << c.about << ": " << c.seen;
    }
    return of;
  }
  void expect_one(const std::vector<Complaint>& found, const std::string& says, const std::string& remedy) {
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0].seen.find(says), std::string::npos) << found[0].seen;
    EXPECT_NE(found[0].remedy.find(remedy), std::string::npos) << found[0].remedy;
  }
};

TEST_F(Planted, nothing_in_a_sound_project) {
  const auto p = make();
  EXPECT_TRUE(only(p, "").empty());
  train(p);
  EXPECT_TRUE(only(p, "").empty());
}

TEST_F(Planted, samples_in_both_splits) {
  // Row 2 goes to the test (every fifth from there).
  for (I k = 0; k < 4; ++k) x_.data<float>()[2 * 4 + k] = x_.data<float>()[k];
  expect_one(only(make(), "data.leak", {"data.conflicts"}), "x.npy, row 2", "take them out");
}

TEST_F(Planted, equal_samples_with_other_targets) {
  for (I k = 0; k < 4; ++k) x_.data<float>()[5 * 4 + k] = x_.data<float>()[k];
  y_.data<I>()[5] = 1 - y_.data<I>()[0];
  expect_one(only(make(), "data.conflicts"), "x.npy, row 5", "one of the two is wrong");
}

TEST_F(Planted, a_value_that_is_not_finite) {
  x_.data<float>()[100 * 4] = std::numeric_limits<float>::quiet_NaN();
  const auto p = make();
  expect_one(only(p, "data.not_finite"), "x.npy, row 100", "mend these places");
  train(p);
  expect_one(only(p, "run.not_finite", {"data.not_finite"}), "loss is nan", "tenon nan");
}

TEST_F(Planted, a_rare_class_until_something_is_done) {
  for (I i = 0; i < 240; ++i) y_.data<I>()[i] = i % 30 == 2 || i % 30 == 3;
  expect_one(only(make(), "data.imbalance"), "samples are 1", "loss.weight = balanced");
}

TEST_F(Planted, a_rare_class_that_is_balanced_is_no_fault) {
  for (I i = 0; i < 240; ++i) y_.data<I>()[i] = i % 30 == 2 || i % 30 == 3;
  set_.push_back({"loss.weight", "balanced"});
  EXPECT_TRUE(only(make(), "data.imbalance").empty());
}

TEST_F(Planted, a_class_that_the_test_does_not_have) {
  model_ = network({"Linear", "ReLU", "Linear"}, 3);
  for (I i = 0; i < 240; ++i)
    if (i % 5 == 0) y_.data<I>()[i] = 2;  // never row 2, 7, 12, ...
  expect_one(only(make(), "data.absent_class"), "no target of the test split is 2", "data.test_share");
}

TEST_F(Planted, inputs_of_a_large_scale) {
  for (I i = 0; i < x_.numel(); ++i) x_.data<float>()[i] = x_.data<float>()[i] * 500 + 300;
  expect_one(only(make(), "data.scale"), "with a mean of", "normalise mean=");
}

TEST_F(Planted, one_class) {
  for (I i = 0; i < 240; ++i) y_.data<I>()[i] = 0;
  model_ = network({"Linear", "ReLU", "Linear"}, 2);
  EXPECT_TRUE(only(make(), "data.one_class").empty()) << "arrays do not say so; folders and tables do";
}

TEST_F(Planted, a_batch_norm_of_one_sample) {
  model_ = network({"Linear", "BatchNorm1d", "ReLU", "Linear"}, 2);
  set_.push_back({"data.batch_size", "191"});  // of 192 in the training set
  expect_one(only(make(), "model.batch_norm_of_one"), "the last batch of every epoch has 1 sample", "drop_last");
}

TEST_F(Planted, a_softmax_before_cross_entropy) {
  model_ = network({"Linear", "ReLU", "Linear", "Softmax"}, 2);
  expect_one(only(make(), "model.last_layer"), "takes the softmax", "take the last layer out");
}

TEST_F(Planted, dropout_of_nearly_everything) {
  model_ = network({"Linear", "Dropout", "Linear", "Linear"}, 2);
  expect_one(only(make(), "model.dropout"), "95 %", "not kept");
}

TEST_F(Planted, frozen_layers_behind_trained_ones) {
  set_.push_back({"init.freeze", "layers.2.*"});
  expect_one(only(make(), "model.frozen_behind_trained"), "behind layers.0", "freeze what stands before");
}

TEST_F(Planted, more_workers_than_cores) {
  set_.push_back({"data.workers", "200"});
  expect_one(only(make(), "recipe.workers"), "200 threads", "data.workers");
}

TEST_F(Planted, a_warm_up_longer_than_the_run) {
  set_.push_back({"schedule.warmup_steps", "5000"});
  expect_one(only(make(), "recipe.warmup"), "warms up over 5000 steps", "schedule.warmup_steps");
}

TEST_F(Planted, a_rate_so_large_that_units_die) {
  set_.push_back({"optimizer.type", "sgd"});
  set_.push_back({"optimizer.lr", "300"});
  set_.push_back({"epochs", "2"});
  set_.push_back({"checkpoint_every", "3"});
  const auto p = make();
  train(p);
  const auto dead =
      only(p, "run.dead_units",
           {"run.moves_fast", "run.no_gradient", "run.not_finite", "run.loss_stands_still", "run.overfits"});
  expect_one(dead, "units give 0 for every sample", "a smaller optimizer.lr");
}

TEST_F(Planted, a_training_set_learnt_by_heart) {
  // Targets that mean nothing: a wide network learns them, and the test split is guessed.
  for (I i = 0; i < 240; ++i) y_.data<I>()[i] = (i * 7919 + i * i % 13) % 2;
  model_ = Chain("planted", {4})
               .add("a", "Linear", {{"out_features", I{256}}})
               .add("b", "ReLU")
               .add("c", "Linear", {{"out_features", I{2}}})
               .done();
  set_.push_back({"epochs", "60"});
  const auto p = make();
  train(p);
  expect_one(only(p, "run.overfits"), "while the training loss fell", "stop.metric = test_loss");
}

TEST_F(Planted, float16_without_a_scale) {
  set_.push_back({"amp", "fp16"});
  set_.push_back({"amp_scale", "1"});
  expect_one(only(make(), "recipe.half_scale"), "gradients below 6e-8", "amp_scale = 65536");
}

TEST_F(Planted, labels_beyond_the_outputs) {
  for (I i = 0; i < 240; i += 3) y_.data<I>()[i] = 2;
  expect_one(only(make(), "data.model"), "3", "layers.2.out_features 2");
}

TEST_F(Planted, a_rate_so_small_that_nothing_moves) {
  set_.push_back({"optimizer.type", "sgd"});
  set_.push_back({"optimizer.momentum", "0"});
  set_.push_back({"optimizer.lr", "1e-9"});
  set_.push_back({"checkpoint_every", "3"});
  const auto p = make();
  train(p);
  expect_one(only(p, "run.hardly_moves", {"run.loss_stands_still"}), "a step moves it by", "a larger optimizer.lr");
}

TEST_F(Planted, memory_that_is_kept_from_step_to_step) {
  RegistryScope scope("a callback that keeps every gradient");
  testing_leaks::register_plants();
  scope.close();
  set_.push_back({"epochs", "80"});
  set_.push_back({"callbacks", "keep_gradients"});
  const auto p = make();
  train(p);
  expect_one(only(p, "run.memory_grows", {"run.overfits"}), "on every step keeps", "tenon memory leaks");
}

TEST(Checks, NameFilesThatArePassedOver) {
  testing_files::TempDir folder;
  for (int i = 0; i < 40; ++i) {
    const std::string sort = folder / (i % 2 ? "images/cat" : "images/dog");
    std::filesystem::create_directories(sort);
    data::Image image{8, 8, 3, std::vector<uint8_t>(8 * 8 * 3)};
    for (size_t k = 0; k < image.pixels.size(); ++k)
      image.pixels[k] = static_cast<uint8_t>(k * (static_cast<size_t>(i) + 3) + 5 * static_cast<size_t>(i));
    const std::string png = data::png_bytes(image);
    write_file(sort + "/" + std::to_string(i) + ".png", i == 7 ? png.substr(0, 40) : png);
  }
  write_file(folder / "images/cat/notes.heic", "no picture");
  Recipe r;
  for (const auto& [key, text] :
       KeyValues{{"data.dataset", "image-folder"}, {"data.dir", folder / "images"}, {"data.unreadable", "leave-out"}})
    r.set(key, text);
  const auto p = Project::create(
      folder / "p.tenon",
      Chain("net", {3, 32, 32}).add("flat", "Flatten").add("fc", "Linear", {{"out_features", I{2}}}).done(),
      r.to_json());
  Checked checked(p, "", {});
  for (const CheckResult& one : check_project(checked))
    if (one.name == "data.unreadable") {
      ASSERT_EQ(one.complaints.size(), 2u);
      EXPECT_NE(one.complaints[0].seen.find("7.png"), std::string::npos) << one.complaints[0].seen;
      EXPECT_NE(one.complaints[1].seen.find("notes.heic"), std::string::npos) << one.complaints[1].seen;
    } else {
      EXPECT_TRUE(one.complaints.empty()) << one.name << ": " << one.complaints[0].seen;
    }
}

TEST(Checks, SayNothingOfTheTemplatesThatNeedNoFiles) {
  for (const char* name : {"spirals", "tabular", "series", "recommender", "u-net", "sounds", "resnet18"}) {
    SCOPED_TRACE(name);
    testing_files::TempDir folder;
    const Beginning b = begin(find_template(name), "", (folder / "p.tenon"), {{"max_steps", "30"}});
    const auto p = Project::create((folder / "p.tenon"), b.model, b.recipe.to_json());
    if (std::string(name) != "u-net" && std::string(name) != "resnet18") {
      const auto driver = RunDriver::start(p, {});
      driver->wait();
    }
    Checked checked(p, "", {});
    for (const CheckResult& r : check_project(checked))
      for (const Complaint& c : r.complaints) ADD_FAILURE() << r.name << ": " << c.about << ": " << c.seen;
  }
}

TEST(Checks, WhatCannotBeMadeSaysWhy) {
  testing_files::TempDir folder;
  const Beginning b = begin(find_template("spirals"), "", (folder / "p.tenon"));
  const auto p = Project::create((folder / "p.tenon"), b.model, b.recipe.to_json());
  Recipe r = b.recipe;
  r.set("data.dataset", "npy");
  r.set("data.dir", (folder / "nowhere"));
  p->set_recipe(r.to_json());
  Checked checked(p, "", {});
  for (const CheckResult& one : check_project(checked)) {
    if (one.name.starts_with("run.")) {
      EXPECT_EQ(one.skipped, "no run has done a step");
    }
    if (one.name.starts_with("data.")) {
      EXPECT_NE(one.skipped.find("nowhere"), std::string::npos) << one.skipped;
    }
  }
}

}  // namespace
}  // namespace tenon::projects
