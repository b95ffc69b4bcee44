// SPDX-License-Identifier: Apache-2.0
// Decodes greedily with onnxruntime-node, by a model in the form of onnxruntime-genai (llm.py writes one), and
// prints one JSON object: create_ms, first_token_ms, tokens_per_second, p90_ms, peak_rss_bytes, ids, version.
//
// Usage: node run_llm.js MODEL.onnx CONFIG.json PROMPT_IDS COUNT THREADS shared|copied
// CONFIG.json has layers, kv_heads, dim, capacity. "shared": each present tensor is given the memory of its past one.
// NODE_PATH names the folder node_modules that holds onnxruntime-node.
'use strict';
const fs = require('fs');
const ort = require('onnxruntime-node');

const milliseconds = () => Number(process.hrtime.bigint()) / 1e6;

function largest(logits, vocabulary) {
  const data = logits.data, begin = data.length - vocabulary;
  let best = begin;
  for (let i = begin + 1; i < data.length; ++i) {
    if (data[i] > data[best]) best = i;
  }
  return best - begin;
}

async function main() {
  const [model, configPath, promptText, count, threads, mode] = process.argv.slice(2);
  const config = JSON.parse(fs.readFileSync(configPath));
  const begin = milliseconds();
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: Number(threads), interOpNumThreads: 1, graphOptimizationLevel: 'all',
  });
  const created = milliseconds();
  const shape = [1, config.kv_heads, config.capacity, config.dim];
  const size = shape.reduce((a, b) => a * b);
  let caches = {};
  for (let i = 0; i < config.layers; ++i) {
    for (const kind of ['key', 'value']) caches[`${i}.${kind}`] = new ort.Tensor('float32', new Float32Array(size), shape);
  }
  async function step(ids, total) {
    const feeds = {
      input_ids: new ort.Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length]),
      seqlens_k: new ort.Tensor('int32', Int32Array.of(total - 1), [1]),
      total_sequence_length: new ort.Tensor('int32', Int32Array.of(total), []),
    };
    const fetches = {logits: null};
    for (const [name, tensor] of Object.entries(caches)) {
      feeds['past_key_values.' + name] = tensor;
      fetches['present.' + name] = mode === 'shared' ? tensor : null;
    }
    const results = await session.run(feeds, fetches);
    if (mode !== 'shared') {
      for (const name of Object.keys(caches)) caches[name] = results['present.' + name];
    }
    return largest(results.logits, config.vocabulary);
  }
  const prompt = promptText.split(' ').map(Number);
  const start = milliseconds();
  const ids = [await step(prompt, prompt.length)];
  const first = milliseconds() - start;
  const times = [];
  while (ids.length < Number(count)) {
    const from = milliseconds();
    ids.push(await step([ids[ids.length - 1]], prompt.length + ids.length));
    times.push(milliseconds() - from);
  }
  const sum = times.reduce((a, b) => a + b, 0);
  times.sort((a, b) => a - b);
  console.log(JSON.stringify({
    create_ms: created - begin, first_token_ms: first, tokens_per_second: 1000 * times.length / sum,
    p90_ms: times[Math.max(Math.ceil(0.9 * times.length) - 1, 0)],
    peak_rss_bytes: process.resourceUsage().maxRSS * 1024, ids,
    version: require('onnxruntime-node/package.json').version,
  }));
}

main().catch((error) => { console.error('run_llm: ' + error.message); process.exit(1); });
