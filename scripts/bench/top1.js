// SPDX-License-Identifier: Apache-2.0
// Prints "same" if the first float32 tensors of two safetensors files have their largest element at
// the same place of their last dimension, row by row, else "differs".
//
// Usage: node top1.js A.safetensors B.safetensors
'use strict';
const fs = require('fs');

function firstTensor(path) {
  const file = fs.readFileSync(path);
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + length).toString());
  const entry = Object.entries(header).find(([name]) => name !== '__metadata__')[1];
  const bytes = Uint8Array.from(
      file.subarray(8 + length + entry.data_offsets[0], 8 + length + entry.data_offsets[1]));
  return {data: new Float32Array(bytes.buffer), width: entry.shape[entry.shape.length - 1] || 1};
}

function places({data, width}) {
  const list = [];
  for (let row = 0; row < data.length; row += width) {
    const slice = data.subarray(row, row + width);
    list.push(slice.indexOf(Math.max(...slice)));
  }
  return list.join();
}

const [a, b] = process.argv.slice(2);
console.log(places(firstTensor(a)) === places(firstTensor(b)) ? 'same' : 'differs');
