// SPDX-License-Identifier: Apache-2.0
// Runs an ONNX model step by step with onnxruntime-node: what a step gives as a state the next one reads.
//
// Usage: node run_steps.js MODEL.onnx STEPS.safetensors RESULTS.safetensors STATES THREADS
// STEPS has `first/NAME` for what states hold before the first step, and `N/NAME` for the inputs of step N = 0, 1, ...;
// STATES is a list of pairs INPUT=OUTPUT with commas between them. RESULTS gets `N/NAME` of all other outputs.
// Prints one JSON object: steps, median_ms of a step, version.
// NODE_PATH names the folder node_modules that holds onnxruntime-node.
'use strict';
const fs = require('fs');
const ort = require('onnxruntime-node');

const DTYPES = {
  F32: ['float32', Float32Array], I64: ['int64', BigInt64Array], I32: ['int32', Int32Array], BOOL: ['bool', Uint8Array],
};

function readSafetensors(path) {
  const file = fs.readFileSync(path);
  const length = Number(file.readBigUInt64LE(0));
  const tensors = {};
  for (const [name, entry] of Object.entries(JSON.parse(file.subarray(8, 8 + length).toString()))) {
    if (name === '__metadata__') continue;
    const [dtype, Type] = DTYPES[entry.dtype];
    const bytes = Uint8Array.from(file.subarray(8 + length + entry.data_offsets[0], 8 + length + entry.data_offsets[1]));
    tensors[name] = new ort.Tensor(dtype, new Type(bytes.buffer), entry.shape);
  }
  return tensors;
}

function writeSafetensors(path, tensors) {
  const names = {float32: 'F32', int64: 'I64', int32: 'I32', bool: 'BOOL'};
  const header = {}, parts = [];
  let offset = 0;
  for (const [name, tensor] of Object.entries(tensors)) {
    const bytes = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
    header[name] = {dtype: names[tensor.type], shape: tensor.dims, data_offsets: [offset, offset + bytes.length]};
    offset += bytes.length;
    parts.push(Buffer.from(bytes));
  }
  let text = JSON.stringify(header);
  text += ' '.repeat((8 - text.length % 8) % 8);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  fs.writeFileSync(path, Buffer.concat([length, Buffer.from(text), ...parts]));
}

async function main([model, stepsPath, resultsPath, pairs, threads]) {
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: Number(threads), interOpNumThreads: 1, logSeverityLevel: 3,
  });
  const states = pairs.split(',').filter(Boolean).map((pair) => pair.split('='));
  const given = readSafetensors(stepsPath), results = {}, times = [];
  const held = {};
  for (const [input] of states) held[input] = given[`first/${input}`];
  let step = 0;
  for (;; ++step) {
    const feeds = {...held};
    const prefix = `${step}/`;
    const own = Object.keys(given).filter((name) => name.startsWith(prefix));
    if (own.length === 0) break;
    for (const name of own) feeds[name.slice(prefix.length)] = given[name];
    const begin = process.hrtime.bigint();
    const found = await session.run(feeds);
    times.push(Number(process.hrtime.bigint() - begin) / 1e6);
    const kept = new Set(states.map(([, output]) => output));
    for (const [input, output] of states) held[input] = found[output];
    for (const name of session.outputNames) {
      if (!kept.has(name)) results[prefix + name] = found[name];
    }
  }
  writeSafetensors(resultsPath, results);
  times.sort((a, b) => a - b);
  console.log(JSON.stringify({
    steps: step, median_ms: times[times.length >> 1], version: require('onnxruntime-node/package.json').version,
  }));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(String(error.message || error).split('\n')[0]);
  process.exit(1);
});
