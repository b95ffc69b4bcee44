// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/boxing/impl/WrapFunctionIntoFunctor.h>
#include <ATen/core/boxing/impl/make_boxed_from_unboxed_functor.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace npu::aten {

/// A function behind libtorch's boxed interface: takes its arguments off the stack and pushes its
/// results. Its parameter types must be those that a kernel has.
template <auto function>
void boxed(torch::jit::Stack& stack) {
  using Functor = typename c10::impl::WrapFunctionIntoFunctor<
      c10::CompileTimeFunctionPointer<std::remove_pointer_t<decltype(function)>, function>>::type;
  static Functor functor;
  // libtorch's boxing code takes a handle but does not use it.
  static const c10::OperatorHandle handle =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  c10::impl::make_boxed_from_unboxed_functor<Functor, true>::call(&functor, handle,
                                                                  c10::DispatchKeySet(), &stack);
}

}  // namespace npu::aten
