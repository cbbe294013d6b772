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

/// What rates and lengths the files have, by their headers. With `leave_out` those that have none are taken out.
void look_at_sounds(std::vector<ClassFile>& files, int64_t rate, int64_t length, bool leave_out,
                    std::vector<Remark>& remarks) {
  int64_t cut = 0, filled = 0;
  std::map<int64_t, int64_t> others;  // files by their rate
  Remark torn{Remark::Kind::warning, "cut_short", {}};
  std::vector<BadFile> bad;
  for (size_t i = 0; i < files.size(); ++i) {
    const ClassFile& f = files[i];
    SoundHeader sound;
    try {
      sound = sound_header(f.path);
    } catch (const Error& e) {
      if (!leave_out) throw with_way_out(e, "sounds");
      bad.push_back({i, e.message()});
      continue;
    }
    const auto n = static_cast<int64_t>(static_cast<double>(sound.samples) * static_cast<double>(rate) /
                                        static_cast<double>(sound.rate));
    if (sound.rate != rate) ++others[sound.rate];
    if (sound.cut_short) torn.add(f.source());
    cut += n > length;
    filled += n < length;
  }
  leave_out_bad(files, bad, "sounds", remarks);
  std::string rates;
  for (const auto& [other, n] : others) rates += fmt::format("{}{} at {}", rates.empty() ? "" : ", ", n, other);
  remarks.push_back({Remark::Kind::assumed,
                     "reading",
                     fmt::format("Sounds are read at {} samples a second and {} samples long; of {} files {} another "
                                 "rate{}, {} are cut, {} are filled up with silence",
                                 rate, length, files.size(), rates.empty() ? "none has" : "some have",
                                 rates.empty() ? "" : " (" + rates + ")", cut, filled),
                     {},
                     0});
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

Split open_audio_folder(const Options& o, const AttrValues& v) {
  if (o.dir.empty()) {
    constexpr int64_t kTones = 360;
    const auto all = std::make_shared<Tones>(kTones, v.integer("rate"), v.integer("length"), o.seed);
    const SplitRule rule = split_rule(v);
    refuse_rule(rule, "what is generated");
    const Parts parts = split_rows(kTones, rule.share);
    return {subset(all, parts.train), subset(all, parts.test)};
  }
  const int64_t rate = v.integer("rate"), length = v.integer("length");
  FileKind sounds{is_wav_name, "WAV", "sounds end in .wav", {1, length}, {}, {}};
  sounds.read = [rate, length](const std::string& path, float* to) { read_sound(path, rate, length, to); };
  sounds.look = [rate, length, leave_out = v.text("unreadable") == "leave-out"](std::vector<ClassFile>& files,
                                                                                std::vector<Remark>& remarks) {
    look_at_sounds(files, rate, length, leave_out, remarks);
  };
  return open_class_folders(o.dir, sounds, split_rule(v));
}

std::vector<AttrDef> audio_folder_attrs() {
  std::vector<AttrDef> list = {
      {"rate", int64_t{16000}, 100, 384000, "sounds are resampled to this", {}, "samples a second"},
      {"length", int64_t{16000}, 1, 1 << 24, "sounds are cut or filled up with silence to this", {}, "samples"},
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
