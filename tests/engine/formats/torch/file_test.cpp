#include "engine/formats/torch/file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "engine/formats/zip.h"
#include "tests/messages.h"

namespace tenon::formats {
namespace {

struct TorchPath {
  std::string path =
      (std::filesystem::temp_directory_path() / ("tenon-torch-" + std::to_string(::getpid()) + ".pt")).string();
  ~TorchPath() { std::filesystem::remove(path); }
};
TorchFile parse_torch(const std::string& bytes) { return TorchFile::parse(MappedFile::of(bytes, "a.pt")); }
std::string torch_message(const std::string& bytes) {
  return testing_words::message_of([&] { parse_torch(bytes); });
}
void expect_torch_says(const std::string& bytes, const std::string& part) {
  EXPECT_NE(torch_message(bytes).find(part), std::string::npos)
      << "\"" << part << "\" is not in: " << torch_message(bytes);
}
template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

/// A zip as torch.save makes it.
std::string zip(const std::string& pickle, const std::vector<std::pair<std::string, std::string>>& members) {
  TorchPath at;
  FileWriter file(at.path);
  ZipWriter z(file);
  z.add("x/data.pkl", pickle);
  for (const auto& [name, bytes] : members) z.add("x/" + name, bytes);
  z.finish();
  file.commit();
  return read_file(at.path);
}

// Pieces of pickles, in opcodes as Python writes them.
std::string op(const char* s) { return s; }
std::string str(const std::string& s) { return "X" + raw<uint32_t>({static_cast<uint32_t>(s.size())}) + s; }
std::string num(int32_t n) { return "J" + raw<int32_t>({n}); }
std::string big(int64_t n) { return "\x8a\x08" + raw<int64_t>({n}); }
std::string tuple(const std::vector<int64_t>& v) {
  std::string s = "(";
  for (int64_t n : v) s += big(n);
  return s + "t";
}
std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string storage(const std::string& type, const std::string& key, int64_t n, const std::string& more = "") {
  return "(" + str("storage") + global("torch", type) + str(key) + str("cpu") + big(n) + more + "tQ";
}
std::string tensor(const std::string& storage, int64_t offset, const std::vector<int64_t>& size,
                   const std::vector<int64_t>& stride) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + storage + big(offset) + tuple(size) + tuple(stride) +
         "\x89" + global("collections", "OrderedDict") + ")RtR";
}
std::string pickle(const std::string& body) { return "\x80\x02" + body + "."; }
std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string s = "}(";
  for (const auto& [k, v] : items) s += str(k) + v;
  return s + "u";
}
const std::string kSix = raw<float>({0, 1, 2, 3, 4, 5});
std::string six(const std::string& body) { return zip(pickle(body), {{"data/0", kSix}, {"version", "3\n"}}); }
std::string legacy(const std::string& body, const std::string& keys, const std::string& data) {
  return std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15) + pickle(num(1001)) +
         pickle(dict({{"little_endian", "\x88"}})) + pickle(body) + pickle(keys) + data;
}

TEST(TorchFile, every_dtype_and_shape_survives) {
  TorchPath at;
  NamedTensors all;
  for (int k = 0; k < kDTypes; ++k)
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0, 5}, Shape{1, 2, 3, 4, 5}}) {
      Tensor t = empty(shape, static_cast<DType>(k));
      for (size_t i = 0; i < t.nbytes(); ++i)
        static_cast<unsigned char*>(t.raw())[i] = static_cast<unsigned char>(k == 0 ? i % 2 : i * 7 + 1);
      all.emplace_back(fmt::format("{}.{}", name(t.dtype()), all.size()), t);
    }
  save_torch(at.path, all);
  const NamedTensors back = TorchFile::open(at.path).tensors();
  ASSERT_EQ(back.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [name, t] = all[i];
    ASSERT_EQ(back[i].first, name);
    ASSERT_EQ(back[i].second.dtype(), t.dtype()) << name;
    ASSERT_EQ(back[i].second.size(), t.size()) << name;
    if (t.nbytes()) {
      ASSERT_EQ(std::memcmp(back[i].second.raw(), t.raw(), t.nbytes()), 0) << name;
    }
  }
}

TEST(TorchFile, views_of_one_storage_stay_views_of_one_storage) {
  TorchPath at;
  Tensor a = empty({3, 4});
  for (int i = 0; i < 12; ++i) a.data<float>()[i] = static_cast<float>(i);
  const Tensor t = view_of(a, a.layout().transpose(0, 1)), row = view_of(a, a.layout().select(0, 2)),
               wide = view_of(row, row.layout().unsqueeze(0).expand({5, 4}));
  save_torch(at.path, {{"a", a}, {"t", t}, {"row", row}, {"wide", wide}, {"back", view_of(a, a.layout().flip(1))}});
  EXPECT_LT(read_file(at.path).size(), 4000u);
  const TorchFile f = TorchFile::open(at.path);
  const NamedTensors back = f.tensors();
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(back[i].second.storage(), back[0].second.storage()) << back[i].first;
  EXPECT_EQ(back[1].second.stride(), t.stride());
  EXPECT_EQ(back[2].second.offset(), 8);
  EXPECT_EQ(back[3].second.stride(), (Dims{0, 1}));
  EXPECT_EQ(value_at(back[3].second, {4, 1}), 9);
  // PyTorch knows no negative strides: such a view is written as a tensor of its own.
  EXPECT_NE(f.entries()[4].storage, f.entries()[0].storage);
  EXPECT_EQ(value_at(back[4].second, {0, 0}), 3);
  EXPECT_THROW(save_torch(at.path, {{"a", a}, {"a", a}}), Error);
}

TEST(TorchFile, tensors_are_windows_of_the_file) {
  TorchPath at;
  Tensor a = empty({1000});
  std::memset(a.raw(), 0, a.nbytes());
  save_torch(at.path, {{"a", a}});
  const std::string before = read_file(at.path);
  const NamedTensors back = TorchFile::open(at.path).tensors();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(back[0].second.raw()) % 64, 0u);
  back[0].second.data<float>()[0] = 1;
  EXPECT_EQ(read_file(at.path), before);
}

TEST(TorchFile, checkpoints_are_listed_by_the_way_to_each_value) {
  const std::string w = tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1});
  const TorchFile f = parse_torch(
      six(dict({{"epoch", num(3)},
                {"lr", std::string("G\x3f\xb9\x99\x99\x99\x99\x99\x9a", 9)},
                {"model", global("collections", "OrderedDict") + ")R(" + str("fc.weight") + w + "u" +
                              dict({{"_metadata", "N"}}) + "b"},
                {"optimizer", dict({{"state", "}(K\x05" + dict({{"exp_avg", w}}) + "u"}, {"betas", "K\x01K\x02\x86"}})},
                {"list", "](N\x88" + w + "e"}})));
  ASSERT_EQ(f.entries().size(), 3u);
  EXPECT_EQ(f.entries()[0].name, "model/fc.weight");
  EXPECT_EQ(f.entries()[1].name, "optimizer/state/5/exp_avg");
  EXPECT_EQ(f.entries()[2].name, "list/2");
  EXPECT_EQ(f.entries()[0].dtype, "float32");
  EXPECT_EQ(value_at(f.entries()[2].tensor, {1, 2}), 5);
  EXPECT_EQ(f.values(),
            (std::vector<std::pair<std::string, std::string>>{
                {"epoch", "3"}, {"lr", "0.1"}, {"optimizer/betas", "(1, 2)"}, {"list/0", "None"}, {"list/1", "True"}}));
  EXPECT_TRUE(f.foreign().empty());
}

TEST(TorchFile, modules_saved_whole_give_their_state_dict) {
  const std::string w = global("torch._utils", "_rebuild_parameter") + "(" +
                        tensor(storage("FloatStorage", "0", 6), 0, {6}, {1}) + "\x88" +
                        global("collections", "OrderedDict") + ")RtR";
  auto module = [&](const std::string& cls, const std::string& parameters, const std::string& parts) {
    return global("torch.nn.modules.container", cls) + ")\x81" +
           dict({{"_parameters", parameters}, {"_buffers", "}"}, {"_modules", parts}}) + "b";
  };
  const TorchFile f = parse_torch(
      six(module("Sequential", "}", dict({{"0", module("Linear", dict({{"weight", w}, {"bias", "N"}}), "}")}}))));
  ASSERT_EQ(f.entries().size(), 1u);
  EXPECT_EQ(f.entries()[0].name, "0.weight");
  EXPECT_TRUE(f.entries()[0].parameter && f.entries()[0].requires_grad);
  EXPECT_TRUE(f.foreign().empty());
}

TEST(TorchFile, big_endian_deflated_and_unaligned_storages) {
  const std::string body = tensor(storage("ShortStorage", "0", 2), 0, {2}, {1});
  const TorchFile b = parse_torch(zip(pickle(body), {{"byteorder", "big"}, {"data/0", std::string("\0\1\1\0", 4)}}));
  EXPECT_EQ(value_at(b.entries()[0].tensor, {0}), 1);
  EXPECT_EQ(value_at(b.entries()[0].tensor, {1}), 256);
  EXPECT_EQ(b.entries()[0].name, "value");
  expect_torch_says(zip(pickle(body), {{"byteorder", "middle"}, {"data/0", "1234"}}), "middle");
}

TEST(TorchFile, the_legacy_format) {
  const std::string body =
      dict({{"a", tensor(storage("FloatStorage", "94", 6, "N"), 0, {2, 3}, {3, 1})},
            {"v", tensor(storage("FloatStorage", "94", 6, "(" + str("95") + num(2) + num(3) + "t"), 1, {2}, {1})}});
  const std::string good = legacy(body, "](" + str("94") + "e", raw<int64_t>({6}) + kSix);
  const TorchFile f = parse_torch(good);
  EXPECT_TRUE(f.legacy());
  ASSERT_EQ(f.entries().size(), 2u);
  EXPECT_EQ(value_at(f.entries()[0].tensor, {1, 0}), 3);
  EXPECT_EQ(value_at(f.entries()[1].tensor, {0}), 3) << "element 1 of the part that begins at 2";
  EXPECT_EQ(f.entries()[0].tensor.storage(), f.entries()[1].tensor.storage());
  for (size_t keep = 0; keep < good.size(); ++keep) EXPECT_NE(torch_message(good.substr(0, keep)), "no error") << keep;
  expect_torch_says(legacy(body, "](" + str("94") + "e", raw<int64_t>({INT64_MAX}) + kSix), "cut short");
  expect_torch_says(legacy(body, "](" + str("94") + "e", raw<int64_t>({5}) + kSix), "has 20 bytes");
  expect_torch_says(legacy(body, "](" + str("77") + "e", raw<int64_t>({5}) + kSix), "nothing in it uses");
  expect_torch_says(
      legacy(body, "](" + str("94") + str("94") + "e", raw<int64_t>({6}) + kSix + raw<int64_t>({6}) + kSix), "twice");
  expect_torch_says(legacy(body, "]", ""), "lacks the storage 94");
}

TEST(TorchFile, foreign_names_are_shown_and_never_run) {
  TorchPath touched;
  const std::string evil = global("os", "system") + "(" + str("touch " + touched.path) + "tR";
  const std::string w = tensor(storage("FloatStorage", "0", 6), 0, {6}, {1});
  const std::string bytes =
      six(dict({{"w", w}, {"x", evil}, {"y", global("builtins", "eval") + "(" + str("1") + w + "tR"}}));
  const TorchFile f = parse_torch(bytes);
  EXPECT_EQ(f.foreign(), (std::vector<std::string>{"builtins.eval", "os.system"}));
  EXPECT_FALSE(std::filesystem::exists(touched.path));
  ASSERT_EQ(f.entries().size(), 2u);
  EXPECT_EQ(f.entries()[1].name, "y/argument 1");
  try {
    f.tensors();
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("builtins.eval and 1 more"), std::string::npos) << e.message();
  }
  // Hidden where no value shows it: popped off again, as the state of something, by protocol 4, as a chain of calls.
  for (const std::string& hidden : {evil + "0" + w, global("collections", "OrderedDict") + ")R" + evil + "b",
                                    str("os") + str("system") + "\x93" + op(")R"), evil + ")R"}) {
    const TorchFile h = parse_torch(six(hidden));
    EXPECT_FALSE(h.foreign().empty());
    EXPECT_THROW(h.tensors(), Error);
  }
  EXPECT_TRUE(parse_torch(six(evil + ")R")).foreign().size() == 2) << "os.system, and the call of what it gave";
}

TEST(TorchFile, what_the_engine_lacks_is_listed) {
  const std::string c = tensor(storage("ComplexFloatStorage", "0", 3), 0, {3}, {1});
  const TorchFile f = parse_torch(six(dict({{"c", c}})));
  EXPECT_EQ(f.entries()[0].dtype, "complex64");
  EXPECT_NE(f.entries()[0].problem.find("complex64"), std::string::npos);
  EXPECT_THROW(f.tensors(), Error);
  const std::string v3 = global("torch._utils", "_rebuild_tensor_v3") + "(" + storage("UntypedStorage", "0", 24) +
                         big(1) + tuple({2}) + tuple({1}) + "\x89}" + global("torch", "float32") + "tR";
  EXPECT_EQ(value_at(parse_torch(six(v3)).entries()[0].tensor, {1}), 2);
  EXPECT_NE(parse_torch(six(tensor(storage("FloatStorage", "0", 6), 0, {1, 1, 1, 1, 1, 1, 1, 1, 1},
                                   {1, 1, 1, 1, 1, 1, 1, 1, 1})))
                .entries()[0]
                .problem.find("9 dimensions"),
            std::string::npos);
}

TEST(TorchFile, bad_tensors_are_named_not_crashed_on) {
  auto of = [](int64_t offset, const std::vector<int64_t>& size, const std::vector<int64_t>& stride) {
    return six(dict({{"w", tensor(storage("FloatStorage", "0", 6), offset, size, stride)}}));
  };
  EXPECT_EQ(torch_message(of(0, {2, 3}, {3, 1})), "no error");
  EXPECT_EQ(torch_message(of(9, {0, 3}, {3, 1})), "no error") << "nothing is read";
  expect_torch_says(of(0, {2, 3}, {4, 1}), "tensor \"w\" reaches element 6 of a storage of 6");
  expect_torch_says(of(1, {2, 3}, {3, 1}), "reaches element 6");
  expect_torch_says(of(-1, {2}, {1}), "none");
  expect_torch_says(of(0, {2}, {-1}), "none");
  expect_torch_says(of(0, {-2}, {1}), "none");
  expect_torch_says(of(0, {2}, {1, 1}), "none");
  expect_torch_says(of(INT64_MAX, {2}, {INT64_MAX}), "no memory could hold");
  expect_torch_says(of(0, {INT64_MAX, INT64_MAX}, {0, 0}), "no memory could hold");
  expect_torch_says(six(tensor(storage("FloatStorage", "0", 7), 0, {1}, {1})),
                    "has 7 elements of float32, and it has 24 bytes");
  expect_torch_says(six(tensor(storage("FloatStorage", "0", INT64_MAX), 0, {1}, {1})), "24 bytes");
  expect_torch_says(six(tensor(storage("FloatStorage", "1", 6), 0, {1}, {1})), "lacks the storage 1");
  expect_torch_says(six(tensor(storage("FloatStorage", "../x", 6), 0, {1}, {1})), "lacks the storage");
  expect_torch_says(six(tensor(storage("FooStorage", "0", 6), 0, {1}, {1})), "torch.FooStorage");
  expect_torch_says(six(tensor("N", 0, {1}, {1})), "no storage");
  expect_torch_says(six(global("torch._utils", "_rebuild_tensor_v2") + ")R"), "from 0 values");
  std::string deep = tensor(storage("FloatStorage", "0", 6), 0, {6}, {1});
  for (int i = 0; i < 40; ++i) deep = global("torch._utils", "_rebuild_parameter") + "(" + deep + "\x88" + "}tR";
  expect_torch_says(six(deep), "wrapped too often");
}

TEST(TorchFile, bad_pickles_are_named_not_crashed_on) {
  expect_torch_says(six(std::string(2'000'000, ']') + std::string(1'999'999, 'a')), "nests values more than 100 deep");
  expect_torch_says(six("]q" + std::string(1, '\0') + "h" + std::string(1, '\0') + "a"),
                    "nests values more than 100 deep");
  // A few hundred bytes that would unfold to 10^30 values.
  std::string laughs = "(]";
  for (int i = 0; i < 90; ++i)
    laughs += std::string("q") + static_cast<char>(i) + "](h" + static_cast<char>(i) + "h" + static_cast<char>(i) + "e";
  expect_torch_says(six(laughs + "t"), "too many values");
  expect_torch_says(zip("\x80\x02", {}), "1 bytes wanted");
  expect_torch_says(zip("\x80\x02Qx.", {}), "too few values");
  expect_torch_says(zip("\x80\x02i1\n2\n.", {}), "opcode 0x69");
  expect_torch_says(zip("\x80\x09.", {}), "protocol 9");
}

TEST(TorchFile, bad_archives_are_named_not_crashed_on) {
  const std::string good = six(dict({{"w", tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1})}}));
  ASSERT_EQ(torch_message(good), "no error");
  for (size_t keep = 0; keep < good.size(); ++keep) EXPECT_NE(torch_message(good.substr(0, keep)), "no error") << keep;
  for (size_t at = 0; at < good.size(); ++at)
    for (int bit : {0, 3, 7}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1 << bit);
      torch_message(bad);  // may be read or refused; must not crash
    }
  expect_torch_says("", "not a file that torch.save writes");
  expect_torch_says(zip("", {}), "not a pickle");
  expect_torch_says(zip(pickle("N"), {{"constants.pkl", "x"}}), "TorchScript");
  expect_torch_says(zip(pickle("N"), {{"../../evil", "x"}}), "../../evil");
  expect_torch_says(zip(pickle("N"), {{"a", "x"}, {"a", "y"}}), "twice");
  // The directory's words changed: a size beyond the file, two different sizes, members over each other.
  const size_t first = good.find("PK\x01\x02"), second = good.find("PK\x01\x02", first + 4);
  auto changed = [&](size_t at, const std::string& to) {
    std::string bad = good;
    bad.replace(at, to.size(), to);
    return bad;
  };
  expect_torch_says(changed(second + 20, raw<uint32_t>({0x7fffffff, 0x7fffffff})), "beyond the end");
  expect_torch_says(changed(second + 24, raw<uint32_t>({10})), "two different sizes");
  expect_torch_says(changed(second + 42, raw<uint32_t>({0})), "overlap");
  expect_torch_says(changed(second + 42, raw<uint32_t>({5})), "not where the directory says");
  expect_torch_says(changed(second + 10, raw<uint16_t>({99})), "other than deflate");
  expect_torch_says(changed(second + 8, raw<uint16_t>({1})), "encrypted");
  expect_torch_says(changed(first + 48, "e"), "without data.pkl");
}

}  // namespace
}  // namespace tenon::formats
