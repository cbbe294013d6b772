#include "engine/train/open_data.h"

#include "engine/data/transform.h"
#include "engine/train/recipe.h"

namespace tenon {

data::Split open_data(const Recipe& r) {
  data::Options o;
  o.dir = r.text("data.dir");
  const int64_t own = r.integer("data.seed");
  o.transform_seed = static_cast<uint64_t>(r.integer("seed"));
  o.seed = own < 0 ? *o.transform_seed : static_cast<uint64_t>(own);
  o.attrs = r.attrs("data");
  o.transforms = r.text("data.transforms");
  o.nan_sample = r.integer("data.nan_sample");
  o.nan_value_index = r.integer("data.nan_value_index");
  return data::open_dataset(r.text("data.dataset"), o);
}

data::Split transformed_as(const Recipe& r, const data::Split& raw) {
  const std::string& list = r.text("data.transforms");
  return list.empty() ? raw : data::transformed(raw, list, static_cast<uint64_t>(r.integer("seed")));
}

data::LoaderOptions loader_options(const Recipe& r) {
  data::LoaderOptions o;
  o.batch = r.integer("data.batch_size");
  o.workers = static_cast<int>(r.integer("data.workers"));
  o.prefetch = r.integer("data.prefetch");
  o.shuffle = r.flag("data.shuffle");
  o.drop_last = r.flag("data.drop_last");
  const int64_t own = r.integer("data.order_seed");
  o.seed = static_cast<uint64_t>(own < 0 ? r.integer("seed") : own);
  return o;
}

}  // namespace tenon
