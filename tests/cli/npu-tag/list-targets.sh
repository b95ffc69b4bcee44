npu-tag --list-targets
