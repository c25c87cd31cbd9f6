/** From a text detector's map of probabilities to quads, and what a detector and a recogniser are shown. */
import { findContours, growPolygon, meanInside, minAreaRect, orderCorners, threshold, } from "./contours.js";
import { quadSize } from "./crops.js";
import { clamp, roundEven } from "./image.js";
const f = Math.fround;
const LETTER = 6; // pixels of a map
/** (height, width) at which the detector sees an image of this size. */
export function detectorSize(options, size) {
    let [height, width] = size;
    const side = options.limit_type === "min" ? Math.min(height, width) : Math.max(height, width);
    const beyond = options.limit_type === "min" ? side < options.limit_side : side > options.limit_side;
    const ratio = beyond ? options.limit_side / side : 1;
    [height, width] = [Math.trunc(height * ratio), Math.trunc(width * ratio)];
    if (options.max_side !== null && Math.max(height, width) > options.max_side) {
        const shrink = options.max_side / Math.max(height, width);
        [height, width] = [Math.trunc(height * shrink), Math.trunc(width * shrink)];
    }
    const whole = (length) => Math.max(roundEven(length / options.multiple), 1) * options.multiple;
    return [whole(height), whole(width)];
}
/** Text regions of a map, the lowest first, in pixels of a source of `size`. */
export function findRegions(map, options, size) {
    const mask = threshold(map, options.thresh, options.use_dilation);
    const contours = findContours(mask, [map.height, map.width]).slice(0, options.max_candidates);
    const regions = [];
    for (const contour of contours) {
        const inner = minAreaRect(contour);
        if (shorter(inner) < options.min_size)
            continue;
        const score = meanInside(map, options.score_mode === "slow" ? contour : inner.quad);
        if (score < options.box_thresh)
            continue;
        const corners = inner.quad.map(([x, y]) => [Math.trunc(x), Math.trunc(y)]);
        const grown = growPolygon(corners, growth(inner.quad, options.unclip_ratio));
        if (grown === null)
            continue;
        const outer = minAreaRect(grown);
        if (shorter(outer) < options.min_size + 2)
            continue;
        const quad = toSource(outer.quad, map, size);
        if (distance2(quad[0], quad[1]) < 16 || distance2(quad[0], quad[3]) < 16)
            continue;
        regions.push({ quad, score: f(score) });
    }
    return regions;
}
/** How many regions are above `thresh` and longer than a letter, whether they count or not. */
export function countRegions(map, options) {
    const mask = threshold(map, options.thresh, options.use_dilation);
    const contours = findContours(mask, [map.height, map.width]);
    return contours.filter((contour) => Math.max(...minAreaRect(contour).sides) >= LETTER).length;
}
const shorter = (rectangle) => Math.min(...rectangle.sides);
const distance2 = (a, b) => (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2;
/** area * ratio / perimeter. */
function growth(quad, ratio) {
    let [area, perimeter] = [0, 0];
    for (let i = 0; i < 4; i++) {
        const [x, y] = quad[i];
        const [next, before] = [quad[(i + 1) % 4], quad[(i + 3) % 4]];
        area += (x - quad[0][0]) * (next[1] - before[1]);
        perimeter += Math.sqrt((next[0] - x) ** 2 + (next[1] - y) ** 2);
    }
    return ((Math.abs(area) / 2) * ratio) / Math.max(perimeter, 1e-12);
}
function toSource(quad, map, [height, width]) {
    const scale = (value, side, target) => clamp(roundEven(f(f(value / side) * target)), 0, target);
    const moved = quad.map(([x, y]) => [scale(x, map.width, width), scale(y, map.height, height)]);
    const inside = orderCorners(moved).map(([x, y]) => [clamp(x, 0, width - 1), clamp(y, 0, height - 1)]);
    return inside;
}
/** Which quads hold a vertical line, so that their crops are turned. */
export function turnedLines(quads, rotateRatio, glyphRatio = 1.6) {
    const sizes = quads.map(quadSize);
    const tall = sizes.map(([height, width]) => height >= rotateRatio * width);
    const wide = sizes.map(([height, width]) => width >= rotateRatio * height);
    const level = wide.some(Boolean) ? wide : tall.map((one) => !one);
    if (!level.some(Boolean))
        return tall;
    const usual = median(sizes.filter((_, i) => level[i]).map(([height]) => height));
    return tall.map((one, i) => one && sizes[i][0] > glyphRatio * usual);
}
export function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
const STEP = 8; // columns of a recogniser's input for one of its output
const FINE = 5; // bits of a width
/** Batches of lines as wide as their widest one, the widest first; no batch is narrower than the first of `widths`, and lines beyond the last are squeezed. */
export function fitBatches(lengths, widths, columns, most) {
    let order = lengths.map((_, i) => i).sort((a, b) => lengths[b] - lengths[a] || a - b);
    const batches = [];
    while (order.length) {
        const width = Math.min(Math.max(rounded(lengths[order[0]]), widths[0]), widths[widths.length - 1]);
        const rows = Math.min(Math.max(1, Math.min(most, Math.floor(columns / width))), order.length);
        batches.push({ width, lines: order.slice(0, rows) });
        order = order.slice(rows);
    }
    return batches;
}
/** The width or up to a sixteenth more: a multiple of STEP that has few bits. */
function rounded(width) {
    const columns = Math.ceil(width);
    const step = Math.max(STEP, 2 ** Math.max(columns.toString(2).length - FINE, 0));
    return Math.ceil(columns / step) * step;
}
