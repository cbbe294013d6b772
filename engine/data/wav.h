#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::data {

/// Sound as one channel: the mean of those that the file has, 1 its full height.
struct Sound {
  int64_t rate = 0;  ///< samples a second
  std::vector<float> samples;
};

/// A WAV file: PCM of 8, 16, 24 or 32 bits, or floating point of 32 or 64, in 1 to 64 channels. A length in the header
/// that is 0 or beyond the end of the file, as programs write that stream, means all that follows. Throws Error naming
/// `name` for other bytes, for packed sound, and for more than 2^28 samples.
Sound parse_wav(std::string_view bytes, const std::string& name);
/// What the header of a WAV file tells.
struct SoundHeader {
  int64_t rate = 0, samples = 0;
  bool cut_short = false;  ///< the file ends before the length that it states
};
/// Of a file, without reading its sound. Throws as parse_wav().
SoundHeader sound_header(const std::string& path);
/// The same in memory: PCM of 16 bits. Values beyond 1 are cut.
std::string wav_bytes(const Sound& sound);

/// At another rate: band-limited to the lower one of both by a windowed sinc, so that nothing is mirrored into what is
/// heard.
Sound resampled(const Sound& sound, int64_t rate);

}  // namespace tenon::data
