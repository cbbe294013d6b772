#include "engine/formats/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "core/tensor_bytes.h"
#include "engine/formats/zip.h"

namespace tenon::formats {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct NpyCode {
  std::string_view code;
  DType dtype;
};
// What follows the byte order character of 'descr'.
constexpr NpyCode kCodes[] = {{"b1", DType::boolean}, {"u1", DType::u8},  {"i1", DType::i8},  {"i2", DType::i16},
                              {"i4", DType::i32},     {"i8", DType::i64}, {"f2", DType::f16}, {"V2", DType::bf16},
                              {"f4", DType::f32},     {"f8", DType::f64}};

/// Reads the header, a Python dictionary of three known keys.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, const std::string& name) : text_(text), name_(name) {
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') fail("holds records; only plain numbers are read");
        descr = quoted();
      } else if (key == "fortran_order") {
        fortran = word() == "True";
      } else if (key == "shape") {
        shape();
      } else {
        fail(fmt::format("has the unknown key '{}' in its header", key));
      }
      if (!accept(',') && peek() != '}') fail("has a damaged header");
    }
    if (descr.empty() || !has_shape_) fail("has a header without type or shape");
  }

  std::string descr;
  bool fortran = false;
  std::vector<int64_t> dims;

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{} {}", name_, what)); }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail("has a damaged header");
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("has a damaged header");
    const size_t end = text_.find(quote, ++at_);
    if (end == text_.npos) fail("has a damaged header");
    std::string s(text_.substr(at_, end - at_));
    at_ = end + 1;
    return s;
  }
  std::string word() {
    peek();
    const size_t from = at_;
    while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_]))) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }
  void shape() {
    has_shape_ = true;
    expect('(');
    while (!accept(')')) {
      peek();
      int64_t n = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
      if (error != std::errc() || n < 0) fail("has a damaged shape in its header");
      at_ = static_cast<size_t>(end - text_.data());
      if (peek() == 'L') ++at_;  // written by Python 2
      dims.push_back(n);
      if (!accept(',') && peek() != ')') fail("has a damaged shape in its header");
    }
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  bool has_shape_ = false;
};

}  // namespace

NpyHead npy_head(std::string_view bytes, const std::string& name) {
  auto fail = [&](const std::string& what) { return Error(fmt::format("{} {}", name, what)); };
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic) throw fail("is not a .npy file");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const size_t major = byte(6);
  if (major < 1 || major > 3) throw fail(fmt::format("has .npy version {}; 1 to 3 are read", major));
  const size_t start = major == 1 ? 10 : 12;
  if (bytes.size() < start) throw fail("is cut short");
  size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start) throw fail("is cut short in its header");
  NpyHeader header(bytes.substr(start, length), name);
  NpyHead head{std::move(header.descr), std::move(header.dims), header.fortran, start + length};
  const char order = head.descr[0];
  const auto* code = std::find_if(std::begin(kCodes), std::end(kCodes),
                                  [&](const NpyCode& c) { return c.code == std::string_view(head.descr).substr(1); });
  if (code == std::end(kCodes) || (order != '<' && order != '>' && order != '|' && order != '='))
    head.problem = fmt::format("holds elements of type '{}', which is not supported", head.descr);
  else if (head.shape.size() > kMaxDims)
    head.problem = fmt::format("has {} dimensions; at most {} are supported", head.shape.size(), kMaxDims);
  else
    head.dtype = code->dtype;
  head.swapped = order == '>';
  return head;
}

Tensor parse_npy(std::string_view bytes, const std::string& name) {
  return npy_tensor(MappedFile::of(std::string(bytes), name));
}

Tensor npy_tensor(const std::shared_ptr<const MappedFile>& file) {
  auto fail = [&](const std::string& what) { return Error(fmt::format("{} {}", file->name(), what)); };
  const NpyHead head = npy_head(file->bytes(), file->name());
  if (!head.problem.empty()) throw fail(head.problem);
  const size_t item = itemsize(head.dtype), held = file->bytes().size() - head.begin;
  // Size by size against what the file holds, so that no product can overflow.
  const bool none = std::find(head.shape.begin(), head.shape.end(), 0) != head.shape.end();
  size_t count = none ? 0 : 1;
  for (int64_t d : head.shape) {
    if (none) break;
    if (static_cast<size_t>(d) > held / item / count)
      throw fail(fmt::format("is cut short: its shape needs more than the {} bytes that follow the header", held));
    count *= static_cast<size_t>(d);
  }
  if (count * item > held)
    throw fail(fmt::format("is cut short: {} bytes of elements are missing", count * item - held));

  std::vector<int64_t> dims = head.shape;
  if (head.fortran) std::reverse(dims.begin(), dims.end());
  const Tensor flat = tensor_of(file, head.begin, count * item, head.dtype, head.swapped && item > 1);
  const Tensor t = view_of(flat, Layout::contiguous(Shape(dims)));
  if (!head.fortran || dims.size() < 2) return t;
  Dims axes;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) axes.push_back(i);
  return view_of(t, t.layout().permute(axes));
}

Tensor load_npy(const std::string& path) {
  return npy_tensor(MappedFile::of(read_file(path), path));  // a copy: the file may be written anew
}

std::string npy_bytes(const Tensor& t) {
  const auto* code =
      std::find_if(std::begin(kCodes), std::end(kCodes), [&](const NpyCode& c) { return c.dtype == t.dtype(); });
  std::string shape;
  for (int64_t d : t.size()) shape += fmt::format("{}, ", d);
  if (t.ndim() > 1) shape.resize(shape.size() - 2);
  if (t.ndim() == 1) shape.pop_back();
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   itemsize(t.dtype()) == 1 ? '|' : '<', code->code, shape);
  // The elements start at a multiple of 64, as NumPy does it.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  std::vector<char> copy;
  out += logical_bytes(t, copy);
  return out;
}

void save_npy(const std::string& path, const Tensor& t) { write_file(path, npy_bytes(t)); }

NamedTensors load_npz(const std::string& path) {
  const std::string bytes = read_file(path);
  const Zip zip(bytes, path);
  NamedTensors arrays;
  for (const Zip::Member& m : zip.members()) {
    const std::string where = fmt::format("{}: {}", path, m.name);
    if (!m.name.ends_with(".npy")) throw Error(where + " is no array", "A .npz file is a zip of .npy files.");
    std::string unpacked;
    const std::string_view data = zip.data(m, unpacked);
    if (!zip.intact(m, data)) throw Error(where + " is damaged: its checksum is another");
    arrays.emplace_back(m.name.substr(0, m.name.size() - 4), parse_npy(data, where));
  }
  return arrays;
}

void save_npz(const std::string& path, const NamedTensors& arrays) {
  std::unordered_set<std::string> names;
  for (const auto& a : arrays)
    if (!names.insert(a.first).second) throw Error(fmt::format("{}: two arrays are named \"{}\"", path, a.first));
  FileWriter file(path);
  ZipWriter zip(file);
  for (const auto& [name, t] : arrays) zip.add(name + ".npy", npy_bytes(t));
  zip.finish();
  file.commit();
}

}  // namespace tenon::formats
