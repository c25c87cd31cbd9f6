// Runs an ONNX file with onnxruntime-web's wasm build: requests on standard input, answers on standard output.
// A message: uint32 length of a JSON header, the header, then the bytes of its tensors one after the other.
// node wasm_runner.cjs FOLDER_OF_ONNXRUNTIME_WEB MODEL
"use strict";
const fs = require("fs");
const [, , packageFolder, model] = process.argv;
const ort = require(packageFolder);
const arrays = { uint8: Uint8Array, int8: Int8Array, int32: Int32Array, int64: BigInt64Array, float32: Float32Array, bool: Uint8Array };

function read(size) {
  const buffer = Buffer.alloc(size);
  for (let filled = 0; filled < size; ) {
    const count = fs.readSync(0, buffer, filled, size - filled, null);
    if (count === 0) process.exit(0);
    filled += count;
  }
  return buffer;
}

function write(header, buffers) {
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  const message = Buffer.concat([length, text, ...buffers]);
  for (let sent = 0; sent < message.length; ) sent += fs.writeSync(1, message, sent);
}

async function main() {
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(fs.readFileSync(model), { executionProviders: ["wasm"] });
  write({ version: ort.env.versions && ort.env.versions.web }, []);
  for (;;) {
    const header = JSON.parse(read(read(4).readUInt32LE(0)).toString());
    const feeds = {};
    for (const { name, dtype, shape, bytes } of header.tensors) {
      const content = read(bytes);
      const Kind = arrays[dtype];
      const values = new Kind(content.buffer.slice(content.byteOffset, content.byteOffset + bytes));
      feeds[name] = new ort.Tensor(dtype, values, shape);
    }
    try {
      const outputs = await session.run(feeds);
      const tensors = [], buffers = [];
      for (const [name, tensor] of Object.entries(outputs)) {
        const content = Buffer.from(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
        tensors.push({ name, dtype: tensor.type, shape: tensor.dims, bytes: content.length });
        buffers.push(content);
      }
      write({ tensors }, buffers);
    } catch (error) {
      write({ error: String(error && error.message ? error.message : error) }, []);
    }
  }
}

main().catch((error) => {
  write({ error: String(error && error.message ? error.message : error) }, []);
  process.exit(1);
});
