#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "engine/data/class_folders.h"
#include "engine/data/data_place.h"
#include "engine/data/image.h"
#include "engine/data/image_format.h"

namespace tenon::data {
namespace {

void read_planes(const std::string& path, const Shape& size, float* to) {
  try {
    to_planes(read_image(path, size[0]), size[1], size[2], to);
  } catch (const Error& e) {
    throw with_way_out(e, "images");
  }
}

void leave_out_unreadable(std::vector<ClassFile>& files, std::vector<Remark>& remarks) {
  std::vector<std::string> paths;
  for (const ClassFile& f : files) paths.push_back(f.path);
  std::vector<BadFile> bad;
  for (const BadImage& b : bad_images(paths)) bad.push_back({b.index, b.why});
  leave_out_bad(files, bad, "images", remarks);
}

/// Images of a format whose library this build is without, by their names.
void tell_missing_readers(const std::vector<ClassFile>& files, std::vector<Remark>& remarks) {
  for (const ImageFormat& format : image_formats()) {
    if (format.read) continue;
    Remark r{Remark::Kind::warning, "no_reader", {}};
    for (const ClassFile& f : files)
      for (const char* ending : format.endings)
        if (std::filesystem::path(f.path).extension() == ending) r.add(f.source());
    if (r.count == 0) continue;
    r.text = std::to_string(r.count) + " images are " + format.name + ", and this build reads none: install " +
             format.package + " and build anew";
    remarks.push_back(std::move(r));
  }
}

/// What happens to images of other sizes than asked for; to read all of them would take long, so of some all over.
void tell_sizes(const std::vector<ClassFile>& files, const Shape& size, std::vector<Remark>& remarks) {
  constexpr size_t kLookedAt = 64;
  std::vector<ImageSize> seen;
  const size_t apart = std::max<size_t>(1, files.size() / kLookedAt);
  for (size_t i = 0; i < files.size() && seen.size() < kLookedAt; i += apart) try {
      seen.push_back(size_of_image(files[i].path));
    } catch (const Error&) {  // told where it is read
    }
  if (seen.empty()) return;
  const auto area = [](const ImageSize& s) { return s.height * s.width; };
  const auto less = [&](const ImageSize& a, const ImageSize& b) { return area(a) < area(b); };
  const auto [least, most] = std::minmax_element(seen.begin(), seen.end(), less);
  int64_t same = 0, enlarged = 0, halved = 0;
  for (const ImageSize& s : seen) {
    const double scale = std::max(static_cast<double>(size[1]) / static_cast<double>(s.height),
                                  static_cast<double>(size[2]) / static_cast<double>(s.width));
    same += s.height == size[1] && s.width == size[2];
    enlarged += scale > 1;
    halved += static_cast<double>(size[1] * size[2]) < scale * scale * static_cast<double>(area(s)) / 2;
  }
  if (same == static_cast<int64_t>(seen.size())) return;
  const auto text = [](const ImageSize& s) { return fmt::format("{}x{}", s.height, s.width); };
  std::string said = fmt::format(
      "Images are scaled to cover {}x{} (height x width) and cut in the middle; the {} that "
      "were looked at are {}",
      size[1], size[2], seen.size(), text(*least));
  if (text(*least) != text(*most)) said += " to " + text(*most);
  if (enlarged) said += fmt::format(", {} are enlarged", enlarged);
  if (halved) said += fmt::format(", more than half of {} is cut off", halved);
  remarks.push_back({Remark::Kind::assumed, "scaled", said, {}, 0});
}

Split open_image_folder(const Options& o, const AttrValues& v) {
  if (o.dir.empty()) throw Error("the data set image-folder is read from a folder", data_place("it"));
  const Shape size{v.integer("channels"), v.integer("height"), v.integer("width")};
  const bool leave_out = v.text("unreadable") == "leave-out";
  FileKind images{is_image_name, image_kinds(), "images end in .png, .jpg and so on", size, {}, {}};
  images.read = [size](const std::string& path, float* to) { read_planes(path, size, to); };
  images.look = [leave_out, size](std::vector<ClassFile>& files, std::vector<Remark>& remarks, Shape&) {
    tell_missing_readers(files, remarks);
    if (leave_out) leave_out_unreadable(files, remarks);
    tell_sizes(files, size, remarks);
  };
  return open_class_folders(o.dir, images, split_rule(v));
}

std::vector<AttrDef> image_folder_attrs() {
  std::vector<AttrDef> list = {{"channels", int64_t{3}, 1, 3, "1: grey, 3: colours"},
                               {"height", int64_t{32}, 1, 1 << 13, "images are scaled and cut to this", {}, "pixels"},
                               {"width", int64_t{32}, 1, 1 << 13, "images are scaled and cut to this", {}, "pixels"},
                               unreadable_attr("images")};
  const std::vector<AttrDef> split = split_attrs();
  list.insert(list.end(), split.begin(), split.end());
  return list;
}

const bool registered_image_folder = register_dataset(
    {"image-folder",
     "images (JPEG, PNG, BMP, GIF, WebP, TIFF), one folder a class, with or without folders train and test above them",
     image_folder_attrs(), open_image_folder, true, [](const std::string& path) {
       return has_class_folders(path, is_image_name) ? Recognised::yes : Recognised::no;
     }});

}  // namespace
}  // namespace tenon::data
