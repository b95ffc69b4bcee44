# SPDX-License-Identifier: Apache-2.0
# Compiles a folder of models, as many at a time as make -j says, and again only what changed.
#
#   include .../batch.mk                          # installed as share/npu/batch.mk
#   make -j8 npu-batch                            # every NAME.json here to NAME.npub
#   make -j8 npu-batch NPU_MODELS=zoo             # of a folder, or of several
#   make zoo/resnet18.npub NPU_COMPILE_FLAGS='--precision bf16'
#   make -j32 npu-batch NPU_LAUNCH='srun -n1 -c4'    # each program on a node of a cluster
#
# NAME.json -> NAME.tagged.json -> NAME.part.json -> NAME.npub. A bundle also depends on
# NAME.safetensors if there is one, and every file on the flags and the programs it was made with:
# after a change of NPU_TAG_FLAGS all is made again, after one of NPU_COMPILE_FLAGS only bundles.
# A program that fails leaves no file, so the next make tries it again. Needs GNU make 4.

NPU_MODELS ?= .
NPU_TAG ?= npu-tag
NPU_PARTITION ?= npu-partition
NPU_COMPILE ?= npu-compile
# What starts a program: nothing, or the launcher of a cluster whose nodes see this folder.
NPU_LAUNCH ?=
NPU_TAG_FLAGS ?=
NPU_PARTITION_FLAGS ?=
NPU_COMPILE_FLAGS ?=
# Where the stamps of the flags are kept.
NPU_BATCH_STATE ?= .npu-batch

npu_documents := $(filter-out %.tagged.json %.part.json,$(foreach folder,$(NPU_MODELS),$(wildcard $(patsubst ./%,%,$(folder:/=)/*.json))))
NPU_BUNDLES := $(npu_documents:.json=.npub)

.PHONY: npu-batch npu-batch-clean
npu-batch: $(NPU_BUNDLES)

# Only what has a document beside it: a bundle from elsewhere stays.
npu-batch-clean:
	$(if $(npu_documents),rm -f $(npu_documents:.json=.tagged.json) $(npu_documents:.json=.part.json) $(NPU_BUNDLES))
	rm -rf $(NPU_BATCH_STATE)

# A stamp is written only if its text differs, so its age is that of the last change of flags.
# $(1): name, $(2): text
define npu_stamp
$(shell mkdir -p '$(NPU_BATCH_STATE)'; text='$(subst ','\'',$(2))'; \
  [ "$$text" = "$$(cat '$(NPU_BATCH_STATE)/$(1)' 2>/dev/null)" ] || \
  printf '%s\n' "$$text" >'$(NPU_BATCH_STATE)/$(1)')
endef
npu_launch = $(if $(NPU_LAUNCH),$(NPU_LAUNCH) )
npu_program = $(shell command -v $(firstword $(1)))

ifeq ($(filter npu-batch-clean,$(MAKECMDGOALS)),)
npu_ignored := $(call npu_stamp,tag,$(NPU_TAG) $(NPU_TAG_FLAGS))$(call npu_stamp,partition,$(NPU_PARTITION) $(NPU_PARTITION_FLAGS))$(call npu_stamp,compile,$(NPU_COMPILE) $(NPU_COMPILE_FLAGS))
endif

# Tagged and partitioned documents are results, too: they stay.
.PRECIOUS: %.tagged.json %.part.json

%.tagged.json: %.json $(NPU_BATCH_STATE)/tag $(call npu_program,$(NPU_TAG))
	$(npu_launch)$(NPU_TAG) $(NPU_TAG_FLAGS) -o $@ $<

%.part.json: %.tagged.json $(NPU_BATCH_STATE)/partition $(call npu_program,$(NPU_PARTITION))
	$(npu_launch)$(NPU_PARTITION) $(NPU_PARTITION_FLAGS) -o $@ $<

.SECONDEXPANSION:
%.npub: %.part.json $$(wildcard $$*.safetensors) $(NPU_BATCH_STATE)/compile $(call npu_program,$(NPU_COMPILE))
	$(npu_launch)$(NPU_COMPILE) $(NPU_COMPILE_FLAGS) -o $@ $<
