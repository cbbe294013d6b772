#include "engine/formats/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "core/parallel.h"
#include "core/tensor_bytes.h"
#include "engine/formats/gguf_blocks.h"
#include "engine/formats/model_file.h"

namespace tenon::formats {
namespace {

constexpr std::string_view kGgufMagic = "GGUF";
constexpr uint64_t kGgufDims = 4, kGgufKey = 65535, kGgufName = 64, kGgufShown = 8;

/// The numbers that the file gives the types of its metadata.
enum class GgufType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

/// Reads one thing after the other. Every length is held against what is left of the file before it is believed.
class GgufBytes {
 public:
  explicit GgufBytes(const MappedFile& file) : file_(file.name()), all_(file.bytes()) {}

  size_t at() const { return at_; }
  [[noreturn]] void fail(const std::string& what) const { throw Error(file_ + " " + what); }

  std::string_view take(uint64_t bytes, const char* what) {
    if (bytes > all_.size() - at_)
      fail(fmt::format("is cut short: at byte {} {} would need {} bytes, and {} follow", at_, what, bytes,
                       all_.size() - at_));
    const std::string_view out = all_.substr(at_, bytes);
    at_ += bytes;
    return out;
  }
  template <class T>
  T number(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }
  std::string_view text(const char* what) { return take(number<uint64_t>(what), what); }

 private:
  const std::string& file_;
  std::string_view all_;
  size_t at_ = 0;
};

/// A value that is no list, as text. Lists of lists are nothing that ggml reads.
std::string gguf_value(GgufBytes& in, GgufType type, std::string_view key) {
  constexpr const char* what = "a value of the metadata";
  switch (type) {
    case GgufType::u8:
      return fmt::format("{}", in.number<uint8_t>(what));
    case GgufType::i8:
      return fmt::format("{}", in.number<int8_t>(what));
    case GgufType::u16:
      return fmt::format("{}", in.number<uint16_t>(what));
    case GgufType::i16:
      return fmt::format("{}", in.number<int16_t>(what));
    case GgufType::u32:
      return fmt::format("{}", in.number<uint32_t>(what));
    case GgufType::i32:
      return fmt::format("{}", in.number<int32_t>(what));
    case GgufType::f32:
      return fmt::format("{}", in.number<float>(what));
    case GgufType::boolean:
      return in.number<uint8_t>(what) ? "true" : "false";
    case GgufType::text:
      return std::string(in.text(what));
    case GgufType::u64:
      return fmt::format("{}", in.number<uint64_t>(what));
    case GgufType::i64:
      return fmt::format("{}", in.number<int64_t>(what));
    case GgufType::f64:
      return fmt::format("{}", in.number<double>(what));
    case GgufType::list:
      break;
  }
  in.fail(fmt::format("has a value of the type {} in its metadata, at \"{}\", which the format does not know",
                      static_cast<uint32_t>(type), key));
}

/// 0 where values of the type differ in length.
uint64_t gguf_value_bytes(GgufType type) {
  constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  const auto i = static_cast<uint32_t>(type);
  return i < std::size(kBytes) ? kBytes[i] : 0;
}

/// "[1, 2, 3, ... 32,000 in all]"
std::string gguf_list(GgufBytes& in, std::string_view key) {
  const auto type = static_cast<GgufType>(in.number<uint32_t>("the type of a list"));
  const auto count = in.number<uint64_t>("the length of a list");
  std::string out = "[";
  for (uint64_t i = 0; i < std::min(count, kGgufShown); ++i) out += (i ? ", " : "") + gguf_value(in, type, key);
  if (count > kGgufShown) {
    const uint64_t rest = count - kGgufShown, each = gguf_value_bytes(type);
    if (each && rest > UINT64_MAX / each) in.fail(fmt::format("has a list of {} values at \"{}\"", count, key));
    if (each) in.take(rest * each, "a list of the metadata");
    for (uint64_t i = 0; !each && i < rest; ++i) in.text("a list of the metadata");
    out += fmt::format(", ... {} in all", count);
  }
  return out + "]";
}

std::string gguf_shortened(std::string_view name) { return std::string(name.substr(0, 200)); }

/// Bytes of the shape in the type; false where they cannot be counted or rows are no whole blocks.
bool gguf_bytes_of(const Gguf::Entry& e, uint64_t& bytes) {
  uint64_t elements = 1;
  bool none = false, overflow = false;
  for (int64_t d : e.shape) {
    none |= d == 0;
    overflow |= __builtin_mul_overflow(elements, static_cast<uint64_t>(d), &elements);
  }
  const uint64_t row = e.shape.empty() ? 1 : static_cast<uint64_t>(e.shape.back());
  bytes = 0;
  if (row % e.known->elements != 0) return false;
  return none || (!overflow && !__builtin_mul_overflow(elements / e.known->elements, e.known->bytes, &bytes));
}

Gguf::Entry gguf_entry(GgufBytes& in) {
  Gguf::Entry e;
  e.name = in.text("the name of a tensor");
  const auto dims = in.number<uint32_t>("the number of dimensions of a tensor");
  auto fail = [&](const std::string& what) {
    in.fail(fmt::format("has the tensor \"{}\" {}", gguf_shortened(e.name), what));
  };
  if (dims > kGgufDims) fail(fmt::format("with {} dimensions; the format knows at most {}", dims, kGgufDims));
  for (uint32_t i = 0; i < dims; ++i) {
    const auto size = in.number<uint64_t>("a size of a tensor");
    if (size > static_cast<uint64_t>(INT64_MAX)) fail(fmt::format("with the size {}", size));
    e.shape.insert(e.shape.begin(), static_cast<int64_t>(size));
  }
  e.type = in.number<uint32_t>("the type of a tensor");
  e.begin = in.number<uint64_t>("the place of a tensor");
  e.known = find_ggml_type(e.type);
  if (e.known && !gguf_bytes_of(e, e.bytes))
    fail(fmt::format("whose rows are no whole blocks of {} elements ({}), or whose size cannot be counted",
                     e.known->elements, e.known->name));
  return e;
}

}  // namespace

std::string Gguf::Entry::dtype() const { return known ? known->name : fmt::format("type {}", type); }

std::string Gguf::Entry::problem() const {
  if (!known) return fmt::format("has ggml's type {}, which is not known here", type);
  if (!known->dtype && !known->decode) return fmt::format("is quantized as {}, which is not read here", known->name);
  return {};
}

Gguf Gguf::open(const std::string& path) { return parse(MappedFile::open(path)); }

Gguf Gguf::parse(std::shared_ptr<const MappedFile> file) {
  GgufBytes in(*file);
  Gguf out;
  if (!file->bytes().starts_with(kGgufMagic)) in.fail("is not a GGUF file: it does not begin with GGUF");
  in.take(kGgufMagic.size(), "the beginning");
  out.version_ = in.number<uint32_t>("the version");
  if (out.version_ != 0 && (out.version_ & 0xffff) == 0)
    in.fail("is a GGUF file for big-endian machines, which is not read here");
  if (out.version_ != 2 && out.version_ != 3)
    in.fail(fmt::format("is a GGUF file of version {}; versions 2 and 3 are read", out.version_));
  const auto tensors = in.number<uint64_t>("the number of tensors"), values = in.number<uint64_t>("the metadata");

  std::unordered_set<std::string_view> names;
  for (uint64_t i = 0; i < values; ++i) {
    const std::string_view key = in.text("a key of the metadata");
    const std::string shown = gguf_shortened(key);
    if (key.size() > kGgufKey) in.fail(fmt::format("has a key of {} bytes in its metadata", key.size()));
    if (!names.insert(key).second) in.fail(fmt::format("has the key \"{}\" twice in its metadata", shown));
    const auto type = static_cast<GgufType>(in.number<uint32_t>("the type of a value"));
    out.metadata_.emplace_back(key, type == GgufType::list ? gguf_list(in, shown) : gguf_value(in, type, shown));
    if (key != "general.alignment") continue;
    const std::string& text = out.metadata_.back().second;
    if (type == GgufType::u32) out.alignment_ = static_cast<uint32_t>(std::stoul(text));
    if (type != GgufType::u32 || out.alignment_ == 0 || (out.alignment_ & (out.alignment_ - 1)) != 0)
      in.fail(fmt::format("has the alignment {}; it must be a power of two (u32)", text.substr(0, 40)));
  }
  names.clear();
  std::unordered_set<std::string> seen;
  for (uint64_t i = 0; i < tensors; ++i) {
    out.entries_.push_back(gguf_entry(in));
    const Entry& e = out.entries_.back();
    if (!seen.insert(e.name).second) in.fail(fmt::format("names the tensor \"{}\" twice", gguf_shortened(e.name)));
    if (e.begin % out.alignment_ != 0)
      in.fail(fmt::format("has the tensor \"{}\" whose data begins at byte {}, no multiple of the alignment {}",
                          gguf_shortened(e.name), e.begin, out.alignment_));
  }
  const size_t over = in.at() % out.alignment_;
  out.data_ = in.at() + (over ? out.alignment_ - over : 0);
  const uint64_t all = file->bytes().size();
  out.file_ = std::move(file);
  out.check_places(all > out.data_ ? all - out.data_ : 0);
  return out;
}

/// No two tensors share a byte, and each lies inside the file.
void Gguf::check_places(uint64_t data_bytes) const {
  std::vector<const Entry*> order;
  for (const Entry& e : entries_)
    if (e.bytes) order.push_back(&e);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) { return a->begin < b->begin; });
  uint64_t end = 0;
  for (const Entry* e : order) {
    auto fail = [&](const std::string& what) {
      throw Error(fmt::format("{} has the tensor \"{}\" {}", file_->name(), gguf_shortened(e->name), what));
    };
    if (e->begin > data_bytes || e->bytes > data_bytes - e->begin)
      fail(fmt::format("of {} bytes at byte {}, and there are {} bytes of data: the file is cut short", e->bytes,
                       e->begin, data_bytes));
    if (e->begin < end)
      fail(fmt::format("whose data begins at byte {}, inside another's that ends at {}", e->begin, end));
    end = e->begin + e->bytes;
  }
}

Tensor Gguf::tensor(const Entry& e) const {
  if (const std::string wrong = e.problem(); !wrong.empty())
    throw Error(fmt::format("{}: tensor \"{}\" {}", file_->name(), e.name, wrong));
  const Shape shape(e.shape);
  // A tensor without elements may name a place behind the end.
  if (e.bytes == 0) return empty(shape, e.known->dtype.value_or(DType::f32));
  if (e.known->dtype)
    return view_of(tensor_of(file_, data_ + e.begin, e.bytes, *e.known->dtype), Layout::contiguous(shape));
  Tensor out = empty(shape, DType::f32);
  const auto* block = reinterpret_cast<const uint8_t*>(file_->bytes().data()) + data_ + e.begin;
  auto* values = out.data<float>();
  const GgmlType& type = *e.known;
  parallel_for(static_cast<int64_t>(e.bytes / type.bytes), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) type.decode(block + i * type.bytes, values + i * type.elements);
  });
  return out;
}

namespace {

template <class T>
void put_gguf(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}
void put_gguf_text(std::string& out, std::string_view text) {
  put_gguf<uint64_t>(out, text.size());
  out += text;
}
void put_gguf_type(std::string& out, GgufType type) { put_gguf(out, static_cast<uint32_t>(type)); }

struct PutGgufValue {
  std::string& out;
  void operator()(uint32_t v) const { put_gguf_type(out, GgufType::u32), put_gguf(out, v); }
  void operator()(float v) const { put_gguf_type(out, GgufType::f32), put_gguf(out, v); }
  void operator()(bool v) const { put_gguf_type(out, GgufType::boolean), put_gguf<uint8_t>(out, v); }
  void operator()(const std::string& v) const { put_gguf_type(out, GgufType::text), put_gguf_text(out, v); }
  void operator()(const std::vector<std::string>& v) const {
    list(GgufType::text, v.size());
    for (const std::string& s : v) put_gguf_text(out, s);
  }
  void operator()(const std::vector<int32_t>& v) const {
    list(GgufType::i32, v.size());
    for (int32_t n : v) put_gguf(out, n);
  }
  void list(GgufType of, uint64_t count) const {
    put_gguf_type(out, GgufType::list);
    put_gguf_type(out, of);
    put_gguf(out, count);
  }
};

std::string gguf_padding(uint64_t at) { return std::string((32 - at % 32) % 32, '\0'); }

}  // namespace

void save_gguf(const std::string& path, const NamedTensors& tensors, const GgufMetadata& metadata) {
  std::string head(kGgufMagic);
  put_gguf<uint32_t>(head, 3);
  put_gguf<uint64_t>(head, tensors.size());
  put_gguf<uint64_t>(head, metadata.size());
  for (const auto& [key, value] : metadata) {
    put_gguf_text(head, key);
    std::visit(PutGgufValue{head}, value);
  }
  std::unordered_set<std::string> names;
  uint64_t at = 0;
  for (const auto& [name, t] : tensors) {
    const GgmlType* type = ggml_type_of(t.dtype());
    auto fail = [&, &name = name](const std::string& what) {
      throw Error(fmt::format("{}: the tensor \"{}\" {}", path, name, what),
                  "Write safetensors, which has none of it.");
    };
    if (!type) fail(fmt::format("is {}, which GGUF does not know", tenon::name(t.dtype())));
    if (t.ndim() > static_cast<int>(kGgufDims))
      fail(fmt::format("has {} dimensions; GGUF knows at most {}", t.ndim(), kGgufDims));
    if (name.size() >= kGgufName) fail(fmt::format("has a name of {} bytes; ggml has room for 63", name.size()));
    if (!names.insert(name).second) fail("is there twice");
    put_gguf_text(head, name);
    put_gguf(head, static_cast<uint32_t>(t.ndim()));
    for (int axis = t.ndim() - 1; axis >= 0; --axis) put_gguf(head, static_cast<uint64_t>(t.size(axis)));
    put_gguf(head, type->id);
    put_gguf(head, at);
    at += t.nbytes() + gguf_padding(t.nbytes()).size();
  }
  FileWriter file(path);
  file.put(head);
  file.put(gguf_padding(head.size()));
  for (const auto& [name, t] : tensors) {
    std::vector<char> copy;
    file.put(logical_bytes(t, copy));
    file.put(gguf_padding(t.nbytes()));
  }
  file.commit();
}

namespace {

ModelFile read_gguf(const std::shared_ptr<const MappedFile>& file) {
  auto g = std::make_shared<const Gguf>(Gguf::parse(file));
  ModelFile m;
  m.facts = {{"version", int64_t{g->version()}}, {"alignment", int64_t{g->alignment()}}};
  m.texts = g->metadata();
  for (const auto& [key, text] : m.texts) {
    if (key == "general.architecture") m.facts.push_back({"architecture", text});
    if (key == "split.count" && text != "1" && text != "0")
      m.warnings.push_back(fmt::format("is one of {} files of a model: the tensors of the others are not here", text));
  }
  for (const Gguf::Entry& e : g->entries())
    m.tensors.push_back(
        {.name = e.name, .dtype = e.dtype(), .shape = e.shape, .bytes = e.bytes, .problem = e.problem()});
  m.values = [g](size_t i) { return g->tensor(g->entries()[i]); };
  return m;
}
const bool registered_gguf = register_model_file({"gguf", FileKind::gguf, read_gguf});

}  // namespace
}  // namespace tenon::formats
