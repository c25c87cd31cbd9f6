/** ONNX Runtime Web: which build of it runs where, and the models' sessions. */

import type { ModelFile } from "./manifest.js";

/** What the page uses of onnxruntime-web. */
interface OrtTensor {
  readonly data: ArrayLike<number | bigint>;
  readonly dims: readonly number[];
}
interface OrtSession {
  readonly inputNames: readonly string[];
  run(feeds: Record<string, OrtTensor>): Promise<Record<string, OrtTensor>>;
  release(): Promise<void>;
}
interface Ort {
  readonly env: {
    wasm: { numThreads?: number; wasmPaths?: unknown; wasmBinary?: Uint8Array; initTimeout?: number };
    logLevel?: string;
  };
  readonly InferenceSession: {
    create(model: Uint8Array, options: Record<string, unknown>): Promise<OrtSession>;
  };
  readonly Tensor: new (
    dtype: string,
    data: ArrayLike<number> | BigInt64Array,
    dims: readonly number[],
  ) => OrtTensor;
}

export interface Array_ {
  readonly dtype: "uint8" | "int32" | "float32";
  readonly data: Uint8Array | Int32Array | Float32Array;
  readonly shape: readonly number[];
}

export interface Output {
  readonly data: ArrayLike<number | bigint>;
  readonly shape: readonly number[];
}

export type Outputs = Readonly<Record<string, Output>>;

/** Runs one model. */
export interface Model {
  run(inputs: Readonly<Record<string, Array_>>): Promise<Outputs>;
}

export type Engine = "webgpu" | "wasm";

/** Brings the bytes of a file of the folder. */
export type Fetch = (file: string) => Promise<Uint8Array>;

/** Longer than threads take to start anywhere: on some iPhones they never do (onnxruntime#11679). */
const START_MILLISECONDS = 30_000;
const WASM: Record<Engine, string> = {
  wasm: "ort/ort-wasm-simd-threaded.wasm",
  webgpu: "ort/ort-wasm-simd-threaded.asyncify.wasm",
};

/** Whether the browser has a GPU that WebGPU reaches. */
export async function hasWebGpu(): Promise<boolean> {
  const gpu = (navigator as { gpu?: { requestAdapter(): Promise<unknown> } }).gpu;
  if (gpu === undefined) return false;
  try {
    return (await gpu.requestAdapter()) !== null;
  } catch {
    return false;
  }
}

/** Threads that WebAssembly may use: one unless the server isolates the page (COOP and COEP). */
export function threadCount(): number {
  if (typeof crossOriginIsolated === "undefined" || !crossOriginIsolated) return 1;
  return Math.max(1, Math.min(4, navigator.hardwareConcurrency ?? 1));
}

/** ONNX Runtime Web from `folder`, an address that ends in a slash. */
export class Runtime {
  private constructor(
    private readonly ort: Ort,
    readonly engine: Engine,
    readonly threads: number,
  ) {}

  static async load(
    folder: string,
    engine: Engine,
    fetchFile: Fetch,
    threads = threadCount(),
  ): Promise<Runtime> {
    // After threads have failed a module of its own: one that could not start does not start again.
    const again = threads < threadCount() ? `?threads=${threads}` : "";
    const ort = (await import(`${folder}ort.${engine}.min.mjs${again}`)) as Ort;
    ort.env.wasm.numThreads = threads;
    if (threads > 1) {
      // Its way here is no part of the time that threads have to start.
      ort.env.wasm.wasmBinary = await fetchFile(WASM[engine]);
      ort.env.wasm.initTimeout = START_MILLISECONDS;
    }
    ort.env.wasm.wasmPaths = folder;
    ort.env.logLevel = "error";
    return new Runtime(ort, engine, threads);
  }

  async open(file: ModelFile, fetchFile: Fetch): Promise<Model> {
    const session = await this.ort.InferenceSession.create(await fetchFile(file.file), {
      executionProviders: [this.engine],
      graphOptimizationLevel: "all",
      logSeverityLevel: 3,
    });
    return {
      run: async (inputs) => {
        const feeds: Record<string, OrtTensor> = {};
        for (const name of session.inputNames) {
          const array = inputs[name];
          if (array === undefined)
            throw new Error(`The model ${file.file} takes an input ${name}, which the page does not give.`);
          feeds[name] = new this.ort.Tensor(array.dtype, array.data, array.shape);
        }
        const outputs = await session.run(feeds);
        return Object.fromEntries(
          Object.entries(outputs).map(([name, { data, dims }]) => [name, { data, shape: dims }]),
        );
      },
    };
  }
}

/** The output of this name. */
export function outputOf(outputs: Outputs, name: string): Output {
  const output = outputs[name];
  if (output === undefined)
    throw new Error(`The model has no output ${name}, but ${Object.keys(outputs).join(", ")}.`);
  return output;
}
