// SPDX-License-Identifier: Apache-2.0
// The cache gives back what was stored, or nothing; whatever happens to its folder.
#include "npu/compile/cache.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "catch.hpp"
#include "npu/support/file_io.hpp"
#include "support/digest.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;

namespace {

std::string key_of(int number) {
  Digest digest;
  digest.add(static_cast<std::uint64_t>(number));
  return digest.hex();
}

/// Bytes that depend on the number, so that a mix-up shows.
Blob blob_of(int number, std::size_t size) {
  auto bytes = std::make_shared<std::string>(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    (*bytes)[i] = static_cast<char>((i * 31 + static_cast<std::size_t>(number) * 7) & 0xff);
  }
  return {{bytes, reinterpret_cast<const std::byte*>(bytes->data())}, size};
}

bool is_blob(const std::optional<CachedBlob>& entry, int number, std::size_t size) {
  return entry && entry->blob.size == size && entry->report == Json{{"number", number}} &&
         std::memcmp(entry->blob.data.get(), blob_of(number, size).data.get(), size) == 0;
}

CacheOptions in(const std::string& folder, std::int64_t limit = 1 << 30) {
  return {.enabled = true, .folder = folder, .limit_bytes = limit};
}

std::vector<std::filesystem::path> entries(const std::string& folder) {
  std::vector<std::filesystem::path> list;
  for (const auto& item : std::filesystem::directory_iterator(folder)) list.push_back(item.path());
  return list;
}

/// Moves the last use of every entry into the past.
void age(const std::string& folder, int seconds) {
  for (const auto& path : entries(folder)) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }
}

}  // namespace

TEST_CASE("what is stored is found, by any process and as long as it is held", "[compile][cache]") {
  const test::TemporaryFolder folder;
  std::optional<CachedBlob> entry;
  {
    CompileCache cache(in(folder / "a/b/c"));  // made with its parents
    CHECK_FALSE(cache.find(key_of(1)));
    cache.store(key_of(1), blob_of(1, 10000), {{"number", 1}});
    entry = CompileCache(in(folder / "a/b/c")).find(key_of(1));
    CHECK_FALSE(cache.find(key_of(2)));
  }
  std::filesystem::remove_all(folder / "a");
  CHECK(is_blob(entry, 1, 10000));  // mapped: gone from the folder, not from memory
  CHECK(reinterpret_cast<std::uintptr_t>(entry->blob.data.get()) % 4096 == 0);
}

TEST_CASE("a key depends on everything that is compiled", "[compile][cache]") {
  Tensor one(DType::kFloat32, {2});
  const std::vector<NamedTensor> weights{{"w", one}};
  CacheKeyInput base{.backend = "b",
                     .backend_version = "1",
                     .fingerprint = "f",
                     .device = "{}",
                     .options = "{}",
                     .sub_ir = "ir",
                     .weights = &weights};
  std::set<std::string> keys{cache_key(base)};
  CHECK(cache_key(base) == *keys.begin());
  const auto add = [&](auto change) {
    CacheKeyInput input = base;
    change(input);
    keys.insert(cache_key(input));
  };
  add([](CacheKeyInput& i) { i.backend = "c"; });
  add([](CacheKeyInput& i) { i.backend_version = "2"; });
  add([](CacheKeyInput& i) { i.fingerprint = "g"; });  // another CPU
  add([](CacheKeyInput& i) { i.device = "{\"threads\":1}"; });
  add([](CacheKeyInput& i) { i.options = "{\"precision\":\"bf16\"}"; });
  add([](CacheKeyInput& i) { i.sub_ir = "ir2"; });
  add([](CacheKeyInput& i) { i.fingerprint = "f{", i.device = "}"; });  // moved by a byte
  Tensor other(DType::kFloat32, {2});
  other.as_mutable<float>()[1] = 1e-30F;
  const std::vector<NamedTensor> values{{"w", other}};
  const std::vector<NamedTensor> named{{"v", one}};
  const std::vector<NamedTensor> shaped{{"w", Tensor(DType::kFloat32, {2, 1})}};
  const std::vector<NamedTensor> typed{{"w", Tensor(DType::kInt32, {2})}};
  const std::vector<NamedTensor> none;
  for (const auto* list : {&values, &named, &shaped, &typed, &none}) {
    add([&](CacheKeyInput& i) { i.weights = list; });
  }
  CHECK(keys.size() == 13);
}

TEST_CASE("an entry with any byte changed or cut off is removed", "[compile][cache]") {
  const test::TemporaryFolder folder;
  CompileCache cache(in(folder / "c"));
  cache.store(key_of(1), blob_of(1, 300), {{"number", 1}});
  const std::string path = entries(folder / "c").front();
  const std::string whole = read_file(path);
  // The padding between report and blob belongs to nobody.
  const std::size_t header = 8 + 32 + 40 + std::string("{\"number\":1}").size();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i >= header && i < 4096) continue;
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    write_file_atomically(path, damaged);
    INFO("byte " << i);
    REQUIRE_FALSE(cache.find(key_of(1)));
    REQUIRE_FALSE(std::filesystem::exists(path));
  }
  for (std::size_t size = 0; size < whole.size(); size += 37) {
    write_file_atomically(path, std::string_view(whole).substr(0, size));
    REQUIRE_FALSE(cache.find(key_of(1)));
  }
  // Another key's entry under this name.
  cache.store(key_of(2), blob_of(2, 300), {{"number", 2}});
  std::filesystem::rename(entries(folder / "c").front(), path);
  CHECK_FALSE(cache.find(key_of(1)));
  cache.store(key_of(1), blob_of(1, 300), {{"number", 1}});
  CHECK(is_blob(cache.find(key_of(1)), 1, 300));
  CHECK(cache.take_warnings().empty());
}

TEST_CASE("what has not been used for longest goes first", "[compile][cache]") {
  const test::TemporaryFolder folder;
  // An entry of 1000 bytes takes 4096 + 1000; three fit into 16000.
  CompileCache cache(in(folder / "c", 16000));
  for (const int number : {1, 2, 3}) {
    cache.store(key_of(number), blob_of(number, 1000), {{"number", number}});
    age(folder / "c", 10);  // each store finds the others ten seconds older
  }
  CHECK(is_blob(cache.find(key_of(1)), 1, 1000));  // used now
  cache.store(key_of(4), blob_of(4, 1000), {{"number", 4}});
  CHECK(entries(folder / "c").size() == 3);
  CHECK(is_blob(cache.find(key_of(1)), 1, 1000));
  CHECK(is_blob(cache.find(key_of(4)), 4, 1000));
  // One that alone is too large is not kept, and costs no other.
  cache.store(key_of(5), blob_of(5, 20000), {{"number", 5}});
  CHECK(entries(folder / "c").size() == 3);
  CHECK_FALSE(cache.find(key_of(5)));
}

TEST_CASE("a folder that others can write to is not used", "[compile][cache]") {
  const test::TemporaryFolder folder;
  const mode_t old = ::umask(002);
  CompileCache made(in(folder / "made"));
  made.store(key_of(1), blob_of(1, 10), {{"number", 1}});
  ::umask(old);
  CHECK(is_blob(made.find(key_of(1)), 1, 10));  // folder and entry are not for the group
  CHECK(made.take_warnings().empty());
  for (const mode_t mode : {01777, 0775, 0757}) {
    REQUIRE(::chmod((folder / "made").c_str(), mode) == 0);
    CompileCache cache(in(folder / "made"));
    CHECK_FALSE(cache.enabled());
    CHECK_FALSE(cache.find(key_of(1)));
    cache.store(key_of(2), blob_of(2, 10), {{"number", 2}});
    CHECK(entries(folder / "made").size() == 1);
    CHECK(cache.take_warnings() ==
          std::vector<std::string>{"cache " + (folder / "made") +
                                   ": may be written by others; chmod go-w makes it this user's "
                                   "alone; going on without it"});
  }
}

TEST_CASE("an entry that others could have written is not used, and stays", "[compile][cache]") {
  const test::TemporaryFolder folder;
  CompileCache cache(in(folder / "c"));
  cache.store(key_of(1), blob_of(1, 10), {{"number", 1}});
  const std::string path = entries(folder / "c").front();
  const auto refused = [&](const std::string& reason) {
    CompileCache next(in(folder / "c"));
    CHECK_FALSE(next.find(key_of(1)));
    CHECK_FALSE(next.find(key_of(1)));
    CHECK(next.take_warnings() ==
          std::vector<std::string>{"cache " + (folder / "c") + ": entry " + key_of(1) +
                                   ".npublob " + reason + "; going on without it"});
    CHECK(std::filesystem::symlink_status(path).type() != std::filesystem::file_type::not_found);
  };
  REQUIRE(::chmod(path.c_str(), 0666) == 0);
  refused("may be written by others; chmod go-w makes it this user's alone");
  if (::geteuid() == 0) {
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
    refused("belongs to user 65534, expected 0 (root)");
  } else {
    WARN("skipped: only root can make an entry of another user");
  }
  std::filesystem::rename(path, folder / "elsewhere");
  std::filesystem::create_symlink("../elsewhere", path);
  refused("is a symbolic link, expected a file");
  std::filesystem::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0644) == 0);
  refused("is not a regular file, which mapping needs");  // and nobody waits for a writer
  // What is compiled then takes the name.
  CompileCache next(in(folder / "c"));
  next.store(key_of(1), blob_of(1, 10), {{"number", 1}});
  CHECK(is_blob(next.find(key_of(1)), 1, 10));
}

TEST_CASE("a folder that cannot be used costs one warning", "[compile][cache]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "file", "x");
  CompileCache in_file(in(folder / "file/cache"));
  CHECK_FALSE(in_file.enabled());
  in_file.store(key_of(1), blob_of(1, 10), {});
  CHECK_FALSE(in_file.find(key_of(1)));
  CHECK(in_file.take_warnings().size() == 1);
  CHECK(in_file.take_warnings().empty());

  std::filesystem::create_directory(folder / "gone");
  CompileCache gone(in(folder / "gone"));
  std::filesystem::remove(folder / "gone");
  gone.store(key_of(1), blob_of(1, 10), {});
  gone.store(key_of(2), blob_of(2, 10), {});
  CHECK(gone.take_warnings().size() == 1);

  if (::geteuid() != 0) {  // root writes everywhere
    std::filesystem::create_directory(folder / "readonly");
    CompileCache first(in(folder / "readonly"));
    first.store(key_of(1), blob_of(1, 10), {{"number", 1}});
    ::chmod((folder / "readonly").c_str(), 0555);
    CompileCache readonly(in(folder / "readonly"));
    CHECK(is_blob(readonly.find(key_of(1)), 1, 10));
    readonly.store(key_of(2), blob_of(2, 10), {});
    CHECK(readonly.take_warnings().size() == 1);
    ::chmod((folder / "readonly").c_str(), 0755);
  }
  CHECK_FALSE(CompileCache({.enabled = false, .folder = folder / "off"}).enabled());
  CHECK_FALSE(std::filesystem::exists(folder / "off"));
}

TEST_CASE("eight processes share a cache, and any of them may be killed", "[compile][cache]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c";
  constexpr int kProcesses = 8;
  constexpr std::size_t kSize = 60000;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      bool ok = true;
      // Room for four of the five keys: entries appear, are read and go at once.
      CompileCache cache(in(path, 4 * 66000));
      for (int i = 0; i < 200; ++i) {
        const int number = (i + p) % 5;
        const auto entry = cache.find(key_of(number));
        ok = ok && (!entry || is_blob(entry, number, kSize));
        if (!entry) cache.store(key_of(number), blob_of(number, kSize), {{"number", number}});
      }
      ::_exit(ok && cache.take_warnings().empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  // Two are killed somewhere in the middle of it.
  for (const int victim : {2, 5}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    ::kill(children[static_cast<std::size_t>(victim)], SIGKILL);
  }
  for (int p = 0; p < kProcesses; ++p) {
    int status = 0;
    ::waitpid(children[static_cast<std::size_t>(p)], &status, 0);
    if (p != 2 && p != 5) CHECK(status == 0);
  }
  CompileCache cache(in(path, 4 * 66000));
  for (int number = 0; number < 5; ++number) {
    const auto entry = cache.find(key_of(number));
    CHECK((!entry || is_blob(entry, number, kSize)));
  }
}

TEST_CASE("what a killed writer left is removed, what is being written is not",
          "[compile][cache]") {
  const test::TemporaryFolder folder;
  CompileCache cache(in(folder / "c"));
  write_file_atomically(folder / "c/tmp-killed", "half of an entry");
  write_file_atomically(folder / "c/tmp-alive", "half of an entry");
  write_file_atomically(folder / "c/somebody-else", "x");
  const int alive = ::open((folder / "c/tmp-alive").c_str(), O_RDONLY);
  REQUIRE(alive >= 0);
  REQUIRE(::flock(alive, LOCK_EX) == 0);
  age(folder / "c", 1000);
  write_file_atomically(folder / "c/tmp-new", "made just now");
  cache.store(key_of(1), blob_of(1, 10), {{"number", 1}});
  CHECK_FALSE(std::filesystem::exists(folder / "c/tmp-killed"));
  CHECK(std::filesystem::exists(folder / "c/tmp-alive"));
  CHECK(std::filesystem::exists(folder / "c/tmp-new"));
  CHECK(std::filesystem::exists(folder / "c/somebody-else"));
  ::close(alive);
}

TEST_CASE("sizes are read in decimal units", "[compile][cache]") {
  CHECK(parse_byte_size("0") == 0);
  CHECK(parse_byte_size("1234") == 1234);
  CHECK(parse_byte_size("64k") == 64000);
  CHECK(parse_byte_size("500M") == 500'000'000);
  CHECK(parse_byte_size("8G") == 8'000'000'000);
  CHECK(parse_byte_size("2T") == 2'000'000'000'000);
  for (const char* text :
       {"", "G", "-1", "1.5G", "8GB", "8 G", "9223372036854775808", "9999999999T", "0x10"}) {
    INFO(text);
    CHECK_FALSE(parse_byte_size(text));
  }
}

TEST_CASE("the default folder follows XDG", "[compile][cache]") {
  const auto with = [](const char* xdg, const char* home) {
    const char* old_xdg = std::getenv("XDG_CACHE_HOME");
    const char* old_home = std::getenv("HOME");
    const std::string keep_xdg = old_xdg == nullptr ? "" : old_xdg;
    const std::string keep_home = old_home == nullptr ? "" : old_home;
    const auto set = [](const char* name, const char* value) {
      value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    };
    set("XDG_CACHE_HOME", xdg);
    set("HOME", home);
    const std::string folder = default_cache_folder();
    set("XDG_CACHE_HOME", old_xdg == nullptr ? nullptr : keep_xdg.c_str());
    set("HOME", old_home == nullptr ? nullptr : keep_home.c_str());
    return folder;
  };
  CHECK(with("/x", "/home/a") == "/x/npu");
  CHECK(with(nullptr, "/home/a") == "/home/a/.cache/npu");
  CHECK(with("relative", "/home/a") == "/home/a/.cache/npu");  // the standard says to ignore it
  CHECK(with("", nullptr).empty());
}
