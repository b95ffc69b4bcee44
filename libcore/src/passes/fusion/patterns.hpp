// SPDX-License-Identifier: Apache-2.0
// The stages of plan_fusion. Those with a pattern find one concept for several names, within the
// limits that go with the name.
#pragma once

#include "passes/fusion/fusion_builder.hpp"

namespace npu::fusion {

void match_user_patterns(FusionBuilder& builder);
void match_chains(FusionBuilder& builder);

// What kernels compute: a backend that has such a kernel takes the whole group, and a target names
// the patterns that its devices have. Unlike the general patterns they ask for everything that the
// kernel needs, down to shapes and dtypes, so that a backend can do each group as it is.
void claim_unused(FusionBuilder& builder);
void claim_constants(FusionBuilder& builder);
void match_integer_products(FusionBuilder& builder);
void match_quantized(FusionBuilder& builder);
void match_written_gelu(FusionBuilder& builder);
void match_written_rms_norm(FusionBuilder& builder);
void match_post_ops(FusionBuilder& builder);
void place_concats(FusionBuilder& builder);
void share_copies(FusionBuilder& builder);

/// cached-attention, and mask-on-read.
void match_cached_attention(FusionBuilder& builder);

/// scaled-attention, or attention.
void match_attention(FusionBuilder& builder, Pattern pattern);
/// channel-gate, or squeeze-excite.
void match_gates(FusionBuilder& builder, Pattern pattern);
/// linear-siblings, or qkv-merge.
void merge_siblings(FusionBuilder& builder, Pattern pattern);
/// norm-pointwise, expand-depthwise, resized-pointwise, or depthwise-pointwise.
void merge_chains(FusionBuilder& builder, Pattern pattern);

void match_multi_head_attention(FusionBuilder& builder);
void match_norms(FusionBuilder& builder);
void grow_anchors(FusionBuilder& builder);
void grow_reductions(FusionBuilder& builder);
void merge_horizontally(FusionBuilder& builder);
void write_slices(FusionBuilder& builder);
void absorb_elementwise(FusionBuilder& builder);

/// The step of an epilogue: element-wise ops and, on the way to them, aliases that keep all
/// elements.
Step epilogue_step(const FusionBuilder& builder, const Link& next);

}  // namespace npu::fusion
