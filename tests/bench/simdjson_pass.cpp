// One plain pass of simdjson over a trace, for comparison: simdjson_pass FILE prints how many events there are of each
// phase, and the sum of all durations in microseconds. No names, no order, no store: less than any reader of traces can
// do with.
#include <simdjson.h>

#include <cstdio>
#include <map>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "simdjson_pass FILE\n");
    return 2;
  }
  try {
    simdjson::padded_string text = simdjson::padded_string::load(argv[1]);
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document = parser.iterate(text);
    std::map<std::string, size_t> phases;
    double microseconds = 0;
    for (simdjson::ondemand::object event : document["traceEvents"].get_array())
      for (auto field : event) {
        std::string_view key = field.unescaped_key();
        if (key == "ph")
          ++phases[std::string(std::string_view(field.value().get_string()))];
        else if (key == "dur")
          microseconds += field.value().get_double();
      }
    for (const auto& [phase, count] : phases) std::printf("%s %zu\n", phase.c_str(), count);
    std::printf("%.3f us\n", microseconds);
  } catch (const simdjson::simdjson_error& e) {
    std::fprintf(stderr, "simdjson: %s\n", e.what());
    return 1;
  }
}
