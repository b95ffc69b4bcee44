// SPDX-License-Identifier: Apache-2.0
// Turns what is thrown below into statuses: one table, so that an error is the same whichever
// function meets it.
#include "abi/boundary.hpp"

#include <new>

namespace npu::onednn::abi {

void set_error(npu4_error* error, npu4_status status, const std::string& text) noexcept {
  if (error == nullptr || !NPU4_HAS(error, text)) return;
  error->status = status;
  const std::size_t length = std::min(text.size(), sizeof error->text - 1);
  std::memcpy(error->text, text.data(), length);
  error->text[length] = '\0';
}

npu4_status current_status(npu4_error* error) noexcept {
  const auto say = [error](npu4_status status, const std::string& text) {
    set_error(error, status, text);
    return status;
  };
  try {
    throw;
  } catch (const WriteError& failure) {
    return failure.status;
  } catch (const StatusError& failure) {
    return say(failure.status, failure.text);
  } catch (const CompileStopped& failure) {
    return say(failure.status, failure.text);
  } catch (const MemoryLimitError& failure) {
    failure.fill_numbers(error);
    return say(NPU4_MEMORY, failure.message());
  } catch (const Error& failure) {
    return say(status_of(failure.code()), failure.message());
  } catch (const dnnl::error& failure) {
    const bool memory = failure.status == dnnl_out_of_memory;
    return say(memory ? NPU4_MEMORY : NPU4_FAILED, std::string("oneDNN: ") + failure.what());
  } catch (const std::bad_alloc&) {
    return say(NPU4_MEMORY, "out of memory");
  } catch (const std::exception& failure) {
    return say(NPU4_FAILED, failure.what());
  } catch (...) {
    return say(NPU4_FAILED, "an unknown error");
  }
}

}  // namespace npu::onednn::abi
