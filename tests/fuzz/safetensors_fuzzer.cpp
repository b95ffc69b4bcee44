// SPDX-License-Identifier: Apache-2.0
// The safetensors reader: a file is refused, or every tensor in it can be read to its last byte.
// Files that pass the header check are also opened as files, through a memory file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "npu/support/error.hpp"
#include "npu/tensor/safetensors.hpp"

using npu::fuzz::require;

namespace {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, "a memory file can be made");
    require(::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
            "a memory file can be written");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

void read_all(const std::string& path) {
  const npu::SafetensorsFile file(path);
  for (const npu::SafetensorsEntry& entry : file.entries()) {
    require(file.find(entry.name) != nullptr, "an entry is found by its name");
    try {
      const npu::Tensor tensor = file.tensor(entry);
      require(tensor.bytes() == entry.end - entry.begin, "a tensor has the bytes of its entry");
      double sum = 0;
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) sum += tensor.value_as_double(i);
      volatile double used = sum;
      static_cast<void>(used);
    } catch (const npu::Error&) {  // a bool that is neither 0 nor 1
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    std::size_t data_begin = 0;
    for (const npu::SafetensorsEntry& entry : npu::parse_safetensors(bytes, "fuzz", data_begin)) {
      require(entry.begin <= entry.end && data_begin + entry.end <= size, "offsets lie inside");
    }
  } catch (const npu::Error& error) {
    require(!error.message().empty(), "errors say what");
    return 0;
  }
  read_all(MemoryFile(bytes).path());
  return 0;
}
