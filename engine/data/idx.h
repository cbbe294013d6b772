#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout.h"

namespace tenon::data {

/// An IDX file of bytes (http://yann.lecun.com/exdb/mnist): big-endian magic 0x0000 08 <axes>, one 32-bit size an axis,
/// the values.
struct Idx {
  Shape shape;
  std::vector<uint8_t> values;
};

/// `path`, or the same with or without ".gz" where only that exists.
std::string idx_path(const std::string& path);
/// Reads the file at idx_path(path), gzipped or plain. Throws Error naming the file
/// and the byte counts for a file that is missing, no IDX file of `axes` axes of bytes, damaged, shorter or longer than
/// its sizes say.
Idx read_idx(const std::string& path, int axes);

/// What the header of an IDX file of any type of value says.
struct IdxHeader {
  std::string dtype;  ///< "u8", "i8", "i16", "i32", "f32", "f64"
  std::vector<int64_t> shape;
};
/// Reads the header of a whole unpacked file. Throws Error naming `name` where it is cut short, of no type of value
/// that IDX has, or where more or fewer bytes follow than it says.
IdxHeader idx_header(std::string_view bytes, const std::string& name);

}  // namespace tenon::data
