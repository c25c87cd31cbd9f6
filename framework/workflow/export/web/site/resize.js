/**
 * cv2.resize, number by number: 8 bits are interpolated with weights of 11 bits, and floats in single precision.
 *
 * A canvas of the browser scales otherwise, and each browser in its own way.
 */
import { clamp, emptyPixels, roundEven } from "./image.js";
const SCALE = 2048;
const f = Math.fround;
function linearTaps(source, target, areaMode, keepOutside) {
    const inverse = target / source;
    const scale = 1 / inverse;
    const first = new Int32Array(target);
    const weights = new Float64Array(target * 2);
    for (let i = 0; i < target; i++) {
        let at;
        let share;
        if (areaMode) {
            at = Math.floor(i * scale);
            share = f(i + 1 - (at + 1) * inverse);
            share = share <= 0 ? 0 : f(share - Math.floor(share));
        }
        else {
            share = f((i + 0.5) * scale - 0.5);
            at = Math.floor(share);
            share = f(share - at);
        }
        if (!keepOutside && at < 0)
            [at, share] = [0, 0];
        if (!keepOutside && at >= source - 1)
            [at, share] = [source - 1, 0];
        first[i] = at;
        weights[2 * i] = f(1 - share);
        weights[2 * i + 1] = share;
    }
    return { first, weights, count: 2 };
}
function cubicTaps(source, target) {
    const scale = 1 / (target / source);
    const first = new Int32Array(target);
    const weights = new Float64Array(target * 4);
    for (let i = 0; i < target; i++) {
        const position = f((i + 0.5) * scale - 0.5);
        const at = Math.floor(position);
        first[i] = at - 1;
        weights.set(cubicWeights(f(position - at)), 4 * i);
    }
    return { first, weights, count: 4 };
}
/** The four weights of the bicubic kernel, a = -0.75, for a point `x` after the second sample. */
export function cubicWeights(x) {
    const a = -0.75;
    const c0 = f(f(f(f(f(f(a * f(x + 1)) - 5 * a) * f(x + 1)) + 8 * a) * f(x + 1)) - 4 * a);
    const c1 = f(f(f(f(f(a + 2) * x) - f(a + 3)) * f(x * x)) + 1);
    const y = f(1 - x);
    const c2 = f(f(f(f(f(a + 2) * y) - f(a + 3)) * f(y * y)) + 1);
    return [c0, c1, c2, f(f(f(1 - c0) - c1) - c2)];
}
const integer = (weights) => Int32Array.from(weights, (w) => roundEven(f(w * SCALE)));
function resizeByTaps(image, size, across, down) {
    const [height, width] = size;
    const { channels, data } = image;
    const out = emptyPixels(height, width, channels);
    const [wx, wy] = [integer(across.weights), integer(down.weights)];
    const row = width * channels;
    const rows = new Map();
    const horizontal = (y) => {
        const cached = rows.get(y);
        if (cached !== undefined)
            return cached;
        const line = new Int32Array(row);
        for (let x = 0; x < width; x++) {
            for (let c = 0; c < channels; c++) {
                let sum = 0;
                for (let k = 0; k < across.count; k++) {
                    const at = clamp(across.first[x] + k, 0, image.width - 1);
                    sum += data[(y * image.width + at) * channels + c] * wx[x * across.count + k];
                }
                line[x * channels + c] = sum;
            }
        }
        if (rows.size > 8)
            rows.delete(rows.keys().next().value);
        rows.set(y, line);
        return line;
    };
    for (let y = 0; y < height; y++) {
        const lines = Array.from({ length: down.count }, (_, k) => horizontal(clamp(down.first[y] + k, 0, image.height - 1)));
        const target = y * row;
        if (down.count === 2) {
            const [b0, b1] = [wy[2 * y], wy[2 * y + 1]];
            const [s0, s1] = lines;
            for (let i = 0; i < row; i++) {
                // As OpenCV: four bits are dropped first, so that the products fit into 32 bits.
                const value = (((b0 * (s0[i] >> 4)) >> 16) + ((b1 * (s1[i] >> 4)) >> 16) + 2) >> 2;
                out.data[target + i] = value;
            }
        }
        else {
            for (let i = 0; i < row; i++) {
                let sum = 0;
                for (let k = 0; k < 4; k++)
                    sum += lines[k][i] * wy[4 * y + k];
                out.data[target + i] = clamp(roundEven(sum / (SCALE * SCALE)), 0, 255);
            }
        }
    }
    return out;
}
/** Which inputs lie in each output, and how much of them. */
function areaCells(source, target) {
    const scale = 1 / (target / source);
    const cells = [];
    for (let i = 0; i < target; i++) {
        const start = i * scale;
        const end = start + scale;
        const cell = Math.min(scale, source - start);
        let from = Math.ceil(start);
        let to = Math.floor(end);
        to = Math.min(to, source - 1);
        from = Math.min(from, to);
        if (from - start > 1e-3)
            cells.push({ source: from - 1, target: i, weight: f((from - start) / cell) });
        for (let at = from; at < to; at++)
            cells.push({ source: at, target: i, weight: f(1 / cell) });
        if (end - to > 1e-3) {
            cells.push({ source: to, target: i, weight: f(Math.min(Math.min(end - to, 1), cell) / cell) });
        }
    }
    return cells;
}
function shrinkByWhole(image, size, down, across) {
    const [height, width] = size;
    const { channels, data } = image;
    const out = emptyPixels(height, width, channels);
    const share = f(1 / (down * across));
    for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
            for (let c = 0; c < channels; c++) {
                let sum = 0;
                for (let v = 0; v < down; v++) {
                    for (let u = 0; u < across; u++) {
                        sum += data[((y * down + v) * image.width + x * across + u) * channels + c];
                    }
                }
                const value = down === 2 && across === 2 ? (sum + 2) >> 2 : roundEven(f(sum * share));
                out.data[(y * width + x) * channels + c] = value;
            }
        }
    }
    return out;
}
function shrink(image, size) {
    const [height, width] = size;
    const { channels, data } = image;
    const out = emptyPixels(height, width, channels);
    const row = width * channels;
    const across = areaCells(image.width, width);
    const line = new Float32Array(row);
    const sums = new Float32Array(row);
    let current = 0;
    const flush = () => {
        for (let i = 0; i < row; i++)
            out.data[current * row + i] = clamp(roundEven(sums[i]), 0, 255);
    };
    let last = -1;
    for (const { source, target, weight } of areaCells(image.height, height)) {
        if (source !== last) {
            line.fill(0);
            for (const cell of across) {
                for (let c = 0; c < channels; c++) {
                    const i = cell.target * channels + c;
                    line[i] += f(data[(source * image.width + cell.source) * channels + c] * cell.weight);
                }
            }
            last = source;
        }
        if (target !== current) {
            flush();
            current = target;
            sums.fill(0);
        }
        for (let i = 0; i < row; i++)
            sums[i] += f(weight * line[i]);
    }
    flush();
    return out;
}
function nearest(image, size) {
    const [height, width] = size;
    const { channels, data } = image;
    const out = emptyPixels(height, width, channels);
    const rows = nearestIndices(image.height, height);
    const columns = nearestIndices(image.width, width);
    for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
            for (let c = 0; c < channels; c++) {
                out.data[(y * width + x) * channels + c] = data[(rows[y] * image.width + columns[x]) * channels + c];
            }
        }
    }
    return out;
}
/** INTER_NEAREST_EXACT: the input under the centre of each output. */
export function nearestIndices(source, target) {
    const step = Math.floor((source * 65536 + Math.floor(target / 2)) / target);
    const start = Math.floor(step / 2) - (source % 2);
    return Int32Array.from({ length: target }, (_, i) => clamp(Math.floor((step * i + start) / 65536), 0, source - 1));
}
/** The image at another size, as cv2.resize gives it of 8 bits. */
export function resize(image, size, interpolation = "linear") {
    const [height, width] = size;
    if (image.height === height && image.width === width)
        return { ...image, data: image.data.slice() };
    const [down, across] = [image.height / height, image.width / width];
    const whole = Number.isInteger(down) && Number.isInteger(across);
    if (interpolation === "nearest")
        return nearest(image, size);
    if (interpolation === "cubic") {
        return resizeByTaps(image, size, cubicTaps(image.width, width), cubicTaps(image.height, height));
    }
    const halves = whole && down === 2 && across === 2;
    if (halves || (interpolation === "area" && down >= 1 && across >= 1)) {
        return whole ? shrinkByWhole(image, size, down, across) : shrink(image, size);
    }
    const areaMode = interpolation === "area";
    return resizeByTaps(image, size, linearTaps(image.width, width, areaMode, false), linearTaps(image.height, height, areaMode, true));
}
/** One channel of floats at another size, by bilinear interpolation in single precision. */
export function resizeFloat(values, source, size) {
    const [height, width] = size;
    if (source[0] === height && source[1] === width)
        return values.slice();
    if (source[0] === 2 * height && source[1] === 2 * width)
        return halve(values, source, size);
    const across = linearTaps(source[1], width, false, false);
    const down = linearTaps(source[0], height, false, true);
    const out = new Float32Array(height * width);
    const rows = new Map();
    const horizontal = (y) => {
        const cached = rows.get(y);
        if (cached !== undefined)
            return cached;
        const line = new Float32Array(width);
        for (let x = 0; x < width; x++) {
            const at = y * source[1] + across.first[x];
            const next = across.first[x] + 1 < source[1] ? at + 1 : at;
            line[x] = f(f(values[at] * across.weights[2 * x]) + f(values[next] * across.weights[2 * x + 1]));
        }
        if (rows.size > 4)
            rows.delete(rows.keys().next().value);
        rows.set(y, line);
        return line;
    };
    for (let y = 0; y < height; y++) {
        const above = horizontal(clamp(down.first[y], 0, source[0] - 1));
        const below = horizontal(clamp(down.first[y] + 1, 0, source[0] - 1));
        const [b0, b1] = [down.weights[2 * y], down.weights[2 * y + 1]];
        for (let x = 0; x < width; x++)
            out[y * width + x] = f(f(above[x] * b0) + f(below[x] * b1));
    }
    return out;
}
function halve(values, source, size) {
    const out = new Float32Array(size[0] * size[1]);
    for (let y = 0; y < size[0]; y++) {
        for (let x = 0; x < size[1]; x++) {
            const at = 2 * y * source[1] + 2 * x;
            out[y * size[1] + x] =
                (values[at] + values[at + 1] + values[at + source[1]] + values[at + source[1] + 1]) / 4;
        }
    }
    return out;
}
