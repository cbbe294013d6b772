#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/cache_folder.h"
#include "core/error.h"
#include "core/file.h"

namespace tenon {
namespace {

struct Window : Storage {
  std::shared_ptr<const MappedFile> file;
};
void close_window(Storage* dead) { delete static_cast<Window*>(dead); }

bool is_bool(const char* p, size_t n) {
  return std::all_of(p, p + n, [](char c) { return c == 0 || c == 1; });
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(path + ": cannot be opened: " + std::strerror(errno));
  struct stat st {};
  const bool known = ::fstat(fd, &st) == 0;
  MappedPages pages;
  if (known && S_ISREG(st.st_mode))
    pages = MappedPages(fd, static_cast<size_t>(st.st_size), path, MappedPages::Writes::to_copies);
  ::close(fd);
  if (!pages) return of(read_file(path), path);
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->name_ = path;
  file->pages_ = std::move(pages);
  file->bytes_ = file->pages_.bytes();
  file->held_ = cache::hold(path);
  return file;
}

std::shared_ptr<const MappedFile> MappedFile::of(std::string bytes, std::string name) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->name_ = std::move(name);
  file->owned_ = std::move(bytes);
  file->bytes_ = file->owned_;
  return file;
}

std::shared_ptr<const MappedFile> MappedFile::part(std::shared_ptr<const MappedFile> whole, size_t offset,
                                                   size_t bytes) {
  if (offset > whole->bytes_.size() || bytes > whole->bytes_.size() - offset)
    throw Error(whole->name_ + ": " + std::to_string(bytes) + " bytes at byte " + std::to_string(offset) +
                " do not lie inside the file of " + std::to_string(whole->bytes_.size()) + " bytes");
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->name_ = whole->name_;
  file->bytes_ = whole->bytes_.substr(offset, bytes);
  file->whole_ = std::move(whole);
  return file;
}

void MappedFile::forget(std::string_view part) const {
  if (whole_) return whole_->forget(part);
  const auto from = static_cast<size_t>(part.data() - bytes_.data());
  pages_.forget(from, from + part.size());
}

Tensor tensor_of(const std::shared_ptr<const MappedFile>& file, size_t offset, size_t bytes, DType dtype,
                 bool swapped) {
  const size_t item = itemsize(dtype), all = file->bytes().size();
  if (offset > all || bytes > all - offset || bytes % item != 0)
    throw Error(file->name() + ": " + std::to_string(bytes) + " bytes of " + tenon::name(dtype) + " at byte " +
                std::to_string(offset) + " do not lie inside the file of " + std::to_string(all) + " bytes");
  const char* from = file->bytes().data() + offset;
  const Shape shape{static_cast<int64_t>(bytes / item)};
  swapped = swapped && item > 1;
  const bool odd = dtype == DType::boolean && !is_bool(from, bytes);
  if (bytes == 0 || swapped || odd || reinterpret_cast<uintptr_t>(from) % item != 0) {
    Tensor t = empty(shape, dtype);
    char* to = static_cast<char*>(t.raw());
    if (bytes) std::memcpy(to, from, bytes);
    for (size_t i = 0; swapped && i < bytes; i += item) std::reverse(to + i, to + i + item);
    for (size_t i = 0; odd && i < bytes; ++i) to[i] = to[i] != 0;
    return t;
  }
  auto* s = new Window;
  s->data = const_cast<char*>(from);
  s->bytes = bytes;
  s->file = file;
  s->release = close_window;
  Tensor t(tensor_impl_new());
  t.impl()->storage = Ref<Storage>::adopt(s);
  t.impl()->meta.dtype = dtype;
  t.impl()->meta.shape = shape;
  t.impl()->stride = Dims{1};
  return t;
}

void forget_pages(const Tensor& t) {
  const Storage* s = t.defined() ? t.storage() : nullptr;
  if (!s || s->release != close_window) return;
  const auto* window = static_cast<const Window*>(s);
  window->file->forget({static_cast<const char*>(window->data), window->bytes});
}

}  // namespace tenon
