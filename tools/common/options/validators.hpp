// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace npu::cli {

/// Lets an option be given several times, each time with one value. Returns it.
CLI::Option* repeatable(CLI::Option* option);

/// Checks that a number lies in [minimum, maximum], with a message that fits on a line.
CLI::Validator in_range(std::int64_t minimum, std::int64_t maximum);
/// One of a few words.
CLI::Validator one_of(std::vector<std::string> words);
/// A number of bytes: an integer, optionally followed by k, M, G or T.
CLI::Validator byte_size();
/// A seed: an unsigned 64-bit integer.
CLI::Validator seed();
/// A file to write besides the document; refuses "-", since stdout carries that.
CLI::Validator file_beside_stdout();
/// Anything but the empty text.
CLI::Validator not_empty();
/// A finite number of at least 0.
CLI::Validator finite_at_least_zero();
/// Of a sampler: 0, or 1e-6 to 1e6.
CLI::Validator temperature();
/// A number above 0 and at most 1.
CLI::Validator share();
/// "2,107": ids of tokens.
CLI::Validator id_list();
/// For a deadline: seconds above 0, at most a year.
CLI::Validator seconds_to_wait();

}  // namespace npu::cli
