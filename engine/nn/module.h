#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/state.h"
#include "core/tensor.h"

namespace tenon::nn {

/// A parameter or buffer with its full path ("features.0.weight").
struct Named {
  std::string name;
  Tensor tensor;
};

/// A part of a model: parameters (trained), buffers (state that is not), named children, and forward().
/// Call it through operator(), which attributes everything that happens inside to the module's path and runs the hooks.
/// In evaluation a call writes nothing that another one reads: several threads may run one module at once, as long as
/// none of them trains it, changes it, or adds hooks meanwhile.
class Module {
 public:
  Module() = default;
  virtual ~Module();
  Module(const Module&) = delete;

  Tensor operator()(const Tensor& x) { return (*this)(std::span<const Tensor>(&x, 1)); }
  Tensor operator()(std::span<const Tensor> inputs);
  Tensor operator()(std::initializer_list<Tensor> inputs) {
    return (*this)(std::span<const Tensor>(inputs.begin(), inputs.size()));
  }

  /// The same with what happens attributed to another module, in whose place this one is used once more.
  Tensor run_as(const Module& place, std::span<const Tensor> inputs);

  /// Every parameter (buffer) of this module and its children, in order of registration, depth first.
  std::vector<Named> parameters() const;
  std::vector<Named> buffers() const;
  /// The places of both, without their names: the parameters of all modules and the buffers, in one order.
  void places(std::vector<const Tensor*>& out) const;
  /// Both, module by module: PyTorch's state_dict(). The handles share the module's tensors.
  std::vector<Named> state_dict() const;
  int64_t parameter_count() const;
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& children() const { return children_; }
  /// This module (named "") and everything below it, depth first, by path.
  std::vector<std::pair<std::string, Module*>> named_modules();
  /// Calls f on every module below, then on this one.
  void apply(const std::function<void(Module&)>& f);
  /// The parameter or buffer `name` of this module itself; an undefined tensor where it has none.
  Tensor own(const std::string& name) const;

  /// Training or evaluation behaviour (Dropout, BatchNorm), for the children too.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }
  /// For every parameter of this module and its children.
  void requires_grad_(bool on = true);
  void zero_grad();

  /// Gives every module below its path, and every parameter its starting value: a pure function of (seed, the
  /// parameter's path). Parameters require gradients afterwards. Call once, on the root, when the tree is complete.
  void initialize(uint64_t seed, const std::string& path = {});
  const std::string& path() const { return path_; }

  /// "Linear(784 -> 256)": type and what distinguishes it, in one line.
  virtual std::string describe() const = 0;

  // Hooks run in the order they were added; each add returns a number for remove_hook(). PyTorch's register_..._hook.
  /// Before forward(); may replace the inputs.
  int add_forward_pre_hook(std::function<void(Module&, std::vector<Tensor>& inputs)> hook);
  /// After forward(); may replace the output.
  int add_forward_hook(std::function<void(Module&, std::span<const Tensor> inputs, Tensor& output)> hook);
  /// When the gradients of all inputs are complete: they may be replaced. An input that needs no gradient has an
  /// undefined one.
  int add_full_backward_hook(
      std::function<void(Module&, std::vector<Tensor>& grad_inputs, const Tensor& grad_output)> hook);
  void remove_hook(int id);
  /// Whether this module or one below it has a hook.
  bool hooked() const;
  /// Which hooks are kept at this many bytes into the module's hooks, for who comes upon them in memory: "a hook
  /// before", "a forward hook of", "a backward hook of".
  static const char* hooks_at(size_t offset);

  /// Puts something computed in the place of parameter `name`: for every forward() the module's tensor is
  /// compute(training). The parameter goes; `parameters` and `buffers` (named relative to the module) come. See
  /// parametrize.h for those in use, and Note [Derived parameters] for when it is computed.
  void reparametrize(const std::string& name, std::vector<Named> parameters, std::vector<Named> buffers,
                     std::function<Tensor(bool training)> compute);
  /// The same of the parameter itself, which stays what it is: for every forward() the module's tensor is
  /// compute(parameter). end_stand_in() ends it.
  void stand_in(const std::string& name, std::function<Tensor(const Tensor& parameter)> compute);
  void end_stand_in(const std::string& name);
  /// Ends reparametrize(): the value as it is now becomes a parameter again.
  void bake(const std::string& name);
  bool reparametrized(const std::string& name) const;

 protected:
  virtual Tensor forward(const Tensor& x);
  /// For modules with several inputs; the default passes the only one on.
  virtual Tensor forward(std::span<const Tensor> inputs);
  /// Fills the module's own parameters and buffers; `seed` differs for every module path.
  virtual void reset(uint64_t seed);

  /// For further ways to run a module than operator(): attributes what happens to its path and brings its
  /// parametrisations up to date, as operator() does. Within operator() it does nothing.
  class Entered {
   public:
    explicit Entered(Module& m) : Entered(m, m) {}
    Entered(Module& m, const Module& place) : scope_(place.path_id_) {
      if (!m.derived_.empty()) enter(m);
    }
    ~Entered() {
      if (module_) leave();
    }
    Entered(const Entered&) = delete;

   private:
    void enter(Module& m);
    void leave();
    ModuleScope scope_;
    static thread_local Entered* innermost_;
    Module* module_ = nullptr;  ///< whose derived parameters this call holds; null where it holds none
    Entered* outer_ = nullptr;
    bool alone_ = false;
  };

  /// `t` is a member of the module, which keeps its place: what is put there later (another parametrisation) is what
  /// forward() sees.
  void add_parameter(std::string name, Tensor& t) { parameters_.push_back({std::move(name), &t, {}}); }
  void add_buffer(std::string name, Tensor& t) { buffers_.push_back({std::move(name), &t, {}}); }
  void add_child(std::string name, std::shared_ptr<Module> m) { children_.emplace_back(std::move(name), std::move(m)); }

 private:
  struct Entry {
    std::string name;
    Tensor* at;                     ///< the member, or `owned`
    std::shared_ptr<Tensor> owned;  ///< of a parametrisation
  };
  struct Derived {
    std::string name;
    Tensor* at;
    std::vector<std::string> parts;
    std::function<Tensor(bool)> compute;
  };
  struct Frozen;
  std::vector<uint32_t> versions_of_parts() const;
  void derive();
  struct Hooks;
  enum Which { kParameters = 1, kBuffers = 2 };
  void collect(int which, const std::string& prefix, std::vector<Named>& out) const;
  Hooks& hooks();
  Tensor run_hooked(std::span<const Tensor> inputs);

  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  std::vector<Entry> parameters_, buffers_;
  std::vector<Derived> derived_;
  std::shared_ptr<Frozen> frozen_;  ///< there where derived_ is not empty
  std::shared_ptr<Hooks> hooks_;
  std::string path_;
  uint16_t path_id_ = 0;
  bool training_ = true;
};

}  // namespace tenon::nn
