// SPDX-License-Identifier: Apache-2.0
// SHA-256 of bundles, by nettle. Not in libcore, so that programs without a need do not load it.
// O(bytes), at 0.4 to 2 GB/s.
#include "file_digest.hpp"

#include <nettle/sha2.h>

#include <algorithm>
#include <array>

#include "io.hpp"
#include "npu/support/error.hpp"

namespace npu::cli {

std::string sha256_hex(std::string_view bytes) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest;
  sha256_digest(&context, digest.size(), digest.data());
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

CLI::Validator sha256_option() {
  return CLI::Validator(
      [](std::string& text) {
        for (char& c : text) {
          if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
        }
        const bool is_digest =
            text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
        return is_digest ? std::string()
                         : "value " + text +
                               " is no SHA-256, expected 64 hexadecimal digits, as npu-compile "
                               "--info and sha256sum print";
      },
      "");
}

std::shared_ptr<const Bundle> read_pinned_bundle(Tool& tool, const std::string& sha256) {
  const std::string bytes = tool.input().read_text();
  const std::string name = input_name(tool.input().path());
  if (const std::string found = sha256_hex(bytes); found != sha256) {
    throw Error(ErrorCode::kParse,
                "its SHA-256 is " + found + ", --require-digest expects " + sha256, {.file = name});
  }
  if (!Bundle::has_magic(bytes)) {
    throw Error(ErrorCode::kParse,
                "is no bundle, which --require-digest needs: what else a document runs lies in "
                "other files; compile it with npu-compile",
                {.file = name});
  }
  // What the SHA-256 covers needs no other digest.
  return Bundle::from_bytes(bytes, name, DigestCheck::kOmitted);
}

}  // namespace npu::cli
