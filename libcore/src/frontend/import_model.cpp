// SPDX-License-Identifier: Apache-2.0
// Asks the frontends for a model of another format. The frontend sees bytes and answers with bytes:
// this file opens what lies beside the model, checks the table of weights against the files, and
// writes it into the document as npu.weights_map. O(size of the files), which are digested.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <deque>
#include <filesystem>
#include <set>

#include "device/library_folders.hpp"
#include "frontend/frontend.hpp"
#include "frontend/weight_map.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/log.hpp"
#include "support/text.hpp"
#include "tensor/npy.hpp"
#include "tensor/onnx_tensor.hpp"

namespace npu {
namespace {

constexpr std::uint64_t kMostDocumentBytes = std::uint64_t{1} << 32;
constexpr std::uint64_t kMostErrors = 20;  // that are told one by one
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 24;
constexpr std::uint64_t kMostStride = std::uint64_t{1} << 16;
constexpr std::size_t kMostText = std::size_t{1} << 16;  // bytes of a name or message

std::string error_text(const npu_frontend_error& error) {
  return printable_text(std::string_view(error.text, ::strnlen(error.text, sizeof error.text)));
}

void set_error_text(npu_frontend_error* error, std::string_view text) {
  if (error == nullptr) return;
  const std::size_t size = std::min(text.size(), sizeof error->text - 1);
  std::memcpy(error->text, text.data(), size);
  error->text[size] = '\0';
}

// The element `index` of an array whose elements may be larger or smaller than ours.
template <typename T>
T element_of(const T* first, std::uint64_t stride, std::uint64_t index) {
  T element{};
  std::memcpy(&element, reinterpret_cast<const std::byte*>(first) + stride * index,
              std::min<std::uint64_t>(stride, sizeof element));
  return element;
}

bool is_binary(std::string_view bytes) {
  constexpr std::size_t kLooked = 256;
  return std::ranges::any_of(bytes.substr(0, kLooked), [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\r' && c != '\n';
  });
}

/// The files that an import reads; file 0 is the model.
class ImportedFiles {
 public:
  ImportedFiles(std::string path, std::string_view bytes) : path_(std::move(path)), bytes_(bytes) {}

  static std::int32_t open(void* context, const char* name, npu_frontend_file* file,
                           npu_frontend_error* error) {
    if (context == nullptr || file == nullptr) return 1;
    try {
      return static_cast<ImportedFiles*>(context)->open_one(name, *file, error);
    } catch (const std::exception& fault) {
      set_error_text(error, fault.what());
      return 1;
    }
  }

  std::uint64_t size(std::uint64_t file) const {
    return file == 0 ? bytes_.size() : files_[file - 1].mapped->size();
  }
  std::uint64_t count() const { return files_.size() + 1; }

  /// `files` of npu.weights_map.
  Json table() const {
    Json table = Json::array();
    table.push_back(weight_file_entry("path", std::filesystem::path(path_).filename().string(),
                                      bytes_.data(), bytes_.size()));
    for (const OpenFile& file : files_) {
      table.push_back(
          weight_file_entry("name", file.name, file.mapped->data(), file.mapped->size()));
    }
    return table;
  }

 private:
  struct OpenFile {
    std::string name;
    std::unique_ptr<const MappedFile> mapped;
  };

  std::int32_t open_one(const char* name, npu_frontend_file& file, npu_frontend_error* error) {
    if (name == nullptr) {
      set_error_text(error, "a file without a name");
      return 1;
    }
    if (path_.empty()) {
      set_error_text(error, "data in another file needs the model as a file, not as a pipe");
      return 1;
    }
    auto found = std::find_if(files_.begin(), files_.end(),
                              [&](const OpenFile& known) { return known.name == name; });
    if (found == files_.end()) {
      const std::string folder = std::filesystem::path(path_).parent_path().string();
      files_.push_back({name, std::make_unique<const MappedFile>(folder, name)});
      found = files_.end() - 1;
    }
    file.number = static_cast<std::uint64_t>(found - files_.begin()) + 1;
    file.data = found->mapped->data();
    file.size = found->mapped->size();
    return 0;
  }

  std::string path_;
  std::string_view bytes_;
  std::deque<OpenFile> files_;
};

/// One call of import_model, with what it returned.
class Import {
 public:
  Import(const Frontend& frontend, const std::string& path, std::string_view bytes,
         const ImportOptions& options, ImportedFiles& files, bool wants_template = false)
      : frontend_(frontend) {
    require("sizes", "--template", !wants_template);
    require("bind", "--bind", options.bindings.empty());
    require("freeze", "--freeze", options.frozen.empty());
    for (const auto& [name, value] : options.bindings) {
      bindings_.push_back({sizeof(npu_frontend_binding), name.c_str(), value});
    }
    for (const auto& [name, tensor] : options.frozen) {
      frozen_.push_back({sizeof(npu_frontend_tensor), name.c_str(),
                         static_cast<std::uint32_t>(tensor.dtype()),
                         static_cast<std::uint32_t>(tensor.shape().size()), tensor.shape().data(),
                         tensor.data(), tensor.bytes()});
    }
    npu_frontend_request request{};
    request.struct_size = sizeof request;
    request.path = path.empty() ? nullptr : path.c_str();
    request.data = bytes.data();
    request.size = bytes.size();
    request.bindings = bindings_.data();
    request.binding_count = bindings_.size();
    request.binding_stride = sizeof(npu_frontend_binding);
    request.frozen = frozen_.data();
    request.frozen_count = frozen_.size();
    request.frozen_stride = sizeof(npu_frontend_tensor);
    request.context = &files;
    request.open_file = &ImportedFiles::open;
    request.takes_data = 1;
    request.wants_template = wants_template ? 1 : 0;
    result_.struct_size = sizeof result_;
    error_.struct_size = sizeof error_;
    status_ = frontend.api().import_model(&request, &result_, &error_);
  }
  ~Import() { frontend_.api().import_free(&result_); }
  Import(const Import&) = delete;
  Import& operator=(const Import&) = delete;

  /// Hands over the messages; throws if there is no document and no reason.
  void report(const std::string& file, Diagnostics& diagnostics) const {
    check_array(result_.messages, result_.message_count, result_.message_stride,
                offsetof(npu_frontend_message, text) + sizeof(npu_frontend_message::text),
                "messages");
    std::uint64_t errors = 0;
    for (std::uint64_t i = 0; i < result_.message_count; ++i) {
      const auto message = element_of(result_.messages, result_.message_stride, i);
      if (message.text == nullptr) lies("a message without a text");
      std::string text = printable_text({message.text, ::strnlen(message.text, kMostText)});
      if (message.level == NPU_FRONTEND_NOTE) {
        diagnostics.note({.file = file}, std::move(text));
      } else if (message.level == NPU_FRONTEND_WARNING) {
        diagnostics.warning({.file = file}, std::move(text));
      } else if (++errors <= kMostErrors) {
        diagnostics.error({.file = file}, std::move(text));
      }
    }
    if (errors > kMostErrors) {
      std::string text = "and " + std::to_string(errors - kMostErrors) + " more faults";
      if (frontend_.has_feature("ops")) {
        text += "; npu-tag --list-ops --frontend " + frontend_.name() + " lists what is imported";
      }
      diagnostics.error({.file = file}, std::move(text));
    }
    if (status_ == 0 || diagnostics.has_errors()) return;
    const std::string text = error_text(error_);
    throw Error(ErrorCode::kParse, text.empty() ? "the frontend failed without a message" : text,
                {.file = file});
  }

  std::string_view document() const {
    if (result_.document == nullptr) lies("no document");
    if (result_.document_size > kMostDocumentBytes) {
      lies("a document of " + std::to_string(result_.document_size) + " bytes");
    }
    return {result_.document, result_.document_size};
  }

  /// Whether weights lie in files.
  bool needs_file() const noexcept { return needs_file_; }

  /// `tensors` of npu.weights_map.
  Json weights(const ImportedFiles& files) {
    check_array(result_.weights, result_.weight_count, result_.weight_stride,
                offsetof(npu_frontend_weight, transposed) + sizeof(npu_frontend_weight::transposed),
                "weights");
    Json table = Json::array();
    std::set<std::string> names;
    for (std::uint64_t i = 0; i < result_.weight_count; ++i) {
      const auto weight = element_of(result_.weights, result_.weight_stride, i);
      const std::string name = checked_name(weight.name);
      const std::string text = "weight '" + name + "' ";
      if (!names.insert(name).second) lies(text + "twice");
      if (weight.data != nullptr) {
        if (weight.bytes > kMostDocumentBytes || weight.file != 0 || weight.offset != 0 ||
            weight.encoding != NPU_FRONTEND_PLAIN || weight.transposed != 0) {
          lies(text + "as data that is too large, or in a file as well");
        }
        table.push_back(weight_data_entry(name, weight.data, weight.bytes));
        continue;
      }
      needs_file_ = true;
      if (weight.file >= files.count()) {
        lies(text + "in file " + std::to_string(weight.file) + ", and has opened " +
             std::to_string(files.count() - 1));
      }
      const std::uint64_t size = files.size(weight.file);
      if (weight.offset > size || weight.bytes > size - weight.offset) {
        lies(text + "behind the end of its file");
      }
      if (weight.encoding > NPU_FRONTEND_VARINT) {
        lies(text + "in encoding " + std::to_string(weight.encoding));
      }
      table.push_back(weight_range_entry(name, {.file = weight.file,
                                                .offset = weight.offset,
                                                .bytes = weight.bytes,
                                                .is_varint = weight.encoding == NPU_FRONTEND_VARINT,
                                                .transposed = weight.transposed != 0}));
    }
    return table;
  }

  /// Refuses a table with a weight that is none in the document.
  void check_weights(const Json& table, const Json& document) const {
    std::set<std::string> known;
    if (const Json* weights = find_member(document, "weights")) {
      for (const Json& weight : *weights) known.insert(weight.value("name", ""));
    }
    for (const Json& entry : table) {
      const std::string& name = entry["name"].get_ref<const std::string&>();
      if (known.count(name) == 0) {
        lies("weight '" + name + "', which is not among the weights of its document");
      }
    }
  }

 private:
  void require(const char* feature, const char* option, bool is_unused) const {
    if (is_unused || frontend_.has_feature(feature)) return;
    throw Error(ErrorCode::kUsage, std::string(option) + ": frontend '" + frontend_.name() +
                                       "' has no feature '" + feature + "'");
  }
  // Whether an array is there, and its elements have what the first version of them has.
  void check_array(const void* first, std::uint64_t count, std::uint64_t stride,
                   std::uint64_t least, const std::string& what) const {
    if (count == 0) return;
    if (first == nullptr) lies(std::to_string(count) + " " + what + ", and no array of them");
    if (count > kMostEntries) lies(std::to_string(count) + " " + what);
    if (stride < least || stride > kMostStride) {
      lies(what + " of " + std::to_string(stride) + " bytes each");
    }
  }
  std::string checked_name(const char* text) const {
    if (text == nullptr) lies("a weight without a name");
    const std::string name(text, ::strnlen(text, kMostText));
    if (name.empty() || name.size() == kMostText || printable_text(name) != name) {
      lies("weight '" + short_text(name) + "', whose name is empty, too long or not printable");
    }
    return name;
  }
  [[noreturn]] void lies(const std::string& text) const {
    throw Error(ErrorCode::kUnsupported, "frontend '" + frontend_.name() + "' returned " + text);
  }

  const Frontend& frontend_;
  std::vector<npu_frontend_binding> bindings_;
  std::vector<npu_frontend_tensor> frozen_;
  npu_frontend_result result_{};
  npu_frontend_error error_{};
  std::int32_t status_ = 1;
  bool needs_file_ = false;
};

}  // namespace

void add_binding(ImportOptions& options, const std::string& text) {
  const std::size_t equals = text.rfind('=');
  std::int64_t value = 0;
  if (equals != text.npos && equals > 0) {
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data() + equals + 1, end, value);
    if (text.find('*') < equals) {
      throw Error(
          ErrorCode::kUsage,
          "--bind " + text +
              ": expected the name of one size; without --bind, the sizes "
              "that need a value are listed, each once however many dimensions follow from it");
    }
    if (error == std::errc() && last == end && value >= 0) {
      const std::string name = text.substr(0, equals);
      for (const auto& [known, other] : options.bindings) {
        if (known == name && other != value) {
          throw Error(ErrorCode::kUsage,
                      "--bind " + text + ": " + name + " has the value " + std::to_string(other));
        }
      }
      options.bindings.emplace_back(name, value);
      return;
    }
    if (error == std::errc::result_out_of_range && last == end) {
      throw Error(ErrorCode::kUsage,
                  "--bind " + text + ": expected at most " + std::to_string(INT64_MAX));
    }
  }
  throw Error(ErrorCode::kUsage, "--bind " + text + ": expected NAME=N, for example 'batch=1'");
}

void add_frozen(ImportOptions& options, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(ErrorCode::kUsage,
                "--freeze " + text + ": expected INPUT=FILE, for example 'sizes=sizes.npy'");
  }
  const std::string file = text.substr(equals + 1);
  options.frozen.emplace_back(text.substr(0, equals),
                              file.ends_with(".pb") ? read_onnx_tensor(file) : read_npy(file));
}

bool begins_like_document(std::string_view bytes) noexcept {
  const std::size_t begin = bytes.find_first_not_of(" \t\r\n");
  return begin != bytes.npos && bytes[begin] == '{';
}

namespace {

/// What a frontend made of a model, before it is read.
struct ImportedText {
  std::string frontend;
  std::string document;
  Json weights_map;  // null: all weights stand in the document
};

// The first frontend that recognises the bytes; nothing if none does. An empty document after
// faults.
template <typename Read>
std::optional<ImportedText> ask_frontends(const std::string& path, std::string_view bytes,
                                          const ImportOptions& options, bool wants_template,
                                          Diagnostics& diagnostics, const Read& read) {
  for (const auto& frontend : Frontend::all()) {
    if (frontend->api().recognises(bytes.data(), bytes.size()) == 0) continue;
    const LogTimer timer(LogModule::kRead);
    const std::string file = path.empty() ? "<stdin>" : path;
    ImportedFiles files(path, bytes);
    Import import(*frontend, path, bytes, options, files, wants_template);
    import.report(file, diagnostics);
    if (diagnostics.has_errors()) return ImportedText();
    Json tensors = import.weights(files);
    if (import.needs_file() && path.empty()) {
      throw Error(ErrorCode::kIo,
                  "the weights of a model from a pipe cannot be read again: give the model as a "
                  "file, as in 'npu-tag model.onnx'",
                  {.file = file});
    }
    ImportedText text{frontend->name(), std::string(import.document()), {}};
    const Json& document = read(text.document, file);
    if (!diagnostics.has_errors()) import.check_weights(tensors, document);
    if (!tensors.empty()) {
      text.weights_map = Json{{"files", files.table()}, {"tensors", std::move(tensors)}};
    }
    timer.done([&] { return file + ": imported by frontend '" + frontend->name() + "'"; });
    return text;
  }
  if (Frontend::all().empty() && is_binary(bytes)) {
    throw Error(ErrorCode::kUnsupported,
                "is no JSON document, and no frontend that reads other formats is installed; "
                "expected one such as npu_frontend_onnx.so in " +
                    install_folder("frontends"),
                {.file = path.empty() ? "<stdin>" : path});
  }
  return std::nullopt;
}

}  // namespace

std::optional<Graph> import_model(const std::string& path, std::string_view bytes,
                                  const ImportOptions& options, Diagnostics& diagnostics) {
  Graph graph;
  const auto text =
      ask_frontends(path, bytes, options, false, diagnostics,
                    [&](const std::string& document, const std::string& file) -> const Json& {
                      graph = read_graph(document, file, diagnostics);
                      return graph.document();
                    });
  if (!text) return std::nullopt;
  if (!text->weights_map.is_null()) graph.set_npu_member("weights_map", text->weights_map);
  return graph;
}

std::optional<Json> import_template(const std::string& path, std::string_view bytes,
                                    const ImportOptions& options, Diagnostics& diagnostics) {
  Json document = Json::object();
  const auto text =
      ask_frontends(path, bytes, options, true, diagnostics,
                    [&](const std::string& made, const std::string& file) -> const Json& {
                      document = parse_json(made, file);
                      return document;
                    });
  if (!text) return std::nullopt;
  if (!text->weights_map.is_null()) {
    if (find_member(document, "npu") == nullptr) set_member(document, "npu", Json{{"version", 1}});
    set_member(*find_member(document, "npu"), "weights_map", text->weights_map);
  }
  return document;
}

}  // namespace npu
