/** ONNX Runtime Web: which build of it runs where, and the models' sessions. */
/** Longer than threads take to start anywhere: on some iPhones they never do (onnxruntime#11679). */
const START_MILLISECONDS = 30_000;
const WASM = {
    wasm: "ort/ort-wasm-simd-threaded.wasm",
    webgpu: "ort/ort-wasm-simd-threaded.asyncify.wasm",
};
/** Whether the browser has a GPU that WebGPU reaches. */
export async function hasWebGpu() {
    const gpu = navigator.gpu;
    if (gpu === undefined)
        return false;
    try {
        return (await gpu.requestAdapter()) !== null;
    }
    catch {
        return false;
    }
}
/** Threads that WebAssembly may use: one unless the server isolates the page (COOP and COEP). */
export function threadCount() {
    if (typeof crossOriginIsolated === "undefined" || !crossOriginIsolated)
        return 1;
    return Math.max(1, Math.min(4, navigator.hardwareConcurrency ?? 1));
}
/** ONNX Runtime Web from `folder`, an address that ends in a slash. */
export class Runtime {
    ort;
    engine;
    threads;
    constructor(ort, engine, threads) {
        this.ort = ort;
        this.engine = engine;
        this.threads = threads;
    }
    static async load(folder, engine, fetchFile, threads = threadCount()) {
        // After threads have failed a module of its own: one that could not start does not start again.
        const again = threads < threadCount() ? `?threads=${threads}` : "";
        const ort = (await import(`${folder}ort.${engine}.min.mjs${again}`));
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
    async open(file, fetchFile) {
        const session = await this.ort.InferenceSession.create(await fetchFile(file.file), {
            executionProviders: [this.engine],
            graphOptimizationLevel: "all",
            logSeverityLevel: 3,
        });
        return {
            run: async (inputs) => {
                const feeds = {};
                for (const name of session.inputNames) {
                    const array = inputs[name];
                    if (array === undefined)
                        throw new Error(`The model ${file.file} takes an input ${name}, which the page does not give.`);
                    feeds[name] = new this.ort.Tensor(array.dtype, array.data, array.shape);
                }
                const outputs = await session.run(feeds);
                return Object.fromEntries(Object.entries(outputs).map(([name, { data, dims }]) => [name, { data, shape: dims }]));
            },
        };
    }
}
/** The output of this name. */
export function outputOf(outputs, name) {
    const output = outputs[name];
    if (output === undefined)
        throw new Error(`The model has no output ${name}, but ${Object.keys(outputs).join(", ")}.`);
    return output;
}
