#include <filesystem>
#include <map>

#include "core/error.h"
#include "engine/data/class_folders.h"
#include "engine/data/image.h"
#include "engine/data/image_format.h"

namespace tenon::data {
namespace {

void read_planes(const std::string& path, const Shape& size, float* to) {
  try {
    to_planes(read_image(path, size[0]), size[1], size[2], to);
  } catch (const Error& e) {
    const std::string leave = "leave images out that cannot be read: data.unreadable = leave-out";
    throw Error(e.message(), e.hint().empty() ? leave : e.hint() + ", or " + leave, e.kind());
  }
}

void leave_out_bad(std::vector<ClassFile>& files, std::vector<Remark>& remarks) {
  std::vector<std::string> paths;
  for (const ClassFile& f : files) paths.push_back(f.path);
  const std::vector<BadImage> bad = bad_images(paths);
  if (bad.empty()) return;
  if (bad.size() == files.size()) throw Error("no image can be read: " + bad.front().why);
  Remark r{Remark::Kind::warning, "unreadable", {}};
  for (const BadImage& b : bad) r.add({paths[b.index], {}});
  r.text = std::to_string(bad.size()) + " of " + std::to_string(paths.size()) +
           " images cannot be read and are left out (" + bad.front().why + ")";
  remarks.push_back(std::move(r));
  for (auto b = bad.rbegin(); b != bad.rend(); ++b) files.erase(files.begin() + static_cast<int64_t>(b->index));
}

/// Images of a format whose library this build is without, by their names.
void tell_missing_readers(const std::vector<ClassFile>& files, std::vector<Remark>& remarks) {
  for (const ImageFormat& format : image_formats()) {
    if (format.read) continue;
    Remark r{Remark::Kind::warning, "no_reader", {}};
    for (const ClassFile& f : files)
      for (const char* ending : format.endings)
        if (std::filesystem::path(f.path).extension() == ending) r.add({f.path, {}});
    if (r.count == 0) continue;
    r.text = std::to_string(r.count) + " images are " + format.name + ", and this build reads none: install " +
             format.package + " and build anew";
    remarks.push_back(std::move(r));
  }
}

Split open_image_folder(const Options& o, const AttrValues& v) {
  if (o.dir.empty()) throw Error("the data set image-folder is read from a folder", "name it: --data DIR");
  const Shape size{v.integer("channels"), v.integer("height"), v.integer("width")};
  const bool leave_out = v.text("unreadable") == "leave-out";
  FileKind images{is_image_name, image_kinds(), "images end in .png, .jpg and so on", size, {}, {}};
  images.read = [size](const std::string& path, float* to) { read_planes(path, size, to); };
  images.look = [leave_out](std::vector<ClassFile>& files, std::vector<Remark>& remarks) {
    tell_missing_readers(files, remarks);
    if (leave_out) leave_out_bad(files, remarks);
  };
  return open_class_folders(o.dir, images, split_rule(v));
}

std::vector<AttrDef> image_folder_attrs() {
  std::vector<AttrDef> list = {{"channels", int64_t{3}, 1, 3, "1: grey, 3: colours"},
                               {"height", int64_t{32}, 1, 1 << 13, "images are scaled and cut to this", {}, "pixels"},
                               {"width", int64_t{32}, 1, 1 << 13, "images are scaled and cut to this", {}, "pixels"},
                               {"unreadable",
                                std::string("stop"),
                                0,
                                0,
                                "what is done about images that cannot be read; to leave them out all are read once",
                                {"stop", "leave-out"}}};
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
