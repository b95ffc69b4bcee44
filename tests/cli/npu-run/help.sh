npu-run --help
