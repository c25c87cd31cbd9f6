/** Lines of text: found, straightened, recognised and put into reading order. */
import { areAmong, areLow, areNarrow, badlyRead, closerScale, mergeLooks, READ_WELL, SHRUNK, } from "./closerlook.js";
import { ctcDecode } from "./ctc.js";
import { cutQuad } from "./crops.js";
import { readDirected, SURE } from "./directions.js";
import { place, rotate90, roundEven } from "./image.js";
import { addMissed, splitLong } from "./lettergaps.js";
import { addMissedBelow, asLetters, findStacks, joinStack, LEAST_STACKED, lettersInARow } from "./letters.js";
import { readingOrder } from "./order.js";
import { countRegions, detectorSize, findRegions, fitBatches, turnedLines } from "./regions.js";
import { resize } from "./resize.js";
import { outputOf } from "./runtime.js";
import { detectInGrid, detectInTiles } from "./tiles.js";
const LONGEST = 1.5; // a line that would be squeezed more than this is read in parts
const WEAK = 0.25; // score of a letter alone, such as an I
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
    const find = (pixels) => timed("detect", () => findLines(pixels, models.detector, parameters));
    const read = (quads) => readQuads(image, quads, models, parameters, timed, progress);
    progress("finding lines", 0);
    let found = await find(image);
    let lines = await read(found.quads);
    let quarter = sideways(lines);
    if (quarter !== 0) {
        // Detectors run lines of a page on its side into one another. The crops are cut from the image as it is.
        progress("finding lines", 0);
        const upright = await find(rotate90(image, -quarter));
        const again = await read(turnAllBack(upright.quads, quarter, image));
        if (certainty(again) >= certainty(lines))
            [lines, found] = [again, upright];
        else
            quarter = 0;
    }
    const bad = badlyRead(lines, found.quads.length, found.faint);
    const view = quarter === 0 ? image : rotate90(image, -quarter);
    const scale = viewScale(view, parameters);
    if (bad || (!found.inTiles && areNarrow(lines, scale))) {
        progress("looking closer", 0);
        const closer = await timed("detect", () => detectCloser(view, found.quads, scale, models.detector, parameters));
        if (closer !== null) {
            const again = await read(turnAllBack(closer, quarter, image));
            const well = lines.filter((line) => line.score >= READ_WELL);
            const known = areAmong(well.map((line) => line.polygon), again.map((line) => line.polygon));
            const both = [...again, ...well.filter((_, i) => !known[i])];
            let rest = bad;
            if (certainty(both) > certainty(lines)) {
                lines = both;
                rest = badlyRead(lines, Math.max(closer.length, lines.length), 0);
            }
            if (rest) {
                warnings.push(`about ${rest} lines could not be read well; where their letters are small, cut the image into parts`);
            }
        }
    }
    const order = await timed("arrange", () => readingOrder(lines.map((line) => line.first ?? line.polygon)));
    return { lines: order.map((i) => lines[i]), seconds, warnings };
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
    const { drop_score } = parameters.options;
    const said = quads
        .map((quad, i) => ({ ...texts[i], polygon: textQuad(quad, turned[i], heads[i]), crop: crops[i] }))
        .filter(({ text, score }) => text.trim() && score >= Math.min(drop_score, leastScore(text)));
    const lines = await joinStacked(said.map(({ text, score, polygon }) => ({ text, score, polygon })), said.map(({ crop }) => crop), read);
    const upright = lines.map((line) => quarterOf(line) === 0);
    return asLetters(lines, upright).filter(({ score }) => score >= drop_score);
}
/** A letter alone may read badly and be one of a word all the same. */
const leastScore = (text) => ([...text.trim()].length === 1 ? WEAK : 1);
/** The lines, with single letters below one another as one. */
async function joinStacked(lines, crops, read) {
    if (lines.filter(({ text }) => [...text].length === 1).length < LEAST_STACKED)
        return lines;
    const stacks = findStacks(lines.map((line) => line.polygon), lines.map((line) => line.text));
    if (!stacks.length || lines.some((line) => quarterOf(line) !== 0))
        return lines;
    // Side by side a word is read as one: of a letter alone nobody can tell whether it is an O or a zero.
    const texts = await read(stacks.map((stack) => lettersInARow(stack.map((i) => crops[i]))));
    const gone = new Set(stacks.flat());
    const joined = stacks.map((stack, row) => {
        const { text, score } = texts[row];
        return joinStack(stack.map((i) => lines[i]), [...text].length === stack.length && score >= SURE ? text : null);
    });
    return [...lines.filter((_, i) => !gone.has(i)), ...joined];
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
function quarterOf({ polygon: [a, b] }) {
    return ((roundEven(Math.atan2(b[1] - a[1], b[0] - a[0]) / (Math.PI / 2)) % 4) + 4) % 4;
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
/** All quads of the image turned by `-quarter` quarters, in pixels of the image. */
const turnAllBack = (quads, quarter, image) => quarter === 0 ? quads : quads.map((quad) => turnBack(quad, quarter, image));
/** Pixels of what the detector sees of the image for one of the image. */
function viewScale(image, { detector }) {
    const source = [image.height, image.width];
    return Math.max(...detectorSize(detector.size, source)) / Math.max(...source);
}
async function findLines(image, detector, parameters) {
    const { max_aspect } = parameters.detector;
    if (Math.max(image.height, image.width) > max_aspect * Math.min(image.height, image.width)) {
        const find = async (tile) => (await detect(tile, detector, parameters)).quads;
        const quads = splitSqueezed(image, await detectInTiles(find, image, max_aspect), parameters);
        return { quads: addMissed(image, quads), faint: 0, inTiles: true };
    }
    const { quads, faint } = await detect(image, detector, parameters);
    const scale = viewScale(image, parameters);
    const closer = areLow(quads, scale) ? await detectCloser(image, quads, scale, detector, parameters) : null;
    const all = addMissedBelow(image, addMissed(image, splitSqueezed(image, closer ?? quads, parameters)));
    return closer === null ? { quads: all, faint, inTiles: false } : { quads: all, faint: 0, inTiles: true };
}
/** The lines of an image seen in tiles; null where the detector saw it about as large as it is. */
async function detectCloser(image, quads, scale, detector, parameters) {
    const closer = closerScale(quads, scale);
    if (closer === null)
        return null;
    const side = roundEven((scale / closer) * Math.max(image.height, image.width));
    const find = async (tile) => (await detect(tile, detector, parameters)).quads;
    const tiles = await detectInGrid(find, image, side);
    return splitSqueezed(image, mergeLooks(quads, tiles, scale), parameters);
}
/** The quads, of which none has to be squeezed for the recogniser. */
function splitSqueezed(image, quads, { recognizer }) {
    const { widths, height, width_scale } = recognizer;
    return splitLong(image, quads, (LONGEST * widths[widths.length - 1]) / (height * width_scale));
}
/** The lines of an image seen whole, and how many regions may be lines, too. */
async function detect(image, detector, { detector: options }) {
    const source = [image.height, image.width];
    const size = detectorSize(options.size, source);
    const shrinks = 2 * Math.max(...size) < Math.max(...source);
    const seen = resize(image, size, shrinks ? "area" : "linear");
    const outputs = await detector.run({
        image: { dtype: "uint8", data: seen.data, shape: [1, ...size, 3] },
        size: { dtype: "int32", data: Int32Array.from(size), shape: [1, 2] },
    });
    const data = outputOf(outputs, "probability").data;
    const map = { height: size[0], width: size[1], data };
    const quads = findRegions(map, options.postprocess, source).map(({ quad }) => quad);
    const scale = Math.max(...size) / Math.max(...source);
    const faint = scale <= SHRUNK ? Math.max(countRegions(map, options.postprocess) - quads.length, 0) : 0;
    return { quads, faint };
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
