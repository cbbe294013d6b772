#pragma once
#include <cstdint>
#include <string>

namespace tenon::views {

/// Numbers as the window shows them: with their unit and at most four significant digits; the exact value belongs in a
/// tooltip.
std::string format_bytes(double bytes);  ///< "38.2 MiB"
std::string format_ns(double ns);        ///< "1.24 ms", the largest unit that keeps the number at or above 1
std::string format_seconds(double s);    ///< "4.20 s", "3 min 12 s", "2 h 05 min"
/// "just now", "12 min ago", "3 hours ago", "1 day ago".
std::string format_ago(int64_t seconds);
std::string format_count(double n);                                   ///< "812", "12.4 k", "3.10 M"
std::string format_rate(double per_second, const std::string& what);  ///< "412 samples/s"
std::string format_flops(double flops);                               ///< "2.42 GFLOP"
std::string format_percent(double fraction);                          ///< "38 %", "0.4 %"
std::string format_value(double v);     ///< an element of a tensor or a metric: "0.2140", "-1.2e-07", "nan", "inf"
std::string format_exact(double v);     ///< the shortest text that reads back as the same number
std::string format_grouped(int64_t n);  ///< "1,240"
/// A value that a name tells the unit of: metric names that end in bytes, seconds or ms, or begin with accuracy.
std::string format_metric(const std::string& metric, double v);

/// `text` with its middle replaced by "…" so that at most `limit` characters (not bytes) stay. Never cut at the edge.
std::string elide_middle(const std::string& text, size_t limit);
/// The number of characters (UTF-8 code points) of `text`.
size_t characters(const std::string& text);
/// Lower-case letters of ASCII; the rest unchanged.
std::string lower(std::string text);
/// Whether `text` holds every word of `words`, in any case of letters.
bool holds_words(const std::string& text, const std::string& words);
/// How well `query` fits `text` as a subsequence; -1 where it does not. Higher is better: runs, word starts and early
/// hits count.
int fuzzy_score(const std::string& query, const std::string& text);

/// "Nice" ticks (1, 2, 5 times a power of ten) that cover [lo, hi] with about `most` of them: a few more where these
/// would be one alone, which tells nothing of the scale.
struct Ticks {
  double first = 0, step = 1;
  int count = 0;
  double at(int i) const { return first + i * step; }
};
Ticks nice_ticks(double lo, double hi, double most);

}  // namespace tenon::views
