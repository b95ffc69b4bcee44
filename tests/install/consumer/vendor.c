/* SPDX-License-Identifier: Apache-2.0 */
/* The header for vendors is C. */
#include "npu/backend.h"

unsigned vendor_abi_version(void);

unsigned vendor_abi_version(void) { return NPU_ABI_VERSION; }
