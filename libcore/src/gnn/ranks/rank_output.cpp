// SPDX-License-Identifier: Apache-2.0
// One output file that several processes write.
//
// Rank 0 makes a file of the whole size under a temporary name beside the final one and tells the
// others the name's suffix as a number; all write their rows at their places; when all have
// reached the disk, rank 0 renames it. Every rank has marked the temporary name as unfinished, so
// that whichever is ended by a signal removes it.
#include "gnn/ranks/rank_output.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "support/descriptor.hpp"
#include "support/live_files.hpp"
#include "support/new_file.hpp"
#include "support/open_file.hpp"
#include "tensor/npy.hpp"

namespace npu::gnn {
namespace {

class SharedFile {
 public:
  SharedFile(const std::string& path, const Transport* transport)
      : path_(path), transport_(transport) {}
  ~SharedFile() {
    if (is_made_ && !is_renamed_) ::unlink(temporary_.c_str());
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  void write(const RowsToWrite& rows, const std::vector<std::int32_t>& own_nodes,
             std::int64_t node_count) {
    const std::string header = npy_header(DType::kFloat32, {node_count, rows.width});
    const std::size_t width = index_of(rows.width) * sizeof(float);
    std::int64_t suffix = 0;
    do_together(transport_, [&] {
      if (is_first()) suffix = make(header, header.size() + width * index_of(node_count));
    });
    if (transport_ != nullptr) transport_->sum({&suffix, 1});
    do_together(transport_, [&] {
      if (!is_first()) open_made(suffix);
      write_rows(rows, own_nodes, header.size(), width);
      if (::fsync(file_.get()) != 0 || !file_.close_checked()) fail("cannot write");
    });
    do_together(transport_, [&] {
      if (!is_first()) return;
      if (target_.exists && ::chmod(temporary_.c_str(), target_.mode) != 0) fail("cannot write");
      if (::rename(temporary_.c_str(), target_.path.c_str()) != 0) fail("cannot rename into place");
      is_renamed_ = true;
    });
  }

 private:
  bool is_first() const { return transport_ == nullptr || transport_->rank() == 0; }

  [[noreturn]] void fail(const char* what) const { fail_io(path_, what, errno); }

  std::string name_of(std::int64_t suffix) const {
    return target_.path + ".ranks" + std::to_string(suffix);
  }

  std::int64_t make(std::string_view header, std::size_t bytes) {
    target_ = find_write_target(path_);
    if (target_.in_place) {
      throw Error(ErrorCode::kIo, "several ranks write a regular file, not a device or a pipe",
                  {.file = path_});
    }
    std::uint32_t suffix = 0;
    if (::getrandom(&suffix, sizeof suffix, 0) != sizeof suffix) {
      suffix = static_cast<std::uint32_t>(::getpid());
    }
    temporary_ = name_of(suffix);
    mark_.emplace(temporary_);
    const mode_t mode = target_.exists ? 0600 : 0666;  // that of the old file comes at the end
    file_ = Descriptor(
        ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, mode));
    if (file_.get() < 0) fail("cannot create");
    is_made_ = true;
    if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) fail("cannot write");
    write_at(header, 0);
    return suffix;
  }

  void open_made(std::int64_t suffix) {
    target_ = find_write_target(path_);
    temporary_ = name_of(suffix);
    mark_.emplace(temporary_);
    file_ = Descriptor(::open(temporary_.c_str(), O_NOFOLLOW | O_WRONLY | O_CLOEXEC));
    if (file_.get() < 0) fail("cannot open what rank 0 has made (all ranks need the same folder)");
  }

  void write_at(std::string_view bytes, std::size_t offset) const {
    while (!bytes.empty()) {
      const ssize_t written =
          ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("cannot write");
      bytes.remove_prefix(static_cast<std::size_t>(written));
      offset += static_cast<std::size_t>(written);
    }
  }

  // Nodes that follow one another are written at once, some megabytes at a time.
  void write_rows(const RowsToWrite& rows, const std::vector<std::int32_t>& own_nodes,
                  std::size_t header, std::size_t width) const {
    constexpr std::size_t kMostAtOnce = std::size_t{1} << 22;
    const std::size_t most =
        std::max<std::size_t>(1, kMostAtOnce / std::max<std::size_t>(1, width));
    for (std::size_t first = 0; first < own_nodes.size(); first += most) {
      const std::size_t last = std::min(own_nodes.size(), first + most);
      const auto* bytes = reinterpret_cast<const char*>(
          rows.rows(static_cast<std::int64_t>(first), static_cast<std::int64_t>(last - first)));
      for (std::size_t begin = first; begin < last;) {
        std::size_t end = begin + 1;
        while (end < last && own_nodes[end] == own_nodes[end - 1] + 1) ++end;
        write_at({bytes + (begin - first) * width, (end - begin) * width},
                 header + index_of(own_nodes[begin]) * width);
        begin = end;
      }
    }
  }

  const std::string& path_;
  const Transport* transport_;
  WriteTarget target_;
  std::string temporary_;
  std::optional<UnfinishedMark> mark_;
  Descriptor file_;
  bool is_made_ = false;
  bool is_renamed_ = false;
};

}  // namespace

void write_rank_rows(const std::string& path, const RowsToWrite& rows,
                     const std::vector<std::int32_t>& own_nodes, std::int64_t node_count,
                     const Transport* transport) {
  SharedFile(path, transport).write(rows, own_nodes, node_count);
}

}  // namespace npu::gnn
