// Surgery while it trains, on the command line: a layer wider, another one in between, and what the run says of it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <random>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

struct SurgeryJourney : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon", layer = "layers.0";
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
    const Outcome o = tenon({"train", project, "--run", "whole", "--set", "data.batch_size=10", "--set",
                             "checkpoint_every=37", "--epochs", "3"});
    ASSERT_EQ(o.status, 0) << o.err;
  }
  double loss_of(const std::string& run, int64_t step) {
    for (const auto& row : tenon({"metrics", project, run, "loss", "--json"}).json())
      if (row.at("step") == step) return row.at("value").get<double>();
    ADD_FAILURE() << "no loss of step " << step << " of " << run;
    return 0;
  }
};

TEST_F(SurgeryJourney, a_wider_layer_keeps_the_loss_and_time_travel_crosses_it) {
  const std::string wide = layer + ".out_features=96";
  const Outcome plan = tenon({"surgery", project, "whole@100", "--layer", wide, "--json"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  const auto told = plan.json().front();
  EXPECT_TRUE(told.at("keeps_function").get<bool>()) << plan.out;
  EXPECT_NEAR(told.at("loss")[0].get<double>(), told.at("loss")[1].get<double>(), 1e-6);
  EXPECT_EQ(told.at("tensors")[0].at("tensor"), layer + ".weight");
  EXPECT_EQ(told.at("tensors")[0].at("deed"), "widened");
  EXPECT_EQ(tenon({"runs", project, "--json"}).json().size(), 1u) << "it trains nothing";

  const Outcome words = tenon({"surgery", project, "whole@100", "--layer", wide});
  EXPECT_NE(words.out.find("the function is kept"), std::string::npos) << words.out;
  EXPECT_NE(words.out.find("--from whole@100 --layer " + wide), std::string::npos) << words.out;

  const Outcome trained = tenon({"train", project, "--from", "whole@100", "--layer", wide, "--run", "wide", "--json"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_NE(trained.json().front().at("parent").at("model").get<std::string>().find("→ 96"), std::string::npos);
  EXPECT_NEAR(loss_of("wide", 101), loss_of("whole", 101), 1e-6);
  EXPECT_EQ(digest(project, "wide", "99"), digest(project, "whole", "99"));
  EXPECT_EQ(digest(project, "wide", "150"), digest(project, "wide", "150", 1));
  EXPECT_NE(tenon({"run", project, "wide"}).out.find(layer + ".out_features"), std::string::npos);
  EXPECT_NE(tenon({"runs", project}).out.find("whole @ 100, other model"), std::string::npos);
  // What is done with a run is done with its own model.
  EXPECT_EQ(tenon({"eval", project, "wide"}).status, 0);
  EXPECT_EQ(tenon({"goto", project, "wide", "--step", "101", "--tensor", layer + ".weight"}).status, 0);
  EXPECT_EQ(tenon({"audit", project, "wide", "--step", "101"}).status, 0);
  EXPECT_EQ(tenon({"distributions", project, "--run", "wide"}).status, 0);
  EXPECT_EQ(tenon({"export", project, "wide", "--format", "onnx", "-o", folder / "wide.onnx"}).status, 0);
  EXPECT_EQ(tenon({"check", project, "wide", "--all"}).status / 2, 0);
}

TEST_F(SurgeryJourney, the_projects_model_is_given_to_a_run) {
  const std::string source = folder / "model.py";
  ASSERT_EQ(tenon({"code", project, "-o", source}).status, 0);
  EXPECT_EQ(tenon({"surgery", project, "whole@100", "--project-model"}).status, 2) << "it is the same";
  std::ifstream in(source);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  for (const auto& [from, to] : {std::pair("Linear(2, 64)", "Linear(2, 80)"), {"Linear(64, 64)", "Linear(80, 64)"}}) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, std::string(from).size(), to);
  }
  std::ofstream(source) << text;
  const Outcome take = tenon({"code", project, "--take", source});
  ASSERT_EQ(take.status, 0) << take.err;
  const Outcome o = tenon({"train", project, "--from", "whole@100", "--project-model", "--run", "given"});
  ASSERT_EQ(o.status, 0) << o.err << text;
  EXPECT_NE(o.out.find("a branch of whole after step 100"), std::string::npos) << o.out;
}

TEST_F(SurgeryJourney, a_layer_more_changes_nothing_and_one_less_is_gone) {
  const std::vector<std::string> more = {"--insert", layer + "=layers.more:Linear", "--layer",
                                         "layers.more.out_features=64"};
  const auto with = [&](std::vector<std::string> words, const std::vector<std::string>& all) {
    words.insert(words.end(), all.begin(), all.end());
    return words;
  };
  const Outcome plan = tenon(with({"surgery", project, "whole@100", "--json"}, more));
  ASSERT_EQ(plan.status, 0) << plan.err;
  const auto told = plan.json().at(0);
  EXPECT_TRUE(told.at("keeps_function")) << told.dump();
  EXPECT_NE(told.at("changes").get<std::string>().find("layers.more (Linear) added"), std::string::npos);
  const Outcome words = tenon(with({"surgery", project, "whole@100"}, more));
  EXPECT_NE(words.out.find("--insert " + layer + "=layers.more:Linear --layer layers.more.out_features=64"),
            std::string::npos)
      << words.out;
  ASSERT_EQ(tenon(with({"train", project, "--from", "whole@100", "--run", "deeper"}, more)).status, 0);
  EXPECT_EQ(tenon({"goto", project, "deeper", "--step", "101", "--tensor", "layers.more.weight"}).status, 0);
  const Outcome less = tenon({"train", project, "--from", "deeper@110", "--remove", "layers.more", "--run", "less"});
  ASSERT_EQ(less.status, 0) << less.err;
  EXPECT_EQ(tenon({"goto", project, "less", "--step", "111", "--tensor", "layers.more.weight"}).status, 2);
  for (const auto& [option, value, says] :
       std::vector<std::array<std::string, 3>>{{"--insert", "nolayer=ReLU", "no layer \"nolayer\""},
                                               {"--insert", layer + "=Relu", "no layer type \"Relu\""},
                                               {"--insert", layer + "=" + layer + ":ReLU", "a layer has it"},
                                               {"--insert", "output=ReLU", "can stand behind output"},
                                               {"--remove", "input", "an end of the model"},
                                               {"--remove", "nolayer", "no layer \"nolayer\""}}) {
    const Outcome o = tenon({"surgery", project, "whole@100", option, value});
    EXPECT_EQ(o.status, 2) << value;
    EXPECT_NE(o.err.find(says), std::string::npos) << o.err;
  }
}

TEST_F(SurgeryJourney, kills_leave_a_branch_that_is_replayed) {
  const std::string wide = layer + ".out_features=70";
  ASSERT_EQ(tenon({"train", project, "--from", "whole@211", "--layer", wide, "--run", "first"}).status, 0);
  std::mt19937 random(20261126);
  for (int round = 0; round < 4; ++round) {
    const std::string run = "b" + std::to_string(round);
    train_through_a_kill(project, run, {"--from", "whole@211", "--layer", wide},
                         20000 + static_cast<int64_t>(random() % 200000));
    EXPECT_EQ(digest(project, run, "last"), digest(project, "first", "last"));
    EXPECT_EQ(digest(project, run, "333", 1), digest(project, "first", "333"));
  }
}

TEST(SurgeryOfText, a_transformer_gets_twice_as_wide_and_time_travel_crosses_it) {
  Folder folder;
  const std::string project = folder / "t.tenon";
  std::string letters;
  for (int i = 0; i < 3000; ++i) letters += static_cast<char>('a' + (i * i + i / 7) % 26);
  std::ofstream(folder / "letters.txt") << letters;
  Outcome o = tenon({"new", project, "--template", "byte-gpt", "--data", folder / "letters.txt", "--set",
                     "data.context=16", "--set", "data.cache=" + (folder / "cache"), "--set", "epochs=1", "--set",
                     "data.batch_size=16", "--set", "schedule.type=constant"});
  ASSERT_EQ(o.status, 0) << o.err;
  ASSERT_EQ(tenon({"train", project, "--run", "whole"}).status, 0);
  o = tenon({"surgery", project, "whole@4", "--layer", "embed.embedding_dim=256", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto told = o.json().at(0);
  EXPECT_TRUE(told.at("keeps_function")) << told.dump();
  EXPECT_NE(told.at("changes").get<std::string>().find("blocks.0.attention.num_heads 4 → 8"), std::string::npos)
      << told.at("changes");
  for (const auto& t : told.at("tensors")) EXPECT_NE(t.at("deed"), "new") << t.dump();
  o = tenon({"surgery", project, "whole@4", "--layer", "embed.embedding_dim=160"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("it is another function"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("mean and variance of 160 channels"), std::string::npos) << o.out;
  o = tenon({"surgery", project, "whole@4", "--layer", "embed.embedding_dim=130"});
  EXPECT_EQ(o.status, 2);
  EXPECT_NE(o.err.find("num_heads = 4 of 32 each"), std::string::npos) << o.err;
  o = tenon({"train", project, "--from", "whole@4", "--layer", "embed.embedding_dim=256", "--run", "wide"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto loss_of = [&](const char* run, int64_t step) {
    for (const auto& row : tenon({"metrics", project, run, "loss", "--json"}).json())
      if (row.at("step") == step) return row.at("value").get<double>();
    return 0.0;
  };
  EXPECT_GT(loss_of("whole", 5), 0);
  EXPECT_NEAR(loss_of("wide", 5), loss_of("whole", 5), 1e-6 * std::max(1.0, loss_of("whole", 5)));
  EXPECT_EQ(digest(project, "wide", "3"), digest(project, "whole", "3"));
  EXPECT_EQ(digest(project, "wide", "7"), digest(project, "wide", "7", 1));
}

TEST(SurgeryOfSeries, a_recurrent_layer_gets_wider_and_goes_on) {
  Folder folder;
  const std::string project = folder / "s.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "series", "--set", "epochs=1"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "whole"}).status, 0);
  const Outcome o = tenon({"surgery", project, "whole@4", "--layer", "gru.hidden_size=80", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto told = o.json().at(0);
  EXPECT_TRUE(told.at("keeps_function")) << told.dump();
  for (const auto& t : told.at("tensors")) EXPECT_NE(t.at("deed"), "new") << t.dump();
  ASSERT_EQ(tenon({"train", project, "--from", "whole@4", "--layer", "gru.hidden_size=80", "--run", "wide"}).status, 0);
  EXPECT_EQ(digest(project, "wide", "3"), digest(project, "whole", "3"));
  EXPECT_EQ(digest(project, "wide", "7"), digest(project, "wide", "7", 1));
}

TEST_F(SurgeryJourney, wrong_words_are_told) {
  EXPECT_EQ(tenon({"surgery", project, "whole"}).status, 2) << "nothing is to change";
  EXPECT_EQ(tenon({"surgery", project, "whole@100", "--layer", "nolayer.out_features=3"}).status, 2);
  EXPECT_EQ(tenon({"surgery", project, "whole@100", "--layer", layer + ".nothing=3"}).status, 2);
  EXPECT_EQ(tenon({"surgery", project, "whole@100", "--layer", layer}).status, 2);
  EXPECT_EQ(tenon({"surgery", project, "whole@99999", "--layer", layer + ".out_features=3"}).status, 2);
  EXPECT_EQ(tenon({"train", project, "--layer", layer + ".out_features=3"}).status, 2) << "of no branch";
  EXPECT_EQ(tenon({"train", project, "--resume", "whole", "--project-model"}).status, 2);
}

}  // namespace
}  // namespace tenon::journeys
