// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npu {

/// "512 B", "4.01 MB": decimal units, three significant digits.
std::string bytes_text(double bytes);
/// "1.82 GFLOP".
std::string flops_text(double flops);
/// A fixed number of decimals.
std::string fixed_text(double value, int decimals);

/// Integers with commas between, such as "1,2,4"; nothing if `text` is anything else.
std::optional<std::vector<std::int64_t>> integer_list(std::string_view text);

/// `text` with control characters and invalid UTF-8 bytes replaced by '?': for untrusted text that
/// goes into messages and documents.
std::string printable_text(std::string_view text);

/// A table with aligned columns: the first row is the header, and columns whose name starts with
/// '>' are right-aligned (the '>' is dropped). Ends with a newline.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

/// The candidate with the smallest edit distance to `word`, or an empty string if none is close
/// enough (at most a third of the letters differ).
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace npu
