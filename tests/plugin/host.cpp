// A program made with libtenon: loads a plug-in and compares the gradient of its op with differences.
#include <cstdio>

#include "core/error.h"
#include "core/plugin.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/gradcheck.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"

using namespace tenon;

int main(int count, char** words) {
  try {
    if (count != 3) throw Error("usage: host PLUG-IN OP");
    load_plugin(words[1]);
    const OpDef& op = all_ops().at(words[2]);
    Samples samples;
    op.samples(samples);
    for (const Sample& s : samples.all()) {
      std::vector<Tensor> in = s.inputs;
      for (Tensor& t : in) set_requires_grad(t);
      auto run = [&](const std::vector<Tensor>& x) {
        std::vector<Tensor> out(1);
        dispatch(op, s.attrs.get(), x.data(), static_cast<int>(x.size()), out.data());
        return out;
      };
      std::string wrong = gradcheck(run, in);
      if (wrong.empty()) wrong = gradgradcheck(run, in);
      if (!wrong.empty()) throw Error(wrong);
      std::printf("%s %s: gradients as differences\n", op.info.name, op.attrs.text(s.attrs.get()).c_str());
    }
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
