// Larger networks on images: a residual network that tells classes apart, and one that finds the class of every pixel.
#include <filesystem>

#include "engine/data/dataset.h"
#include "engine/spec/chain.h"
#include "engine/templates/templates.h"

namespace tenon {
namespace {

using I = int64_t;
using Ints = std::vector<I>;

std::vector<Attr> conv(I channels, I kernel, I stride = 1) {
  return {{"out_channels", channels},
          {"kernel_size", Ints{kernel, kernel}},
          {"stride", Ints{stride, stride}},
          {"padding", Ints{kernel / 2, kernel / 2}},
          {"bias", false}};
}

/// Two convolutions and a shortcut round them (He et al., 2015), which has a convolution of its own where the size
/// changes.
void block(Chain& c, const std::string& name, I channels, I stride, bool changes) {
  const std::string in = c.here, p = name + ".";
  c.add(p + "conv1", "Conv2d", conv(channels, 3, stride)).add(p + "bn1", "BatchNorm2d").add(p + "relu1", "ReLU");
  c.add(p + "conv2", "Conv2d", conv(channels, 3)).add(p + "bn2", "BatchNorm2d");
  std::string around = in;
  if (changes) {
    c.at(in).add(p + "downsample.0", "Conv2d", conv(channels, 1, stride)).add(p + "downsample.1", "BatchNorm2d");
    around = c.here;
  }
  c.join(p + "add", "Add", {p + "bn2", around}).add(p + "relu2", "ReLU");
}

/// With a first convolution for small images (no stride, no pool), as is usual for 32 x 32.
ModelSpec resnet18(const Shape& image, I classes) {
  Chain c("resnet18", {image[0], image[1], image[2]});
  c.add("conv1", "Conv2d", conv(64, 3)).add("bn1", "BatchNorm2d").add("relu", "ReLU");
  I channels = 64;
  for (I stage = 1; stage <= 4; ++stage) {
    I to = I{64} << (stage - 1);
    for (I k = 0; k < 2; ++k)
      block(c, "layer" + std::to_string(stage) + "." + std::to_string(k), to, stage > 1 && k == 0 ? 2 : 1,
            k == 0 && to != channels);
    channels = to;
  }
  return c.add("avgpool", "AdaptiveAvgPool2d", {{"output_size", Ints{1, 1}}})
      .add("flatten", "Flatten")
      .add("fc", "Linear", {{"out_features", classes}})
      .done();
}

Template resnet() {
  Template t{.title = "The residual network of 18 layers for small images; without any of yours it makes some"};
  t.own_data = {Template::OwnData::Place::folder, "CIFAR-10's binary files, or images in one folder a class"};
  t.kinds = {"image-folder", "cifar10", "webdataset"};
  t.model = resnet18({3, 32, 32}, 10);
  set_keys(t.recipe, {{"data.dataset", "shapes"},
                      {"data.batch_size", "64"},
                      {"data.transforms", "random_crop padding=4; flip"},
                      {"epochs", "3"},
                      {"optimizer.type", "sgd"},
                      {"optimizer.momentum", "0.9"},
                      {"optimizer.nesterov", "true"},
                      {"optimizer.lr", "0.05"},
                      {"optimizer.weight_decay", "0.0005"},
                      {"schedule.type", "one_cycle"}});
  t.fit = [](const Recipe&, const data::Dataset& train) { return resnet18(train.input().shape, train.classes()); };
  t.prepare = [](Recipe& r, const std::string& data, const std::string&) -> std::string {
    if (data.empty())
      return "CIFAR-10 was not named and is on no known place: generated images of shapes are used, 3 x 32 x 32 in 10 "
             "classes";
    const bool cifar = data::dataset_defs().at("cifar10").recognises(data) == data::Recognised::yes;
    r.set("data.dataset", cifar ? "cifar10" : "image-folder");
    r.set("data.dir", data);
    return cifar ? "The files of CIFAR-10 in " + data + " are used"
                 : data + " is read as a folder of images, one folder a class";
  };
  return t;
}

void twice(Chain& c, const std::string& name, I channels) {
  for (const char* k : {"0", "1"})
    c.add(name + ".conv" + k, "Conv2d", conv(channels, 3))
        .add(name + ".bn" + k, "BatchNorm2d")
        .add(name + ".relu" + k, "ReLU");
}

/// Down twice and up again, each step up joined with what was there on the way down. Ronneberger, Fischer and Brox
/// (2015).
ModelSpec unet(const Shape& image, I classes) {
  const I width = 16;
  Chain c("u-net", {image[0], image[1], image[2]});
  twice(c, "down0", width);
  const std::string first = c.here;
  c.add("pool0", "MaxPool2d", {{"kernel_size", Ints{2, 2}}});
  twice(c, "down1", 2 * width);
  const std::string second = c.here;
  c.add("pool1", "MaxPool2d", {{"kernel_size", Ints{2, 2}}});
  twice(c, "middle", 4 * width);
  auto up = [&](const std::string& name, I channels, const std::string& beside) {
    c.add(name + ".up", "ConvTranspose2d",
          {{"out_channels", channels}, {"kernel_size", Ints{2, 2}}, {"stride", Ints{2, 2}}});
    c.join(name + ".join", "Concat", {c.here, beside});
    twice(c, name, channels);
  };
  up("up1", 2 * width, second);
  up("up0", width, first);
  return c.add("head", "Conv2d", {{"out_channels", classes}, {"kernel_size", Ints{1, 1}}}).done();
}

Template segmentation() {
  Template t{.title = "Finds the class of every pixel in pictures of shapes (generated, needs no files)"};
  t.model = unet({1, 32, 32}, 4);
  set_keys(t.recipe, {{"data.dataset", "shape-masks"},
                      {"data.batch_size", "32"},
                      {"epochs", "6"},
                      {"optimizer.type", "adamw"},
                      {"optimizer.lr", "0.003"},
                      {"schedule.type", "one_cycle"}});
  t.fit = [](const Recipe&, const data::Dataset& train) { return unet(train.input().shape, train.classes()); };
  return t;
}

const bool registered_vision = register_template("resnet18", resnet) && register_template("u-net", segmentation);

}  // namespace
}  // namespace tenon
