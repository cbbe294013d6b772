#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/image.h"
#include "tests/engine/files.h"

// Small files of every kind of data set.
namespace tenon::testing_data {

/// A picture of colours that differ from number to number.
data::Image picture(int which, int64_t side = 12);
void write_tar(const std::string& path, const std::vector<std::pair<std::string, std::string>>& members, bool packed);
/// A folder for each kind that lies in files, small but whole.
void make_files(const std::string& kind, const testing_files::Folder& dir);
/// What opens them.
data::Options options_of(const data::DatasetDef& kind, const testing_files::Folder& dir);

/// A line a remark.
std::string lines_of(const std::vector<data::Remark>& remarks);

}  // namespace tenon::testing_data
