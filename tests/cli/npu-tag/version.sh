npu-tag --version
