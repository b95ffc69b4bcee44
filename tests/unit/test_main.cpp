// SPDX-License-Identifier: Apache-2.0
// Catch2 2.x has its main in the header; 3.x links a library with one.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
