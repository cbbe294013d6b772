#include "engine/data/wav.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <numbers>
#include <numeric>

#include "core/error.h"

namespace tenon::data {
namespace {

constexpr int64_t kMostSamples = int64_t{1} << 28;
constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

uint64_t little(std::string_view b, size_t at, size_t bytes) {
  uint64_t v = 0;
  for (size_t i = 0; i < bytes; ++i) v |= uint64_t{static_cast<uint8_t>(b[at + i])} << (8 * i);
  return v;
}

struct WavFormat {
  uint64_t tag = 0, channels = 0, rate = 0, bits = 0;
};

WavFormat parse_format(std::string_view chunk, const std::string& name) {
  if (chunk.size() < 16) throw Error(name + " is damaged: its format is cut off");
  WavFormat f{little(chunk, 0, 2), little(chunk, 2, 2), little(chunk, 4, 4), little(chunk, 14, 2)};
  if (f.tag == kExtensible && chunk.size() >= 26) f.tag = little(chunk, 24, 2);
  const bool pcm = f.tag == kPcm && (f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32);
  const bool floats = f.tag == kFloat && (f.bits == 32 || f.bits == 64);
  if (!pcm && !floats)
    throw Error(name + " holds sound of a kind that is not read: format " + std::to_string(f.tag) + ", " +
                    std::to_string(f.bits) + " bits",
                "save it as WAV with PCM of 16 bits");
  if (f.channels < 1 || f.channels > 64 || f.rate < 1 || f.rate > 1'000'000)
    throw Error(name + " is damaged: " + std::to_string(f.channels) + " channels at " + std::to_string(f.rate) +
                " samples a second");
  return f;
}

double value_of(std::string_view b, size_t at, const WavFormat& f) {
  const size_t bytes = f.bits / 8;
  const uint64_t raw = little(b, at, bytes);
  if (f.tag == kFloat)
    return bytes == 4 ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(raw)))
                      : std::bit_cast<double>(raw);
  if (bytes == 1) return (static_cast<double>(raw) - 128) / 128;  // of 8 bits without a sign
  const auto value = static_cast<int32_t>(static_cast<uint32_t>(raw) << (32 - f.bits));
  return static_cast<double>(value) / 2147483648.0;
}

/// The lowest pass-band of a filter is as narrow as this many samples of the slower rate on each side.
constexpr double kWidth = 16;
constexpr int64_t kMostKept = int64_t{1} << 22;  // numbers of filters; others are made when they are used

double sinc(double x) {
  const double p = std::numbers::pi * x;
  return std::abs(x) < 1e-12 ? 1 : std::sin(p) / p;
}

/// Where a file's sound lies.
struct WavPlace {
  WavFormat format;
  uint64_t at = 0, frames = 0;
  bool cut_short = false;
};

/// `part` gives so many bytes from a place on, as far as the file of `all` bytes has them.
WavPlace find_sound(uint64_t all, const std::string& name,
                    const std::function<std::string_view(uint64_t at, uint64_t bytes)>& part) {
  const std::string_view first = part(0, 12);
  if (first.size() < 12 || !first.starts_with("RIFF") || first.substr(8, 4) != "WAVE")
    throw Error(name + " is no WAV file: it does not begin with RIFF and WAVE");
  constexpr uint64_t kFormatBytes = 64, kStreamed = 0x7fff0000;  // a length from there on stands for "not known yet"
  WavPlace place;
  for (uint64_t at = 12; at + 8 <= all;) {
    const std::string head(part(at, 8));
    const std::string_view id = std::string_view(head).substr(0, 4);
    uint64_t size = little(head, 4, 4);
    const uint64_t rest = all - at - 8;
    if (id == "fmt ") place.format = parse_format(part(at + 8, std::min({size, rest, kFormatBytes})), name);
    if (id == "data") {
      const WavFormat& f = place.format;
      if (f.rate == 0) throw Error(name + " is damaged: its sound comes before its format");
      place.cut_short = size > rest && size < kStreamed;
      if (size == 0 || size > rest) size = rest;
      place.at = at + 8;
      place.frames = size / (f.channels * f.bits / 8);
      if (place.frames == 0) throw Error(name + " holds no sound");
      if (place.frames > static_cast<uint64_t>(kMostSamples))
        throw Error(name + " holds " + std::to_string(place.frames) + " samples; more than 2^28 are not read",
                    "cut it");
      return place;
    }
    at += 8 + size + size % 2;
  }
  throw Error(name + " is damaged: it ends before its sound");
}

}  // namespace

Sound parse_wav(std::string_view b, const std::string& name) {
  const auto [f, at, frames, cut_short] =
      find_sound(b.size(), name, [&](uint64_t from, uint64_t bytes) { return b.substr(from, bytes); });
  const uint64_t value = f.bits / 8, frame = f.channels * value;
  Sound sound{static_cast<int64_t>(f.rate), std::vector<float>(frames)};
  for (size_t i = 0; i < frames; ++i) {
    double sum = 0;
    for (size_t c = 0; c < f.channels; ++c) sum += value_of(b, at + i * frame + c * value, f);
    sound.samples[i] = static_cast<float>(sum / static_cast<double>(f.channels));
  }
  return sound;
}

SoundHeader sound_header(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) throw Error(path + ": cannot be opened");
  const auto all = static_cast<uint64_t>(in.tellg());
  std::string buffer;
  const WavPlace place = find_sound(all, path, [&](uint64_t at, uint64_t bytes) {
    buffer.assign(at < all ? std::min(bytes, all - at) : 0, '\0');
    in.seekg(static_cast<std::streamoff>(at));
    if (!in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) throw Error(path + ": cannot be read");
    return std::string_view(buffer);
  });
  return {static_cast<int64_t>(place.format.rate), static_cast<int64_t>(place.frames), place.cut_short};
}

std::string wav_bytes(const Sound& sound) {
  std::string b = "RIFF....WAVEfmt ";
  const auto put = [&](uint64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) b += static_cast<char>(v >> (8 * i));
  };
  const uint64_t bytes = 2 * sound.samples.size(), rate = static_cast<uint64_t>(sound.rate);
  put(16, 4), put(kPcm, 2), put(1, 2), put(rate, 4), put(2 * rate, 4), put(2, 2), put(16, 2);
  b += "data";
  put(bytes, 4);
  for (float v : sound.samples)
    put(static_cast<uint16_t>(static_cast<int16_t>(std::lround(std::clamp(v, -1.0f, 1.0f) * 32767))), 2);
  const uint64_t all = b.size() - 8;
  for (size_t i = 0; i < 4; ++i) b[4 + i] = static_cast<char>(all >> (8 * i));
  return b;
}

Sound resampled(const Sound& sound, int64_t rate) {
  if (rate == sound.rate || sound.samples.empty()) return {rate, sound.samples};
  const int64_t common = std::gcd(rate, sound.rate), up = rate / common, down = sound.rate / common;
  const auto n = static_cast<int64_t>(sound.samples.size());
  const int64_t m = (n * up + down - 1) / down;
  if (m > kMostSamples) throw Error("a sound would have " + std::to_string(m) + " samples at the rate asked for");
  // Positions repeat after `up` samples, so there are `up` filters.
  const double band = std::min(1.0, static_cast<double>(up) / static_cast<double>(down)), reach = kWidth / band;
  const auto half = static_cast<int64_t>(std::ceil(reach)), taps = 2 * half + 1;
  std::vector<float> filters;
  const int64_t kept = std::min(up, kMostKept / taps + 1);
  const auto filter = [&](int64_t phase, float* to) {
    const double offset = static_cast<double>(phase * down % up) / static_cast<double>(up);
    double sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
      const double x = static_cast<double>(k - half) - offset;
      const double window = std::abs(x) < reach ? 0.5 + 0.5 * std::cos(std::numbers::pi * x / reach) : 0;
      const double w = window * sinc(band * x);
      sum += w;
      to[k] = static_cast<float>(w);
    }
    for (int64_t k = 0; k < taps; ++k) to[k] = static_cast<float>(static_cast<double>(to[k]) / sum);
  };
  filters.resize(static_cast<size_t>(kept * taps));
  for (int64_t p = 0; p < kept; ++p) filter(p, filters.data() + p * taps);
  std::vector<float> own(static_cast<size_t>(taps));
  Sound out{rate, std::vector<float>(static_cast<size_t>(m))};
  for (int64_t i = 0; i < m; ++i) {
    const int64_t phase = i % up, middle = i * down / up;
    if (phase >= kept) filter(phase, own.data());
    const float* f = phase >= kept ? own.data() : filters.data() + phase * taps;
    double sum = 0;
    for (int64_t k = std::max<int64_t>(0, half - middle); k < std::min(taps, n + half - middle); ++k)
      sum += static_cast<double>(f[k]) * static_cast<double>(sound.samples[static_cast<size_t>(middle + k - half)]);
    out.samples[static_cast<size_t>(i)] = static_cast<float>(sum);
  }
  return out;
}

}  // namespace tenon::data
