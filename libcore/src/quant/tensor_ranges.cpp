// SPDX-License-Identifier: Apache-2.0
// Reads and writes what calibration found. The files are untrusted: numbers have to be finite and
// in order, histograms to describe what they claim (Histogram::make), lists to be as long as the
// shapes say, and nothing may be listed twice. O(entries log entries).
#include "quant/tensor_ranges.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

constexpr std::string_view kKind = "ranges";
constexpr int kVersion = 1;
constexpr std::int64_t kMostCount = std::int64_t{1} << 62;
constexpr int kLargestFactorExponent = 64;

constexpr FieldStyle kStyle{.names_key = true,
                            .takes_empty_text = false,
                            .found = FieldStyle::Found::kValue,
                            .missing = {},
                            .missing_at_key = false};

bool fits_float(double value) {
  return std::abs(value) <= double{std::numeric_limits<float>::max()};
}

/// A number of either sign that float32 holds.
double signed_number(const JsonFields& fields, std::string_view key) {
  const std::optional<double> value = json_double(fields.find(key));
  if (!value || !fits_float(*value)) {
    fields.refuse(key, "expected a number '" + std::string(key) + "' within float32, found " +
                           number_or_type(fields.find(key)));
  }
  return *value;
}

std::vector<float> float_list(const JsonFields& fields, std::string_view key, std::int64_t size) {
  const Json& list = fields.list(key);
  if (static_cast<std::int64_t>(list.size()) != size) {
    fields.refuse(
        key, "expected " + std::to_string(size) + " numbers, found " + std::to_string(list.size()));
  }
  std::vector<float> result;
  for (const Json& item : list) {
    const std::optional<double> value = json_double(&item);
    if (!value || !fits_float(*value)) {
      fields.refuse(key, "expected numbers within float32, found " + number_or_type(&item));
    }
    result.push_back(static_cast<float>(*value));
  }
  return result;
}

Shape shape_of(const JsonFields& fields) {
  Shape shape;
  for (const Json& item : fields.list("shape")) {
    const std::optional<std::int64_t> dimension = json_integer(&item);
    if (!dimension || *dimension < 0) {
      fields.refuse("shape", "expected integers of at least 0, found " + number_or_type(&item));
    }
    shape.push_back(*dimension);
  }
  return shape;
}

/// `shape` is null if it is not known.
ChannelExtremes channels_of(const JsonFields& fields, std::int64_t max_axis, const Shape* shape) {
  ChannelExtremes channels;
  channels.axis = static_cast<std::int32_t>(fields.integer("channel_axis", 0, max_axis));
  const std::int64_t size = shape != nullptr
                                ? (*shape)[static_cast<std::size_t>(channels.axis)]
                                : static_cast<std::int64_t>(fields.list("channel_min").size());
  channels.low = float_list(fields, "channel_min", size);
  channels.high = float_list(fields, "channel_max", size);
  for (std::size_t i = 0; i < channels.low.size(); ++i) {
    if (channels.low[i] > channels.high[i]) {
      fields.refuse("channel_min",
                    "the minimum of channel " + std::to_string(i) + " is larger than its maximum");
    }
  }
  return channels;
}

Histogram histogram_of(const JsonFields& fields) {
  std::vector<std::uint64_t> bins;
  for (const Json& item : fields.list("bins")) {
    const std::optional<std::uint64_t> count = json_unsigned(&item);
    if (!count) {
      fields.refuse("bins", "expected integers of at least 0, found " + number_or_type(&item));
    }
    bins.push_back(*count);
  }
  const auto low = static_cast<float>(signed_number(fields, "min"));
  const auto high = static_cast<float>(signed_number(fields, "max"));
  auto histogram = Histogram::make(
      static_cast<std::int32_t>(
          fields.integer("width_exponent", Histogram::kMinExponent, Histogram::kMaxExponent)),
      static_cast<std::int32_t>(fields.integer("first_bin", -Histogram::kBins, 0)), std::move(bins),
      static_cast<std::uint64_t>(fields.integer("zeros", 0, kMostCount)),
      static_cast<std::uint64_t>(fields.integer("non_finite", 0, kMostCount)), low, high);
  if (!histogram) {
    fields.refuse("bins",
                  "the bins do not cover 0 and everything from 'min' to 'max', or are "
                  "more than " +
                      std::to_string(Histogram::kBins));
  }
  return *std::move(histogram);
}

class RangesReader {
 public:
  explicit RangesReader(TensorRanges& ranges) : ranges_(ranges) {}

  void add_tensor(const JsonFields& fields) {
    TensorRange entry;
    entry.name = fields.text("name");
    entry.shape = shape_of(fields);
    entry.histogram = histogram_of(fields);
    entry.average_low = signed_number(fields, "average_min");
    entry.average_high = signed_number(fields, "average_max");
    if (entry.average_low > entry.average_high) {
      fields.refuse("average_min", "'average_min' is larger than 'average_max'");
    }
    if (fields.has("channel_axis") && !entry.shape.empty()) {
      entry.channels =
          channels_of(fields, static_cast<std::int64_t>(entry.shape.size()) - 1, &entry.shape);
    }
    if (fields.has("factors")) add_factors(fields, entry);
    ranges_.tensors.push_back(std::move(entry));
  }

  void add_weight(const JsonFields& fields) {
    ranges_.weights.push_back(
        {.name = fields.text("name"), .channels = channels_of(fields, 255, nullptr)});
  }

  void add_product(const JsonFields& fields) {
    ProductRange product;
    product.node = fields.text("node");
    const auto list = [&](const char* key) {
      return float_list(fields, key, static_cast<std::int64_t>(fields.list(key).size()));
    };
    if (fields.has("correction")) product.correction = list("correction");
    if (fields.has("factored_min")) {
      product.factored_low = list("factored_min");
      const auto size = static_cast<std::int64_t>(product.factored_low.size());
      product.factored_high = float_list(fields, "factored_max", size);
      for (std::size_t i = 0; i < product.factored_low.size(); ++i) {
        if (product.factored_low[i] <= product.factored_high[i]) continue;
        fields.refuse("factored_min", "the minimum of channel " + std::to_string(i) +
                                          " is larger than its maximum");
      }
      product.factored_correction = float_list(fields, "factored_correction", size);
    }
    ranges_.products.push_back(std::move(product));
  }

 private:
  static void add_factors(const JsonFields& fields, TensorRange& entry) {
    if (entry.channels.axis < 0) fields.refuse("factors", "the tensor has no 'channel_axis'");
    entry.factors =
        float_list(fields, "factors", static_cast<std::int64_t>(entry.channels.low.size()));
    for (const float factor : entry.factors) {
      int exponent = 0;
      if (std::frexp(factor, &exponent) == 0.5F && std::abs(exponent) <= kLargestFactorExponent)
        continue;
      fields.refuse("factors", "expected powers of two, found " + Json(factor).dump());
    }
    entry.gain = fields.number("gain", TensorRange::kMostGain);
    if (entry.gain < 1) fields.refuse("gain", "expected at least 1");
  }

  TensorRanges& ranges_;
};

void write_channels(Json& item, const ChannelExtremes& channels) {
  if (channels.axis < 0) return;
  item["channel_axis"] = channels.axis;
  item["channel_min"] = channels.low;
  item["channel_max"] = channels.high;
}

Json tensor_json(const TensorRange& tensor) {
  const Histogram& histogram = tensor.histogram;
  Json item = {{"name", tensor.name},
               {"shape", tensor.shape},
               {"min", histogram.low()},
               {"max", histogram.high()},
               {"average_min", tensor.average_low},
               {"average_max", tensor.average_high},
               {"zeros", histogram.zeros()},
               {"non_finite", histogram.non_finite()}};
  write_channels(item, tensor.channels);
  item["width_exponent"] = histogram.exponent();
  item["first_bin"] = histogram.first_bin();
  if (!tensor.factors.empty()) {
    item["factors"] = tensor.factors;
    item["gain"] = tensor.gain;
  }
  const auto end = histogram.bins().begin() + histogram.used_end();
  item["bins"] = std::vector<std::uint64_t>(histogram.bins().begin(), end);
  return item;
}

Json product_json(const ProductRange& product) {
  Json item = {{"node", product.node}};
  if (!product.correction.empty()) item["correction"] = product.correction;
  if (!product.factored_low.empty()) {
    item["factored_min"] = product.factored_low;
    item["factored_max"] = product.factored_high;
    item["factored_correction"] = product.factored_correction;
  }
  return item;
}

[[noreturn]] void refuse_twice(const std::string& file, const std::string& list, std::size_t place,
                               const std::string& name, const char* key = "name") {
  throw Error(ErrorCode::kParse, "'" + name + "' is listed twice",
              {.file = file, .pointer = "/" + list + "/" + std::to_string(place) + "/" + key});
}

}  // namespace

TensorRanges TensorRanges::parse(const Json& json, const std::string& file) {
  const JsonFields top(json, file, "", kStyle);
  const Json* npu = find_member(json, "npu");
  const Json* kind = npu == nullptr ? nullptr : find_member(*npu, "kind");
  if (kind == nullptr || *kind != kKind) {
    throw Error(ErrorCode::kParse,
                "expected a document of kind 'ranges', which npu-profile --calibrate writes",
                {.file = file, .pointer = "/npu/kind"});
  }
  const Json* version = find_member(*npu, "version");
  if (version == nullptr || *version != kVersion) {
    throw Error(ErrorCode::kParse, "expected version " + std::to_string(kVersion),
                {.file = file, .pointer = "/npu/version"});
  }
  TensorRanges ranges;
  ranges.file = file;
  ranges.model = top.text_or("model", "");
  ranges.model_digest = top.text("model_digest");
  ranges.samples = top.integer("samples", 1, INT64_MAX);
  RangesReader reader(ranges);
  top.for_each("tensors", [&](const JsonFields& fields) { reader.add_tensor(fields); });
  top.for_each("weights", [&](const JsonFields& fields) { reader.add_weight(fields); });
  if (top.has("products")) {
    top.for_each("products", [&](const JsonFields& fields) { reader.add_product(fields); });
  }
  if (top.has("errors")) {
    std::set<std::string> nodes;
    top.for_each("errors", [&](const JsonFields& fields) {
      OpError error{.node = fields.text("node"),
                    .power = fields.number("power", OpError::kMostPower)};
      if (!nodes.insert(error.node).second) {
        fields.refuse("node", "'" + error.node + "' is listed twice");
      }
      ranges.errors.push_back(std::move(error));
    });
  }
  ranges.index();
  return ranges;
}

void TensorRanges::index() {
  places_.clear();
  weight_places_.clear();
  product_places_.clear();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!places_.emplace(tensors[i].name, i).second) {
      refuse_twice(file, "tensors", i, tensors[i].name);
    }
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!weight_places_.emplace(std::pair{weights[i].name, weights[i].channels.axis}, i).second) {
      refuse_twice(file, "weights", i, weights[i].name);
    }
  }
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (!product_places_.emplace(products[i].node, i).second) {
      refuse_twice(file, "products", i, products[i].node, "node");
    }
  }
}

Json TensorRanges::to_json() const {
  Json json = {{"npu", {{"version", kVersion}, {"kind", kKind}}}};
  if (!model.empty()) json["model"] = model;
  json["model_digest"] = model_digest;
  json["samples"] = samples;
  Json& tensor_list = json["tensors"] = Json::array();
  for (const TensorRange& tensor : tensors) tensor_list.push_back(tensor_json(tensor));
  Json& weight_list = json["weights"] = Json::array();
  for (const WeightRange& weight : weights) {
    Json item = {{"name", weight.name}};
    write_channels(item, weight.channels);
    weight_list.push_back(std::move(item));
  }
  if (!products.empty()) {
    Json& product_list = json["products"] = Json::array();
    for (const ProductRange& product : products) product_list.push_back(product_json(product));
  }
  if (errors.empty()) return json;
  Json& error_list = json["errors"] = Json::array();
  for (const OpError& error : errors) {
    error_list.push_back({{"node", error.node}, {"power", error.power}});
  }
  return json;
}

const TensorRange* TensorRanges::find(std::string_view name) const noexcept {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &tensors[found->second];
}

const WeightRange* TensorRanges::find_weight(std::string_view name, std::int32_t axis) const {
  const auto found = weight_places_.find(std::pair{std::string(name), axis});
  return found == weight_places_.end() ? nullptr : &weights[found->second];
}

const ProductRange* TensorRanges::find_product(std::string_view node) const noexcept {
  const auto found = product_places_.find(node);
  return found == product_places_.end() ? nullptr : &products[found->second];
}

TensorRanges read_tensor_ranges(const std::string& path) {
  return TensorRanges::parse(parse_json(read_file(path), path), path);
}

}  // namespace npu
