#include "engine/formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "core/tensor_bytes.h"
#include "engine/formats/model_file.h"

namespace tenon::formats {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;

struct Code {
  std::string_view code;
  int bits;
  int dtype;  ///< a DType, or -1 where the engine has none
};
constexpr Code known(std::string_view code, DType t) {
  return {code, static_cast<int>(itemsize(t)) * 8, static_cast<int>(t)};
}
constexpr Code kCodes[] = {known("F64", DType::f64),
                           known("I64", DType::i64),
                           known("F32", DType::f32),
                           known("I32", DType::i32),
                           known("BF16", DType::bf16),
                           known("F16", DType::f16),
                           known("I16", DType::i16),
                           known("I8", DType::i8),
                           known("U8", DType::u8),
                           known("BOOL", DType::boolean),
                           {"U64", 64, -1},
                           {"C64", 64, -1},
                           {"U32", 32, -1},
                           {"U16", 16, -1},
                           {"F8_E4M3", 8, -1},
                           {"F8_E5M2", 8, -1},
                           {"F8_E8M0", 8, -1},
                           {"F8_E4M3FNUZ", 8, -1},
                           {"F8_E5M2FNUZ", 8, -1},
                           {"F6_E2M3", 6, -1},
                           {"F6_E3M2", 6, -1},
                           {"F4", 4, -1}};

const Code* find_code(std::string_view code) {
  const auto* c = std::find_if(std::begin(kCodes), std::end(kCodes), [&](const Code& k) { return k.code == code; });
  return c == std::end(kCodes) ? nullptr : c;
}
const Code& code_of(DType t) {
  return *std::find_if(std::begin(kCodes), std::end(kCodes),
                       [&](const Code& k) { return k.dtype == static_cast<int>(t); });
}

/// Takes the header as it is parsed, level by level: 1 the names, 2 the keys of an entry or the metadata, 3 the two
/// lists of an entry.
struct Header : nlohmann::json_sax<nlohmann::json> {
  explicit Header(const std::string& file) : file_(file) {}

  std::vector<Safetensors::Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;

  bool null() override { return extra() || wrong("null"); }
  bool boolean(bool) override { return extra() || wrong("a truth value"); }
  bool number_integer(number_integer_t) override { return extra() || wrong("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return extra() || wrong("a number with a fraction, or one that is too large");
  }
  bool binary(binary_t&) override { return wrong("binary data"); }
  bool number_unsigned(number_unsigned_t n) override {
    if (extra()) return true;
    if (depth_ != 3 || n > static_cast<uint64_t>(INT64_MAX)) wrong("a number");
    if (key_ == "shape")
      entries.back().shape.push_back(static_cast<int64_t>(n));
    else if (offsets_++ == 0)
      entries.back().begin = n;
    else
      entries.back().end = n;
    return true;
  }
  bool string(string_t& s) override {
    if (extra()) return true;
    if (depth_ != 2) wrong("a text");
    if (in_metadata_) {
      metadata.emplace_back(key_, s);
      return true;
    }
    if (key_ != "dtype") wrong("a text");
    entries.back().dtype = s;
    if (!find_code(s))
      fail(fmt::format("{} has the dtype \"{}\", which the format does not know", here(), s.substr(0, 40)));
    return true;
  }
  bool start_object(std::size_t) override {
    if (++depth_ > 2) wrong("an object");
    if (depth_ == 2) in_metadata_ = name_ == "__metadata__";
    if (depth_ == 2 && !in_metadata_) {
      entries.push_back({name_, {}, {}, 0, 0});
      offsets_ = 0;
      has_shape_ = false;
    }
    seen_.clear();
    return true;
  }
  bool end_object() override {
    if (depth_-- == 2 && !in_metadata_ && (entries.back().dtype.empty() || !has_shape_ || offsets_ != 2))
      fail(fmt::format("{} lacks its dtype, its shape or its two data_offsets", here()));
    return true;
  }
  bool start_array(std::size_t) override {
    if (++depth_ != 3 || in_metadata_ || (key_ != "shape" && key_ != "data_offsets")) wrong("a list");
    return true;
  }
  bool end_array() override {
    --depth_;
    if (key_ == "shape")
      has_shape_ = true;
    else if (offsets_ != 2)
      fail(fmt::format("{} has {} data_offsets, not 2", here(), offsets_));
    return true;
  }
  bool key(string_t& s) override {
    if (depth_ == 1) {
      name_ = s;
      if (!names_.insert(s).second) fail(fmt::format("names {} twice", here()));
      return true;
    }
    key_ = s;
    if (!seen_.insert(s).second) fail(fmt::format("{} has {} twice", here(), s.substr(0, 80)));
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    fail(fmt::format("has a header that is no JSON, at byte {} of it", at));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(file_ + " " + what); }
  /// The value of a further key of an entry: the reference lets plain ones pass.
  bool extra() const {
    return depth_ == 2 && !in_metadata_ && key_ != "dtype" && key_ != "shape" && key_ != "data_offsets";
  }
  [[noreturn]] bool wrong(const char* what) const {
    fail(fmt::format("has {} where none belongs in its header, at {}", what, here()));
  }
  std::string here() const { return fmt::format("tensor \"{}\"", name_.substr(0, 200)); }

  const std::string& file_;
  std::string name_, key_;
  int depth_ = 0, offsets_ = 0;
  bool in_metadata_ = false, has_shape_ = false;
  std::unordered_set<std::string> names_, seen_;
};

/// Bytes of a shape; false where they cannot be counted or are no whole number.
bool bytes_of(const Safetensors::Entry& e, uint64_t& bytes) {
  uint64_t bits = static_cast<uint64_t>(find_code(e.dtype)->bits);
  bool overflow = false, none = false;
  for (int64_t d : e.shape) {
    none |= d == 0;
    overflow |= __builtin_mul_overflow(bits, static_cast<uint64_t>(d), &bits);
  }
  bytes = none ? 0 : bits / 8;
  return none || (!overflow && bits % 8 == 0);
}

}  // namespace

Safetensors Safetensors::open(const std::string& path) { return parse(MappedFile::open(path)); }

Safetensors Safetensors::parse(std::shared_ptr<const MappedFile> file) {
  const std::string& name = file->name();
  const std::string_view bytes = file->bytes();
  auto fail = [&](const std::string& what) { return Error(name + " " + what); };
  if (bytes.size() < 8) throw fail("is not a safetensors file: it has less than 8 bytes");
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  if (length > kMaxHeader)
    throw fail(fmt::format("is not a safetensors file: its header would have {} bytes; at most {} are allowed", length,
                           kMaxHeader));
  if (length > bytes.size() - 8)
    throw fail(fmt::format("is cut short: its header has {} bytes, and {} follow", length, bytes.size() - 8));
  const std::string_view text = bytes.substr(8, length);
  if (text.empty() || text[0] != '{') throw fail("is not a safetensors file: its header does not begin with {");
  Header header(name);
  nlohmann::json::sax_parse(text.begin(), text.end(), &header);

  Safetensors out;
  out.entries_ = std::move(header.entries);
  out.metadata_ = std::move(header.metadata);
  std::stable_sort(out.entries_.begin(), out.entries_.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  const uint64_t all = bytes.size() - 8 - length;
  for (const Entry& e : out.entries_) {
    auto wrong = [&](const std::string& what) {
      return fail(fmt::format("has the tensor \"{}\" {}", e.name.substr(0, 200), what));
    };
    if (e.end < e.begin) throw wrong(fmt::format("whose data ends at byte {}, before it begins at {}", e.end, e.begin));
    if (e.end > all) throw wrong(fmt::format("whose data ends at byte {}, and there are {} bytes of data", e.end, all));
    if (e.begin < at)
      throw wrong(fmt::format("whose data begins at byte {}, inside another's that ends at {}", e.begin, at));
    if (e.begin > at)
      throw wrong(fmt::format("whose data begins at byte {} after a hole of {} bytes", e.begin, e.begin - at));
    uint64_t needed;
    if (!bytes_of(e, needed)) throw wrong("whose shape gives no whole number of bytes that a file could hold");
    if (needed != e.end - e.begin)
      throw wrong(fmt::format("whose shape needs {} bytes, and its data has {}", needed, e.end - e.begin));
    at = e.end;
  }
  if (at != all) throw fail(fmt::format("has {} bytes after its last tensor", all - at));
  out.data_ = 8 + length;
  out.file_ = std::move(file);
  return out;
}

std::string Safetensors::problem(const Entry& e) {
  if (find_code(e.dtype)->dtype < 0) return fmt::format("has the dtype {}, which is not supported", e.dtype);
  if (e.shape.size() > kMaxDims)
    return fmt::format("has {} dimensions; at most {} are supported", e.shape.size(), kMaxDims);
  return {};
}

Tensor Safetensors::tensor(const Entry& e) const {
  if (const std::string wrong = problem(e); !wrong.empty())
    throw Error(fmt::format("{}: tensor \"{}\" {}", file_->name(), e.name, wrong));
  const Code* code = find_code(e.dtype);
  const Tensor flat = tensor_of(file_, data_ + e.begin, e.end - e.begin, static_cast<DType>(code->dtype));
  return view_of(flat, Layout::contiguous(Shape(e.shape)));
}

Tensor Safetensors::tensor(const std::string& name) const {
  for (const Entry& e : entries_)
    if (e.name == name) return tensor(e);
  std::vector<std::string> names;
  for (const Entry& e : entries_) names.push_back(e.name);
  const std::string near = near_names(name, names.data(), names.size());
  throw Error(fmt::format("{} has no tensor \"{}\"{}", file_->name(), name, near.empty() ? "" : " " + near));
}

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::vector<const NamedTensors::value_type*> order;
  for (const auto& t : tensors) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const size_t wide = itemsize(a->second.dtype()), other = itemsize(b->second.dtype());
    return wide != other ? wide > other : a->first < b->first;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [key, value] : metadata) header["__metadata__"][key] = value;
  std::unordered_set<std::string> names;
  size_t at = 0;
  for (const auto* t : order) {
    if (t->first == "__metadata__" || !names.insert(t->first).second)
      throw Error(fmt::format("{}: two tensors are named \"{}\"", path, t->first));
    const Tensor& value = t->second;
    header.push_back({t->first, nlohmann::ordered_json::object(
                                    {{"dtype", code_of(value.dtype()).code},
                                     {"shape", std::vector<int64_t>(value.size().begin(), value.size().end())},
                                     {"data_offsets", {at, at + value.nbytes()}}})});
    at += value.nbytes();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxHeader)
    throw Error(fmt::format("{}: the names of {} tensors need more than the {} bytes a header may have", path,
                            tensors.size(), kMaxHeader));
  const uint64_t length = text.size();
  FileWriter file(path);
  file.put({reinterpret_cast<const char*>(&length), 8});
  file.put(text);
  for (const auto* t : order) {
    std::vector<char> copy;
    file.put(logical_bytes(t->second, copy));
  }
  file.commit();
}

namespace {
ModelFile read_safetensors(const std::shared_ptr<const MappedFile>& file) {
  auto s = std::make_shared<const Safetensors>(Safetensors::parse(file));
  ModelFile m;
  m.texts = s->metadata();
  for (const Safetensors::Entry& e : s->entries())
    m.tensors.push_back({.name = e.name,
                         .dtype = e.dtype,
                         .shape = e.shape,
                         .bytes = e.end - e.begin,
                         .problem = Safetensors::problem(e)});
  m.values = [s](size_t i) { return s->tensor(s->entries()[i]); };
  return m;
}
const bool registered_safetensors = register_model_file({"safetensors", FileKind::safetensors, read_safetensors});
}  // namespace

}  // namespace tenon::formats
