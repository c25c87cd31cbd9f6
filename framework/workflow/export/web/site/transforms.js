/** What is done to an image before the program, as the artifact's transforms say, and the way back. */
import { clamp, place, roundEven } from "./image.js";
import { resize, resizeFloat } from "./resize.js";
const scaleSize = ([height, width], factor) => [
    Math.max(1, roundEven(height * factor)),
    Math.max(1, roundEven(width * factor)),
];
function plan(transform, source) {
    const [height, width] = source;
    const resized = (scaled, interpolation) => ({
        source,
        scaled,
        top: 0,
        left: 0,
        size: scaled,
        fill: 0,
        interpolation,
    });
    const placed = (top, left, size, fill) => ({
        source,
        scaled: source,
        top,
        left,
        size,
        fill,
        interpolation: "linear",
    });
    const aligned = (size, align, fill) => align === "center"
        ? placed(Math.floor((size[0] - height) / 2), Math.floor((size[1] - width) / 2), size, fill)
        : placed(0, 0, size, fill);
    switch (transform.type) {
        case "Resize": {
            const factors = [transform.size_hw[0] / height, transform.size_hw[1] / width];
            if (transform.mode === "exact")
                return resized(transform.size_hw, transform.interpolation);
            const factor = transform.mode === "short" ? Math.max(...factors) : Math.min(...factors);
            return resized(scaleSize(source, factor), transform.interpolation);
        }
        case "ResizeShort": {
            const factor = Math.min(transform.short / Math.min(...source), transform.longest / Math.max(...source));
            return resized(scaleSize(source, factor), transform.interpolation);
        }
        case "LetterBox": {
            const [rows, columns] = transform.size_hw;
            const factor = Math.min(rows / height, columns / width);
            const scaled = [
                Math.min(rows, Math.max(1, roundEven(height * factor))),
                Math.min(columns, Math.max(1, roundEven(width * factor))),
            ];
            const middle = transform.align === "center";
            return {
                source,
                scaled,
                top: middle ? Math.floor((rows - scaled[0]) / 2) : 0,
                left: middle ? Math.floor((columns - scaled[1]) / 2) : 0,
                size: transform.size_hw,
                fill: transform.fill,
                interpolation: transform.interpolation,
            };
        }
        case "CenterCrop": {
            const [rows, columns] = transform.size_hw;
            const cut = (side, room) => -Math.floor((side - room) / 2);
            return placed(cut(height, rows), cut(width, columns), transform.size_hw, transform.fill);
        }
        case "Pad": {
            const one = transform.padding;
            const [left, top, right, bottom] = typeof one === "number" ? [one, one, one, one] : one;
            return placed(top, left, [height + top + bottom, width + left + right], transform.fill);
        }
        case "PadToSize": {
            const [rows, columns] = transform.size_hw;
            if (height > rows || width > columns) {
                throw new Error(`The image of ${width}x${height} pixels is larger than ${columns}x${rows}, which the model takes.`);
            }
            return aligned(transform.size_hw, transform.align, transform.fill);
        }
        case "PadToMultiple": {
            const side = (length) => {
                let step = transform.multiple;
                if (transform.per_octave !== null)
                    while (step * 2 * transform.per_octave < length)
                        step *= 2;
                return Math.ceil(length / step) * step;
            };
            return aligned([side(height), side(width)], transform.align, transform.fill);
        }
    }
}
/** The image after the transforms. */
export function prepare(image, transforms) {
    const source = [image.height, image.width];
    const steps = [];
    let current = image;
    for (const transform of transforms) {
        const step = plan(transform, [current.height, current.width]);
        const scaled = resize(current, step.scaled, step.interpolation);
        const same = step.top === 0 && step.left === 0 && step.size[0] === scaled.height && step.size[1] === scaled.width;
        current = same ? scaled : place(scaled, step.top, step.left, step.size, step.fill);
        steps.push(step);
    }
    return { image: current, source, steps };
}
/** A box (x0, y0, x1, y1) of the prepared image in pixels of the source and inside of it. */
export function boxToSource(box, { source, steps }) {
    const back = (value, axis) => {
        let at = value;
        for (const step of [...steps].reverse()) {
            const start = axis === 0 ? step.top : step.left;
            at = (at - start) / (step.scaled[axis] / step.source[axis]);
        }
        return clamp(at, 0, source[axis]);
    };
    return [back(box[0], 1), back(box[1], 0), back(box[2], 1), back(box[3], 0)];
}
function wholePixels(from, to) {
    const ends = [...from, ...to];
    const [s0, s1, t0, t1] = ends.map(roundEven);
    const off = Math.max(...ends.map((end) => Math.abs(end - roundEven(end))));
    return off > 1e-6 || s1 <= s0 || t1 <= t0 ? null : { from: [s0, s1], to: [t0, t1] };
}
/** Where an axis of the prepared image lies in the source: what is seen of it, and all of it, on whole pixels. */
function cuts(prepared, axis) {
    let [scale, shift] = [1, 0];
    for (const step of prepared.steps) {
        const factor = step.scaled[axis] / step.source[axis];
        scale *= factor;
        shift = shift * factor + (axis === 0 ? step.top : step.left);
    }
    const [back, start] = [1 / scale, -shift / scale];
    const [side, room] = [axis === 0 ? prepared.image.height : prepared.image.width, prepared.source[axis]];
    const source = [Math.max(0, -start / back), Math.min(side, (room - start) / back)];
    return {
        seen: wholePixels(source, [source[0] * back + start, source[1] * back + start]),
        whole: wholePixels([0, side], [start, side * back + start]),
        scale: back,
    };
}
/** One channel of the prepared image's size brought back to the source by bilinear interpolation. */
export function floatsToSource(values, prepared) {
    const [down, across] = [cuts(prepared, 0), cuts(prepared, 1)];
    const { height, width } = prepared.image;
    const [rows, columns] = prepared.source;
    const wasteful = across.scale * width * down.scale * height > 4 * rows * columns;
    const useSeen = down.whole === null || across.whole === null || wasteful;
    const [y, x] = useSeen ? [down.seen, across.seen] : [down.whole, across.whole];
    if (y === null || x === null)
        throw new Error("The model's transforms cannot be undone on whole pixels.");
    const [partRows, partColumns] = [y.from[1] - y.from[0], x.from[1] - x.from[0]];
    const part = new Float32Array(partRows * partColumns);
    for (let row = 0; row < partRows; row++) {
        const start = (y.from[0] + row) * width + x.from[0];
        part.set(values.subarray(start, start + partColumns), row * partColumns);
    }
    const size = [y.to[1] - y.to[0], x.to[1] - x.to[0]];
    const scaled = resizeFloat(part, [partRows, partColumns], size);
    if (y.to[0] === 0 && x.to[0] === 0 && size[0] === rows && size[1] === columns)
        return scaled;
    const out = new Float32Array(rows * columns);
    for (let row = 0; row < rows; row++) {
        const line = clamp(row - y.to[0], 0, size[0] - 1) * size[1];
        for (let column = 0; column < columns; column++) {
            out[row * columns + column] = scaled[line + clamp(column - x.to[0], 0, size[1] - 1)];
        }
    }
    return out;
}
/** Labels of a prepared image that was filled up and not scaled, cut to the source. */
export function labelsToSource(labels, { image, source, steps }) {
    const top = steps.reduce((sum, step) => sum + step.top, 0);
    const left = steps.reduce((sum, step) => sum + step.left, 0);
    const out = new Uint16Array(source[0] * source[1]);
    for (let y = 0; y < source[0]; y++) {
        for (let x = 0; x < source[1]; x++) {
            out[y * source[1] + x] = Number(labels[(top + y) * image.width + left + x]);
        }
    }
    return out;
}
