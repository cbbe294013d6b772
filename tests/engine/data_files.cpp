#include "tests/engine/data_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/data/tabular.h"
#include "engine/data/wav.h"
#include "engine/formats/npy.h"
#include "engine/ops/create.h"

namespace tenon::testing_data {

using testing_files::Folder;
using testing_files::write;
using namespace data;
using I = int64_t;

Image picture(int which, I side) {
  Image image{side, side, 3, std::vector<uint8_t>(static_cast<size_t>(side * side * 3))};
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>((static_cast<size_t>(which) * 37 + i * 5) % 256);
  return image;
}

void write_tar(const std::string& path, const std::vector<std::pair<std::string, std::string>>& members, bool packed) {
  archive* a = archive_write_new();
  archive_write_set_format_pax_restricted(a);
  if (packed) archive_write_add_filter_gzip(a);
  ASSERT_EQ(archive_write_open_filename(a, path.c_str()), ARCHIVE_OK);
  for (const auto& [name, bytes] : members) {
    archive_entry* e = archive_entry_new();
    archive_entry_set_pathname(e, name.c_str());
    archive_entry_set_size(e, static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0644);
    archive_write_header(a, e);
    archive_write_data(a, bytes.data(), bytes.size());
    archive_entry_free(e);
  }
  archive_write_free(a);
}

/// A folder for each kind that lies in files, small but whole.
void make_files(const std::string& kind, const Folder& dir) {
  if (kind == "image-folder") {
    for (int i = 0; i < 26; ++i)
      write(dir.file(std::string(i % 2 ? "cats" : "dogs") + "/" + std::to_string(i) + ".png"),
            png_bytes(picture(i, 10 + i % 5)));
  } else if (kind == "audio-folder") {
    for (int i = 0; i < 20; ++i) {
      Sound sound{i % 3 ? 8000 : 16000, {}};
      for (int t = 0; t < (i % 4 ? 800 : 2600) * (i % 3 ? 1 : 2); ++t)
        sound.samples.push_back(static_cast<float>(0.5 * std::sin((i % 2 ? 0.9 : 0.3) * (t + i) / (i % 3 ? 1 : 2))));
      write(dir.file(std::string(i % 2 ? "high" : "low") + "/" + std::to_string(i) + ".wav"), wav_bytes(sound));
    }
  } else if (kind == "csv") {
    write(dir.file("table.csv"), example_csv(3).substr(0, 4000));
  } else if (kind == "npy") {
    Tensor x = empty({40, 3}), y = empty({40}, DType::i64);
    for (I i = 0; i < 40; ++i) {
      for (I k = 0; k < 3; ++k) x.data<float>()[i * 3 + k] = static_cast<float>(i * 10 + k);
      y.data<I>()[i] = i % 3;
    }
    formats::save_npy(dir.file("x.npy"), x);
    formats::save_npy(dir.file("y.npy"), y);
  } else if (kind == "text") {
    std::string text;
    for (int i = 0; i < 900; ++i) text += "line " + std::to_string(i * i) + " of the text\n";
    write(dir.file("a.txt"), text);
  } else if (kind == "webdataset") {
    for (int shard = 0; shard < 4; ++shard) {
      std::vector<std::pair<std::string, std::string>> members;
      for (int i = 0; i < 9; ++i) {
        std::string key = "dir/" + std::to_string(shard) + "_" + std::to_string(i);
        members.push_back({key + ".png", png_bytes(picture(shard * 9 + i))});
        members.push_back({key + ".cls", std::to_string((shard + i) % 3)});
      }
      write_tar(dir.file("part-" + std::to_string(shard) + (shard % 2 ? ".tar.gz" : ".tar")), members, shard % 2);
    }
  } else if (kind == "cifar10") {
    for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"}) {
      std::string bytes;
      for (int r = 0; r < 15; ++r) {
        bytes += static_cast<char>(r % 10);
        for (int p = 0; p < 3072; ++p) bytes += static_cast<char>((r * 31 + p) % 256);
      }
      write(dir.file(name), bytes);
    }
  } else if (kind == "fashion-mnist") {
    auto header = [](std::initializer_list<int> sizes) {
      std::string s = {0, 0, 8, static_cast<char>(sizes.size())};
      for (int n : sizes)
        for (int shift : {24, 16, 8, 0}) s += static_cast<char>(n >> shift);
      return s;
    };
    for (const char* prefix : {"train", "t10k"}) {
      std::string images = header({30, 6, 6}), labels = header({30});
      for (int i = 0; i < 30; ++i) {
        labels += static_cast<char>(i % 10);
        for (int p = 0; p < 36; ++p) images += static_cast<char>((i * 7 + p) % 256);
      }
      write(dir.file(std::string(prefix) + "-images-idx3-ubyte"), images);
      write(dir.file(std::string(prefix) + "-labels-idx1-ubyte"), labels);
    }
  } else {
    ADD_FAILURE() << kind << " lies in files, but this test makes none for it";
  }
}

Options options_of(const DatasetDef& kind, const Folder& dir) {
  Options o;
  o.seed = 5;
  if (kind.files)
    o.dir = kind.name == "csv" ? dir.file("table.csv") : kind.name == "text" ? dir.file("a.txt") : dir.str();
  for (const AttrDef& a : kind.attrs) {
    if (a.name == "samples") o.attrs.push_back({"samples", I{37}});
    if (a.name == "cache") o.attrs.push_back({"cache", dir.file("cache")});
    if (a.name == "context") o.attrs.push_back({"context", I{32}});
    if (a.name == "window") o.attrs.push_back({"window", I{5}});
  }
  return o;
}

std::string lines_of(const std::vector<Remark>& remarks) {
  std::string all;
  for (const Remark& r : remarks) all += r.line() + "\n";
  return all;
}

}  // namespace tenon::testing_data
