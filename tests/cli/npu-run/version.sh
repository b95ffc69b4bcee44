npu-run --version
