// SPDX-License-Identifier: Apache-2.0
// To be preloaded: one function of PT-Scotch that fails, whatever it gets. The name is a macro,
// NPU_TEST_CALL. What is 1 for them all is an error, and no size of a number.
extern "C" __attribute__((visibility("default"))) int NPU_TEST_CALL();

extern "C" int NPU_TEST_CALL() { return 1; }
