#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace tenon::data {

/// How samples are kept for the test where the files have no split of their own.
struct SplitRule {
  /// `own`: as the kind of data does by itself, the end of a text or whole shards.
  enum class Way : uint8_t { own, spread, random, stratified, group, time };
  Way way = Way::spread;
  double share = 0.2;  ///< of the samples
  std::string by;      ///< what group, time or class of a sample is: a column, a pattern, a file; empty: the kind's own
  uint64_t seed = 0;   ///< of what is drawn: not the seed of a run, for runs are compared on the same test split
  /// Whether the way asks for a word a sample: its class, its group or its time.
  bool by_words() const { return way >= Way::stratified; }
};
/// The attributes of a kind whose samples a rule divides, and the rule that they say. Throws Error (usage) where
/// data.split_by is given to a way that has no use for it.
/// `own`: a further way, which is then the default, with what it does.
std::vector<AttrDef> split_attrs(const std::string& own = {}, const std::string& how = {});
SplitRule split_rule(const AttrValues& values);
/// For files that are divided already: throws Error (usage) where a rule is named that would divide them anew.
void refuse_rule(const SplitRule& rule, const std::string& where);

/// What a rule asks of samples.
struct SplitWords {
  std::vector<std::string> of;  ///< a word a sample; empty: it has none
  std::string what;             ///< what the words are: "column patient"
};
/// The rows that `rule` keeps for each part. No group is in both parts; of times the later ones are the test, and
/// samples of the same time stay together. `told` receives what was done, to be remarked. Throws Error naming the
/// places of samples without a word, of times that cannot be read, and where the words leave nothing to divide by.
Parts divide(const SplitRule& rule, int64_t samples, const SplitWords& words,
             const std::function<Source(int64_t)>& source, Remark& told);

/// What `text` finds in a name: a regular expression, its first bracket where it has one. Throws Error (usage) that
/// begins with `key` for what is no regular expression.
std::function<std::string(const std::string& name)> name_pattern(const std::string& text, const std::string& key);

}  // namespace tenon::data
