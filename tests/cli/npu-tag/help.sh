npu-tag --help
