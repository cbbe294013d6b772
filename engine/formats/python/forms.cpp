#include "engine/formats/python/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>

namespace tenon::python {

static Registry<PythonForm>& form_registry() {
  static auto& all = *new Registry<PythonForm>("Python form of a layer", [](const PythonForm& f) { return f.name; });
  return all;
}
bool register_python_form(PythonForm form, Place place) { return form_registry().add(std::move(form), place); }
const Registry<PythonForm>& python_forms() { return form_registry(); }

namespace {

/// Arguments that PyTorch's constructors have no default for; they come first there.
constexpr std::array kFirst = {
    "in_channels",    "out_channels",  "in_features",    "out_features",     "in1_features",
    "in2_features",   "num_features",  "num_groups",     "num_channels",     "normalized_shape",
    "num_embeddings", "embedding_dim", "input_size",     "hidden_size",      "embed_dim",
    "num_heads",      "d_model",       "nhead",          "kernel_size",      "output_size",
    "padding",        "size",          "upscale_factor", "downscale_factor", "groups",
    "norm_type"};

constexpr const char* kPositions = R"(class LearnedPositions(nn.Module):
    """Adds a trained row of values for every position."""

    def __init__(self, max_length, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_length, features) * 0.02)

    def forward(self, x):
        return x + self.weight[: x.size(1)]
)";
constexpr const char* kLearnedTokens = R"(class LearnedTokens(nn.Module):
    """Puts trained rows before every sequence."""

    def __init__(self, count, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count, features) * 0.02)

    def forward(self, x):
        return torch.cat([self.weight.expand(x.size(0), -1, -1), x], dim=1)
)";
constexpr const char* kSinusoidal = R"(class SinusoidalPositions(nn.Module):
    """Adds sines and cosines of the position."""

    def __init__(self, base=10000.0):
        super().__init__()
        self.base = base

    def forward(self, x):
        length, features = x.shape[-2:]
        place = torch.arange(length, dtype=torch.float64, device=x.device).unsqueeze(1)
        even = torch.arange(0, features, 2, dtype=torch.float64, device=x.device)
        angle = place / self.base ** (even / features)
        table = torch.zeros(length, features, dtype=torch.float64, device=x.device)
        table[:, 0::2] = torch.sin(angle)
        table[:, 1::2] = torch.cos(angle)[:, : features // 2]
        return x + table.to(x.dtype)
)";
constexpr const char* kRotary = R"(class RotaryPositions(nn.Module):
    """Turns pairs of features by angles that grow with the position."""

    def __init__(self, base=10000.0, interleaved=False):
        super().__init__()
        self.base, self.interleaved = base, interleaved

    def forward(self, x):
        length, features = x.shape[-2:]
        half = features // 2
        place = torch.arange(length, dtype=torch.float64, device=x.device).unsqueeze(1)
        turn = place / self.base ** (torch.arange(half, dtype=torch.float64, device=x.device) / half)
        cos, sin = torch.cos(turn).to(x.dtype), torch.sin(turn).to(x.dtype)
        if self.interleaved:
            a, b = x[..., 0::2], x[..., 1::2]
            return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
)";
constexpr const char* kCausalMask = R"(def causal_mask(x):
    """Minus infinity where a position would see a later one."""
    n = x.size(1)
    return torch.triu(torch.full((n, n), float("-inf"), dtype=x.dtype, device=x.device), diagonal=1)
)";
constexpr const char* kBothEnds = R"(def both_ends(h):
    """The last states of both directions beside each other."""
    return torch.cat([h[-2], h[-1]], dim=1)
)";

std::vector<Call> joined(const char* pattern) { return {{pattern}}; }

bool plain_call(const char* type, const char* pattern, std::vector<std::string> whole = {},
                Place place = Place::current()) {
  return register_python_form({.name = type, .calls = joined(pattern), .module = false, .whole = std::move(whole)},
                              place);
}

/// `states` is where the last state lies in what the module gives.
bool recurrent(const char* type, const char* states, Place place = Place::current()) {
  return register_python_form(
      {.name = type,
       .calls = {{"m(x0)[0]", {{"output", std::string("sequence")}}},
                 {fmt::format("m(x0){}[-1]", states), {{"output", std::string("last")}, {"bidirectional", false}}},
                 {fmt::format("both_ends(m(x0){})", states),
                  {{"output", std::string("last")}, {"bidirectional", true}}}},
       .helper = kBothEnds,
       .usual = {{"batch_first", false}},
       .outside = {"output"}},
      place);
}

bool transformer(const char* type, std::vector<Call> calls, Place place = Place::current()) {
  return register_python_form({.name = type,
                               .calls = std::move(calls),
                               .helper = kCausalMask,
                               .usual = {{"batch_first", false}},
                               .outside = {"causal"}},
                              place);
}

bool along(const char* type, Place place = Place::current()) {
  return register_python_form({.name = type, .usual = {{"dim", std::nullopt}}}, place);
}

const bool registered_forms[] = {
    plain_call("Add", "x0 + x1"),
    plain_call("Sub", "x0 - x1"),
    plain_call("Mul", "x0 * x1"),
    plain_call("MatMul", "x0 @ x1"),
    plain_call("Permute", "x0.permute(*dims)"),
    plain_call("Reshape", "x0.reshape(x0.size(0), *shape)"),
    plain_call("Select", "x0.select(dim, index)"),
    plain_call("Narrow", "x0.narrow(dim, start, length)"),
    plain_call("Mean", "x0.mean(dim=dims, keepdim=keepdim)"),
    plain_call("Log1p", "torch.log1p(x0)"),
    plain_call("GridSample",
               "F.grid_sample(x0, x1, mode=mode, padding_mode=padding_mode, align_corners=align_corners)"),
    plain_call("ScaledDotProductAttention",
               "F.scaled_dot_product_attention(x0, x1, x2, is_causal=causal, scale=scale)"),
    register_python_form({.name = "Concat",
                          .calls = {{"torch.cat([x0, x1], dim=dim)"},
                                    {"torch.cat([x0, x1, x2], dim=dim)"},
                                    {"torch.cat([x0, x1, x2, x3], dim=dim)"}},
                          .module = false,
                          .usual = {{"dim", int64_t{0}}}}),
    register_python_form({.name = "Cast",
                          .calls = {{"x0.to(torch.float32)", {{"dtype", std::string("f32")}}},
                                    {"x0.to(torch.float64)", {{"dtype", std::string("f64")}}},
                                    {"x0.to(torch.float16)", {{"dtype", std::string("f16")}}},
                                    {"x0.to(torch.bfloat16)", {{"dtype", std::string("bf16")}}},
                                    {"x0.to(torch.int64)", {{"dtype", std::string("i64")}}},
                                    {"x0.float()", {{"dtype", std::string("f32")}}}},
                          .module = false}),
    register_python_form({.name = "Flatten", .leading = {}}),
    register_python_form({.name = "Unflatten", .leading = {"dim", "unflattened_size"}, .whole = {"unflattened_size"}}),
    register_python_form({.name = "LayerNorm", .whole = {"normalized_shape"}}),
    register_python_form(
        {.name = "RMSNorm", .usual = {{"eps", 1.1920928955078125e-07}}, .whole = {"normalized_shape"}}),
    register_python_form({.name = "Threshold", .leading = {"threshold", "value"}}),
    register_python_form({.name = "ConstantPad1d", .leading = {"padding", "value"}}),
    register_python_form({.name = "ConstantPad2d", .leading = {"padding", "value"}}),
    register_python_form({.name = "ConstantPad3d", .leading = {"padding", "value"}}),
    register_python_form({.name = "LPPool1d", .leading = {"norm_type", "kernel_size"}}),
    register_python_form({.name = "LPPool2d", .leading = {"norm_type", "kernel_size"}}),
    register_python_form(
        {.name = "FractionalMaxPool2d", .leading = {"kernel_size"}, .usual = {{"output_size", std::nullopt}}}),
    register_python_form({.name = "Fold", .leading = {"output_size", "kernel_size"}}),
    register_python_form({.name = "Upsample", .usual = {{"scale_factor", 1.0}}, .unless = "scale_factor size"}),
    along("Softmax"),
    along("LogSoftmax"),
    along("Softmin"),
    register_python_form({.name = "LearnedPositions", .helper = kPositions, .leading = {"max_length"}, .width = true}),
    register_python_form({.name = "LearnedTokens", .helper = kLearnedTokens, .leading = {"count"}, .width = true}),
    register_python_form({.name = "SinusoidalPositions", .helper = kSinusoidal}),
    register_python_form({.name = "RotaryPositions", .helper = kRotary}),
    recurrent("LSTM", "[1][0]"),
    recurrent("GRU", "[1]"),
    recurrent("RNN", "[1]"),
    register_python_form({.name = "LSTMCell", .calls = {{"m(x0)[0]"}, {"m(x0, (x1, x2))[0]"}}}),
    register_python_form(
        {.name = "MultiheadAttention",
         .calls = {{"m(x0, x0, x0, need_weights=False)[0]", {{"causal", false}}},
                   {"m(x0, x1, x1, need_weights=False)[0]", {{"causal", false}}},
                   {"m(x0, x1, x2, need_weights=False)[0]", {{"causal", false}}},
                   {"m(x0, x0, x0, attn_mask=causal_mask(x0), need_weights=False)[0]", {{"causal", true}}}},
         .helper = kCausalMask,
         .usual = {{"batch_first", false}},
         .outside = {"causal"}}),
    transformer("TransformerEncoderLayer", {{"m(x0)", {{"causal", false}}},
                                            {"m(x0, src_mask=causal_mask(x0), is_causal=True)", {{"causal", true}}}}),
    transformer("TransformerDecoderLayer",
                {{"m(x0, x1)", {{"causal", false}}},
                 {"m(x0, x1, tgt_mask=causal_mask(x0), tgt_is_causal=True)", {{"causal", true}}}}),
};

/// Types that PyTorch does not have, or not with this meaning.
constexpr std::array kOnlyOurs = {
    "OnnxOp", "AffineGrid", "MaxUnpool1d", "MaxUnpool2d",        "MaxUnpool3d",
    "Input",  "Output",     "Transformer", "TransformerEncoder", "TransformerDecoder",
};

}  // namespace

const PythonForm& form_of(const LayerInfo& info) {
  if (const PythonForm* own = python_forms().find(info.type)) return *own;
  static std::mutex mutex;
  static auto& made = *new std::map<std::string, PythonForm>;
  std::lock_guard lock(mutex);
  PythonForm& form = made[info.type];
  form.name = info.type;
  if (std::find(kOnlyOurs.begin(), kOnlyOurs.end(), info.type) != kOnlyOurs.end()) form.module = false;
  return form;
}

std::vector<Expr> patterns_of(const PythonForm& form, const LayerInfo& info) {
  std::vector<std::string> texts;
  for (const Call& c : form.calls) texts.push_back(c.pattern);
  if (texts.empty() && form.module)
    for (int n = info.inputs - info.optional; n <= info.inputs; ++n) {
      std::string text = "m(";
      for (int i = 0; i < n; ++i) text += (i ? ", x" : "x") + std::to_string(i);
      texts.push_back(text + ")");
    }
  std::vector<Expr> out;
  for (const std::string& text : texts) out.push_back(parse_expression(text));
  return out;
}

std::vector<std::string> leading_of(const PythonForm& form, const LayerInfo& info) {
  if (!form.leading.empty()) return form.leading;
  std::vector<std::string> out;
  for (const AttrDef& d : info.attrs) {
    const bool first = std::find(kFirst.begin(), kFirst.end(), d.name) != kFirst.end() &&
                       (out.empty() || (d.name != "kernel_size" && d.name != "padding" && d.name != "groups"));
    if (!first || (info.type == "Upsample")) break;
    out.push_back(d.name);
  }
  return out;
}

}  // namespace tenon::python
