// SPDX-License-Identifier: Apache-2.0
// Whole-file reads, atomic writes and read-only mappings, every call checked.
#include "npu/support/file_io.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "npu/support/error.hpp"
#include "support/live_files.hpp"
#include "support/new_file.hpp"
#include "support/open_file.hpp"

namespace npu {
namespace {

NewFile::Options options_for(const WriteTarget& target) {
  NewFile::Options options{.exists = target.exists};
  if (target.exists) options.mode = target.mode;
  return options;
}

}  // namespace

bool is_regular_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string read_file(const std::string& path) {
  const OpenedFile file = open_to_read(path);
  const int descriptor = file.descriptor.get();
  std::string content;
  if (S_ISREG(file.status.st_mode)) {
    content.reserve(static_cast<std::size_t>(file.status.st_size) + 1);
  } else {
    // A pipe or a terminal: wait until somebody writes, then read as if it had been opened so.
    // Without the wait a pipe whose writer has not come yet would be at its end.
    struct pollfd wanted {
      descriptor, POLLIN, 0
    };
    while (::poll(&wanted, 1, -1) < 0 && errno == EINTR) {
    }
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  }
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t count = ::read(descriptor, block.data(), block.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      fail_io(path, "cannot read", errno);
    }
    if (count == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(count));
  }
}

std::string read_stream(std::FILE* stream, const std::string& name) {
  std::string content;
  std::array<char, 1 << 16> block;
  for (;;) {
    const std::size_t count = std::fread(block.data(), 1, block.size(), stream);
    content.append(block.data(), count);
    if (count < block.size()) {
      if (std::ferror(stream) != 0) fail_io(name, "cannot read", errno);
      return content;
    }
  }
}

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, std::vector<std::string_view>{content});
}

void write_file_atomically(const std::string& path, const std::vector<std::string_view>& pieces) {
  write_file_atomically(path, [&](const TextSink& sink) {
    for (const std::string_view piece : pieces) sink(piece);
  });
}

void write_file_atomically(const std::string& path,
                           const std::function<void(const TextSink&)>& write) {
  const WriteTarget target = find_write_target(path);
  if (target.in_place) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY));
    if (file.get() < 0) fail_io(path, "cannot open", errno);
    write([&](std::string_view piece) { write_fully(file.get(), piece, path); });
    if (!file.close_checked()) fail_io(path, "cannot write", errno);
    return;
  }
  NewFile file(target.path, options_for(target));
  write([&](std::string_view piece) { file.write(piece); });
  file.publish(true);
}

void write_files_atomically(const std::vector<FilePieces>& files) {
  std::vector<std::unique_ptr<NewFile>> complete;
  for (const FilePieces& each : files) {
    const WriteTarget target = find_write_target(each.path);
    if (target.in_place) {
      write_file_atomically(each.path, each.pieces);
      continue;
    }
    complete.push_back(std::make_unique<NewFile>(target.path, options_for(target)));
    for (const std::string_view piece : each.pieces) complete.back()->write(piece);
    complete.back()->sync();
  }
  for (const auto& file : complete) file->publish(false);
}

MappedFile::MappedFile(const std::string& path, FileTrust trust)
    : MappedFile(path, open_to_read(path, trust)) {}

MappedFile::MappedFile(const std::string& folder, const std::string& name)
    : path_(folder.empty() ? name : folder + "/" + name) {
  map(open_beneath(folder, name));
}

MappedFile::MappedFile(const std::string& path, const OpenedFile& file) : path_(path) { map(file); }

std::shared_ptr<const MappedFile> MappedFile::find(const std::string& path, FileTrust trust) {
  const std::optional<OpenedFile> file = find_to_read(path, trust);
  if (!file) return nullptr;
  return std::shared_ptr<const MappedFile>(new MappedFile(path, *file));
}

void MappedFile::map(const OpenedFile& file) {
  const int descriptor = file.descriptor.get();
  const auto size = static_cast<std::size_t>(file.status.st_size);
  if (!S_ISREG(file.status.st_mode)) {
    throw Error(ErrorCode::kIo, "is not a regular file, which mapping needs", {.file = path_});
  }
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED && errno == ENOMEM) {
    throw Error(ErrorCode::kInfeasible,
                "out of memory for a mapping of " + std::to_string(size) + " bytes",
                {.file = path_});
  }
  if (address == MAP_FAILED) fail_io(path_, "cannot map", errno);
  size_ = size;
  data_ = static_cast<const std::byte*>(address);
  mark_ = std::make_unique<MappingMark>(address, size_, path_);
}

MappedFile::~MappedFile() {
  mark_.reset();
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace npu
