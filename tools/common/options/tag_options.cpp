// SPDX-License-Identifier: Apache-2.0
// The options of npu-tag, in the order of its --help, and those of devices that others have, too.
#include "options/tag_options.hpp"

#include "npu/support/error.hpp"
#include "options/validators.hpp"
#include "support/text.hpp"

namespace npu::cli {

namespace {

ForceRule parse_force_rule(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(ErrorCode::kUsage,
                "--force " + text + ": expected DEVICE=GLOB, for example 'cpu=aten.add*'");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void add_document_options(CLI::App& app, TagArguments& all) {
  app.add_flag("--template", all.as_template,
               "write the document with the sizes that --bind leaves open, and without devices");
  CLI::Option* states =
      app.add_flag("--states", all.as_states,
                   "make caches that a decoder takes and gives with new rows states that it writes "
                   "in place, and write that document, without devices");
  CLI::Option* capacity = app.add_option("--capacity", all.capacity,
                                         "rows that each state has room for, where caches grow")
                              ->type_name("N")
                              ->check(in_range(1, std::int64_t{1} << 31));
  capacity->needs(states);
  app.add_option(
         "--genai", all.genai,
         "with --states: the genai_config.json beside a model, which says what its inputs are "
         "called and how long a sequence may be")
      ->type_name("FILE")
      ->needs(states);
  repeatable(app.add_option("--state", all.states,
                            "graph input that the next step finds as this step leaves the graph "
                            "output: a state that is replaced as a whole; one '*' in both names "
                            "several; repeatable"))
      ->type_name("INPUT=OUTPUT");
  app.add_option(
         "--source-rows", all.source_rows,
         "with --states: rows that a state has room for that an encoder fills, such as keys "
         "of cross attention")
      ->type_name("N")
      ->check(in_range(1, std::int64_t{1} << 31))
      ->needs(states);
  app.add_option_function<std::string>(
         "--start",
         [&all](const std::string& text) {
           if (const auto ids = integer_list(text)) all.start = *ids;
         },
         "with --states: ids that the decoder behind an encoder begins with, where npu-run is "
         "given "
         "none")
      ->type_name("ID,...")
      ->check(id_list())
      ->needs(states);
  CLI::Option* encode =
      app.add_option(
             "--encode-for", all.encode_for,
             "GRAPH is an encoder: write the document that fills the states which this one, "
             "of --states, only reads")
          ->type_name("FILE")
          ->check(not_empty())
          ->excludes(states);
  app.add_option("--cross", all.cross,
                 "with --encode-for: the decoder without past, which computes keys and values of "
                 "cross attention")
      ->type_name("FILE")
      ->check(not_empty())
      ->needs(encode);
}

}  // namespace

TagOptions TagArguments::tag_options() const {
  TagOptions options = tag;
  for (const std::string& text : force) options.force.push_back(parse_force_rule(text));
  return options;
}

std::vector<StateNames> TagArguments::state_names() const {
  std::vector<StateNames> names;
  for (const std::string& text : states) names.push_back(parse_state_names(text));
  return names;
}

void add_tag_options(Tool& tool, TagArguments& all) {
  tool.add_graph_io();
  CLI::App& app = tool.app();
  add_document_options(app, all);
  app.add_option("--weights-out", all.weights_out,
                 "write the weights of a model such as ONNX here, decoded, as safetensors")
      ->type_name("FILE");
  app.add_option("-t,--target", all.where.target,
                 "built-in target, or a file if it has a '/' or ends in .json")
      ->type_name("NAME|FILE")
      ->capture_default_str();
  add_device_options(tool, all.where);
  repeatable(app.add_option("--force", all.force,
                            "put nodes whose op type or name matches GLOB on DEVICE; "
                            "repeatable, the last match wins"))
      ->type_name("DEVICE=GLOB");
  app.add_flag("--keep-tags", all.tag.keep_tags,
               "keep devices that nodes already have, in dev_info or device");
  app.add_flag("--ask", all.tag.ask,
               "ask the devices' backends which of the nodes they take, and write that down");
  repeatable(app.add_option(
                 "--load-ops", all.load_ops,
                 "shared library of custom ops (npu/custom_op.hpp), for devices that run every op; "
                 "repeatable"))
      ->type_name("LIBRARY");
  app.add_flag_callback(
      "--no-fold", [&all] { all.tag.fold = false; },
      "give nodes that follow from weights alone a device, too, which computes them in every run");
  CLI::Option* list_ops =
      app.add_option("--list-ops", all.listed_device,
                     "list what each device of the target, or DEVICE alone, supports, and exit")
          ->type_name("[DEVICE]")
          ->expected(0, 1);
  app.add_option("--frontend", all.frontend, "list what this frontend imports")
      ->type_name("NAME")
      ->needs(list_ops);
  app.add_flag("--list-targets", all.list_targets, "list the built-in targets and exit");
  app.add_flag("--print-target", all.print_target, "print the target's description and exit");
  tool.add_report("op types and coverage by device");
  tool.add_assert(
      "nodes_<device>, coverage_nodes, coverage_flops, unsupported_ops, ...; see npu-tag(1)");
  tool.add_examples(
      {"npu-tag model.json | npu-partition | npu-run --random-inputs 0",
       "npu-tag --devices npu,cpu --report model.json -o model.tagged.json",
       "npu-tag --force 'cpu=aten.add*' --report model.json -o model.tagged.json",
       "npu-tag --target my_npu.json --assert 'coverage_flops>=0.95' model.json >model.tagged.json",
       "npu-tag --ask --report model.json -o model.tagged.json",
       "npu-tag --template model.onnx -o model.template.json",
       "npu-tag --states --capacity 2048 decoder.onnx -o decoder.json",
       "npu-tag --state h0=hn --state c0=cn voice.onnx | npu-partition | npu-run --steps 100",
       "npu-tag --states --capacity 128 --source-rows 512 decoder_with_past.onnx -o decode.json",
       "npu-tag --encode-for decode.json --cross decoder.onnx encoder.onnx -o encode.json",
       "npu-tag --list-ops npu | grep conv"});
}

void add_device_options(Tool& tool, DeviceChoice& where) {
  repeatable(
      tool.app().add_option("--devices", where.devices,
                            "use only these devices of the target, in this order of preference"))
      ->type_name("DEVICE,...")
      ->delimiter(',');
  repeatable(
      tool.app().add_option("--exclude-device", where.excluded, "leave a device out; repeatable"))
      ->type_name("DEVICE");
}

}  // namespace npu::cli
