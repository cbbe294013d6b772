#include "core/error.h"
#include "engine/data/tokens.h"

// A file of tokens: every token is looked up; and the same bytes as a text: what is encoded comes back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::data;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    auto file = TokenFile::parse(tenon::MappedFile::of(std::string(bytes), "file.tokens"));
    for (int64_t i = 0; i < file->size(); ++i) (void)file->tokenizer().text(file->at(i)).size();
  } catch (const tenon::Error&) {
  }
  Tokenizer t = Tokenizer::train(bytes, 264);
  std::string back;
  for (uint32_t id : t.encode(bytes)) back += t.text(id);
  if (back != bytes) __builtin_trap();
  return 0;
}
