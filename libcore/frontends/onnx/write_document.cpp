// SPDX-License-Identifier: Apache-2.0
// Writes what the outputs of a draft need as a document. Names are ONNX's; what the import added is
// called after the node that it belongs to, and clashes get a number. Constants whose data lies in
// a file as it is are listed with their place, computed and small encoded ones with their values.
// If those are too many for a text, the ones that are a single number become nodes that make them,
// and the others are handed over as data. O(nodes + operands + data of computed constants).
#include "write_document.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "npu/support/error.hpp"
#include "op.hpp"
#include "support/text.hpp"

namespace npu::onnx {
namespace {

constexpr std::int64_t kMostInDocument = 1 << 20;  // elements of all constants together
constexpr std::int64_t kFewElements = 1024;        // of a constant that stays there even so

class DocumentWriter {
 public:
  explicit DocumentWriter(Importer& importer) : importer_(importer), draft_(importer.draft()) {}

  WrittenModel write() {
    mark_used();
    give_names();
    sort_constants();
    WrittenModel model;
    std::string& text = model.document;
    const std::string name = printable_text(importer_.model().graph.name);
    text = "{\n\"model_name\": " + quoted(name.empty() ? "model" : name);
    text += ",\n\"graph_inputs\": [";
    list(text, draft_.inputs(), false);
    text += "],\n\"graph_outputs\": [";
    list(text, draft_.outputs(), true);
    text += "],\n";
    write_weights(model);
    text += "\"nodes\": [\n";
    bool is_first = true;
    for (const auto& [value, tensor] : fills_) {
      text += is_first ? "" : ",\n";
      is_first = false;
      write_fill(text, value, tensor);
    }
    for (std::size_t n = 0; n < draft_.nodes().size(); ++n) {
      if (!used_[n]) continue;
      if (!is_first) text += ",\n";
      is_first = false;
      write_node(text, draft_.nodes()[n], node_names_[n]);
    }
    text += "\n]\n}\n";
    return model;
  }

 private:
  static std::string quoted(std::string_view text) { return Json(text).dump(); }

  void mark_used() {
    used_.assign(draft_.size(), false);
    std::vector<std::size_t> open;
    const auto need = [&](const Value* value) {
      if (value->node < 0 || used_[static_cast<std::size_t>(value->node)]) return;
      used_[static_cast<std::size_t>(value->node)] = true;
      open.push_back(static_cast<std::size_t>(value->node));
    };
    for (const Value* output : draft_.outputs()) need(output);
    while (!open.empty()) {
      const DraftNode& node = draft_.nodes()[open.back()];
      open.pop_back();
      for (const Value* input : node.inputs) need(input);
    }
  }

  static std::string unique(std::string wanted, std::unordered_set<std::string>& taken) {
    wanted = printable_text(wanted);
    if (wanted.empty()) wanted = "value";
    if (taken.insert(wanted).second) return wanted;
    for (int number = 1;; ++number) {
      std::string name = wanted + "_" + std::to_string(number);
      if (taken.insert(name).second) return name;
    }
  }

  void give_names() {
    std::unordered_set<std::string> tensors;
    // Outside the document inputs and outputs are known by their names, so those come first.
    for (Value* input : draft_.inputs()) names_[input] = unique(input->name, tensors);
    for (Value* output : draft_.outputs()) {
      if (names_.count(output) == 0) names_[output] = unique(output->name, tensors);
    }
    // The last node that an ONNX node became has its name.
    std::unordered_map<std::string_view, std::size_t> last;
    for (std::size_t n = 0; n < draft_.size(); ++n) {
      if (used_[n]) last[draft_.nodes()[n].origin] = n;
    }
    node_names_.resize(draft_.size());
    std::unordered_map<std::string_view, int> counts;
    for (std::size_t n = 0; n < draft_.size(); ++n) {
      if (!used_[n]) continue;
      const DraftNode& node = draft_.nodes()[n];
      std::string name = node.origin;
      if (last[node.origin] != n) name += ":" + std::to_string(++counts[node.origin]);
      node_names_[n] = unique(std::move(name), taken_nodes_);
      for (Value* input : node.inputs) name_operand(input, tensors);
      for (Value* output : node.outputs) {
        if (names_.count(output) != 0) continue;
        names_[output] = unique(output->name.empty() ? node_names_[n] : output->name, tensors);
      }
    }
  }

  void name_operand(Value* value, std::unordered_set<std::string>& tensors) {
    if (!value->is_constant() || names_.count(value) != 0) return;
    constants_.push_back(value);
    names_[value] = unique(value->name.empty() ? "constant" : value->name, tensors);
  }

  // Whether a constant's data lies in a file as it is.
  bool is_in_file(Value* value) {
    return value->stored != nullptr && !importer_.settings().is_pipe &&
           importer_.place_of(*value).has_value();
  }

  // The data of a constant in the order of its elements.
  Tensor data_of(Value* value) {
    Value plain = *value;
    plain.transposed = false;
    const Tensor* tensor = importer_.known(&plain, std::numeric_limits<std::int64_t>::max());
    if (tensor == nullptr) throw Refusal{"constant '" + names_[value] + "' cannot be read"};
    if (!value->transposed) return *tensor;
    Tensor turned(value->dtype, value->shape);
    const std::int64_t rows = value->shape[0];
    const std::int64_t columns = value->shape[1];
    const std::size_t size = dtype_size(value->dtype);
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const std::int64_t from = i % columns * rows + i / columns;
      std::memcpy(turned.mutable_data() + static_cast<std::size_t>(i) * size,
                  tensor->data() + static_cast<std::size_t>(from) * size, size);
    }
    return turned;
  }

  static bool is_fill(const Tensor& tensor) {
    const std::size_t size = dtype_size(tensor.dtype());
    const auto bytes = static_cast<std::size_t>(tensor.element_count()) * size;
    return std::memcmp(tensor.data(), tensor.data() + size, bytes - size) == 0;
  }

  // Which constants stand in the document, if all that are in no file are too many for it.
  void sort_constants() {
    for (Value* value : constants_) {
      if (!importer_.settings().filled.contains(names_[value])) continue;
      Tensor tensor = data_of(value);
      if (is_fill(tensor)) fills_.emplace_back(value, std::move(tensor));
    }
    std::erase_if(constants_, [&](const Value* value) {
      return std::any_of(fills_.begin(), fills_.end(),
                         [&](const auto& fill) { return fill.first == value; });
    });
    std::int64_t elements = 0;
    for (Value* value : constants_) elements += is_in_file(value) ? 0 : value->count();
    if (elements <= kMostInDocument) return;
    for (Value* value : constants_) {
      if (is_in_file(value) || value->count() <= kFewElements) continue;
      Tensor tensor = data_of(value);
      if (is_fill(tensor) && dtype_size(tensor.dtype()) <= 8) {
        fills_.emplace_back(value, std::move(tensor));
      } else {
        computed_.emplace(value, std::move(tensor));
      }
    }
    if (!computed_.empty() && !importer_.settings().takes_data) {
      throw Refusal{"constants that are in no file have more than " +
                    std::to_string(kMostInDocument) + " elements, and no place in the document"};
    }
    std::unordered_set<const Value*> filled;
    for (const auto& fill : fills_) filled.insert(fill.first);
    std::erase_if(constants_, [&](const Value* value) { return filled.count(value) != 0; });
  }

  void write_weights(WrittenModel& model) {
    std::string& text = model.document;
    std::string data;
    text += "\"weights\": [\n";
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      Value* value = constants_[i];
      if (i > 0) text += ",\n";
      mention(text, value, false);
      if (const auto computed = computed_.find(value); computed != computed_.end()) {
        const Tensor& tensor = model.computed.emplace_back(std::move(computed->second));
        model.weights.push_back({.name = names_[value],
                                 .bytes = static_cast<std::uint64_t>(tensor.bytes()),
                                 .data = tensor.data()});
      } else if (is_in_file(value)) {
        model.weights.push_back(*importer_.place_of(*value));
        model.weights.back().name = names_[value];
      } else {
        if (!data.empty()) data += ",\n";
        data += quoted(names_[value]) + ": " + values_text(value);
      }
    }
    text += "\n],\n\"weight_name_mapping\": {},\n";
    if (!data.empty()) text += "\"constants\": {\n" + data + "\n},\n";
  }

  std::string values_text(Value* value) {
    const Tensor tensor = data_of(value);
    Json numbers = Json::array();
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) numbers.push_back(element(tensor, i));
    return "{\"data\": " + numbers.dump() + ", \"dtype\": \"" +
           std::string(dtype_name(value->dtype)) + "\"}";
  }

  // The node that makes a constant of one number.
  void write_fill(std::string& text, const Value* value, const Tensor& tensor) {
    text += "{\"name\": " + quoted(unique(names_[value], taken_nodes_)) +
            ", \"op_type\": \"aten.full.default\", \"inputs\": [], \"outputs\": [";
    mention(text, value, false);
    const Json attrs{{"size", value->shape},
                     {"fill_value", element(tensor, 0)},
                     {"dtype", "torch." + std::string(dtype_name(value->dtype))}};
    text += "], \"attrs\": " + attrs.dump() + "}";
  }

  static Json element(const Tensor& tensor, std::int64_t at) {
    if (tensor.dtype() == DType::kInt64) return tensor.as<std::int64_t>()[at];
    if (tensor.dtype() == DType::kBool) return tensor.as<std::uint8_t>()[at] != 0;
    if (tensor.dtype() == DType::kComplex64 || tensor.dtype() == DType::kComplex128) {
      throw Refusal{"a complex constant cannot stand in the document"};
    }
    return json_number_of(tensor.value_as_double(at), tensor.dtype());
  }

  void mention(std::string& text, const Value* value, bool with_producer) {
    text += "{\"name\": " + quoted(names_[value]) + ", \"shape\": [";
    for (std::size_t i = 0; i < value->shape.size(); ++i) {
      if (i > 0) text += ", ";
      text += std::to_string(value->shape[i]);
    }
    text += "], \"dtype\": \"";
    text += dtype_name(value->dtype);
    text += '"';
    if (with_producer && !value->is_constant()) {
      const bool is_result = value->kind == Value::Kind::kResult;
      text += ", \"producer_node\": ";
      text +=
          quoted(is_result ? node_names_[static_cast<std::size_t>(value->node)] : names_[value]);
      text += ", \"producer_output_idx\": " + std::to_string(value->result);
    }
    text += '}';
  }

  void list(std::string& text, const std::vector<Value*>& values, bool with_producer) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) text += ", ";
      mention(text, values[i], with_producer);
    }
  }

  void write_node(std::string& text, const DraftNode& node, const std::string& name) {
    text += "{\"name\": " + quoted(name) + ", \"op_type\": " + quoted(node.op) + ", \"inputs\": [";
    list(text, node.inputs, true);
    text += "], \"outputs\": [";
    list(text, node.outputs, false);
    text += "], \"attrs\": " + node.attrs.dump() + "}";
  }

  Importer& importer_;
  Draft& draft_;
  std::vector<bool> used_;
  std::vector<std::string> node_names_;
  std::unordered_map<const Value*, std::string> names_;
  std::vector<Value*> constants_;
  std::vector<std::pair<Value*, Tensor>> fills_;
  std::unordered_map<const Value*, Tensor> computed_;
  std::unordered_set<std::string> taken_nodes_;
};

}  // namespace

WrittenModel write_document(Importer& importer) { return DocumentWriter(importer).write(); }

}  // namespace npu::onnx
