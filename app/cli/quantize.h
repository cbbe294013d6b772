#pragma once
#include "app/cli/command.h"

namespace tenon::app {

/// The options of `tenon export` that ask for fewer bits.
const std::vector<Option>& quantize_options();
/// What `tenon export --quantize` does.
int export_in_fewer_bits(const Args& args);

}  // namespace tenon::app
