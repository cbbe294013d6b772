// Files and folders of somebody's own: what kind of data they are, and what a model has to change to learn from them.
#include "engine/train/own_data.h"

#include <algorithm>

#include "engine/model/examine.h"
#include "engine/model/layer_sizes.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"
#include "engine/train/model_fit.h"
#include "tests/engine/data_files.h"

namespace tenon {
namespace {

using testing_files::error_of;
using testing_files::Folder;
using testing_files::write;

std::string table(int rows, const char* label) {
  std::string text = std::string("a,b,") + label + "\n";
  for (int i = 0; i < rows; ++i)
    text += std::to_string(i % 17) + "," + std::to_string(i * i % 13) + "," +
            (label == std::string("kind") ? i % 2 ? "odd" : "even" : std::to_string(i) + ".5") + "\n";
  return text;
}
OwnData small_images(const Recipe& recipe, const Folder& dir) {
  testing_data::make_files("image-folder", dir);
  return with_own_data(recipe, testing_data::options_of(data::dataset_defs().at("image-folder"), dir).dir);
}
Recipe template_recipe(const std::string& template_name) { return find_template(template_name).recipe; }

TEST(OwnData, EveryKindOfFilesIsRecognised) {
  int kinds = 0;
  for (const data::DatasetDef& def : data::dataset_defs()) {
    if (!def.files) continue;
    SCOPED_TRACE(def.name);
    ASSERT_TRUE(def.recognises) << "nobody would find it by its files";
    Folder dir;
    testing_data::make_files(def.name, dir);
    EXPECT_EQ(data::recognised_dataset(testing_data::options_of(def, dir).dir), def.name);
    ++kinds;
  }
  EXPECT_GE(kinds, 8);
}

TEST(OwnData, SoundsAreTakenAtTheRateThatTheyHave) {
  Folder dir;
  testing_data::make_files("audio-folder", dir);
  const OwnData own = with_own_data(template_recipe("sounds"), dir.str());
  EXPECT_EQ(own.recipe.integer("data.rate"), 8000);
  EXPECT_NE(own.recipe.text("data.transforms").find("log_mel rate=8000"), std::string::npos)
      << own.recipe.text("data.transforms");
  const OwnData again = with_own_data(own.recipe, dir.str());
  EXPECT_EQ(again.recipe.text("data.transforms"), own.recipe.text("data.transforms"));
}

TEST(OwnData, ATableIsOneByItsEndingOrByWhatItHolds) {
  Folder dir;
  write(dir.file("t.csv"), "one\ntwo\n");
  EXPECT_EQ(data::recognised_dataset(dir.file("t.csv")), "csv");
  write(dir.file("t.data"), table(20, "kind"));
  EXPECT_EQ(data::recognised_dataset(dir.file("t.data")), "csv");
  write(dir.file("story"),
        "Once there was a table, and it had legs.\nFour, to be exact, or three, or none.\nThe end.\n");
  EXPECT_EQ(data::recognised_dataset(dir.file("story")), "text");
}

TEST(OwnData, WhatNoKindReadsIsSaid) {
  Folder dir;
  EXPECT_SAYS(error_of([&] { data::recognised_dataset(dir.file("none") + "/x"); }), "does not exist");
  write(dir.file("a.bin"), std::string("\0\1\2\3", 4));
  const std::string e = error_of([&] { data::recognised_dataset(dir.file("a.bin")); });
  EXPECT_SAYS(e, "no kind of data set reads");
  EXPECT_SAYS(e, "a table of text");
}

TEST(OwnData, ARecipeForgetsWhatItWasToldOfAnotherKind) {
  Folder dir;
  write(dir.file("t.csv"), table(60, "price"));
  Recipe images = template_recipe("resnet18");
  images.set("data.dataset", "image-folder");
  images.set("data.height", "64");
  const OwnData own = with_own_data(images, dir.file("t.csv"));
  EXPECT_EQ(own.recipe.text("data.dataset"), "csv");
  EXPECT_EQ(own.recipe.text("data.transforms"), "");
  EXPECT_EQ(own.recipe.text("loss.type"), "mse") << "prices are values";
  EXPECT_EQ(own.recipe.text("data.separator"), ",") << "what was found is said";
  EXPECT_EQ(images.integer("data.batch_size"), 64);
  EXPECT_EQ(own.recipe.integer("data.batch_size"), 8) << "of 48 samples";
  EXPECT_EQ(own.recipe.text("optimizer.type"), images.text("optimizer.type"));
  // Back to classes.
  write(dir.file("k.csv"), table(60, "kind"));
  const OwnData again = with_own_data(own.recipe, dir.file("k.csv"));
  EXPECT_EQ(again.recipe.text("loss.type"), "cross_entropy");
  EXPECT_EQ(again.split.train->classes(), 2) << "the columns of the other table are forgotten";
}

TEST(ModelFit, TheEndsOfANetworkForImagesAreChanged) {
  const Folder dir;
  const OwnData own = small_images(template_recipe("fashion-cnn"), dir);
  const ModelSpec& cnn = find_template("fashion-cnn").model;
  const ModelFit fit = fit_model(cnn, own.recipe, *own.split.train);
  EXPECT_FALSE(fit.bare);
  EXPECT_SAYS(fit.problem, "[1, 28, 28]");
  EXPECT_SAYS(fit.changes_text(), "input.shape 1, 28, 28 → 3, 32, 32");
  EXPECT_SAYS(fit.changes_text(), "out_features 10 → " + std::to_string(own.split.train->classes()));
  EXPECT_TRUE(fit_model(fit.mended, own.recipe, *own.split.train).problem.empty());
  EXPECT_EQ(fit.mended.layers.size(), cnn.layers.size());
}

TEST(ModelFit, SizesThatWereSaidForOtherSamplesAreForgotten) {
  Folder dir;
  write(dir.file("t.csv"), table(60, "kind"));
  const OwnData own = with_own_data(template_recipe("tabular"), dir.file("t.csv"));
  ModelSpec model = find_template("tabular").model;
  for (LayerSpec& l : model.layers)
    if (l.name == "layers.0") l.attrs.push_back({"in_features", int64_t{10}});
  const ModelFit fit = fit_model(model, own.recipe, *own.split.train);
  EXPECT_SAYS(fit.changes_text(), "layers.0.in_features 10 → 0");
  EXPECT_TRUE(fit_model(fit.mended, own.recipe, *own.split.train).problem.empty());
}

TEST(ModelFit, WhatNoChangeOfItsEndsMendsStaysAsItIs) {
  const Folder dir;
  const OwnData own = small_images(template_recipe("spirals"), dir);
  const ModelSpec& points = find_template("spirals").model;
  const ModelFit fit = fit_model(points, own.recipe, *own.split.train);
  EXPECT_FALSE(fit.problem.empty());
  EXPECT_TRUE(fit.changes.empty());
  EXPECT_EQ(fit.mended, points);
}

TEST(ModelFit, AModelWithoutLayersGetsTheInput) {
  Folder dir;
  write(dir.file("t.csv"), table(60, "kind"));
  const Beginning empty = begin_empty();
  const OwnData own = with_own_data(empty.recipe, dir.file("t.csv"));
  const ModelFit fit = fit_model(empty.model, own.recipe, *own.split.train);
  EXPECT_TRUE(fit.bare);
  EXPECT_EQ(fit.changes_text(), "input.shape 1, 28, 28 → 2");
}

using I = int64_t;
ModelSpec two_images(Attr second) {
  Chain c("images", {3, 8, 8});
  c.add("a", "Conv2d", {{"out_channels", I{6}}, {"kernel_size", std::vector<I>{1, 1}}}).at("input");
  c.add("b", "Conv2d", {{"out_channels", I{4}}, {"kernel_size", std::vector<I>{1, 1}}, std::move(second)});
  c.add("act", "ReLU").join("sum", "Add", {"a", "act"});
  return c.add("flat", "Flatten").add("fc", "Linear", {{"out_features", I{2}}}).done();
}
std::vector<std::string> words_of(const std::vector<Mend>& mends) {
  std::vector<std::string> words;
  for (const Mend& m : mends) words.push_back(m.words);
  return words;
}
void expect_whole(const std::vector<Mend>& mends) {
  for (const Mend& m : mends)
    for (const LayerReport& r : examine(m.model, 3)) EXPECT_EQ(r.error, "") << m.words << ": " << r.layer;
}

TEST(Mends, WhatIsAddedUpGetsAsManyChannels) {
  const ModelSpec model = two_images({"bias", false});
  const std::vector<Mend> mends = mends_of(model, "sum");
  EXPECT_EQ(words_of(mends), (std::vector<std::string>{"a.out_channels 6 → 4", "b.out_channels 4 → 6"}));
  expect_whole(mends);
  EXPECT_TRUE(mends_of(model, "a").empty()) << "it fits";
  EXPECT_TRUE(mends_of(model, "nothing").empty());
}

TEST(Mends, AWidthIsTakenToAllThatGoWithIt) {
  const ModelSpec before = find_template("byte-gpt").model;
  const LayerSpec* embed = &*std::find_if(before.layers.begin(), before.layers.end(),
                                          [](const LayerSpec& l) { return l.type == "Embedding"; });
  ModelSpec after = before;
  set_anyway(*after.find(embed->name), "embedding_dim", I{256});
  const std::optional<Mend> mend = mend_of_edit(before, after);
  ASSERT_TRUE(mend);
  EXPECT_EQ(mend->words.find(embed->name + ".embedding_dim 128 → 256, and "), 0u) << mend->words;
  expect_whole({*mend});
  EXPECT_FALSE(mend_of_edit(before, before));
  set_anyway(*after.find(embed->name), "embedding_dim", I{130});
  EXPECT_FALSE(mend_of_edit(before, after)) << "heads do not divide it";
  after.layers.pop_back();
  EXPECT_FALSE(mend_of_edit(before, after)) << "another edit";
}

TEST(Mends, SizesHeadsAndPaddingAreMadeToFit) {
  const auto only = [](const ModelSpec& model, const char* layer, const char* words) {
    const std::vector<Mend> mends = mends_of(model, layer);
    expect_whole(mends);
    const std::vector<std::string> all = words_of(mends);
    EXPECT_NE(std::find(all.begin(), all.end(), words), all.end()) << (all.empty() ? "none" : all[0]);
  };
  only(
      Chain("image", {3, 4, 4})
          .add("conv", "Conv2d", {{"in_channels", I{5}}, {"out_channels", I{2}}, {"kernel_size", std::vector<I>{1, 1}}})
          .done(),
      "conv", "conv.in_channels 5 → 0");
  only(Chain("line", {4}).add("fc", "Linear", {{"in_features", I{9}}, {"out_features", I{3}}}).done(), "fc",
       "fc.in_features 9 → 0");
  only(Chain("image", {2, 4, 4}).add("fc", "Linear", {{"in_features", I{32}}, {"out_features", I{3}}}).done(), "fc",
       "Flatten in front of fc");
  only(Chain("text", {5}, "i64")
           .add("embed", "Embedding", {{"embedding_dim", I{8}}})
           .add("heads", "MultiheadAttention", {{"num_heads", I{3}}})
           .done(),
       "heads", "heads.num_heads 3 → 2");
  only(Chain("small", {1, 4, 4})
           .add("conv", "Conv2d", {{"out_channels", I{2}}, {"kernel_size", std::vector<I>{7, 7}}})
           .done(),
       "conv", "conv.padding 0, 0 → 3, 3");
}

TEST(TemplatesForData, EachKindOfFilesHasOneThatLearnsFromIt) {
  for (const data::DatasetDef& def : data::dataset_defs()) {
    if (!def.files) continue;
    SCOPED_TRACE(def.name);
    Folder dir;
    testing_data::make_files(def.name, dir);
    const data::Options options = testing_data::options_of(def, dir);
    Recipe recipe;
    recipe.set("data.dataset", def.name);
    recipe.set("data.dir", options.dir);
    for (const Attr& a : options.attrs) recipe.set_value("data." + a.name, a.value);
    const data::Split raw = data::open_dataset(def.name, options);
    const std::vector<std::string> names = templates_for(recipe, raw);
    ASSERT_FALSE(names.empty());
    for (const std::string& name : names) {
      const Beginning b = begin_with(find_template(name), recipe, raw);
      EXPECT_EQ(b.recipe.text("data.dir"), options.dir) << name;
    }
  }
}

TEST(TemplatesForData, SoundsBringTheirTransforms) {
  Folder dir;
  testing_data::make_files("audio-folder", dir);
  const data::DatasetDef& kind = data::dataset_defs().at("audio-folder");
  const OwnData own = with_own_data(Recipe(), testing_data::options_of(kind, dir).dir);
  EXPECT_EQ(templates_for(own.recipe, own.split).front(), "sounds");
  const Beginning b = begin_with(find_template("sounds"), own.recipe, own.split);
  EXPECT_EQ(b.recipe.text("data.transforms"), find_template("sounds").recipe.text("data.transforms"));
}

}  // namespace
}  // namespace tenon
