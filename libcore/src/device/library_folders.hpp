// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace npu {

/// Where the install's own shared objects of a kind ("backends", "frontends") are: beside the
/// program's folder, or where the build was to be installed to, if the program's place is not
/// known.
std::string install_folder(std::string_view kind);

/// A program of the install that others start: libexec/npu/NAME beside the program's folder, or,
/// for programs that lie elsewhere, where the build was to be installed to.
std::string helper_program(std::string_view name);

/// Whether the system says where the program lies.
bool knows_program_file();

/// Whether a name of a shared object consists of a-z, 0-9, '_' and '-'.
bool is_library_name(std::string_view name);

}  // namespace npu
