# SPDX-License-Identifier: Apache-2.0
# Tagging again drops everything based on the old tags: partitions, fusion groups, layouts.
model=$CASES/npu-run/three_steps.json
sed 's/"steps"/"custom": 1, "steps"/; s/"partition": 2/"partition": 2, "fusion_group": 3/; s/"op_type": "aten.add.Tensor",/&"align_mode": "ALIGN",/; s/"npu": {/"npu": {"fusion": {"groups": []}, "layout": {}, "note": 1, /' "$model" >old.json
grep -c '"fusion_group"' old.json
npu-tag old.json >new.json
grep -E -c '"(partition|fusion_group|steps|align_mode)"|"(layout|fusion)": [{]' new.json
grep '"note"' new.json
