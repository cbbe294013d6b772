#include "engine/data/transform.h"

#include <algorithm>

#include "core/error.h"

namespace tenon::data {
namespace {

constexpr const char* kKey = "data.transforms";

Registry<TransformDef>& transform_registry() {
  static auto& all = *new Registry<TransformDef>("transform");
  return all;
}

class Transformed : public Wrapper {
 public:
  using List = std::vector<std::shared_ptr<const Transform>>;
  Transformed(std::shared_ptr<const Dataset> inner, List list, uint64_t seed, bool train)
      : Wrapper(std::move(inner)),
        list_(std::move(list)),
        seed_(seed),
        train_(train),
        bottom_first_(inner_->bottom_first()),
        before_(inner_->input()),
        input_(before_),
        target_(inner_->target()) {
    if (before_.dtype != DType::f32)
      throw Error::usage(std::string(kKey) + " work on f32 samples; these are " + name(before_.dtype));
    if (target_.dtype == DType::i64 && target_.shape.n == 2) masks_ = true;
    labels_ = inner_->classes() > 0 && target_.shape.n == 0;
    for (const auto& t : list_) {
      input_.shape = t->size(input_.shape);
      bottom_first_ = t->bottom_first(bottom_first_);
      mixed_ |= t->mixes();
    }
    if (mixed_ && !labels_) throw Error::usage(std::string(kKey) + ": only samples of one class each can be mixed");
    if (masks_ && input_.shape.n == 3) target_.shape = {input_.shape[1], input_.shape[2]};
    if (mixed_ && train_) target_ = {DType::f32, {}, {inner_->classes()}};
  }
  Meta input() const override { return input_; }
  Meta target() const override { return target_; }
  bool bottom_first() const override { return bottom_first_; }
  /// Of samples that are mixed on their way none is of one class.
  std::vector<int64_t> labels() const override { return mixed_ && train_ ? std::vector<int64_t>() : inner_->labels(); }
  void fetch(const int64_t* rows, int64_t count, void* x, void* y) const override { fetch_in(0, rows, count, x, y); }
  void fetch_in(int64_t epoch, const int64_t* rows, int64_t count, void* x, void* y) const override {
    const int64_t values = input_.shape.product(), targets = target_.shape.product();
    for (int64_t i = 0; i < count; ++i) {
      std::vector<char> raw;
      Item item = upto(list_.size(), epoch, rows[i], raw);
      std::copy(item.x.begin(), item.x.end(), static_cast<float*>(x) + i * values);
      if (mixed_ && train_) {
        if (item.shares.empty()) {
          item.shares.assign(static_cast<size_t>(classes()), 0.0f);
          item.shares[static_cast<size_t>(item.label)] = 1;
        }
        std::copy(item.shares.begin(), item.shares.end(), static_cast<float*>(y) + i * targets);
      } else if (masks_) {
        std::copy(item.mask.begin(), item.mask.end(), static_cast<int64_t*>(y) + i * targets);
      } else {
        std::copy(raw.begin(), raw.end(), static_cast<char*>(y) + i * static_cast<int64_t>(raw.size()));
      }
    }
  }
  /// A row behind the first `places` transforms; `raw` receives its target as the set has it.
  Item upto(size_t places, int64_t epoch, int64_t row, std::vector<char>& raw) const {
    Item item;
    item.size = before_.shape;
    item.bottom_first = inner_->bottom_first();
    item.classes = inner_->classes();
    item.x.resize(static_cast<size_t>(before_.shape.product()));
    Meta target = inner_->target();
    raw.resize(static_cast<size_t>(target.shape.product()) * itemsize(target.dtype));
    inner_->fetch_in(epoch, &row, 1, item.x.data(), raw.data());
    if (labels_) item.label = *reinterpret_cast<const int64_t*>(raw.data());
    if (masks_) {
      const auto* m = reinterpret_cast<const int64_t*>(raw.data());
      item.mask.assign(m, m + target.shape.product());
    }
    for (size_t k = 0; k < places; ++k) {
      Dice dice(seed_, epoch, row, k);
      auto other = [&, k](int64_t r) {
        std::vector<char> theirs;
        return upto(k, epoch, r, theirs);
      };
      if (train_)
        list_[k]->train(item, dice, inner_->size(), other);
      else
        list_[k]->evaluate(item);
      item.bottom_first = list_[k]->bottom_first(item.bottom_first);
    }
    return item;
  }

 private:
  List list_;
  uint64_t seed_;
  bool train_, masks_ = false, labels_ = false, mixed_ = false, bottom_first_;
  Meta before_, input_, target_;
};

}  // namespace

Dice::Dice(uint64_t seed, int64_t epoch, int64_t row, size_t place)
    : random_{seed, stream_of("data.transform") + static_cast<uint64_t>(epoch)} {
  // Each (place, row) has 2^16 numbers to itself, of at most 2^8 places and 2^40 rows.
  next_ = (static_cast<uint64_t>(place) << 56) + (static_cast<uint64_t>(row) << 16);
}

bool register_transform(TransformDef def, Place place) { return transform_registry().add(std::move(def), place); }
const Registry<TransformDef>& transforms() { return transform_registry(); }

namespace {

Transformed::List transforms_of(const std::vector<AttrCall>& calls) {
  Transformed::List list;
  for (const AttrCall& call : calls) {
    const TransformDef& def = transforms().at(call.name);
    list.push_back(def.make(AttrValues(def.attrs, call_attrs(call, def.attrs, kKey), def.name)));
  }
  return list;
}

}  // namespace

std::string with_rate(const std::string& text, const Split& split, std::vector<Remark>* remarks) {
  const auto found =
      std::find_if(split.found.begin(), split.found.end(), [](const Attr& a) { return a.name == "rate"; });
  if (found == split.found.end()) return text;
  const std::string rate = std::to_string(std::get<int64_t>(found->value));
  std::string list;
  for (AttrCall& call : parse_calls(text, kKey)) {
    const TransformDef& def = transforms().at(call.name);
    const bool asks =
        std::any_of(def.attrs.begin(), def.attrs.end(), [](const AttrDef& a) { return a.name == "rate"; });
    std::erase_if(call.attrs, [](const auto& a) { return a.first == "rate" && a.second == "0"; });
    const auto told =
        std::find_if(call.attrs.begin(), call.attrs.end(), [](const auto& a) { return a.first == "rate"; });
    if (asks && told == call.attrs.end())
      call.attrs.insert(call.attrs.begin(), {"rate", rate});
    else if (asks && told->second != rate && remarks)
      remarks->push_back({Remark::Kind::warning, "other_rate",
                          call.name + " takes the sounds for " + told->second + " samples a second, and they have " +
                              rate + "; without rate=" + told->second + " it takes what they have"});
    list += (list.empty() ? "" : "; ") + call.name;
    for (const auto& [name, value] : call.attrs) list += " " + name + "=" + value;
  }
  return list;
}

Split transformed(const Split& split, const std::string& text, uint64_t seed) {
  const Transformed::List list = transforms_of(parse_calls(text, kKey));
  return {std::make_shared<Transformed>(split.train, list, seed, true),
          std::make_shared<Transformed>(split.test, list, seed, false)};
}

std::vector<TransformStep> transform_steps(const std::shared_ptr<const Dataset>& set, const std::string& text,
                                           uint64_t seed, bool train, int64_t row, int64_t epoch) {
  if (row < 0 || row >= set->size())
    throw Error::usage("row " + std::to_string(row) + " of a data set of " + std::to_string(set->size()) + " samples");
  const std::vector<AttrCall> calls = parse_calls(text, kKey);
  const Transformed whole(set, transforms_of(calls), seed, train);
  std::vector<TransformStep> steps;
  for (size_t k = 0; k <= calls.size(); ++k) {
    TransformStep step;
    if (k > 0) step.text = calls[k - 1].name;
    if (k > 0)
      for (const auto& [name, value] : calls[k - 1].attrs) step.text += " " + name + "=" + value;
    std::vector<char> target;
    step.item = whole.upto(k, epoch, row, target);
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace tenon::data
