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

/// `text` with '?' for invalid UTF-8 bytes and for every character that would affect a terminal: C0
/// controls (line ends included), C1 controls, and characters that change the direction of writing.
/// For untrusted text that goes into messages and documents.
std::string printable_text(std::string_view text);
/// printable_text of a name; the middle of one longer than 200 bytes is replaced by "...".
std::string short_text(std::string_view text);
/// Makes text fit for a terminal: printable_text of each line, with long words and lines shortened.
std::string terminal_text(std::string_view text);

/// A table with aligned columns: the first row is the header, and columns whose name starts with
/// '>' are right-aligned (the '>' is dropped). Cells become short_text. Ends with a newline.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

/// The candidate with the smallest edit distance to `word`, or an empty string if none is close
/// enough (at most a third of the letters differ).
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// The option that `word` was probably meant to be, both without dashes: one that is misspelt, one
/// that begins with `word`, or one that it abbreviates (tgt, target). Empty if there is none.
std::string nearest_option(std::string_view word, const std::vector<std::string>& options);

}  // namespace npu
