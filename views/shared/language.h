#pragma once
#include <fmt/core.h>

#include <map>
#include <string>
#include <string_view>

// What the window says, in the language of the person who reads it.
//
// Note [Texts and their languages]
// The English text stands where it is said, within tr("..."), and is the key of its translation; a text without one
// stays English. Views' models, which know nothing of Qt, call this tr(); a QObject calls its own, which asks the same
// catalogue (views/frame/application.h). Texts in tables made before a language is known (commands, views, columns)
// are marked with tr_later() and given to tr() where they are shown. What is stored, compared, parsed or given to the
// command line is no text of the window: ids, keys of recipes, names of ops and dtypes, sentences of findings and
// errors stay as they are. One and many are two texts, chosen by the code.
//
// A language is resources/languages/CODE.po, which the usual editors of gettext read; packaging/languages.sh brings
// its list of texts up to date with the sources.
namespace tenon::views {

/// The texts of one language by their English.
class Catalogue {
 public:
  /// Reads a compiled catalogue (.mo of GNU gettext, either byte order); throws Error where it is none.
  static Catalogue of_mo(std::string_view bytes);
  /// Null where it has none.
  const std::string* find(std::string_view english) const;
  size_t size() const { return texts_.size(); }

 private:
  std::map<std::string, std::string, std::less<>> texts_;
};

/// The language from now on; English without one. To be called before the first window is made, on its thread.
void set_language(Catalogue catalogue);
/// While it lives, what its thread says is English: pages for files, which are the same bytes whoever makes them.
class EnglishTexts {
 public:
  EnglishTexts();
  ~EnglishTexts();
  EnglishTexts(const EnglishTexts&) = delete;

 private:
  bool before_;
};
/// Of the language set; null where it has none.
const std::string* translation(std::string_view english);

/// `english` in the language of the window.
std::string tr(const char* english);
/// The same with values in the places {}; a translation may take them in another order ({1} before {0}).
template <class A, class... Rest>
std::string tr(fmt::format_string<const A&, const Rest&...> english, const A& a, const Rest&... rest) {
  const fmt::string_view text = english;
  const std::string* words = translation({text.data(), text.size()});
  return fmt::vformat(words ? fmt::string_view(*words) : text, fmt::make_format_args(a, rest...));
}
/// Marks a text that is given to tr() later.
constexpr const char* tr_later(const char* english) { return english; }

}  // namespace tenon::views
