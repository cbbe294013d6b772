#include "views/shared/language.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "views/runs/run_filter.h"

namespace tenon::views {
namespace {

/// A .mo file of these texts, as msgfmt writes it.
std::string compiled(const std::map<std::string, std::string>& texts, bool swapped = false) {
  std::string out, strings;
  const auto number = [&](uint32_t n) {
    if (swapped) n = __builtin_bswap32(n);
    out.append(reinterpret_cast<const char*>(&n), 4);
  };
  const auto count = static_cast<uint32_t>(texts.size());
  const uint32_t first = 28, second = first + 8 * count, bytes = second + 8 * count;
  for (uint32_t n : {0x950412deu, 0u, count, first, second, 0u, bytes}) number(n);
  for (int table = 0; table < 2; ++table)
    for (const auto& [english, words] : texts) {
      const std::string& s = table == 0 ? english : words;
      number(static_cast<uint32_t>(s.size()));
      number(bytes + static_cast<uint32_t>(strings.size()));
      strings += s + '\0';
    }
  return out + strings;
}

struct Language : ::testing::Test {
  void TearDown() override { set_language({}); }
};

TEST_F(Language, texts_are_translated_with_their_values_in_any_order) {
  EXPECT_EQ(tr("{} of {} runs", 3, "12"), "3 of 12 runs");
  for (bool swapped : {false, true}) {
    set_language(Catalogue::of_mo(
        compiled({{"Train", "Trainieren"}, {"{} of {} runs", "von {1} Läufen {0}"}, {"Stop", ""}}, swapped)));
    EXPECT_EQ(tr("Train"), "Trainieren");
    EXPECT_EQ(tr("{} of {} runs", 3, "12"), "von 12 Läufen 3");
    EXPECT_EQ(tr("Stop"), "Stop") << "a text without a translation stays";
    EXPECT_EQ(tr(tr_later("Pause")), "Pause");
  }
}

// Reports are the same bytes from a window in any language and from the command line.
TEST_F(Language, a_page_for_a_file_is_english) {
  set_language(Catalogue::of_mo(compiled({{"Train", "Trainieren"}})));
  {
    const EnglishTexts page;
    const EnglishTexts within;
    EXPECT_EQ(tr("Train"), "Train");
  }
  EXPECT_EQ(tr("Train"), "Trainieren");
}

TEST_F(Language, a_run_is_filtered_by_its_state_in_both_languages) {
  set_language(Catalogue::of_mo(compiled({{"finished", "fertig"}, {"failed", "gescheitert"}})));
  RunRow run;
  run.info.status = "finished";
  const RunFields fields;
  for (const char* fits : {"status = fertig", "status = finished", "status ~ FERT", "status != gescheitert",
                           "not status = failed", "status != failed"})
    EXPECT_TRUE(RunFilter(fits, fields).fits(run)) << fits;
  for (const char* not_ : {"status = gescheitert", "status = failed", "status != fertig", "status != finished"})
    EXPECT_FALSE(RunFilter(not_, fields).fits(run)) << not_;
}

TEST_F(Language, a_damaged_catalogue_is_an_error) {
  const std::string whole = compiled({{"Train", "Trainieren"}, {"Stop", "Anhalten"}});
  EXPECT_EQ(Catalogue::of_mo(whole).size(), 2u);
  for (size_t cut = 0; cut < whole.size() - 1; ++cut)
    EXPECT_THROW(Catalogue::of_mo(whole.substr(0, cut)), Error) << cut;
  for (size_t at = 0; at < 60; ++at)
    for (int bit : {0, 3, 7}) {
      std::string broken = whole;
      broken[at] = static_cast<char>(broken[at] ^ (1 << bit));
      try {
        Catalogue::of_mo(broken);
      } catch (const Error&) {
      }
    }
}

struct PoEntry {
  std::string english, words;
};
/// Of a .po file as packaging/languages.sh leaves it, without line breaks inside of texts.
std::vector<PoEntry> entries(const std::string& path) {
  const auto unquoted = [](const std::string& line) {
    std::string s;
    for (size_t i = line.find('"') + 1; i + 1 < line.size(); ++i) {
      if (line[i] == '\\' && i + 2 < line.size()) {
        ++i;
        s += line[i] == 'n' ? '\n' : line[i];
      } else {
        s += line[i];
      }
    }
    return s;
  };
  std::vector<PoEntry> all;
  std::istringstream in(read_file(path));
  bool words = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("msgid ")) {
      all.push_back({unquoted(line), {}});
      words = false;
    } else if (line.starts_with("msgstr ")) {
      all.back().words = unquoted(line);
      words = true;
    } else if (line.starts_with("\"")) {
      (words ? all.back().words : all.back().english) += unquoted(line);
    }
  }
  return all;
}

std::multiset<std::string> places(const std::string& text) {
  static const std::regex place(R"(\{[^{}]*\}|%L?[0-9]+|%n)");
  std::multiset<std::string> found;
  for (auto i = std::sregex_iterator(text.begin(), text.end(), place); i != std::sregex_iterator(); ++i) {
    std::string s = i->str();
    if (s.front() == '{' && s.size() > 2 && isdigit(static_cast<unsigned char>(s[1])))
      s = "{" + s.substr(s.find_first_not_of("0123456789", 1));
    found.insert(s);
  }
  return found;
}

TEST_F(Language, german_has_every_text_with_its_places) {
  const auto all = entries(TENON_SOURCE_DIR "/resources/languages/de.po");
  ASSERT_GT(all.size(), 1500u);
  std::set<std::string> known;
  for (const PoEntry& e : all) {
    if (e.english.empty()) continue;  // the head
    known.insert(e.english);
    EXPECT_FALSE(e.words.empty()) << "no German for: " << e.english;
    EXPECT_EQ(places(e.english), places(e.words)) << e.english << "\n" << e.words;
    EXPECT_EQ(e.english.ends_with("…"), e.words.ends_with("…")) << e.english;
    EXPECT_EQ(e.english.starts_with(" "), e.words.starts_with(" ")) << e.english;
    EXPECT_EQ(e.english.ends_with(" "), e.words.ends_with(" ")) << e.english;
  }
  // Texts of one line in the sources; packaging/languages.sh finds the others too.
  static const std::regex said(R"re(\btr(?:_later)?\("((?:[^"\\]|\\.)+)"[,)])re");
  int found = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(TENON_SOURCE_DIR "/views")) {
    if (file.path().extension() != ".cpp") continue;
    const std::string text = read_file(file.path().string());
    for (auto i = std::sregex_iterator(text.begin(), text.end(), said); i != std::sregex_iterator(); ++i, ++found) {
      std::string english = std::regex_replace((*i)[1].str(), std::regex(R"(\\(["\\]))"), "$1");
      english = std::regex_replace(english, std::regex(R"(\\n)"), "\n");
      EXPECT_TRUE(known.count(english))
          << file.path().filename() << " says \"" << english
          << "\", which resources/languages/de.po does not have: packaging/languages.sh adds it";
    }
  }
  EXPECT_GT(found, 1000);
}

}  // namespace
}  // namespace tenon::views
