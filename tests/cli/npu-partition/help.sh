npu-partition --help
