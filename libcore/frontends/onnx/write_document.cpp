// SPDX-License-Identifier: Apache-2.0
// Writes what the outputs of a draft need as a document. Names are ONNX's; what the import added is
// called after the node that it belongs to, and clashes get a number. Constants whose data lies in
// a file as it is are listed with their place, computed and small encoded ones with their values.
// O(nodes + operands).
#include "write_document.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "npu/support/error.hpp"
#include "npu/support/text.hpp"
#include "op.hpp"

namespace npu::onnx {
namespace {

constexpr std::int64_t kMostInDocument = 1 << 20;  // elements of all constants together

class DocumentWriter {
 public:
  explicit DocumentWriter(Importer& importer) : importer_(importer), draft_(importer.draft()) {}

  WrittenModel write() {
    mark_used();
    give_names();
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
    std::unordered_set<std::string> nodes;
    // Outside the document inputs and outputs are known by their names, so those come first.
    for (Value* input : draft_.inputs()) names_[input] = unique(input->name, tensors);
    for (Value* output : draft_.outputs()) names_[output] = unique(output->name, tensors);
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
      node_names_[n] = unique(std::move(name), nodes);
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

  void write_weights(WrittenModel& model) {
    std::string& text = model.document;
    std::string data;
    text += "\"weights\": [\n";
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      Value* value = constants_[i];
      if (i > 0) text += ",\n";
      mention(text, value, false);
      std::optional<WeightPlace> place;
      if (value->stored != nullptr && !importer_.settings().is_pipe) {
        place = importer_.place_of(*value);
      }
      if (place) {
        place->name = names_[value];
        model.weights.push_back(*std::move(place));
      } else {
        if (!data.empty()) data += ",\n";
        data += quoted(names_[value]) + ": " + values_text(value);
      }
    }
    text += "\n],\n\"weight_name_mapping\": {},\n";
    if (!data.empty()) text += "\"constants\": {\n" + data + "\n},\n";
  }

  std::string values_text(Value* value) {
    in_document_ += value->count();
    if (in_document_ > kMostInDocument) {
      throw Refusal{importer_.settings().is_pipe
                        ? "the weights of a model from a pipe have to go into the document, and "
                          "these are too large; give the model as a file"
                        : "constants that the import computes have more than " +
                              std::to_string(kMostInDocument) + " elements"};
    }
    Value plain = *value;
    plain.transposed = false;
    const Tensor* tensor = importer_.known(&plain, kMostInDocument);
    if (tensor == nullptr) throw Refusal{"constant '" + names_[value] + "' cannot be read"};
    const std::int64_t rows = value->transposed ? value->shape[0] : 1;
    const std::int64_t columns = value->transposed ? value->shape[1] : value->count();
    Json numbers = Json::array();
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t at = value->transposed ? c * rows + r : c;
        numbers.push_back(element(*tensor, at));
      }
    }
    return "{\"data\": " + numbers.dump() + ", \"dtype\": \"" +
           std::string(dtype_name(value->dtype)) + "\"}";
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
  std::int64_t in_document_ = 0;
};

}  // namespace

WrittenModel write_document(Importer& importer) { return DocumentWriter(importer).write(); }

}  // namespace npu::onnx
