// Every template, from `tenon new` and `tenon train` alone: on data it makes or finds its loss falls.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/file.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

struct Case {
  const char* name;
  int steps;
  double falls_to;  ///< share of the first steps' loss that the last ones' must be below
  std::vector<std::string> settings;
};
// Small settings, so that a template is seen to learn within seconds.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"fashion-cnn", 60, 0.6, {}},
      {"fashion-mlp", 60, 0.6, {}},
      {"autoencoder", 60, 0.7, {"optimizer.lr=0.003"}},
      {"spirals", 300, 0.95, {}},
      {"tabular", 120, 0.8, {}},
      {"byte-gpt", 40, 0.75, {"data.context=32", "data.batch_size=8", "schedule.warmup_steps=5"}},
      {"byte-lstm", 40, 0.75, {"data.context=32", "data.batch_size=8", "schedule.warmup_steps=5"}},
      {"recommender", 150, 0.97, {"data.samples=20000"}},
      {"series", 80, 0.6, {"data.samples=1000"}},
      {"sounds", 60, 0.7, {}},
      {"u-net", 40, 0.8, {"data.samples=200", "data.batch_size=8"}},
      // A deep network in a few steps: it learns the same few images.
      {"resnet18",
       12,
       0.8,
       {"data.samples=8", "data.batch_size=8", "data.transforms=", "epochs=20", "schedule.type=constant",
        "optimizer.lr=0.01"}},
  };
  return all;
}

TEST(Templates, each_trains_from_new_and_train_alone) {
  std::map<std::string, Case> known;
  for (const Case& c : cases()) known.emplace(c.name, c);
  for (const auto& t : tenon({"templates", "--json"}).json()) {
    const std::string name = t.at("name");
    SCOPED_TRACE(name);
    ASSERT_TRUE(known.count(name)) << "the template has no case in this test";
    const Case& c = known.at(name);
    if (t.at("recipe").at("data").at("dataset") == "fashion-mnist" && !has_fashion_mnist()) continue;
    Folder folder;
    const std::string path = folder / "p.tenon";
    std::vector<std::string> words = {"new", path, "--template", name, "--json"};
    for (const std::string& s : c.settings) words.insert(words.end(), {"--set", s});
    if (name.starts_with("byte-")) words.insert(words.end(), {"--set", "data.cache=" + (folder / "cache")});
    const Outcome made = tenon(words);
    ASSERT_EQ(made.status, 0) << made.err;
    const Outcome trained =
        tenon({"train", path, "--run", "r", "--max-steps", std::to_string(c.steps), "--set", "eval_every=0"});
    ASSERT_EQ(trained.status, 0) << trained.err;
    std::vector<double> losses;
    for (const auto& j : tenon({"metrics", path, "r", "loss", "--json"}).json())
      losses.push_back(j.at("value").get<double>());
    ASSERT_EQ(losses.size(), static_cast<size_t>(c.steps));
    const auto part = static_cast<std::ptrdiff_t>(std::max<size_t>(3, losses.size() / 10));
    double first = 0, last = 0;
    for (std::ptrdiff_t i = 0; i < part; ++i)
      first += losses[static_cast<size_t>(i)], last += losses[losses.size() - 1 - static_cast<size_t>(i)];
    EXPECT_LT(last, c.falls_to * first) << "from " << first / static_cast<double>(part) << " to "
                                        << last / static_cast<double>(part);
  }
}

TEST(Templates, say_where_their_data_comes_from) {
  Folder folder;
  auto note = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"new", folder / ("p" + std::to_string(std::rand()) + ".tenon"), "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = tenon(words);
    EXPECT_EQ(o.status, 0) << o.err;
    return o.status == 0 ? o.json().at(0).value("note", "") : o.err;
  };
  EXPECT_NE(note({"--template", "resnet18", "--set", "data.samples=50"}).find("generated images"), std::string::npos);
  EXPECT_NE(note({"--template", "byte-gpt", "--set", "data.cache=" + (folder / "cache")}).find("licences"),
            std::string::npos);
  const std::string made = note({"--template", "tabular"});
  EXPECT_NE(made.find(".csv"), std::string::npos);
  size_t tables = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder.path())) tables += e.path().extension() == ".csv";
  EXPECT_EQ(tables, 1u) << "the table lies where the user can see it";
  // Data that is named decides the model's ends.
  write_file(folder / "mine.csv", "a,b,c,price\n1,2,x,3.5\n2,3,y,4.25\n3,1,z,1\n4,4,x,2\n5,5,y,7.5\n6,3,x,2.75\n");
  const std::string path = folder / "mine.tenon";
  ASSERT_EQ(
      tenon({"new", path, "--template", "tabular", "--data", folder / "mine.csv", "--set", "data.batch_size=2"}).status,
      0);
  const Outcome trained = tenon({"train", path, "--max-steps", "3", "--json"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(tenon({"new", folder / "q.tenon", "--template", "byte-gpt", "--data", folder / "nothing.txt"}).status, 1);
}

TEST(Keys, are_listed_with_what_there_is_to_choose) {
  const auto lines = tenon({"keys", "optimizer", "--json"}).json();
  std::map<std::string, int> seen;
  for (const auto& j : lines)
    ++seen[j.contains("choice") ? "choice " + j.at("choice").get<std::string>() : j.at("key").get<std::string>()];
  for (const char* want : {"choice muon", "choice adamw", "optimizer.lr", "optimizer.ns_steps", "optimizer.clip_norm"})
    EXPECT_EQ(seen[want], 1) << want;
  EXPECT_EQ(tenon({"keys"}).status, 0);
  EXPECT_EQ(tenon({"keys", "optimiser"}).status, 2);
}

TEST(Replay, a_watching_schedule_and_scaled_gradients_come_back_bit_for_bit) {
  Folder folder;
  const std::string path = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", path, "--template", "spirals", "--set", "schedule.type=plateau", "--set",
                   "schedule.patience=0", "--set", "schedule.threshold=10", "--set", "eval_every=1", "--set",
                   "amp=fp16", "--set", "average.type=ema", "--set", "checkpoint_every=0"})
                .status,
            0);
  ASSERT_EQ(tenon({"train", path, "--run", "r", "--epochs", "4"}).status, 0);
  const std::string a = tenon({"digest", path, "r", "--step", "75", "--threads", "1"}).out;
  EXPECT_EQ(tenon({"digest", path, "r", "--step", "75", "--threads", "2"}).out, a);
  EXPECT_FALSE(a.empty());
}

}  // namespace
}  // namespace tenon::journeys
