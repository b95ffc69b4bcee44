// SPDX-License-Identifier: Apache-2.0
// What ops say of the sizes of a template: types of attributes by the schema, shapes of results by
// the operands. O(nodes x samples).
#include "ops/check_template.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/result_shapes.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

bool takes_size(ArgumentType type) {
  switch (type) {
    case ArgumentType::kTensor:  // a number in place of a tensor
    case ArgumentType::kInt:
    case ArgumentType::kIntList:
    case ArgumentType::kScalar:
    case ArgumentType::kScalarList:
    case ArgumentType::kOther:
      return true;
    default:
      return false;
  }
}

class TemplateCheck {
 public:
  TemplateCheck(const Template& model, Diagnostics& diagnostics)
      : model_(model), samples_(model.symbols().samples()), diagnostics_(diagnostics) {}

  void check_node(const Json& node, std::size_t index) {
    const std::string* op_type = member_text(node, "op_type");
    if (op_type == nullptr) return;
    const std::string* name = member_text(node, "name");
    pointer_ = "/nodes/" + std::to_string(index);
    title_ = "node '" + (name != nullptr ? short_text(*name) : std::string()) + "'";
    const Json* attrs = member_object(node, "attrs");
    if (const OpInfo* op = find_op(*op_type); op != nullptr && attrs != nullptr) {
      for (const auto& [key, value] : attrs->get_ref<const Json::object_t&>()) {
        check_attribute(op->schema, key, value);
      }
    }
    if (has_shape_rule(*op_type)) check_result(*op_type, node);
  }

 private:
  void error(const std::string& below, std::string text) {
    diagnostics_.error({.file = model_.file(), .pointer = pointer_ + below}, std::move(text));
  }

  void check_attribute(const Schema& schema, const std::string& key, const Json& value) {
    const auto argument =
        std::find_if(schema.arguments.begin(), schema.arguments.end(),
                     [&](const SchemaArgument& known) { return known.name == key; });
    if (argument == schema.arguments.end() || takes_size(argument->type)) return;
    const auto check = [&](const Json& element) {
      if (!element.is_string()) return;
      const std::string& text = element.get_ref<const std::string&>();
      if (!model_.size_in_attrs(text)) return;
      error("/attrs/" + pointer_token(key),
            title_ + ": attribute '" + short_text(key) + "' of " + std::string(schema.name) +
                " takes no size, found '" + short_text(text) +
                "', which reads as one; give the size another name");
    };
    check(value);
    if (value.is_array()) std::for_each(value.begin(), value.end(), check);
  }

  // Null if a mention has no name, or no mention of the tensor a shape.
  const SizeShape* shape_of(const Json& mention, const std::string* default_name) const {
    const std::string* name = mention.is_object() ? member_text(mention, "name") : nullptr;
    if (name == nullptr) name = default_name;
    return name != nullptr ? model_.shape(*name) : nullptr;
  }

  void check_result(const std::string& op_type, const Json& node) {
    const Json* inputs = member_list(node, "inputs");
    const Json* outputs = member_list(node, "outputs");
    if (inputs == nullptr || outputs == nullptr || outputs->empty() || inputs->empty()) return;
    std::vector<const SizeShape*> shapes;
    for (const Json& input : *inputs) shapes.push_back(shape_of(input, nullptr));
    shapes.push_back(
        shape_of((*outputs)[0], outputs->size() == 1 ? member_text(node, "name") : nullptr));
    if (std::find(shapes.begin(), shapes.end(), nullptr) != shapes.end()) return;
    for (const SizeBindings& sample : samples_) {
      std::vector<Shape> numbers(shapes.size());
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        for (const SizeExpression& size : *shapes[i]) {
          numbers[i].push_back(size.evaluate(sample));
        }
      }
      std::vector<const Shape*> operands;
      for (std::size_t i = 0; i + 1 < numbers.size(); ++i) operands.push_back(&numbers[i]);
      const auto fault = result_shape_fault(op_type, operands, numbers.back());
      if (!fault) continue;
      return error("/outputs/0/shape", title_ + ": for " + bindings_text(sample) +
                                           " its result is stated as " + *fault);
    }
  }

  const Template& model_;
  std::vector<SizeBindings> samples_;
  Diagnostics& diagnostics_;
  std::string pointer_;
  std::string title_;
};

}  // namespace

void check_template(const Template& model, Diagnostics& diagnostics) {
  const Json* nodes = member_list(model.document(), "nodes");
  if (nodes == nullptr) return;
  TemplateCheck check(model, diagnostics);
  for (std::size_t n = 0; n < nodes->size(); ++n) {
    if ((*nodes)[n].is_object()) check.check_node((*nodes)[n], n);
  }
}

}  // namespace npu
