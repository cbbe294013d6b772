#include "core/error.h"
#include "engine/data/wav.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto sound = tenon::data::parse_wav({reinterpret_cast<const char*>(data), size}, "sound");
    if (sound.samples.empty() || sound.rate < 1) __builtin_trap();
    if (sound.samples.size() <= 1 << 12 && sound.rate >= 1000) tenon::data::resampled(sound, 16000);
  } catch (const tenon::Error&) {
  }
  return 0;
}
