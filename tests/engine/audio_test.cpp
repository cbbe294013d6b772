// Sounds: WAV of every kind against values that are known, other rates against sines, and the spectrogram against
// tones.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "engine/data/transform.h"
#include "engine/data/wav.h"
#include "tests/engine/data_files.h"

namespace tenon::data {
namespace {

using testing_data::lines_of;
using testing_files::error_of;
using testing_files::Folder;
using testing_files::write;
using I = int64_t;

std::string put(uint64_t v, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i) s += static_cast<char>(v >> (8 * i));
  return s;
}

std::string wav(int tag, int channels, int bits, const std::string& samples, int rate = 8000) {
  const int frame = channels * bits / 8;
  return "RIFF" + put(36 + samples.size(), 4) + "WAVEfmt " + put(16, 4) + put(static_cast<uint64_t>(tag), 2) +
         put(static_cast<uint64_t>(channels), 2) + put(static_cast<uint64_t>(rate), 4) +
         put(static_cast<uint64_t>(rate * frame), 4) + put(static_cast<uint64_t>(frame), 2) +
         put(static_cast<uint64_t>(bits), 2) + "data" + put(samples.size(), 4) + samples;
}

Sound sine(double hertz, I rate, I samples) {
  Sound s{rate, {}};
  for (I i = 0; i < samples; ++i)
    s.samples.push_back(static_cast<float>(
        0.5 * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / static_cast<double>(rate))));
  return s;
}

TEST(Wav, IsReadInEveryDepth) {
  const auto values = [](const std::string& bytes) { return parse_wav(bytes, "a.wav").samples; };
  using Values = std::vector<float>;
  EXPECT_EQ(values(wav(1, 1, 8, std::string("\x80\xc0\x40\x00", 4))), (Values{0, 0.5f, -0.5f, -1}));
  EXPECT_EQ(values(wav(1, 1, 16, put(0x4000, 2) + put(0xc000, 2))), (Values{0.5f, -0.5f}));
  EXPECT_EQ(values(wav(1, 1, 24, put(0x400000, 3) + put(0x800000, 3))), (Values{0.5f, -1}));
  EXPECT_EQ(values(wav(1, 1, 32, put(0x40000000, 4) + put(0xc0000000, 4))), (Values{0.5f, -0.5f}));
  EXPECT_EQ(values(wav(3, 1, 32, put(std::bit_cast<uint32_t>(0.25f), 4))), (Values{0.25f}));
  EXPECT_EQ(values(wav(3, 1, 64, put(std::bit_cast<uint64_t>(-0.75), 8))), (Values{-0.75f}));
  EXPECT_EQ(values(wav(1, 2, 16, put(0x4000, 2) + put(0, 2) + put(0xc000, 2) + put(0xc000, 2))), (Values{0.25f, -0.5f}))
      << "two channels are their mean";
  const Sound there = sine(440, 8000, 300), back = parse_wav(wav_bytes(there), "a.wav");
  EXPECT_EQ(back.rate, 8000);
  for (size_t i = 0; i < 300; ++i) EXPECT_NEAR(back.samples[i], there.samples[i], 1e-4);
}

TEST(Wav, SaysWhatIsWrong) {
  const std::string good = wav(1, 1, 16, std::string(8, '\1'));
  EXPECT_SAYS(error_of([] { parse_wav("hello", "a.wav"); }), "a.wav is no WAV file");
  EXPECT_SAYS(error_of([&] { parse_wav(good.substr(0, 30), "a.wav"); }), "a.wav is damaged");
  EXPECT_SAYS(error_of([&] { parse_wav(good.substr(0, 44), "a.wav"); }), "a.wav holds no sound");
  EXPECT_EQ(parse_wav(good.substr(0, 48), "a.wav").samples.size(), 2u)
      << "a length beyond the end is all that is there";
  EXPECT_SAYS(error_of([] { parse_wav(wav(6, 1, 8, "abcd"), "a.wav"); }), "format 6, 8 bits");
  EXPECT_SAYS(error_of([] { parse_wav(wav(1, 0, 16, "abcd"), "a.wav"); }), "0 channels");
}

TEST(Wav, AHeaderIsReadWithoutItsSound) {
  Folder dir;
  const std::string good = wav(1, 2, 16, std::string(400, '\1'), 22050);
  const auto header = [&](const std::string& bytes) {
    write(dir.file("a.wav"), bytes);
    return sound_header(dir.file("a.wav"));
  };
  EXPECT_EQ(header(good).rate, 22050);
  EXPECT_EQ(header(good).samples, 100);
  EXPECT_FALSE(header(good).cut_short);
  EXPECT_TRUE(header(good.substr(0, 244)).cut_short);
  EXPECT_EQ(header(good.substr(0, 244)).samples, 50);
  std::string streamed = good;
  streamed.replace(40, 4, put(0xffffffff, 4));
  EXPECT_FALSE(header(streamed).cut_short) << "its length was not known when it was written";
  EXPECT_EQ(header(streamed).samples, 100);
  for (size_t n = 0; n < 46; ++n) {
    EXPECT_NE(error_of([&] { header(good.substr(0, n)); }), "") << n;
    EXPECT_EQ(error_of([&] { header(good.substr(0, n)); }),
              error_of([&] { parse_wav(good.substr(0, n), dir.file("a.wav")); }))
        << n;
  }
}

TEST(Wav, AnotherRateKeepsWhatIsHeardAndLosesTheRest) {
  for (const auto& [from, to] : {std::pair<I, I>{44100, 16000}, {8000, 16000}, {48000, 16000}, {16000, 22050}}) {
    const Sound out = resampled(sine(440, from, from / 2), to), want = sine(440, to, to / 2);
    ASSERT_EQ(out.rate, to);
    ASSERT_EQ(out.samples.size(), want.samples.size());
    for (size_t i = want.samples.size() / 4; i < want.samples.size() * 3 / 4; ++i)
      ASSERT_NEAR(out.samples[i], want.samples[i], 2e-3) << from << " to " << to << " at " << i;
  }
  // 7 kHz does not exist at 8000 samples a second, and is not mirrored to 1 kHz.
  const Sound gone = resampled(sine(7000, 16000, 16000), 8000);
  for (size_t i = 2000; i < 6000; ++i) ASSERT_LT(std::abs(gone.samples[i]), 5e-3f);
}

TEST(AudioFolder, SoundsAreCutFilledAndAtOneRate) {
  Folder dir;
  testing_data::make_files("audio-folder", dir);
  const Split split =
      open_dataset("audio-folder", {.dir = dir.str(), .attrs = {{"rate", I{8000}}, {"length", I{1000}}}});
  EXPECT_EQ(split.train->size() + split.test->size(), 20);
  EXPECT_EQ(split.train->classes(), 2);
  EXPECT_EQ(to_string(split.train->input().shape), "[1, 1000]");
  EXPECT_SAYS(lines_of(split.remarks), "Sounds are read at 8000 samples a second and 1000 samples long");
  for (I row = 0; row < split.train->size(); ++row) {
    const Batch b = fetch(*split.train, {row});
    const auto* x = b.x.data<float>();
    EXPECT_GT(*std::max_element(x + 400, x + 600), 0.4f) << "the middle is there, row " << row;
  }
  write(dir.file("high/9.wav"), "no sound");
  const std::string e = error_of([&] { open_dataset("audio-folder", {.dir = dir.str()}); });
  EXPECT_SAYS(e, "high/9.wav is no WAV file");
  EXPECT_SAYS(e, "data.unreadable = leave-out");
  const std::string torn = wav(1, 1, 16, std::string(4000, '\1'));
  write(dir.file("high/8.wav"), torn.substr(0, 3000));
  const Split rest =
      open_dataset("audio-folder", {.dir = dir.str(), .attrs = {{"unreadable", std::string("leave-out")}}});
  EXPECT_SAYS(lines_of(rest.remarks), "sounds cannot be read and are left out (");
  EXPECT_SAYS(lines_of(rest.remarks), "1 sounds end before the length that their headers state");
  EXPECT_SAYS(lines_of(rest.remarks), "8.wav");
  EXPECT_SAYS(lines_of(rest.remarks), " at 16000)");
}

TEST(AudioFolder, TheRateIsThatOfMostFilesAndOthersAreNamed) {
  Folder dir;
  testing_data::make_files("audio-folder", dir);  // 13 of 20 at 8000, most of them of 800 samples
  const Split split = open_dataset("audio-folder", {.dir = dir.str()});
  EXPECT_EQ(to_string(split.train->input().shape), "[1, 2048]");
  ASSERT_EQ(split.found.size(), 2u);
  EXPECT_EQ(split.found[0].name, "rate");
  EXPECT_EQ(std::get<I>(split.found[0].value), 8000);
  EXPECT_EQ(std::get<I>(split.found[1].value), 2048);
  EXPECT_SAYS(lines_of(split.remarks), "7 of 20 sounds have another rate and are resampled (7 at 16000)");
  EXPECT_SAYS(lines_of(split.remarks), "low/0.wav");
  // What was found, said by hand, makes the same.
  const Split again = open_dataset("audio-folder", {.dir = dir.str(), .attrs = split.found});
  const Batch a = fetch(*split.train, {3}), b = fetch(*again.train, {3});
  EXPECT_TRUE(std::equal(a.x.data<float>(), a.x.data<float>() + 2048, b.x.data<float>()));
}

TEST(LogMel, TheRateIsThatOfTheData) {
  Folder dir;
  testing_data::make_files("audio-folder", dir);
  const auto picture = [&](const std::string& transforms) {
    const Split s = open_dataset("audio-folder", {.dir = dir.str(), .transforms = transforms});
    const Batch b = fetch(*s.train, {3});
    return std::vector<float>(b.x.data<float>(), b.x.data<float>() + b.x.numel());
  };
  EXPECT_EQ(picture("log_mel"), picture("log_mel rate=8000"));
  EXPECT_EQ(picture("log_mel rate=0"), picture("log_mel rate=8000"));
  EXPECT_NE(picture("log_mel"), picture("log_mel rate=16000"));
  const Split plain = open_dataset("audio-folder", {.dir = dir.str()});
  EXPECT_EQ(with_rate("shift; log_mel bands=20; normalise mean=-4", plain),
            "shift; log_mel rate=8000 bands=20; normalise mean=-4");
  const auto remarks = open_dataset("audio-folder", {.dir = dir.str(), .transforms = "log_mel rate=16000"}).remarks;
  EXPECT_SAYS(lines_of(remarks), "log_mel takes the sounds for 16000 samples a second, and they have 8000");
  EXPECT_EQ(with_rate("log_mel", open_dataset("shapes", {})), "log_mel") << "what has no rate is left as it is";
  // A run that was told the rate of its sounds sees with log_mel what it saw before transforms asked the data.
  Options told{.dir = dir.str()};
  told.attrs = {{"rate", int64_t{8000}}};
  EXPECT_EQ(with_rate("log_mel", open_dataset("audio-folder", told)), "log_mel");
}

TEST(LogMel, ATonesBandGrowsWithItsPitch) {
  const auto loudest = [](double hertz) {
    Item item;
    const Sound s = sine(hertz, 16000, 4000);
    item.x = s.samples;
    item.size = {1, 4000};
    const TransformDef& def = transforms().at("log_mel");
    const auto mel = def.make(AttrValues(def.attrs, {}, "log_mel"));
    EXPECT_EQ(to_string(mel->size(item.size)), "[1, 40, 23]");
    mel->evaluate(item);
    EXPECT_EQ(item.x.size(), 40u * 23u);
    I best = 0;
    for (I k = 0; k < 40; ++k)
      if (item.x[static_cast<size_t>(k * 23 + 11)] > item.x[static_cast<size_t>(best * 23 + 11)]) best = k;
    return best;
  };
  // 40 bands to 8 kHz: 2840 mel, 69.3 a band, and 1000 Hz is 1000 mel.
  EXPECT_EQ(loudest(1000), 13);
  EXPECT_LT(loudest(200), loudest(400));
  EXPECT_LT(loudest(2000), loudest(6000));
  const TransformDef& def = transforms().at("log_mel");
  EXPECT_SAYS(error_of([&] { def.make(AttrValues(def.attrs, {}, "log_mel"))->size({3, 32, 32}); }), "works on sounds");
  EXPECT_SAYS(error_of([&] { def.make(AttrValues(def.attrs, {}, "log_mel"))->size({1, 100}); }), "is longer than");
}

}  // namespace
}  // namespace tenon::data
