// SPDX-License-Identifier: Apache-2.0
// Loads an ONNX model with onnxruntime-node, runs it on the inputs of a safetensors file, and prints
// one JSON object: create_ms, first_ms, median_ms, min_ms, p90_ms, peak_rss_bytes, version.
//
// Usage: node run_onnx.js MODEL.onnx INPUTS.safetensors RUNS THREADS [EXPECTED.safetensors]
// With EXPECTED there is relative_error, too: the largest difference of an output from the tensor
// at its place there, over that tensor's largest magnitude; and of outputs that are integers of 8
// bits, if there are some, how many elements there are and which share of them is equal, or differs
// by at most one, in all outputs and in the worst.
// NODE_PATH names the folder node_modules that holds onnxruntime-node.
'use strict';
const fs = require('fs');
const ort = require('onnxruntime-node');

const DTYPES = {
  F32: ['float32', Float32Array], I64: ['int64', BigInt64Array], I32: ['int32', Int32Array],
  U8: ['uint8', Uint8Array], I8: ['int8', Int8Array], BOOL: ['bool', Uint8Array], F64: ['float64', Float64Array],
};

function readSafetensors(path) {
  const file = fs.readFileSync(path);
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + length).toString());
  const tensors = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const [dtype, Type] = DTYPES[entry.dtype];
    const bytes = Uint8Array.from(
        file.subarray(8 + length + entry.data_offsets[0], 8 + length + entry.data_offsets[1]));
    tensors.push({name, tensor: new ort.Tensor(dtype, new Type(bytes.buffer), entry.shape)});
  }
  return tensors;
}

function relativeError(results, expected) {
  let worst = 0;
  expected.forEach(({tensor}, i) => {
    let difference = 0, scale = 0;
    tensor.data.forEach((value, k) => {
      difference = Math.max(difference, Math.abs(Number(results[i].data[k]) - Number(value)));
      scale = Math.max(scale, Math.abs(Number(value)));
    });
    worst = Math.max(worst, difference === 0 ? 0 : difference / scale);
  });
  return worst;
}

function integerSteps(results, expected) {
  const all = {integers: 0, equal: 0, within_step: 0, least_within_step: 1, least_name: ''};
  expected.forEach(({name, tensor}, i) => {
    if (tensor.type !== 'uint8' && tensor.type !== 'int8') return;
    let within = 0;
    tensor.data.forEach((value, k) => {
      const distance = Math.abs(results[i].data[k] - value);
      if (distance === 0) ++all.equal;
      if (distance <= 1) ++within;
    });
    all.integers += tensor.data.length;
    all.within_step += within;
    if (within / tensor.data.length < all.least_within_step) {
      all.least_within_step = within / tensor.data.length;
      all.least_name = name;
    }
  });
  if (all.integers === 0) return {};
  return {...all, equal: all.equal / all.integers, within_step: all.within_step / all.integers};
}

const milliseconds = () => Number(process.hrtime.bigint()) / 1e6;

async function main() {
  const [model, inputs, runs, threads, expected] = process.argv.slice(2);
  const begin = milliseconds();
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: Number(threads), interOpNumThreads: 1, graphOptimizationLevel: 'all',
  });
  const created = milliseconds();
  const peakAfterCreate = process.resourceUsage().maxRSS * 1024;
  // The exporter numbers inputs; their order is the model's.
  const feeds = {};
  const given = readSafetensors(inputs);
  if (given.length !== session.inputNames.length) throw new Error('other inputs than the model has');
  const named = new Map(given.map((each) => [each.name, each.tensor]));
  session.inputNames.forEach((name, i) => { feeds[name] = named.get(name) || given[i].tensor; });
  const times = [];
  let results;
  for (let i = 0; i < Number(runs) + 2; ++i) {
    const start = milliseconds();
    results = await session.run(feeds);
    times.push(milliseconds() - start);
  }
  const timed = times.slice(2).sort((a, b) => a - b);
  const middle = timed.length >> 1;
  const outputs = session.outputNames.map((name) => results[name]);
  let wanted;
  if (expected) {
    const file = new Map(readSafetensors(expected).map((each) => [each.name, each]));
    const inOrder = [...file.values()];
    wanted = session.outputNames.map((name, i) => file.get(name) || inOrder[i]);
  }
  console.log(JSON.stringify({
    median_ms: timed.length % 2 ? timed[middle] : (timed[middle - 1] + timed[middle]) / 2,
    min_ms: timed[0], p90_ms: timed[Math.ceil(timed.length * 0.9) - 1], first_ms: times[0],
    create_ms: created - begin, peak_after_create_bytes: peakAfterCreate,
    peak_rss_bytes: process.resourceUsage().maxRSS * 1024,
    ...(expected && {
      relative_error: relativeError(outputs, wanted), ...integerSteps(outputs, wanted),
    }),
    version: require('onnxruntime-node/package.json').version,
  }));
}

if (require.main === module) {
  main().catch((error) => { console.error('run_onnx: ' + error.message); process.exit(1); });
}
module.exports = {readSafetensors};
