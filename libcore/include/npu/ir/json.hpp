#pragma once
#include "npu/support/json.hpp"
