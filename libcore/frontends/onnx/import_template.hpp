// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "importer.hpp"
#include "write_document.hpp"

namespace npu::onnx {

/// Imports a model with the symbolic dimensions that `settings` does not bind left open: the
/// document is a template of npu-ir(5). A model without such dimensions is imported as ever.
/// `findings` has every fault; the result is usable only if none is an error.
WrittenModel import_template(std::string_view bytes, const Settings& settings,
                             Surroundings& surroundings, std::vector<Finding>& findings);

}  // namespace npu::onnx
