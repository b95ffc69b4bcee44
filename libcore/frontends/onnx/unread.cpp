// SPDX-License-Identifier: Apache-2.0
// What a node says and its rule does not know must not be dropped: a misspelt attribute, one of
// another opset, an operand too many. Every attribute and operand that a rule has asked for is
// recorded (op.hpp); here the rest is refused by name, but for what the op's row says may be
// ignored. O(attributes * notes of the row).
#include "unread.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "support/text.hpp"

namespace npu::onnx {
namespace {

/// One word of an op's notes: NAME or #OPERAND, then "<N" or ">=N" if only those opsets have it,
/// then "?" if it may be ignored, or "?=VALUE" if only with this value.
struct Note {
  std::string_view name;
  std::int64_t first = 1;  ///< opset
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  bool may_be_ignored = false;
  std::string_view value;  ///< empty: any
};

std::int64_t number_of(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<Note> notes_of(std::string_view text) {
  std::vector<Note> notes;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    Note note;
    if (const std::size_t mark = word.find('?'); mark != word.npos) {
      note.may_be_ignored = true;
      note.value = word.substr(std::min(word.size(), mark + 2));
      word = word.substr(0, mark);
    }
    const std::size_t span = word.find_first_of("<>");
    note.name = word.substr(0, span);
    if (span != word.npos && word[span] == '<') note.last = number_of(word.substr(span + 1)) - 1;
    if (span != word.npos && word[span] == '>') note.first = number_of(word.substr(span + 2));
    notes.push_back(note);
  }
  return notes;
}

const Note* find_note(const std::vector<Note>& notes, std::string_view name) {
  const auto found =
      std::find_if(notes.begin(), notes.end(), [&](const Note& note) { return note.name == name; });
  return found == notes.end() ? nullptr : &*found;
}

std::string quoted(std::string_view name) { return "'" + short_text(name) + "'"; }

// Whether an attribute has the value that a note states; a list has it if all its elements do.
bool has_value(const AttributeProto& attribute, std::string_view value) {
  switch (attribute.type) {
    case AttributeType::kInt:
      return attribute.i == number_of(value);
    case AttributeType::kFloat:
      return attribute.f == static_cast<float>(number_of(value));
    case AttributeType::kString:
      return attribute.s == value;
    case AttributeType::kInts:
      return std::all_of(attribute.ints.begin(), attribute.ints.end(),
                         [&](auto element) { return element == number_of(value); });
    default:
      return false;
  }
}

// "known are 'a', 'b'": what the rule has asked for and what is known to be ignored.
std::string known_text(const Op& op, const std::vector<Note>& notes) {
  std::set<std::string, std::less<>> known = op.asked();
  for (const Note& note : notes) {
    if (note.may_be_ignored && !note.name.starts_with('#')) known.emplace(note.name);
  }
  std::string text;
  for (const std::string& name : known) {
    const Note* note = find_note(notes, name);
    if (note != nullptr && (op.opset() < note->first || op.opset() > note->last)) continue;
    text += (text.empty() ? "'" : ", '") + name + "'";
  }
  return text.empty() ? "the op has none" : "known are " + text;
}

void check_operands(const Op& op, const std::vector<Note>& notes) {
  std::size_t taken = 0;
  for (std::size_t i = 0; i < op.input_count(); ++i) {
    if (op.was_read(i)) taken = i + 1;
  }
  for (std::size_t i = 0; i < op.input_count(); ++i) {
    if (op.was_read(i) || op.inputs()[i] == nullptr) continue;
    const Note* note = find_note(notes, "#" + std::to_string(i));
    if (note != nullptr && op.opset() >= note->first && op.opset() <= note->last) continue;
    Op::refuse("operand " + std::to_string(i) + " (" + quoted(op.node().inputs[i]) +
               ") is not known; " +
               (taken == 0   ? "no operand is read"
                : taken == 1 ? "operand 0 is read"
                             : "operands 0 to " + std::to_string(taken - 1) + " are read"));
  }
}

}  // namespace

void check_attributes(const Op& op, std::string_view text) {
  const std::vector<Note> notes = notes_of(text);
  const auto& attributes = op.node().attributes;
  for (auto attribute = attributes.begin(); attribute != attributes.end(); ++attribute) {
    if (std::any_of(attributes.begin(), attribute,
                    [&](const auto& other) { return other.name == attribute->name; })) {
      Op::refuse("attribute " + quoted(attribute->name) + " stands there twice");
    }
    const Note* note = find_note(notes, attribute->name);
    if (note == nullptr || op.value_of(*attribute) == nullptr) continue;
    if (op.opset() > note->last) {
      Op::refuse("attribute " + quoted(attribute->name) + " is one of opsets up to " +
                 std::to_string(note->last) + " only");
    }
    if (op.opset() < note->first) {
      Op::refuse("attribute " + quoted(attribute->name) + " is one of opsets from " +
                 std::to_string(note->first) + " on");
    }
  }
}

void check_reads(const Op& op, std::string_view text) {
  const std::vector<Note> notes = notes_of(text);
  for (const AttributeProto& attribute : op.node().attributes) {
    if (op.was_read(attribute.name)) continue;
    const AttributeProto* value = op.value_of(attribute);
    if (value == nullptr) continue;
    const Note* note = find_note(notes, attribute.name);
    if (note == nullptr || !note->may_be_ignored) {
      Op::refuse("attribute " + quoted(attribute.name) + " is not known; " + known_text(op, notes));
    }
    if (!note->value.empty() && !has_value(*value, note->value)) {
      Op::refuse("attribute " + quoted(attribute.name) + " is imported only if it is " +
                 std::string(note->value));
    }
  }
  check_operands(op, notes);
}

std::vector<std::string_view> ignored_names(std::string_view text) {
  std::vector<std::string_view> names;
  for (const Note& note : notes_of(text)) {
    if (note.may_be_ignored) names.push_back(note.name);
  }
  return names;
}

}  // namespace npu::onnx
