#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Runs what `npu-align --onnx-qdq` writes with ONNX Runtime, and compares with what the document gives: every case of
// testdata/ops that has a form in ONNX, as it is and with NaN, infinities and numbers of any size among its inputs. One line for
// each case that differs, and a count. Exit status 1 if there is one.
//
//   NPU_EXPORT_CASES=/tmp/cases build/bin/npu_unit_frontend 'export onnx: each op*'
//   npm install --ignore-scripts --prefix /tmp/ort onnxruntime-node
//   NODE_PATH=/tmp/ort/node_modules scripts/check/onnx_export.js /tmp/cases
'use strict';
const fs = require('fs');
const path = require('path');
const {readSafetensors} = require('../bench/run_onnx.js');
const ort = require('onnxruntime-node');

const RTOL = 1e-4, ATOL = 1e-5;

/// The first element that differs, as text; empty if none does.
function difference(name, found, expected) {
  if (found.type !== expected.type) return `${name}: ${found.type}, expected ${expected.type}`;
  if (String(found.dims) !== String(expected.dims)) return `${name}: [${found.dims}], expected [${expected.dims}]`;
  for (let i = 0; i < expected.data.length; ++i) {
    const a = Number(found.data[i]), b = Number(expected.data[i]);
    if (Object.is(a, b) || a === b || (Number.isNaN(a) && Number.isNaN(b))) continue;
    if (expected.type.startsWith('float') && Math.abs(a - b) <= ATOL + RTOL * Math.abs(b)) continue;
    return `${name}[${i}]: ${a}, expected ${b}`;
  }
  return '';
}

async function check(folder, name) {
  const file = path.join(folder, name);
  let inputs, expected;
  try {
    inputs = readSafetensors(file + '.inputs.safetensors');
    expected = readSafetensors(file + '.outputs.safetensors');
  } catch (error) {
    return 'left out: a type that JavaScript has no array for';
  }
  try {
    const session = await ort.InferenceSession.create(file + '.onnx', {logSeverityLevel: 4});
    const feeds = {};
    for (const {name: input, tensor} of inputs) feeds[input] = tensor;
    const results = await session.run(feeds);
    const texts = session.outputNames.map((output, i) => difference(output, results[output], expected[i].tensor));
    return texts.find((text) => text !== '') || '';
  } catch (error) {
    return 'refused: ' + error.message.split('\n')[0];
  }
}

async function main() {
  const folder = process.argv[2];
  const names = fs.readdirSync(folder).filter((file) => file.endsWith('.outputs.safetensors'))
      .map((file) => file.slice(0, -'.outputs.safetensors'.length)).sort();
  let count = 0, out = 0;
  for (const name of names) {
    const text = await check(folder, name);
    if (text.startsWith('left out')) { ++out; continue; }
    if (text !== '') { ++count; console.log(`${name}: ${text}`); }
  }
  console.log(`${names.length} cases, ${count} differ, ${out} left out`);
  process.exit(count > 0 ? 1 : 0);
}

main().catch((error) => { console.error('onnx_export: ' + error.message); process.exit(1); });
