// tenon certify, verify: what left the house is what was trained, and still is.
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "core/file.h"
#include "projects/certificate.h"

namespace tenon::app {
namespace {

std::string key_of(const Args& args) {
  if (!args.has("--key")) return {};
  const std::string path = args.text("--key"), key = read_file(path);
  if (key.empty()) throw Error::usage(path + " is empty: it is no key");
  return key;
}

int certify(const Args& args) {
  projects::CertifyOptions options;
  options.canaries = args.integer("--canaries", options.canaries, 1);
  options.samples = args.integer("--samples", options.samples, 1);
  options.key = key_of(args);
  const auto project = open_to_read(args.word(1));
  const projects::RunInfo run = pick_run(*project, args.words() > 2 ? args.word(2) : "");
  use_threads(args);
  catch_interrupts();
  Bar bar("measuring");
  const projects::CertifyReport r = projects::certify(*project, run, pick_step(run, args.text("--checkpoint", "last")),
                                                      args.word(0), options, bar.progress());
  bar.clear();
  if (args.json())
    print_json({{"certificate", r.path},
                {"samples", r.samples},
                {"from_trained", json_number(r.from_engine)},
                {"from_f64", json_number(r.from_f64)},
                {"worst_node", r.worst_node}});
  else
    print(r.text + "\n");
  return 0;
}

int verify(const Args& args) {
  if (args.has("--checker")) write_file(args.text("--checker"), projects::certificate_checker());
  if (args.words() == 0) {
    if (!args.has("--checker")) throw Error::usage("which file is to be verified?", "tenon verify model.onnx");
    return 0;
  }
  projects::VerifyOptions options;
  options.certificate = args.text("--certificate");
  options.key = key_of(args);
  options.inputs = args.text("--inputs");
  use_threads(args);
  catch_interrupts();
  const projects::VerifyReport r = projects::verify_certified(args.word(0), options);
  if (args.json()) {
    nlohmann::json checks = nlohmann::json::array();
    for (const projects::Check& c : r.checks) checks.push_back({{"what", c.what}, {"ok", c.ok}, {"text", c.text}});
    print_json({{"ok", r.ok()}, {"provenance", r.provenance}, {"checks", checks}});
    return r.ok() ? 0 : 1;
  }
  print((r.ok() ? args.word(0) + " is what was certified: " : args.word(0) + " is NOT what was certified: ") +
        r.provenance + "\n");
  std::vector<std::vector<std::string>> rows;
  for (const projects::Check& c : r.checks) rows.push_back({c.ok ? "  ok" : "  FAILED", c.what, c.text});
  print(table(rows));
  return r.ok() ? 0 : 1;
}

const bool registered_certify[] = {
    register_command({"certify",
                      "FILE PROJECT [RUN]",
                      2,
                      3,
                      {{"--checkpoint", "best|last|STEP", "the state that was exported (last)"},
                       {"--canaries", "N", "test samples kept with their outputs (8)"},
                       {"--samples", "N", "test samples to measure with (256)"},
                       {"--key", "FILE", "sign it: who verifies with the same key knows that nobody else made it"},
                       kThreads,
                       kJson},
                      "measures an exported model (.onnx, .pt2) against what was trained, and writes FILE.certificate",
                      certify}),
    register_command({"verify",
                      "[FILE]",
                      0,
                      1,
                      {{"--certificate", "FILE", "another one than FILE.certificate"},
                       {"--key", "FILE", "the key it was signed with"},
                       {"--inputs", "X.npy", "how new inputs lie beside those it was certified with"},
                       {"--checker", "OUT.py", "writes a Python program that does the same without Tenon"},
                       kThreads,
                       kJson},
                      "checks a model file against its certificate: every byte, and what it computes",
                      verify})};

}  // namespace
}  // namespace tenon::app
