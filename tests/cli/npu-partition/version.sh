npu-partition --version
