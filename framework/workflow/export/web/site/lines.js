/** Lines of text: found, straightened, recognised and put into reading order. */
import { ctcDecode } from "./ctc.js";
import { cutQuad } from "./crops.js";
import { readDirected } from "./directions.js";
import { place, rotate90 } from "./image.js";
import { addMissed, splitLong } from "./lettergaps.js";
import { readingOrder } from "./order.js";
import { countRegions, detectorSize, findRegions, fitBatches, turnedLines } from "./regions.js";
import { resize } from "./resize.js";
import { outputOf } from "./runtime.js";
const LONGEST = 1.5; // a line that would be squeezed more than this is read in parts
const READ_WELL = 0.8;
const [BAD_SHARE, BAD_LEAST] = [0.15, 3];
const SHRUNK = 0.75; // from here on small letters may be lost
const now = () => performance.now() / 1000;
/** Reads a page. `progress` is told what is done and how much of it, 0 to 1. */
export async function readPage(image, models, parameters, progress = () => undefined) {
    const seconds = {};
    const warnings = [];
    const timed = async (name, work) => {
        const start = now();
        const value = await work();
        seconds[name] = (seconds[name] ?? 0) + now() - start;
        return value;
    };
    const find = (pixels) => timed("detect", () => findLines(pixels, models.detector, parameters, warnings));
    const read = (quads) => readQuads(image, quads, models, parameters, timed, progress);
    progress("finding lines", 0);
    let found = await find(image);
    let lines = await read(found.quads);
    const quarter = sideways(lines);
    if (quarter !== 0) {
        // Detectors run lines of a page on its side into one another. The crops are cut from the image as it is.
        progress("finding lines", 0);
        const upright = await find(rotate90(image, -quarter));
        const again = await read(upright.quads.map((quad) => turnBack(quad, quarter, image)));
        if (certainty(again) >= certainty(lines))
            [lines, found] = [again, upright];
    }
    const order = await timed("arrange", () => readingOrder(lines.map((line) => line.polygon)));
    const seen = found.quads.length + found.faint;
    const bad = seen - lines.filter((line) => line.score >= READ_WELL).length;
    if (bad >= Math.max(BAD_LEAST, BAD_SHARE * seen)) {
        warnings.push(`about ${bad} lines could not be read well; where their letters are small, cut the image into parts`);
    }
    return { lines: order.map((i) => lines[i]), seconds, warnings: [...new Set(warnings)] };
}
/** The lines of an image at these quads that say something, in the order of the quads. */
async function readQuads(image, quads, models, parameters, timed, progress) {
    const turned = turnedLines(quads, parameters.options.rotate_ratio);
    const crops = await timed("crop", () => quads.map((quad, i) => {
        const crop = cutQuad(image, quad);
        return turned[i] ? rotate90(crop, -1) : crop;
    }));
    const read = (lines) => readLines(lines, models.recognizer, parameters.recognizer, (share) => progress("reading lines", share));
    const { orientation } = parameters;
    const classifier = models.orientation;
    let texts;
    let heads = crops.map(() => false);
    if (classifier !== undefined && orientation !== null && crops.length) {
        const probabilities = await timed("orient", () => classifyDirections(crops, classifier, orientation));
        ({ texts, turned: heads } = await timed("recognize", () => readDirected(crops, probabilities, turned, read, orientation.thresh)));
    }
    else
        texts = await timed("recognize", () => read(crops));
    return quads
        .map((quad, i) => ({
        text: texts[i].text,
        score: texts[i].score,
        polygon: textQuad(quad, turned[i], heads[i]),
    }))
        .filter(({ text, score }) => text.trim() && score >= parameters.options.drop_score);
}
/** By how many quarters most of the text is turned clockwise, if it is on its side: 1, 3, or 0 for any other. */
function sideways(lines) {
    const all = lines.reduce((sum, line) => sum + line.text.length, 0);
    for (const quarter of [1, 3]) {
        const turned = lines.filter((line) => quarterOf(line) === quarter && !isWide(line.text));
        if (2 * turned.reduce((sum, line) => sum + line.text.length, 0) > all)
            return quarter;
    }
    return 0;
}
function quarterOf({ polygon: [a, b, c, d] }) {
    const [x, y] = [b[0] - a[0] + c[0] - d[0], b[1] - a[1] + c[1] - d[1]];
    return ((Math.round(Math.atan2(y, x) / (Math.PI / 2)) % 4) + 4) % 4;
}
/** Whether most characters are Chinese, Japanese or Korean, whose columns are no lines on their side. */
const isWide = (text) => 2 * [...text].filter((char) => (char.codePointAt(0) ?? 0) >= 0x2e80).length > text.length;
/** By which of several readings of one page the best is told. */
const certainty = (lines) => lines.reduce((sum, { text, score }) => sum + score * (text.match(/[\p{L}\p{N}]/gu)?.length ?? 0), 0);
/** A quad of the image turned by `-quarter` quarters, in pixels of the image. */
function turnBack(quad, quarter, { height, width }) {
    const back = ([x, y]) => (quarter === 1 ? [width - y, x] : [y, height - x]);
    return quad.map(back);
}
async function findLines(image, detector, { detector: options, recognizer }, warnings) {
    const source = [image.height, image.width];
    if (Math.max(...source) > options.max_aspect * Math.min(...source)) {
        warnings.push(`the image is longer than ${options.max_aspect} times its other side, so small letters may be lost; cut it into parts`);
    }
    const size = detectorSize(options.size, source);
    const shrinks = 2 * Math.max(...size) < Math.max(...source);
    const seen = resize(image, size, shrinks ? "area" : "linear");
    const outputs = await detector.run({
        image: { dtype: "uint8", data: seen.data, shape: [1, ...size, 3] },
        size: { dtype: "int32", data: Int32Array.from(size), shape: [1, 2] },
    });
    const data = outputOf(outputs, "probability").data;
    const map = { height: size[0], width: size[1], data };
    const found = findRegions(map, options.postprocess, source).map(({ quad }) => quad);
    const scale = Math.max(...size) / Math.max(...source);
    const faint = scale <= SHRUNK ? Math.max(countRegions(map, options.postprocess) - found.length, 0) : 0;
    const { widths, height, width_scale } = recognizer;
    const longest = (LONGEST * widths[widths.length - 1]) / (height * width_scale);
    return { quads: addMissed(image, splitLong(image, found, longest)), faint };
}
/** Crops at one height in a batch: pixels [n, height, width, 3] and the columns that each takes. */
function packLines(crops, width, height, scale) {
    const size = height * width * 3;
    const data = new Uint8Array(crops.length * size);
    const widths = crops.map((crop) => Math.min(Math.ceil(height * (crop.width / crop.height) * scale), width));
    crops.forEach((crop, i) => {
        const line = resize(crop, [height, widths[i]]);
        data.set(place(line, 0, 0, [height, width], 0).data, i * size);
    });
    return [data, Int32Array.from(widths)];
}
async function readLines(crops, model, options, progress) {
    const { height, widths, columns, batch, width_scale, symbols } = options;
    const lengths = crops.map((crop) => ((height * crop.width) / crop.height) * width_scale);
    const texts = new Array(crops.length);
    let done = 0;
    for (const { width, lines } of fitBatches(lengths, widths, columns, batch)) {
        const [data, valid] = packLines(lines.map((i) => crops[i]), width, height, width_scale);
        const outputs = await model.run({
            image: { dtype: "uint8", data, shape: [lines.length, height, width, 3] },
            width: { dtype: "int32", data: valid, shape: [lines.length] },
        });
        const [indices, probabilities] = [outputOf(outputs, "indices"), outputOf(outputs, "probabilities")];
        const steps = indices.shape[1];
        lines.forEach((line, row) => {
            const part = (values) => Array.prototype.slice.call(values, row * steps, (row + 1) * steps);
            texts[line] = ctcDecode(part(indices.data), part(probabilities.data).map(Number), symbols);
        });
        done += lines.length;
        progress(done / crops.length);
    }
    return texts;
}
/** The probabilities of upright and of upside down of each crop. */
async function classifyDirections(crops, model, options) {
    const [height, width] = options.size_hw;
    const out = [];
    for (let start = 0; start < crops.length; start += options.batch) {
        const batch = crops.slice(start, start + options.batch);
        const [data, widths] = packLines(batch, width, height, 1);
        const outputs = await model.run({
            image: { dtype: "uint8", data, shape: [batch.length, height, width, 3] },
            width: { dtype: "int32", data: widths, shape: [batch.length] },
        });
        const values = outputOf(outputs, "probability").data;
        for (let i = 0; i < batch.length; i++)
            out.push([Number(values[2 * i]), Number(values[2 * i + 1])]);
    }
    return out;
}
/** The quad of a line, beginning at the top-left corner of its text. */
function textQuad(quad, quarter, head) {
    const first = quarter ? (head ? 3 : 1) : head ? 2 : 0;
    return [0, 1, 2, 3].map((i) => quad[(first + i) % 4]);
}
