#pragma once
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/file.h"
#include "engine/formats/zip.h"

namespace tenon {

/// A program as torch.jit.save writes it: one module without weights, and the code of two classes.
inline std::string torchscript_program() {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tenon-torchscript-" + std::to_string(getpid()))).string();
  FileWriter file(path);
  formats::ZipWriter zip(file);
  const std::string module =
      "\x80\x02"
      "c__torch__\nNet\n)\x81}(X" +
      std::string("\x08\0\0\0", 4) + "training\x89ub.";
  zip.add("net/data.pkl", module);
  zip.add("net/code/__torch__/block.py", "class Block(Module):\n  # \x1b[2J is no command here\n  bias : Tensor\n");
  zip.add("net/code/__torch__.py",
          "class Net(Module):\n  training : bool\n  def forward(self: __torch__.Net,\n    x: Tensor) -> Tensor:\n"
          "    return torch.relu(torch.add(x, 1.5))\n");
  zip.add("net/constants.pkl", "\x80\x02).");
  zip.add("net/version", "10\n");
  zip.finish();
  file.commit();
  std::string bytes = read_file(path);
  std::filesystem::remove(path);
  return bytes;
}

}  // namespace tenon
