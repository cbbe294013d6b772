#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <numbers>

#include "core/error.h"
#include "core/file.h"
#include "core/random.h"
#include "engine/data/class_folders.h"
#include "engine/data/wav.h"

namespace tenon::data {
namespace {

constexpr int64_t kLongest = 1 << 24;  // samples of a sound
/// Of what is found: the spectrogram of less has a few columns, which networks for images shrink to none.
constexpr int64_t kShortest = 2048;

bool is_wav_name(const std::string& name) {
  std::string low = name;
  for (char& c : low) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return low.ends_with(".wav") || low.ends_with(".wave");
}

/// At one rate, cut in the middle or with silence on both sides.
void read_sound(const std::string& path, int64_t rate, int64_t length, float* to) {
  Sound sound;
  try {
    sound = resampled(parse_wav(read_file(path), path), rate);
  } catch (const Error& e) {
    throw with_way_out(e, "sounds");
  }
  const auto n = static_cast<int64_t>(sound.samples.size());
  std::fill(to, to + length, 0.0f);
  const int64_t from = std::max<int64_t>(0, (n - length) / 2), at = std::max<int64_t>(0, (length - n) / 2);
  std::copy_n(sound.samples.begin() + from, std::min(n, length), to + at);
}

/// How sounds are read; 0: as most of the files are, or the middle one of them.
struct Reading {
  int64_t rate = 0, length = 0;
};

/// What a file's header says, where it can be read.
struct Heard {
  const ClassFile* file;
  SoundHeader sound;
  int64_t at(int64_t rate) const {
    return static_cast<int64_t>(static_cast<double>(sound.samples) * static_cast<double>(rate) /
                                static_cast<double>(sound.rate));
  }
};

void settle(Reading& reading, const std::vector<Heard>& heard) {
  if (reading.rate == 0) {
    std::map<int64_t, int64_t> files;
    for (const Heard& h : heard) ++files[h.sound.rate];
    // Of equally many the higher rate: nothing is lost of these.
    reading.rate = std::max_element(files.begin(), files.end(), [](const auto& a, const auto& b) {
                     return std::pair(a.second, a.first) < std::pair(b.second, b.first);
                   })->first;
  }
  if (reading.length > 0) return;
  std::vector<int64_t> lengths;
  for (const Heard& h : heard) lengths.push_back(h.at(reading.rate));
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  reading.length = std::clamp<int64_t>(*middle, kShortest, kLongest);
}

/// What rates and lengths the files have, by their headers. With `leave_out` those that have none are taken out.
void look_at_sounds(std::vector<ClassFile>& files, Reading& reading, bool leave_out, std::vector<Remark>& remarks) {
  std::vector<BadFile> bad;
  std::vector<std::pair<size_t, SoundHeader>> headers;
  for (size_t i = 0; i < files.size(); ++i) {
    try {
      headers.emplace_back(i, sound_header(files[i].path));
    } catch (const Error& e) {
      if (!leave_out) throw with_way_out(e, "sounds");
      bad.push_back({i, e.message()});
    }
  }
  std::vector<Heard> heard;
  for (const auto& [i, header] : headers) heard.push_back({&files[i], header});
  if (!heard.empty()) settle(reading, heard);
  const int64_t rate = reading.rate, length = reading.length;
  int64_t cut = 0, filled = 0;
  std::map<int64_t, int64_t> rates;  // files by their rate
  Remark torn{Remark::Kind::warning, "cut_short", {}}, others{Remark::Kind::assumed, "other_rate", {}};
  for (const Heard& h : heard) {
    if (h.sound.rate != rate) ++rates[h.sound.rate], others.add(h.file->source());
    if (h.sound.cut_short) torn.add(h.file->source());
    cut += h.at(rate) > length;
    filled += h.at(rate) < length;
  }
  const size_t all = heard.size();
  leave_out_bad(files, bad, "sounds", remarks);
  remarks.push_back({Remark::Kind::assumed,
                     "reading",
                     fmt::format("Sounds are read at {} samples a second and {} samples long; of {} files {} are cut, "
                                 "{} are filled up with silence",
                                 rate, length, all, cut, filled),
                     {},
                     0});
  if (others.count > 0) {
    for (const auto& [other, n] : rates)
      others.text += fmt::format("{}{} at {}", others.text.empty() ? "" : ", ", n, other);
    others.text =
        fmt::format("{} of {} sounds have another rate and are resampled ({})", others.count, all, others.text);
    remarks.push_back(std::move(others));
  }
  if (torn.count == 0) return;
  torn.text = fmt::format("{} sounds end before the length that their headers state: the rest is taken for silence",
                          torn.count);
  remarks.push_back(std::move(torn));
}

/// Tones that rise, fall or stay, in noise: something to begin with.
class Tones : public Dataset {
 public:
  Tones(int64_t samples, int64_t rate, int64_t length, uint64_t seed)
      : samples_(samples), rate_(rate), length_(length), random_{seed, stream_of("data.tones")} {}
  int64_t size() const override { return samples_; }
  Meta input() const override { return {DType::f32, {}, {1, length_}}; }
  Meta target() const override { return {DType::i64, {}, {}}; }
  int64_t classes() const override { return 3; }
  std::string class_name(int64_t i) const override {
    const char* names[] = {"falls", "rises", "stays"};
    return i >= 0 && i < 3 ? names[i] : std::to_string(i);
  }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override {
    for (int64_t i = 0; i < count; ++i) {
      const auto row = static_cast<uint64_t>(rows[i]);
      auto* to = static_cast<float*>(x) + i * length_;
      const int64_t label = rows[i] % 3;
      const double low = 200 + 600 * random_.uniform_double(4 * row),
                   high = low * (2 + random_.uniform_double(4 * row + 1));
      const double from = label == 0 ? high : low, until = label == 1 ? high : from == high ? low : from;
      double phase = 0;
      const Philox noise{random_.seed, random_.stream + 1 + row};
      for (int64_t t = 0; t < length_; ++t) {
        const double share = static_cast<double>(t) / static_cast<double>(length_);
        phase += 2 * std::numbers::pi * (from + (until - from) * share) / static_cast<double>(rate_);
        to[t] = static_cast<float>(0.4 * std::sin(phase) + 0.05 * noise.normal(static_cast<uint64_t>(t)));
      }
      static_cast<int64_t*>(y)[i] = label;
    }
  }

 private:
  int64_t samples_, rate_, length_;
  Philox random_;
};

/// What was left to the data.
std::vector<Attr> found_of(const Reading& r, const AttrValues& v) {
  std::vector<Attr> found;
  if (v.integer("rate") == 0) found.push_back({"rate", r.rate});
  if (v.integer("length") == 0) found.push_back({"length", r.length});
  return found;
}

Split open_audio_folder(const Options& o, const AttrValues& v) {
  const auto reading = std::make_shared<Reading>(Reading{v.integer("rate"), v.integer("length")});
  if (o.dir.empty()) {
    constexpr int64_t kTones = 360, kUsual = 16000;
    if (reading->rate == 0) reading->rate = kUsual;
    if (reading->length == 0) reading->length = kUsual;
    const auto all = std::make_shared<Tones>(kTones, reading->rate, reading->length, o.seed);
    const SplitRule rule = split_rule(v);
    refuse_rule(rule, "what is generated");
    const Parts parts = split_rows(kTones, rule.share);
    return {subset(all, parts.train), subset(all, parts.test), {}, found_of(*reading, v)};
  }
  FileKind sounds{is_wav_name, "WAV", "sounds end in .wav", {1, reading->length}, {}, {}};
  sounds.read = [reading](const std::string& path, float* to) { read_sound(path, reading->rate, reading->length, to); };
  sounds.look = [reading, leave_out = v.text("unreadable") == "leave-out"](std::vector<ClassFile>& files,
                                                                           std::vector<Remark>& remarks, Shape& input) {
    look_at_sounds(files, *reading, leave_out, remarks);
    input = {1, reading->length};
  };
  Split split = open_class_folders(o.dir, sounds, split_rule(v));
  split.found = found_of(*reading, v);
  return split;
}

std::vector<AttrDef> audio_folder_attrs() {
  std::vector<AttrDef> list = {
      {"rate",
       int64_t{0},
       0,
       384000,
       "sounds are resampled to this; 0: what most of the files have",
       {},
       "samples a second"},
      {"length",
       int64_t{0},
       0,
       kLongest,
       "sounds are cut or filled up with silence to this; 0: as long as the middle one of the files, 2048 at least",
       {},
       "samples"},
      unreadable_attr("sounds")};
  const std::vector<AttrDef> split = split_attrs();
  list.insert(list.end(), split.begin(), split.end());
  return list;
}

const bool registered_audio_folder =
    register_dataset({"audio-folder",
                      "sounds (WAV), one folder a class, with or without folders "
                      "train and test above them; generated ones where no folder "
                      "is named",
                      audio_folder_attrs(), open_audio_folder, true, [](const std::string& path) {
                        return has_class_folders(path, is_wav_name) ? Recognised::yes : Recognised::no;
                      }});

}  // namespace
}  // namespace tenon::data
