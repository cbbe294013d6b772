#pragma once
#include <cstring>
#include <initializer_list>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/state.h"
#include "core/tensor.h"
#include "engine/op/attrs.h"

// Note [One op, one definition]
// An op is a plain struct in a family file of engine/ops. Its members are found by `requires`, so a part an op does not
// have is simply not written. Everything else (dispatch, autograd, profiler names, ONNX, cost, the registry tests)
// reads the OpDef made of it.
//
// clang-format off
//   struct Sum {
//     static constexpr OpInfo info{"sum", "ReduceSum", OpKind::reduce};
//     struct Attrs {
//       Dims axes;
//       bool keep;
//       template <class F> void fields(F&& f) const { f("axes", axes); f("keep", keep); }  // every member
//     };
//     static Meta infer(const Attrs&, const Meta& x);                  // one Meta an input, as many as the op has
//     static void cpu(const Call& c);                                  // outputs are allocated, see place()
//     static void backward(Grad& d) { d.in(0) = ...; }                 // public ops only: differentiable again
//     static constexpr Saves saves{.inputs = 0b01, .outputs = 0};      // what backward() reads by d.x(i), d.y(i)
//     // optional:
//     static Cost cost(const Attrs&, const Call& c);                   // bytes default to what is read and written
//     static void place(const Attrs&, const Tensor* in, Layout* out);  // memory order of the outputs
//     static void onnx(const Attrs&, OnnxOp& o);                       // attributes, inputs beyond the plain mapping
//     static Tensor decompose(const Attrs&, const std::vector<Tensor>& in);  // the op by other public ops
//     static void samples(Samples& s);                                 // inputs for the registry tests
//     static constexpr uint32_t writes = 0b100;                        // inputs that cpu() writes
//     static size_t workspace(const Attrs&, const Call& c);            // bytes at c.workspace
//   };
//   static const Register<Sum> sum_op;                                 // in the family file, once
//   // The public function, declared in the family's header:
//   Tensor sum(const Tensor& x, ...) { return apply<Sum>({axes, keep}, x); }
// clang-format on

namespace tenon {

enum class OpKind : uint8_t { pointwise, reduce, view, matmul, conv, index, norm, pool, random, copy, other };
const char* name(OpKind k);

/// What autocast does with an op's f32 and half-precision inputs: leaves them, gives them all in the low type, or all
/// in f32.
enum class Amp : uint8_t {
  by_kind,
  leave,
  low,
  f32
};  ///< by_kind: products and convolutions low, reductions f32, the rest is left

struct OpInfo {
  const char* name;
  const char* onnx = "";  ///< ONNX operator, empty where there is none of the same meaning
  OpKind kind = OpKind::other;
  int outputs = 1;
  Amp amp = Amp::by_kind;
  /// cpu() works on f16 and bf16 itself where every floating input is of one such type (in a gradient's op, Amp::leave,
  /// f32 may be beside it). Pointwise, view, copy and index ops always do; others are run in f32, see dispatch().
  bool own_halves = false;
  /// cpu() is host code that moves tensors between devices through their backends. It serves every device, and the
  /// outputs lie where infer() says.
  bool any_device = false;
  bool reads_strides = false;  ///< the result depends on where the input's elements lie, not on their values alone
};
/// Bit i set: backward reads input (output) i.
struct Saves {
  uint32_t inputs = 0, outputs = 0;
};
/// Floating-point operations and bytes moved by one call.
struct Cost {
  double flops = 0, bytes = 0;
};
struct NoAttrs {
  template <class F>
  void fields(F&&) const {}
};

struct OpDef;
struct Node;
class Grad;
class Samples;
struct OnnxOp;

/// One execution of an op. Optional inputs that are absent are undefined tensors.
struct Call {
  const OpDef* op = nullptr;
  const void* attrs = nullptr;
  const Tensor* in = nullptr;
  int inputs = 0;
  Tensor* out = nullptr;
  int outputs = 0;
  Stream stream = {};         ///< of the device that all tensors lie on: where the kernel queues its work
  void* workspace = nullptr;  ///< OpDef::workspace bytes on that device, where the op asks for them
  template <class A>
  const A& as() const {
    return *static_cast<const A*>(attrs);
  }
};

/// Computes one call on the device it was written for. Inputs and outputs lie there; no op is dispatched inside.
using Kernel = void (*)(const Call& call);

/// What the rest of Tenon knows of an op: the struct's members behind plain function pointers.
struct OpDef {
  OpInfo info;
  uint16_t profile_name = 0;
  bool widens = false;   ///< half-precision inputs are run in f32, but for info.own_halves
  Amp amp = Amp::leave;  ///< resolved, never by_kind
  Saves saves;
  int arity = -1;  ///< inputs it takes, optional ones included; -1: any number
  AttrsDef attrs;  ///< what the op's Attrs hold
  void (*infer)(const void* attrs, const Tensor* in, int n, Meta* out) = nullptr;
  Layout (*view)(const void* attrs, const Layout& in) = nullptr;  ///< set for OpKind::view only
  void (*place)(const void* attrs, const Tensor* in, Layout* out) = nullptr;
  /// By DeviceType; a view op has none. A device that is registered later adds its own, before anything runs on it.
  mutable Kernel kernels[kDeviceTypes] = {};
  uint32_t writes = 0;  ///< bit i set: the kernel writes input i, besides the outputs; its version counts that
  size_t (*workspace)(const void* attrs, const Call& call) = nullptr;  ///< bytes of memory that a kernel works in
  void (*backward)(Grad& d) = nullptr;                                 ///< null: not differentiable
  Cost (*cost)(const void* attrs, const Call& call) = nullptr;
  void (*onnx)(const void* attrs, OnnxOp& op) = nullptr;
  /// The op's first output by other public ops, for readers of graphs that have no operator of its meaning. `in` holds
  /// the op's inputs, undefined where absent. Null where there is no such form.
  Tensor (*decompose)(const void* attrs, const std::vector<Tensor>& in) = nullptr;
  void (*samples)(Samples& s) = nullptr;
  /// Pointwise ops whose result is of their operands' type: the f32 loop (output first, strides in bytes). Alike dense
  /// operands go straight to it, without inference: this is what an op on a few elements costs.
  void (*quick)(char* const* data, const int64_t* strides, int64_t n) = nullptr;
};

/// Every op, sorted by name.
const Registry<OpDef>& all_ops();
void register_op(OpDef& def, Place place);
/// Gives an op its kernel for a type of device. Throws Error where there is no op of that name.
void register_kernel(const std::string& op, DeviceType type, Kernel kernel);

/// Runs an op: infers, allocates (or takes the outputs that `out` already holds, for in-place forms), computes, records
/// the gradient. Where the op has no half-precision form, f16 and bf16 inputs are cast to f32 and floating results back
/// (of a norm the first alone, whose statistics stay f32); under autocast inputs are cast as the op's policy says.
/// These casts are ops of their own, with gradients. Throws Error with the op's name and module path in front.
void dispatch(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out);
/// The in-place form: writes into in[0], bumps its version, and records the gradient on top of its history.
void dispatch_in_place(const OpDef& op, const void* attrs, Tensor* in, int inputs);

/// The `out` form: computes into `out`, which has the result's size and takes its values converted to its own dtype;
/// nothing is recorded. Throws Error for another size, and while gradients are recorded for an input or an `out` that
/// requires one.
void dispatch_out(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor& out);

/// Runs an op's kernel and nothing else: inputs and outputs are there, nothing is inferred, numbered, recorded or shown
/// to an observer. For what keeps house between the ops (filling, copying, measuring), on whatever device that lies.
void run_kernel(const OpDef& op, const void* attrs, const Tensor* in, int inputs, Tensor* out);

/// Sees every op of the thread it is set on while mode::observe is in its word.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  virtual void before(const Call&) {}
  virtual void after(const Call& call, int64_t start_ns, int64_t end_ns) = 0;
  /// During backward: a node whose gradients are complete, just before it runs.
  virtual void backward_node(const Node&) {}
};
OpObserver* current_observer();
class ObserveScope {
 public:
  explicit ObserveScope(OpObserver& observer);
  ~ObserveScope();

 private:
  OpObserver* saved_;
  uint32_t saved_mode_;
};
/// During backward: the sequence number of the forward op whose gradient is being computed; 0 otherwise.
extern thread_local uint32_t t_forward_seq;

Cost cost_of(const Call& call);

namespace op_detail {

template <class Op>
struct AttrsOf {
  using type = NoAttrs;
};
template <class Op>
requires requires { typename Op::Attrs; }
struct AttrsOf<Op> {
  using type = typename Op::Attrs;
};

const Meta& meta_of(const Tensor& t);  // an absent optional input has a Meta of its own, see absent()

template <class A, class R, class... M, size_t... I>
R call_infer(R (*f)(const A&, M...), const A& a, const Tensor* in, std::index_sequence<I...>) {
  return f(a, meta_of(in[I])...);
}
template <class A, class R, class... M>
constexpr int arity_of(R (*)(const A&, M...)) {
  return std::is_void_v<R> ? -1 : static_cast<int>(sizeof...(M));
}
template <class Op, class A, class R, class... M>
void infer_with(R (*f)(const A&, M...), const void* attrs, const Tensor* in, int n, Meta* out) {
  if constexpr (std::is_void_v<R>)
    f(*static_cast<const A*>(attrs), in, n, out);
  else
    out[0] = call_infer(f, *static_cast<const A*>(attrs), in, std::index_sequence_for<M...>{});
}

/// Handles side by side without counting references: the caller's outlive the call.
template <int N>
class Borrowed {
 public:
  template <class... T>
  explicit Borrowed(const T&... t) {
    char* to = raw_;
    ((std::memcpy(to, static_cast<const void*>(&t), sizeof(Tensor)), to += sizeof(Tensor)), ...);
  }
  Tensor* get() { return std::launder(reinterpret_cast<Tensor*>(raw_)); }

 private:
  alignas(Tensor) char raw_[N * sizeof(Tensor)];
};

}  // namespace op_detail

/// Whether infer() got the Meta of an optional input that is left out; a tensor without dimensions is not.
inline bool absent(const Meta& m) { return &m == &op_detail::meta_of(Tensor()); }

/// Makes the OpDef of Op and registers it.
template <class Op>
struct Register {
  using A = typename op_detail::AttrsOf<Op>::type;
  static OpDef& def() {
    static OpDef d;
    return d;
  }
  explicit Register(Place place = Place::current()) {
    OpDef& d = def();
    d.info = Op::info;
    d.attrs = AttrsDef::of<A>();
    if constexpr (requires { Op::saves; }) d.saves = Op::saves;
    if constexpr (requires { &Op::infer; }) d.arity = op_detail::arity_of(&Op::infer);
    if constexpr (requires { &Op::infer; })
      d.infer = [](const void* a, const Tensor* in, int n, Meta* out) {
        op_detail::infer_with<Op>(&Op::infer, a, in, n, out);
      };
    if constexpr (requires { &Op::view; })
      d.view = [](const void* a, const Layout& l) { return Op::view(*static_cast<const A*>(a), l); };
    if constexpr (requires { &Op::place; })
      d.place = [](const void* a, const Tensor* in, Layout* out) { Op::place(*static_cast<const A*>(a), in, out); };
    if constexpr (requires { &Op::cpu; }) d.kernels[static_cast<size_t>(DeviceType::cpu)] = Op::cpu;
    if constexpr (requires { Op::writes; }) d.writes = Op::writes;
    if constexpr (requires { &Op::workspace; })
      d.workspace = [](const void* a, const Call& c) { return Op::workspace(*static_cast<const A*>(a), c); };
    if constexpr (requires { &Op::backward; }) d.backward = Op::backward;
    if constexpr (requires { &Op::cost; })
      d.cost = [](const void* a, const Call& c) { return Op::cost(*static_cast<const A*>(a), c); };
    if constexpr (requires { &Op::onnx; })
      d.onnx = [](const void* a, OnnxOp& o) { Op::onnx(*static_cast<const A*>(a), o); };
    if constexpr (requires { &Op::decompose; })
      d.decompose = [](const void* a, const std::vector<Tensor>& in) {
        return Op::decompose(*static_cast<const A*>(a), in);
      };
    if constexpr (requires { &Op::samples; }) d.samples = Op::samples;
    if constexpr (requires { Op::quick; }) d.quick = Op::quick;
    register_op(d, place);
  }
};

/// Runs a registered op with one output. `attrs` are the op's Attrs.
template <class Op, class... T>
Tensor apply(const typename op_detail::AttrsOf<Op>::type& attrs, const T&... in) {
  op_detail::Borrowed<sizeof...(T)> ins(in...);
  Tensor out;
  dispatch(Register<Op>::def(), &attrs, ins.get(), sizeof...(T), &out);
  return out;
}
/// The in-place form of an op: writes into `self`.
template <class Op, class... T>
Tensor& apply_in_place(const typename op_detail::AttrsOf<Op>::type& attrs, Tensor& self, const T&... in) {
  op_detail::Borrowed<1 + sizeof...(T)> ins(self, in...);
  dispatch_in_place(Register<Op>::def(), &attrs, ins.get(), 1 + sizeof...(T));
  return self;
}
/// The `out` form of an op with one output.
template <class Op, class... T>
Tensor& apply_out(const typename op_detail::AttrsOf<Op>::type& attrs, Tensor& out, const T&... in) {
  op_detail::Borrowed<sizeof...(T)> ins(in...);
  dispatch_out(Register<Op>::def(), &attrs, ins.get(), sizeof...(T), out);
  return out;
}
/// The same with several outputs, written to out[0..info.outputs).
template <class Op>
void apply_many(const typename op_detail::AttrsOf<Op>::type& attrs, const Tensor* in, int inputs, Tensor* out) {
  dispatch(Register<Op>::def(), &attrs, in, inputs, out);
}

}  // namespace tenon
