/** Quadrilaterals cut out of an image and straightened, as cv2.warpPerspective does with bicubic interpolation. */
import { clamp, crop, emptyPixels, roundEven } from "./image.js";
import { cubicWeights } from "./resize.js";
const STEPS = 32; // positions between two pixels
const ONE = 32768; // of the weights
const f = Math.fround;
/** (height, width) of an ordered quad: the longer of opposite edges, cut off, at least 1. */
export function quadSize(quad) {
    const edge = (i) => {
        const [a, b] = [quad[i], quad[(i + 1) % 4]];
        const [dx, dy] = [f(f(a[0]) - f(b[0])), f(f(a[1]) - f(b[1]))];
        return f(Math.sqrt(f(f(dx * dx) + f(dy * dy))));
    };
    const [e0, e1, e2, e3] = [edge(0), edge(1), edge(2), edge(3)];
    return [Math.max(1, Math.trunc(Math.max(e1, e3))), Math.max(1, Math.trunc(Math.max(e0, e2)))];
}
/** The part of an image inside an ordered quad. */
export function cutQuad(image, quad) {
    const [height, width] = quadSize(quad);
    const [[x0, y0], [x1, y1], [x2, y2], [x3, y3]] = quad;
    const whole = quad.every(([x, y]) => Number.isInteger(x) && Number.isInteger(y));
    const inside = x0 >= 0 && y0 >= 0 && x1 <= image.width && y2 <= image.height;
    if (whole && inside && x0 === x3 && x1 === x2 && y0 === y1 && y2 === y3 && x0 < x1 && y0 < y2) {
        return crop(image, y0, x0, height, width);
    }
    const corners = [
        [0, 0],
        [width, 0],
        [width, height],
        [0, height],
    ];
    return warpCubic(image, invert(perspective(quad, corners)), height, width);
}
/** The matrix that takes four points to four others. */
export function perspective(from, to) {
    const rows = [];
    const right = [];
    for (let i = 0; i < 4; i++) {
        const [x, y] = [f(from[i][0]), f(from[i][1])];
        const [u, v] = to[i];
        rows.push([x, y, 1, 0, 0, 0, -x * u, -y * u], [0, 0, 0, x, y, 1, -x * v, -y * v]);
        right.push(u, v);
    }
    return [...solve(rows, right), 1];
}
function solve(rows, right) {
    const n = right.length;
    for (let i = 0; i < n; i++) {
        let best = i;
        for (let k = i + 1; k < n; k++)
            if (Math.abs(rows[k][i]) > Math.abs(rows[best][i]))
                best = k;
        if (Math.abs(rows[best][i]) < 1e-12)
            throw new Error("three corners of the quadrilateral lie on one line");
        [rows[i], rows[best]] = [rows[best], rows[i]];
        [right[i], right[best]] = [right[best], right[i]];
        for (let k = i + 1; k < n; k++) {
            const factor = rows[k][i] / rows[i][i];
            if (factor === 0)
                continue;
            for (let j = i; j < n; j++)
                rows[k][j] -= factor * rows[i][j];
            right[k] -= factor * right[i];
        }
    }
    for (let i = n - 1; i >= 0; i--) {
        for (let j = i + 1; j < n; j++)
            right[i] -= rows[i][j] * right[j];
        right[i] /= rows[i][i];
    }
    return right;
}
export function invert(m) {
    const minor = (a, b, c, d) => m[a] * m[d] - m[b] * m[c];
    const cofactors = [
        minor(4, 5, 7, 8),
        minor(2, 1, 8, 7),
        minor(1, 2, 4, 5),
        minor(5, 3, 8, 6),
        minor(0, 2, 6, 8),
        minor(2, 0, 5, 3),
        minor(3, 4, 6, 7),
        minor(1, 0, 7, 6),
        minor(0, 1, 3, 4),
    ];
    const determinant = m[0] * cofactors[0] + m[1] * cofactors[3] + m[2] * cofactors[6];
    if (determinant === 0)
        throw new Error("three corners of the quadrilateral lie on one line");
    return cofactors.map((value) => value / determinant);
}
let tables;
/** The 16 weights of each of the 32 x 32 positions, whole numbers whose sum is `ONE`. */
function cubicTables() {
    if (tables !== undefined)
        return tables;
    tables = new Int32Array(STEPS * STEPS * 16);
    const lines = Array.from({ length: STEPS }, (_, i) => cubicWeights(i / STEPS));
    for (let v = 0; v < STEPS; v++) {
        for (let u = 0; u < STEPS; u++) {
            const start = (v * STEPS + u) * 16;
            let sum = 0;
            for (let i = 0; i < 16; i++) {
                const weight = f(lines[v][i >> 2] * lines[u][i & 3]);
                tables[start + i] = roundEven(f(weight * ONE));
                sum += tables[start + i];
            }
            // What rounding left over goes to the largest or the smallest weight of the four behind the point.
            if (sum !== ONE) {
                let [least, most] = [10, 10];
                for (const i of [10, 11, 14, 15]) {
                    if (tables[start + i] < tables[start + least])
                        least = i;
                    else if (tables[start + i] > tables[start + most])
                        most = i;
                }
                tables[start + (sum < ONE ? most : least)] -= sum - ONE;
            }
        }
    }
    return tables;
}
/** Pixels at the points of `inverse`, edge pixels repeated outside. */
function warpCubic(image, inverse, height, width) {
    const { channels, data } = image;
    const out = emptyPixels(height, width, channels);
    const weights = cubicTables();
    const rows = Math.min(16, height);
    const block = Math.min(Math.floor(1024 / rows), width); // columns whose points are counted from one start
    const m = inverse;
    const [right, bottom] = [image.width - 1, image.height - 1];
    const xs = new Int32Array(4);
    for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
            const start = x - (x % block);
            const step = x - start;
            const w = m[6] * start + m[7] * y + m[8] + m[6] * step;
            const scale = w === 0 ? 0 : STEPS / w;
            const px = roundEven((m[0] * start + m[1] * y + m[2] + m[0] * step) * scale);
            const py = roundEven((m[3] * start + m[4] * y + m[5] + m[3] * step) * scale);
            const table = ((py & 31) * STEPS + (px & 31)) * 16;
            const [sx, sy] = [(px >> 5) - 1, (py >> 5) - 1];
            for (let k = 0; k < 4; k++)
                xs[k] = clamp(sx + k, 0, right) * channels;
            for (let c = 0; c < channels; c++) {
                let sum = 0;
                for (let v = 0; v < 4; v++) {
                    const line = clamp(sy + v, 0, bottom) * image.width * channels + c;
                    const at = table + 4 * v;
                    sum +=
                        data[line + xs[0]] * weights[at] +
                            data[line + xs[1]] * weights[at + 1] +
                            data[line + xs[2]] * weights[at + 2] +
                            data[line + xs[3]] * weights[at + 3];
                }
                out.data[(y * width + x) * channels + c] = clamp((sum + ONE / 2) >> 15, 0, 255);
            }
        }
    }
    return out;
}
