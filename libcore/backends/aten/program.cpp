// SPDX-License-Identifier: Apache-2.0
// Runs a bound program: for each step, arguments onto one reused stack, the call, results into
// slots.
//
// Cost per step besides the kernel's: copying constants (no allocation: lists are shared), moving
// tensors, two comparisons per result, one clock read. Values leave their slot with their last use.
//
// Values of the document are immutable, tensors are not. An argument that an op writes is cloned
// first unless this is the last use of a tensor whose storage is not shared, which the reference
// counts tell exactly: views, inputs and weights all count. Views themselves need no special
// treatment until they become results of the program.
//
// If this libtorch lacks a 16-bit CPU kernel for an op ("not implemented for 'Half'"), or its
// oneDNN a primitive, the run starts again with all steps of that op computing in float32; later
// runs keep that.
#include "program.hpp"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <c10/util/Exception.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "aten_types.hpp"

namespace npu::aten {
namespace {

/// Takes the tensors out of a step's lists, which must not keep them alive.
void empty_lists(Step& step) {
  for (StepArgument& argument : step.arguments) {
    if (argument.kind == StepArgument::Kind::kTensorList) {
      c10::List<at::Tensor> list = argument.constant.toTensorList();
      for (std::size_t i = 0; i < list.size(); ++i) list.set(i, at::Tensor());
    } else if (argument.kind == StepArgument::Kind::kOptionalTensorList) {
      auto list = argument.constant.to<c10::List<c10::optional<at::Tensor>>>();
      for (std::size_t i = 0; i < list.size(); ++i) list.set(i, c10::nullopt);
    }
  }
}

bool is_reduced_precision(c10::ScalarType type) {
  return type == c10::ScalarType::Half || type == c10::ScalarType::BFloat16;
}

bool is_floating(c10::ScalarType type) { return c10::isFloatingType(type); }

// True if writing to the tensor changes no other value.
bool is_exclusive(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.has_storage() && tensor.storage().use_count() == 1 &&
         tensor.is_non_overlapping_and_dense();
}

// True if the tensor is strided and contiguous (row-major), without lazy negation.
bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == c10::kStrided && tensor.is_contiguous() && !tensor.is_neg();
}

at::Tensor scalar_result(const c10::IValue& value, const StepResult& result) {
  const c10::Scalar scalar = value.isBool() ? c10::Scalar(value.toBool()) : value.toScalar();
  return at::scalar_tensor(scalar, at::TensorOptions().dtype(result.type));
}

std::string type_and_shape(c10::ScalarType type, c10::IntArrayRef shape) {
  return fmt::format("{} {}", type_text(type), shape_text(shape.vec()));
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace

std::string first_line(std::string_view text) {
  while (!text.empty() && (text.front() == '\n' || text.front() == ' ')) text.remove_prefix(1);
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.remove_suffix(1);
  return std::string(text);
}

void Program::run(std::span<at::Tensor> inputs, std::vector<at::Tensor>& outputs,
                  const RunBreak& stop) {
  for (;;) {
    const auto prefix = [&] {
      if (current_ >= steps_.size()) return std::string();
      return fmt::format("node '{}' ({}): ", steps_[current_].name, steps_[current_].op_type);
    };
    // An op's message seldom says which argument it is about.
    const auto arguments = [&] {
      if (current_ >= steps_.size() || steps_[current_].call.empty()) return std::string();
      return fmt::format("; arguments: {}", steps_[current_].call);
    };
    try {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Slot slot = inputs_[i].slot;
        if (slot == kNoSlot) continue;
        values_[static_cast<std::size_t>(slot)] = has_run_ ? std::move(inputs[i]) : inputs[i];
      }
      execute(stop);
      current_ = steps_.size();
      outputs.clear();
      for (const StepResult& output : outputs_) {
        outputs.push_back(values_[static_cast<std::size_t>(output.slot)]);
      }
      forget_values();
      for (at::Tensor& output : outputs) {
        if (output.layout() != c10::kStrided) output = output.to_dense();
        output = output.resolve_conj().resolve_neg().contiguous();
        if (output.use_count() != 1 || output.storage().use_count() != 1) output = output.clone();
      }
      has_run_ = true;
      return;
    } catch (const StatusError&) {
      forget_values();
      throw;
    } catch (const std::bad_alloc&) {
      forget_values();
      throw StatusError(NPU_MEMORY, prefix() + "out of memory");
    } catch (const c10::Error& error) {
      forget_values();
      const std::string text = first_line(error.what_without_backtrace());
      if (!has_run_ && widen(text)) continue;
      const bool memory = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
                          text.find("can't allocate memory") != std::string::npos ||
                          text.find("not enough memory") != std::string::npos;
      throw StatusError(memory ? NPU_MEMORY : NPU_FAILED, prefix() + text + arguments());
    } catch (const std::exception& error) {
      forget_values();
      if (!has_run_ && widen(first_line(error.what()))) continue;
      throw StatusError(NPU_FAILED, prefix() + first_line(error.what()) + arguments());
    }
  }
}

void Program::forget_values() noexcept {
  for (std::size_t slot = 0; slot < values_.size(); ++slot) {
    if (!is_weight_[slot]) values_[slot].reset();
  }
  stack_.clear();
  // A step that failed may have left tensors in its lists.
  if (current_ < steps_.size()) empty_lists(steps_[current_]);
}

// True if the error says that a 16-bit kernel is missing and the op was not widened yet.
bool Program::widen(const std::string& error_text) {
  if (current_ >= steps_.size() || steps_[current_].widened) return false;
  // "..." not implemented for 'Half'; some kernels leave out the quotes.
  const std::size_t found = error_text.find("not implemented for ");
  const bool missing_kernel =
      found != std::string::npos && (error_text.find("Half", found) != std::string::npos ||
                                     error_text.find("BFloat16", found) != std::string::npos);
  // libtorch gives bfloat16 to oneDNN where the CPU has AVX-512, though oneDNN may be limited to
  // less (NPU_MAX_ISA).
  const bool missing_primitive = error_text.find("could not create a primitive") == 0;
  if (!missing_kernel && !missing_primitive) return false;
  const std::string op_type = steps_[current_].op_type;
  for (Step& step : steps_) {
    if (step.op_type != op_type) continue;
    step.widened = true;
    step.has_casts = true;
  }
  return true;
}

void Program::execute(const RunBreak& stop) {
  std::fill(node_times_.begin(), node_times_.end(), 0);
  std::vector<at::Tensor> written;
  std::uint64_t before = now_ns();
  for (current_ = 0; current_ < steps_.size(); ++current_) {
    Step& step = steps_[current_];
    if (const npu_status status = stop.status(); status != NPU_OK) {
      throw StatusError(status, RunBreak::text(status));
    }
    if (step.direct != nullptr && run_direct(step)) {
      const std::uint64_t after = now_ns();
      node_times_[step.node] += after - before;
      before = after;
      continue;
    }
    push_arguments(step);
    if (step.has_written) {
      protect_written(step);
      if (step.returns_none) {
        for (std::size_t i = 0; i < step.arguments.size(); ++i) {
          if (!step.arguments[i].written) continue;
          if (stack_[i].isTensor()) written.push_back(stack_[i].toTensor());
          if (stack_[i].isTensorList()) {
            for (const at::Tensor& tensor : stack_[i].toTensorVector()) written.push_back(tensor);
          }
        }
      }
    }
    call(step);
    take_results(step, written);
    written.clear();
    const std::uint64_t after = now_ns();
    node_times_[step.node] += after - before;
    before = after;
  }
}

// Writes into an operand that is not needed afterwards; false if an operand has gaps or is a view
// in another order, which is left to the dispatcher.
bool Program::run_direct(const Step& step) {
  at::Tensor& a = values_[static_cast<std::size_t>(step.arguments[0].operand.slot)];
  const bool is_binary =
      step.arguments.size() > 1 && step.arguments[1].kind == StepArgument::Kind::kTensor;
  at::Tensor& b = is_binary ? values_[static_cast<std::size_t>(step.arguments[1].operand.slot)] : a;
  if (!is_plain(a) || (is_binary && !is_plain(b))) return false;
  const bool a_dies = step.arguments[0].operand.last_use;
  const bool b_dies = is_binary && step.arguments[1].operand.last_use;
  const void* const x = a.data_ptr();
  const void* const y = b.data_ptr();
  at::Tensor result;
  if (a_dies && is_exclusive(a)) {
    result = std::move(a);
  } else if (b_dies && is_exclusive(b)) {
    result = std::move(b);
  } else {
    result = at::detail::empty_cpu(step.results[0].shape, step.results[0].type);
  }
  step.direct(x, y, result.data_ptr(), step.direct_elements);
  if (a_dies) a.reset();
  if (b_dies) b.reset();
  values_[static_cast<std::size_t>(step.results[0].slot)] = std::move(result);
  return true;
}

void Program::push_arguments(Step& step) {
  const auto take = [&](const Operand& operand) -> at::Tensor {
    at::Tensor& value = values_[static_cast<std::size_t>(operand.slot)];
    return operand.last_use ? std::move(value) : value;
  };
  const auto cast = [&](const StepArgument& argument, at::Tensor tensor) {
    const c10::ScalarType type = tensor.scalar_type();
    if (argument.cast && is_floating(type) && type != *argument.cast)
      tensor = tensor.to(*argument.cast);
    if (step.widened && is_reduced_precision(tensor.scalar_type()))
      tensor = tensor.to(c10::ScalarType::Float);
    return tensor;
  };
  for (StepArgument& argument : step.arguments) {
    switch (argument.kind) {
      case StepArgument::Kind::kConstant:
        stack_.push_back(argument.constant);
        break;
      case StepArgument::Kind::kTensor:
        if (step.has_casts) {
          stack_.emplace_back(cast(argument, take(argument.operand)));
        } else {
          stack_.emplace_back(take(argument.operand));
        }
        break;
      case StepArgument::Kind::kTensorList: {
        c10::List<at::Tensor> list = argument.constant.toTensorList();
        for (std::size_t i = 0; i < argument.operands.size(); ++i) {
          list.set(i, step.has_casts ? cast(argument, take(argument.operands[i]))
                                     : take(argument.operands[i]));
        }
        stack_.push_back(argument.constant);
        break;
      }
      case StepArgument::Kind::kOptionalTensorList: {
        auto list = argument.constant.to<c10::List<c10::optional<at::Tensor>>>();
        for (std::size_t i = 0; i < argument.operands.size(); ++i) {
          if (argument.operands[i].slot == kNoSlot) continue;  // holds None already
          list.set(i, step.has_casts ? cast(argument, take(argument.operands[i]))
                                     : take(argument.operands[i]));
        }
        stack_.push_back(argument.constant);
        break;
      }
    }
  }
}

void Program::protect_written(Step& step) {
  std::size_t out = 0;  // which of the written arguments
  for (std::size_t i = 0; i < step.arguments.size(); ++i) {
    StepArgument& argument = step.arguments[i];
    if (!argument.written) continue;
    if (stack_[i].isTensor()) {
      const at::Tensor& tensor = stack_[i].toTensor();
      if (tensor.defined() && !is_exclusive(tensor)) stack_[i] = tensor.clone();
    } else if (stack_[i].isNone() && argument.out && out < step.results.size()) {
      stack_[i] = at::empty({0}, at::TensorOptions().dtype(step.results[out].type));
    } else if (argument.kind == StepArgument::Kind::kTensorList) {
      c10::List<at::Tensor> list = argument.constant.toTensorList();
      for (std::size_t k = 0; k < list.size(); ++k) {
        const at::Tensor tensor = list.extract(k);
        list.set(k, is_exclusive(tensor) ? tensor : tensor.clone());
      }
    }
    ++out;
  }
}

void Program::call(Step& step) {
  if (step.handle) {
    step.handle->callBoxed(&stack_);
  } else if (step.decomposition != nullptr) {
    step.decomposition->run(stack_);
  } else {
    call_custom(step);
  }
  empty_lists(step);
}

void Program::take_results(Step& step, const std::vector<at::Tensor>& written) {
  // The common case: one tensor.
  if (stack_.size() == 1 && step.results.size() == 1 && stack_[0].isTensor()) {
    store(step, step.results[0], std::move(stack_[0]).toTensor());
    stack_.clear();
    return;
  }
  std::vector<c10::IValue> found;
  const auto add = [&](auto& self, const c10::IValue& value) -> void {
    if (value.isTuple()) {
      for (const c10::IValue& element : value.toTupleRef().elements()) self(self, element);
    } else if (value.isList()) {
      for (const c10::IValue& element : value.toListRef()) self(self, element);
    } else {
      found.push_back(value);
    }
  };
  for (const c10::IValue& value : stack_) add(add, value);
  stack_.clear();
  if (step.returns_none) found.assign(written.begin(), written.end());
  // Documents may omit results that are None.
  if (found.size() > step.results.size()) {
    const auto is_none = [](const c10::IValue& value) {
      return value.isNone() || (value.isTensor() && !value.toTensor().defined());
    };
    const auto nones = std::count_if(found.begin(), found.end(), is_none);
    if (found.size() - static_cast<std::size_t>(nones) == step.results.size()) {
      found.erase(std::remove_if(found.begin(), found.end(), is_none), found.end());
    }
  }
  if (found.size() < step.results.size()) {
    throw StatusError(NPU_FAILED,
                      fmt::format("node '{}' ({}): expected {} results, found {}", step.name,
                                  step.op_type, step.results.size(), found.size()));
  }
  for (std::size_t i = 0; i < step.results.size(); ++i) {
    const StepResult& result = step.results[i];
    if (result.slot == kNoSlot && step.results.size() > 1) continue;
    c10::IValue& value = found[i];
    if (value.isTensor()) {
      store(step, result, std::move(value).toTensor());
    } else if (value.isBool() || value.isScalar()) {
      store(step, result, scalar_result(value, result));
    } else {
      store(step, result, at::Tensor());
    }
  }
}

// One of several results that has no reader is not checked: its shape differs between versions of
// libtorch (the saved statistics of a batch norm in evaluation).
void Program::store(const Step& step, const StepResult& result, at::Tensor tensor) {
  if (!tensor.defined()) {
    throw StatusError(
        NPU_FAILED,
        fmt::format("node '{}' ({}): result '{}': expected {}, found none", step.name, step.op_type,
                    result.name, type_and_shape(result.type, result.shape)));
  }
  if (tensor.scalar_type() != result.type && step.has_casts && is_floating(tensor.scalar_type()) &&
      is_floating(result.type)) {
    tensor = tensor.to(result.type);
  }
  if (tensor.scalar_type() != result.type || tensor.sizes() != c10::IntArrayRef(result.shape)) {
    throw StatusError(
        NPU_FAILED,
        fmt::format("node '{}' ({}): result '{}': expected {}, found {}", step.name, step.op_type,
                    result.name, type_and_shape(result.type, result.shape),
                    type_and_shape(tensor.scalar_type(), tensor.sizes())));
  }
  if (result.slot != kNoSlot) values_[static_cast<std::size_t>(result.slot)] = std::move(tensor);
}

namespace {

// What npu_custom_op_call::host points to.
struct CustomResults {
  std::vector<at::Tensor> tensors;
};

void* allocate_result(void* host, std::size_t index, npu_dtype dtype, std::uint32_t rank,
                      const std::int64_t* shape) {
  auto& results = static_cast<CustomResults*>(host)->tensors;
  if (index >= results.size() || dtype >= kDTypeCount || (rank != 0 && shape == nullptr)) {
    return nullptr;
  }
  try {
    at::Tensor tensor =
        at::empty(c10::IntArrayRef(shape, rank),
                  at::TensorOptions().dtype(kScalarTypes[static_cast<std::size_t>(dtype)]));
    results[index] = tensor;
    static char no_elements;
    return tensor.numel() == 0 ? &no_elements : tensor.data_ptr();
  } catch (const std::exception&) {
    return nullptr;
  }
}

npu_custom_tensor tensor_view(const char* name, c10::ScalarType type, c10::IntArrayRef shape,
                              const void* data, std::uint64_t bytes) {
  return {name,
          static_cast<npu_dtype>(*dtype_of(type)),
          static_cast<std::uint32_t>(shape.size()),
          shape.data(),
          data,
          bytes};
}

}  // namespace

void Program::call_custom(const Step& step) {
  std::vector<at::Tensor> operands;
  for (const c10::IValue& value : stack_) {
    operands.push_back(value.toTensor().resolve_conj().resolve_neg().contiguous());
  }
  stack_.clear();
  std::vector<npu_custom_tensor> inputs;
  for (const at::Tensor& tensor : operands) {
    inputs.push_back(
        tensor_view("", tensor.scalar_type(), tensor.sizes(), tensor.data_ptr(), tensor.nbytes()));
  }
  std::vector<npu_custom_tensor> results;
  for (const StepResult& result : step.results) {
    results.push_back(tensor_view(result.name.c_str(), result.type, result.shape, nullptr, 0));
  }
  CustomResults made{std::vector<at::Tensor>(results.size())};
  const npu_custom_op_call call = {
      step.name.c_str(), step.attrs.c_str(), step.attrs.size(), inputs.data(),
      inputs.size(),     results.data(),     results.size(),    &made,
      &allocate_result};
  npu_error error{};
  error.struct_size = sizeof error;
  const npu_status status = step.custom.run(step.custom.context, &call, &error);
  error.text[sizeof error.text - 1] = '\0';
  if (status != NPU_OK) {
    const std::string text = first_line(error.text);
    throw StatusError(status <= NPU_FAILED ? status : NPU_FAILED,
                      fmt::format("node '{}' ({}): {}", step.name, step.op_type,
                                  text.empty() ? "the custom op failed" : text));
  }
  for (std::size_t i = 0; i < made.tensors.size(); ++i) {
    if (!made.tensors[i].defined()) {
      throw StatusError(NPU_FAILED,
                        fmt::format("node '{}' ({}): the custom op did not allocate result {}",
                                    step.name, step.op_type, i));
    }
    stack_.emplace_back(std::move(made.tensors[i]));
  }
}

}  // namespace npu::aten
