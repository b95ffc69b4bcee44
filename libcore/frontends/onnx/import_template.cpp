// SPDX-License-Identifier: Apache-2.0
// Templates of ONNX models: the model is imported at several sizes, and what differs becomes
// expressions (ir/unify_sizes).
//
// An import computes what follows from shapes. Numbers that it puts into shapes and attributes are
// what a template is made of; tensors that it makes of them, such as positions or masks, would be
// other constants at every size. So what was computed is compared first: values whose shape
// differs, or whose elements are no integers and differ, are left to nodes when the model is
// imported again, and constants of one number that differ become nodes that make them, until
// nothing of that kind is left. At the ends of the range of a size the template is compared with an
// import there; where they differ, the range ends in front of it. O(imports), some ten for each of
// at most kMostRounds rounds, and two for each size behind that.
#include "import_template.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "ir/unify_sizes.hpp"
#include "names.hpp"
#include "npu/support/error.hpp"
#include "relate_sizes.hpp"
#include "support/json_fields.hpp"
#include "template_range.hpp"

namespace npu::onnx {
namespace {

constexpr int kMostRounds = 12;

/// An import at one size.
struct SizedImport {
  SizeBindings values;
  WrittenModel model;
  std::map<std::string, Tensor> computed;
};

// A name of a dimension as a symbol: what no symbol may have becomes '_'.
std::string symbol_of(const std::string& name, const std::vector<std::string>& taken) {
  std::string symbol;
  for (const char c : name.substr(0, SizeExpression::kMostName - 4)) {
    symbol += is_size_symbol("a" + std::string(1, c)) ? c : '_';
  }
  if (!is_size_symbol(symbol)) symbol = "_" + symbol;
  const std::string base = symbol;
  for (int number = 2; std::find(taken.begin(), taken.end(), symbol) != taken.end(); ++number) {
    symbol = base + "_" + std::to_string(number);
  }
  return symbol;
}

/// The values of one size that a model is imported at: `least` and more, in steps of `step`.
struct Samples {
  std::int64_t least, step;
};
using AllSamples = std::vector<Samples>;  // by symbol

/// A template, and what it was made of.
struct Accepted {
  WrittenModel model;
  AllSamples samples;
  std::vector<SizeBindings> points;
  std::set<std::string> kept, filled;  // of the settings
  bool has_rolls = true;
  std::map<std::string, Tensor> constants;  // what was computed, and is the same at all points
  std::vector<Finding> findings;
};

// Which steps each size takes; see sizes_to_sample.
constexpr std::int64_t kFarApart = 7;
constexpr std::int64_t kNear = 2;

class TemplateImport {
 public:
  TemplateImport(std::string_view bytes, const Settings& settings, Surroundings& surroundings,
                 std::vector<Finding>& findings)
      : bytes_(bytes), settings_(settings), surroundings_(surroundings), findings_(findings) {
    settings_.notes_computed = true;
  }

  WrittenModel run() {
    const ModelProto model = parse_onnx_model(bytes_);
    const SizeRelations relations(model, bytes_, settings_);
    if (relations.open().empty()) return import_once(settings_).model;
    for (const NodeProto& node : model.graph.nodes) {
      if (node.op_type == "Range") range_ends_.insert(node.inputs.begin(), node.inputs.end());
    }
    SizeSubstitution named;
    for (std::size_t i = 0; i < relations.open().size(); ++i) {
      symbols_.push_back(symbol_of(relations.open()[i].name, symbols_));
      most_.push_back(relations.most(i));
      named.emplace(SizeRelations::symbol(i), SizeExpression::symbol(symbols_.back()));
    }
    for (const auto& [name, size] : relations.sizes()) {
      if (!settings_.bindings.contains(name)) sizes_.emplace(name, size.substitute(named));
    }
    // Most models take any size, up to the number of rows of a table; signals have some samples at
    // least, and images sizes that halve several times.
    for (const auto& [samples, apart] : {std::pair(kAny, kFarApart),
                                         {kAny, kNear},
                                         {kSome, kFarApart},
                                         {kLong, kFarApart},
                                         {kHalved, kFarApart}}) {
      AllSamples all(symbols_.size(), samples);
      if (auto accepted = at_sizes(all, apart)) {
        accepted = refined(*std::move(accepted));
        end_ranges(*accepted);
        findings_ = std::move(accepted->findings);
        return std::move(accepted->model);
      }
    }
    return {};
  }

 private:
  static constexpr Samples kAny{5, 1};
  static constexpr Samples kSome{16, 1};
  static constexpr Samples kLong{64, 1};
  static constexpr Samples kHalved{64, 32};

  // Sizes that alone take more values than all together do, such as a batch of images, and the
  // least that models with convolutions take.
  Accepted refined(Accepted accepted) {
    const AllSamples& samples = accepted.samples;
    const auto attempt = [&](const AllSamples& tried) {
      auto found = at_sizes(tried, kFarApart);
      if (!found) return false;
      accepted = *std::move(found);
      return true;
    };
    for (std::size_t i = 0; i < samples.size() && samples.size() > 1; ++i) {
      if (samples[i].least == kAny.least) continue;
      AllSamples tried = samples;
      tried[i] = kAny;
      attempt(tried);
    }
    for (std::int64_t step = 2; step < kHalved.step; step *= 2) {
      AllSamples tried = samples;
      bool is_new = false;
      for (Samples& each : tried) {
        if (each.step != kHalved.step) continue;
        each = {4 * step, step};
        is_new = true;
      }
      if (!is_new) break;
      if (!attempt(tried)) continue;
      for (Samples& each : tried) {
        if (each.step == step) each.least = 2 * step;
      }
      attempt(tried);
      break;
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].step != 1) continue;
      std::int64_t refused = kAny.least;
      while (samples[i].least - refused > 1) {
        AllSamples tried = samples;
        tried[i].least = refused + (samples[i].least - refused) / 2;
        if (!attempt(tried)) refused = tried[i].least;
      }
    }
    return accepted;
  }

  // ---- Ranges ----

  // Where a model takes another branch, its template ends.
  void end_ranges(Accepted& accepted) {
    settings_.kept = accepted.kept;
    settings_.filled = accepted.filled;
    settings_.has_rolls = accepted.has_rolls;
    Json document = parse_json(accepted.model.document, "model");
    Json& symbols = *find_member(*find_member(document, "npu"), "symbols");
    std::vector<TriedSize> sizes;
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      const Json& symbol = *find_member(symbols, symbols_[i]);
      TriedSize& size = sizes.emplace_back(symbols_[i], accepted.samples[i].step);
      size.min = size.step > 1 ? size.step : member_integer(symbol, "min").value_or(1);
      size.max = member_integer(symbol, "max");
      for (const SizeBindings& point : accepted.points) size.tried.push_back(point.at(size.name));
    }
    const auto write = [&] {
      for (const TriedSize& size : sizes) {
        Json& symbol = *find_member(symbols, size.name);
        set_member(symbol, "min", size.min);
        if (size.max) set_member(symbol, "max", *size.max);
      }
    };
    write();
    Diagnostics faults;
    const Template model = Template::read(document, "model", faults);
    if (faults.has_errors()) return;
    onnx::end_ranges(sizes,
                     [&](const SizeBindings& point) { return agrees_at(accepted, model, point); });
    write();
    accepted.model.document = document.dump();
  }

  // Whether an import at some sizes does what the template does; nothing if there is none.
  std::optional<bool> agrees_at(const Accepted& accepted, const Template& model,
                                const SizeBindings& point) {
    try {
      const SizedImport imported = import_at(point);
      if (has_errors()) return std::nullopt;
      const Json document = parse_json(imported.model.document, "model");
      const Agreement agreement = agreement_of(bound_document(model, point), document);
      if (agreement != Agreement::kShapes) return agreement == Agreement::kWhole;
      return std::ranges::all_of(accepted.constants, [&](const auto& constant) {
        const auto found = imported.computed.find(constant.first);
        return found == imported.computed.end() || is_same_tensor(constant.second, found->second);
      });
    } catch (const Error&) {
      return std::nullopt;  // a size is beyond its limits
    }
  }

  SizedImport import_at(const SizeBindings& point) {
    Settings settings = settings_;
    // Also what follows from others, since a number says less of it than they do.
    for (const auto& [name, size] : sizes_) settings.bindings[name] = size.evaluate(point);
    return import_once(settings);
  }

  SizedImport import_once(const Settings& settings) {
    Importer importer(bytes_, settings, surroundings_);
    SizedImport result;
    try {
      importer.run();
      if (!importer.has_errors()) result.model = write_document(importer);
    } catch (const Refusal& refusal) {
      importer.add_error(refusal.reason);
    } catch (const Error& fault) {
      importer.add_error(fault.message());
    }
    result.computed = importer.computed();
    findings_ = importer.findings();
    return result;
  }

  bool has_errors() const {
    return std::any_of(findings_.begin(), findings_.end(), [](const Finding& finding) {
      return finding.level == Finding::Level::kError;
    });
  }

  // Nothing, with findings, if the model cannot be imported at these sizes.
  std::optional<Accepted> at_sizes(const AllSamples& samples, std::int64_t apart) {
    findings_.clear();
    settings_.kept.clear();
    settings_.filled.clear();
    settings_.has_rolls = true;
    auto points = sizes_to_sample(symbols_, 0, 1, apart);
    for (SizeBindings& point : points) {
      for (std::size_t i = 0; i < symbols_.size(); ++i) {
        std::int64_t& value = point.at(symbols_[i]);
        value = samples[i].least + value * samples[i].step;
      }
    }
    for (int round = 0; round < kMostRounds; ++round) {
      std::vector<SizedImport> imports;
      for (const SizeBindings& point : points) {
        SizedImport imported = import_at(point);
        if (has_errors()) {
          for (Finding& finding : findings_) finding.text += " (" + bindings_text(point) + ")";
          return std::nullopt;
        }
        imported.values = point;
        imports.push_back(std::move(imported));
      }
      if (keep_what_differs(imports)) continue;
      if (auto written = unified(imports, samples)) {
        std::map<std::string, Tensor> constants = imports.front().computed;
        for (const SizedImport& other : imports) constants = alike(constants, other.computed);
        return Accepted{.model = *std::move(written),
                        .samples = samples,
                        .points = points,
                        .kept = settings_.kept,
                        .filled = settings_.filled,
                        .has_rolls = settings_.has_rolls,
                        .constants = std::move(constants),
                        .findings = findings_};
      }
      if (has_errors()) return std::nullopt;
    }
    findings_.push_back({Finding::Level::kError,
                         "its constants differ from size to size, however they are computed"});
    return std::nullopt;
  }

  // Whether a roll is along a size that varies: where its rows begin depends on how many there are,
  // which parts of fixed sizes say, and a roll does not.
  static bool rolls_varying(const Json& document) {
    const Json& nodes = *member_list(document, "nodes");
    return std::any_of(nodes.begin(), nodes.end(), [](const Json& node) {
      if (*member_text(node, "op_type") != "aten.roll.default") return false;
      const Json& shape = *member_list((*member_list(node, "outputs"))[0], "shape");
      const Json& dims = *member_list(*member_object(node, "attrs"), "dims");
      return std::any_of(dims.begin(), dims.end(), [&](const Json& dim) {
        return shape[static_cast<std::size_t>(json_integer(&dim).value_or(0))].is_string();
      });
    });
  }

  // " of node 'x'", which reads a constant first.
  static std::string reader_of(const std::string& constant, const SizeSample& sample) {
    for (const Json& node : *member_list(sample.document, "nodes")) {
      for (const Json& input : *member_list(node, "inputs")) {
        if (*member_text(input, "name") != constant) continue;
        return " of node " + quoted_name(*member_text(node, "name"));
      }
    }
    return {};
  }

  // Whether more values are to be left to nodes.
  bool keep_what_differs(const std::vector<SizedImport>& imports) {
    const std::size_t before = settings_.kept.size();
    for (const auto& [name, tensor] : imports[0].computed) {
      for (const SizedImport& other : imports) {
        const auto found = other.computed.find(name);
        if (found == other.computed.end()) continue;
        // Of a sequence the ends have to be known, whatever their dtype.
        const bool is_number = range_ends_.contains(name) || (!is_floating_point(tensor.dtype()) &&
                                                              tensor.dtype() != DType::kBool);
        if (found->second.shape() != tensor.shape() ||
            (!is_number && !is_same_tensor(found->second, tensor))) {
          settings_.kept.insert(name);
        }
      }
    }
    return settings_.kept.size() > before;
  }

  // Nothing without a fault if constants are to become nodes first, or rolls parts.
  std::optional<WrittenModel> unified(std::vector<SizedImport>& imports,
                                      const AllSamples& sampled) {
    std::vector<SizeSample> samples;
    for (const SizedImport& imported : imports) {
      samples.push_back({imported.values, parse_json(imported.model.document, "model")});
    }
    std::vector<SizeSymbol> list;
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      SizeSymbol& entry = list.emplace_back();
      const auto [least, step] = sampled[i];
      entry.name = symbols_[i];
      entry.min = least == kAny.least ? 1 : least;
      entry.multiple_of = step;
      // A table that is too short for the sizes that were looked at says nothing.
      if (most_[i] && *most_[i] / step * step >= least) entry.max = *most_[i] / step * step;
    }
    std::set<std::string> varying;
    Diagnostics faults;
    auto document =
        unify_sizes(samples, SizeSymbols::of(std::move(list)), &varying, "model", faults);
    for (const Diagnostic& fault : faults.entries()) {
      findings_.push_back({Finding::Level::kError, fault.text});
    }
    if (!document) {
      const std::size_t before = settings_.filled.size();
      for (const std::string& name : varying) {
        if (settings_.filled.contains(name)) {
          findings_.push_back({Finding::Level::kError, "constant " + quoted_name(name) +
                                                           reader_of(name, samples[0]) +
                                                           " differs from size to size"});
        }
      }
      settings_.filled.merge(varying);
      if (faults.entries().empty() && settings_.filled.size() == before) {
        findings_.push_back({Finding::Level::kError, "its constants differ from size to size"});
      }
      return std::nullopt;
    }
    if (settings_.has_rolls && rolls_varying(*document)) {
      settings_.has_rolls = false;
      return std::nullopt;
    }
    raise_least(*document, sampled);
    // Which inputs give a size is found from the document itself.
    const Template model = Template::read(*document, "model", faults);
    Json* npu = find_member(*document, "npu");
    set_member(*npu, "symbols", model.symbols().to_json());
    for (const Diagnostic& fault : faults.entries()) {
      findings_.push_back({Finding::Level::kError, fault.text});
    }
    WrittenModel written = std::move(imports.front().model);
    written.document = document->dump();
    return written;
  }

  // What a border that reflects the rows beside it leaves of a size at least.
  static void add_reflected(const Json& node, std::vector<SizeExpression>& sizes) {
    if (!member_text(node, "op_type")->starts_with("aten.reflection_pad")) return;
    const Json& shape = *member_list((*member_list(node, "inputs"))[0], "shape");
    const Json& padding = *member_list(*member_object(node, "attrs"), "padding");
    for (std::size_t i = 0; i < padding.size(); ++i) {
      const std::string* text = json_text(&shape[shape.size() - 1 - i / 2]);
      const auto rows = json_integer(&padding[i]);
      if (text != nullptr && rows) sizes.push_back(SizeExpression::parse(*text) - (*rows + 1));
    }
  }

  // Sizes that make no tensor smaller than empty, such as those of a convolution without pads.
  void raise_least(Json& document, const AllSamples& sampled) const {
    std::vector<SizeExpression> sizes;
    for (const Json& node : *member_list(document, "nodes")) {
      add_reflected(node, sizes);
      for (const Json& output : *member_list(node, "outputs")) {
        for (const Json& extent : *member_list(output, "shape")) {
          const std::string* text = json_text(&extent);
          if (text == nullptr) continue;
          SizeExpression size = SizeExpression::parse(*text);
          if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) {
            sizes.push_back(std::move(size));
          }
        }
      }
    }
    Json& symbols = *find_member(*find_member(document, "npu"), "symbols");
    SizeBindings least;
    for (const std::string& name : symbols_) {
      least[name] = member_integer(*find_member(symbols, name), "min").value_or(1);
    }
    bool is_raised = true;
    while (std::exchange(is_raised, false)) {
      for (const SizeExpression& size : sizes) {
        if (size.evaluate(least) >= 0) continue;
        for (std::size_t i = 0; i < symbols_.size(); ++i) {
          std::int64_t& value = least[symbols_[i]];
          if (value >= sampled[i].least || !size.symbols().contains(symbols_[i])) continue;
          value += sampled[i].step;
          is_raised = true;
        }
      }
    }
    for (const auto& [name, value] : least) {
      Json& symbol = *find_member(symbols, name);
      if (member_integer(symbol, "min") != value) set_member(symbol, "min", value);
    }
  }

  std::string_view bytes_;
  Settings settings_;
  Surroundings& surroundings_;
  std::vector<Finding>& findings_;
  std::map<std::string, SizeExpression> sizes_;  // of dimensions by their names, over symbols_
  std::vector<std::string> symbols_;             // those that nothing else gives
  std::vector<std::optional<std::int64_t>> most_;
  std::set<std::string, std::less<>> range_ends_;  // operands of sequences
};

}  // namespace

WrittenModel import_template(std::string_view bytes, const Settings& settings,
                             Surroundings& surroundings, std::vector<Finding>& findings) {
  return TemplateImport(bytes, settings, surroundings, findings).run();
}

}  // namespace npu::onnx
