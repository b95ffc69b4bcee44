// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npu {

/// "512 B", "4.01 MB": decimal units, three digits.
std::string bytes_text(double bytes);
/// "1.82 GFLOP".
std::string flops_text(double flops);
/// A fixed number of decimals.
std::string fixed_text(double value, int decimals);

/// Integers with commas between, such as "1,2,4"; nothing if `text` is anything else.
std::optional<std::vector<std::int64_t>> integer_list(std::string_view text);

/// `text` with every character that would do something to a terminal, and bytes that are not UTF-8,
/// replaced by '?': controls (line ends among them), C1 controls, what turns the direction of
/// writing. For text that comes from outside and goes into messages and documents.
std::string printable_text(std::string_view text);
/// printable_text of a name: of one with more than 200 bytes the middle is left out ("...").
std::string short_text(std::string_view text);
/// What may go to a terminal: printable_text of each line, lines and words of it cut short.
std::string terminal_text(std::string_view text);

/// A table whose columns line up: the first row is the head, columns whose name starts with '>' are
/// right-aligned (the sign is dropped). Cells are made short_text. Ends with a newline.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

/// The candidate with the smallest edit distance to `word`, or an empty string if none is near (at
/// most a third of the letters differ).
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// The option that somebody meant who wrote `word`, both without dashes: one with a letter wrong,
/// one that begins with it, or one that it abbreviates (tgt, target). Empty if there is none.
std::string nearest_option(std::string_view word, const std::vector<std::string>& options);

}  // namespace npu
