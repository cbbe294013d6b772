#include "engine/formats/torch/storage.h"

#include <fmt/format.h>

#include <cstring>

#include "core/error.h"
#include "core/mapped_file.h"

namespace tenon::formats {
namespace {

// The magic number of the legacy format, as a pickle of its own: 0x1950a86a20f9469cfc6c.
constexpr std::string_view kLegacyMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);

}  // namespace

void TorchStorages::fail(const std::string& what) const { throw Error(fmt::format("{} {}", file_->name(), what)); }

Pickle TorchStorages::open(bool& legacy, std::vector<std::string>& warnings) {
  const std::string_view bytes = file_->bytes();
  legacy = bytes.starts_with(kLegacyMagic);
  if (legacy) return open_legacy();
  if (bytes.starts_with("PK\x03\x04")) return open_zip(warnings);
  if (bytes.size() > 262 && bytes.substr(257, 5) == "ustar")
    fail("is in the tar format of PyTorch before 0.1.10, which is not read");
  fail("is not a file that torch.save writes");
}

Pickle TorchStorages::open_zip(std::vector<std::string>& warnings) {
  zip_.emplace(file_->bytes(), file_->name());
  if (zip_->members().empty()) fail("is an empty zip archive");
  const std::string& first = zip_->members().front().name;
  prefix_ = first.substr(0, first.find('/') == first.npos ? 0 : first.find('/') + 1);
  if (!program_ && zip_->find(prefix_ + "constants.pkl")) fail("is a TorchScript program, which is not read here");
  if (zip_->find(prefix_ + "archive_format")) fail("is an exported program (.pt2), which is not read here");
  const Zip::Member* pickle = zip_->find(prefix_ + member_ + ".pkl");
  if (!pickle) fail("is a zip archive without data.pkl: not one that torch.save writes");
  std::string unpacked;
  if (const Zip::Member* order = zip_->find(prefix_ + "byteorder")) {
    const std::string_view text = zip_->data(*order, unpacked);
    if (text != "little" && text != "big") fail(fmt::format("has the unknown byte order \"{}\"", text.substr(0, 40)));
    swapped_ = text == "big";
  }
  const std::string_view data = zip_->data(*pickle, unpacked);
  if (!zip_->intact(*pickle, data)) warnings.push_back(member_ + ".pkl does not match its checksum");
  return read_pickle(data, PickleOf::objects);
}

// Five pickles (magic, version, system, value, keys), then the storages in the order of the keys: a count and the
// elements. Both are little-endian whatever machine wrote them.
Pickle TorchStorages::open_legacy() {
  std::string_view rest = file_->bytes();
  auto next = [&] {
    Pickle p = read_pickle(rest, PickleOf::objects);
    rest.remove_prefix(p.bytes());
    return p;
  };
  next();
  const Pickle version = next();
  if (const auto* v = version->as<int64_t>(); !v || *v != 1001) fail("has an unknown version of the legacy format");
  next();
  Pickle value = next();
  const Pickle keys = next();
  const auto* list = keys->as<PyValue::List>();
  if (!list) fail("has no list of storages");
  std::map<std::string, int> items;
  for (const PyValue& v : value.values()) {
    const auto* o = v.object();
    const auto* id = o && o->way == PyValue::Object::Way::persistent ? o->args->as<PyValue::List>() : nullptr;
    if (!id || id->size() < 5) continue;
    const auto* type = (*id)[1]->as<PyValue::Global>();
    const auto* key = (*id)[2]->as<std::string>();
    if (type && key && torch_storage(*type)) items.emplace(*key, torch_storage(*type)->item);
  }
  for (const PyRef k : *list) {
    const auto* key = k->as<std::string>();
    const auto item = key ? items.find(*key) : items.end();
    if (item == items.end()) fail("lists a storage that nothing in it uses");
    uint64_t count, bytes;
    if (rest.size() < 8) fail(fmt::format("is cut short before storage {}", *key));
    std::memcpy(&count, rest.data(), 8);
    rest.remove_prefix(8);
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(item->second), &bytes) || bytes > rest.size())
      fail(fmt::format("is cut short: storage {} has {} elements of {} bytes, and {} bytes are left", *key, count,
                       item->second, rest.size()));
    if (!places_.emplace(*key, Place{file_, static_cast<size_t>(rest.data() - file_->bytes().data()), bytes}).second)
      fail(fmt::format("lists storage {} twice", *key));
    rest.remove_prefix(bytes);
  }
  return value;
}

TorchStorages::Place TorchStorages::find(const std::string& key) {
  if (const auto it = places_.find(key); it != places_.end()) return it->second;
  const Zip::Member* m = zip_ ? zip_->find(prefix_ + member_ + "/" + key) : nullptr;
  if (!m) fail(fmt::format("lacks the storage {}", key.substr(0, 100)));
  Place p{file_, m->offset, m->size};
  if (m->method != 0) {
    std::string unpacked;
    zip_->data(*m, unpacked);
    p = {MappedFile::of(std::move(unpacked), file_->name()), 0, m->size};
  }
  return places_.emplace(key, p).first->second;
}

}  // namespace tenon::formats
