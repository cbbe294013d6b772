#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tenon::views {

/// What may stand at a place of the text of a watch.
struct WatchWords {
  size_t begin = 0;                ///< where the word begins that is being typed
  std::vector<std::string> words;  ///< that begin with what is typed of it
  bool whole = false;              ///< it is one of them already
};
/// `cursor` in bytes; `layers` of the model, by name. Of a text that is no watch: nothing, or what would mend it.
WatchWords watch_words(std::string_view text, size_t cursor, const std::vector<std::string>& layers);

}  // namespace tenon::views
