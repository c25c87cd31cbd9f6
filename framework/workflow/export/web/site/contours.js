/** Outlines of regions and the smallest rectangles around them, as OpenCV finds them. Points are pixel indices. */
import { clamp } from "./image.js";
const f = Math.fround;
/** 1 where the map is above `thresh`; with `dilate` each such pixel spreads to its right, lower and lower right one. */
export function threshold(map, thresh, dilate) {
    const { height, width, data } = map;
    const out = new Uint8Array(height * width);
    const least = f(thresh);
    for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
            const at = y * width + x;
            if (!(data[at] > least))
                continue;
            out[at] = 1;
            if (!dilate)
                continue;
            if (x + 1 < width)
                out[at + 1] = 1;
            if (y + 1 < height)
                out[at + width] = 1;
            if (x + 1 < width && y + 1 < height)
                out[at + width + 1] = 1;
        }
    }
    return out;
}
/**
 * The outlines of 8-connected regions and of their holes, the lowest first; of straight runs only the ends.
 *
 * Suzuki and Abe, Topological structural analysis of digitized binary images by border following (1985).
 */
export function findContours(mask, [height, width]) {
    const stride = width + 2; // a frame of zeros, so that no border leaves the map
    const marks = new Int8Array(stride * (height + 2));
    for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++)
            if (mask[y * width + x])
                marks[(y + 1) * stride + x + 1] = 1;
    }
    // Neighbours counter-clockwise from the right one, y down.
    const around = [1, 1 - stride, -stride, -stride - 1, -1, stride - 1, stride, stride + 1];
    const contours = [];
    for (let y = 1; y <= height; y++) {
        for (let x = 1; x <= width; x++) {
            const at = y * stride + x;
            const value = marks[at];
            if (value === 0)
                continue;
            if (value === 1 && marks[at - 1] === 0)
                contours.push(follow(marks, at, 4, around, stride));
            else if (value > 0 && marks[at + 1] === 0)
                contours.push(follow(marks, at, 0, around, stride));
        }
    }
    return contours.reverse();
}
/** One border from `start`, whose neighbour in the direction `outside` is no part of the region. */
function follow(marks, start, outside, around, stride) {
    const point = (at) => [(at % stride) - 1, Math.floor(at / stride) - 1];
    let direction = outside;
    do {
        direction = (direction + 7) & 7; // clockwise
    } while (marks[start + around[direction]] === 0 && direction !== outside);
    if (marks[start + around[direction]] === 0) {
        marks[start] = -2;
        return [point(start)];
    }
    const first = start + around[direction]; // where the border ends
    const points = [];
    let at = start;
    let last = direction ^ 4;
    for (;;) {
        const end = direction;
        let next = at;
        for (;;) {
            direction = (direction + 1) & 7;
            next = at + around[direction];
            if (marks[next] !== 0)
                break;
        }
        // Where the right neighbour was passed and is outside, the pixel ends a row of the region.
        if ((direction - 1) >>> 0 < end)
            marks[at] = -2;
        else if (marks[at] === 1)
            marks[at] = 2;
        if (direction !== last)
            points.push(point(at));
        last = direction;
        if (next === start && at === first)
            break;
        at = next;
        direction = (direction + 4) & 7;
    }
    return points;
}
/**
 * The corners of the convex hull, clockwise on the screen, from where cv2.convexHull begins: where the points are the
 * corners of an outline, at the first or the last of them. Of rectangles of equal area the start decides.
 */
function convexHull(points) {
    const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const unique = sorted.filter((p, i) => i === 0 || p[0] !== sorted[i - 1][0] || p[1] !== sorted[i - 1][1]);
    if (unique.length < 3)
        return unique;
    const half = (line) => {
        const stack = [];
        for (const p of line) {
            for (;;) {
                const n = stack.length;
                if (n < 2)
                    break;
                const [a, b] = [stack[n - 2], stack[n - 1]];
                if ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0)
                    break;
                stack.pop();
            }
            stack.push(p);
        }
        return stack.slice(0, -1);
    };
    const hull = [...half(unique), ...half(unique.reverse())];
    const n = hull.length;
    const numbers = hull.map(([x, y]) => points.findIndex((p) => p[0] === x && p[1] === y));
    const from = (start) => hull.map((_, i) => numbers[(start + i) % n]);
    const [last, first] = [numbers.indexOf(Math.max(...numbers)), numbers.indexOf(Math.min(...numbers))];
    const falls = from(last).every((number, i, all) => i === 0 || number < all[i - 1]);
    const rises = from(first).every((number, i, all) => i === 0 || number > all[i - 1]);
    const right = hull.indexOf(unique[0]);
    const start = falls ? last : rises ? first : right;
    return hull.map((_, i) => hull[(start + i) % n]);
}
/** The smallest rotated rectangle around points, in single precision as cv2.minAreaRect and cv2.boxPoints. */
export function minAreaRect(points) {
    const hull = convexHull(points);
    let [cx, cy, width, height, angle] = [hull[0][0], hull[0][1], 0, 0, 0];
    if (hull.length > 2)
        [cx, cy, width, height, angle] = rotatingCalipers(hull);
    else if (hull.length === 2) {
        const [a, b] = hull;
        const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
        [cx, cy] = [f(f(a[0] + b[0]) * 0.5), f(f(a[1] + b[1]) * 0.5)];
        [width, angle] = [f(Math.sqrt(dx * dx + dy * dy)), Math.atan2(dy, dx)];
    }
    angle = f((angle * 180) / Math.PI);
    // OpenCV's angles are from -90 on and below 0.
    for (; angle >= 0; angle = f(angle - 90))
        [width, height] = [height, width];
    for (; angle < -90; angle = f(angle + 90))
        [width, height] = [height, width];
    const radians = (angle * Math.PI) / 180;
    const [b, a] = [f(f(Math.cos(radians)) * 0.5), f(f(Math.sin(radians)) * 0.5)];
    const corners = [
        [f(f(cx - f(a * height)) - f(b * width)), f(f(cy + f(b * height)) - f(a * width))],
        [f(f(cx + f(a * height)) - f(b * width)), f(f(cy - f(b * height)) - f(a * width))],
    ];
    for (const i of [0, 1])
        corners.push([f(f(2 * cx) - corners[i][0]), f(f(2 * cy) - corners[i][1])]);
    return { quad: orderCorners(corners), sides: [width, height] };
}
/** (centre x, centre y, width, height, angle in radians) by turning four sides around a hull of three points or more. */
function rotatingCalipers(hull) {
    const n = hull.length;
    const edges = hull.map((p, i) => {
        const q = hull[(i + 1) % n];
        return [f(q[0] - p[0]), f(q[1] - p[1])];
    });
    const inverse = edges.map(([x, y]) => f(1 / Math.sqrt(x * x + y * y)));
    let [left, bottom, right, top] = [0, 0, 0, 0];
    hull.forEach(([x, y], i) => {
        if (x < hull[left][0])
            left = i;
        if (x > hull[right][0])
            right = i;
        if (y > hull[top][1])
            top = i;
        if (y < hull[bottom][1])
            bottom = i;
    });
    const at = [bottom, right, top, left];
    let least = Number.POSITIVE_INFINITY;
    let best = { corner: 0, foot: 0, a: 1, b: 0, width: 0, height: 0 };
    for (let k = 0; k < n; k++) {
        const turned = [
            edges[at[0]],
            [edges[at[1]][1], -edges[at[1]][0]],
            [-edges[at[2]][0], -edges[at[2]][1]],
            [-edges[at[3]][1], edges[at[3]][0]],
        ];
        let main = 0;
        for (let i = 1; i < 4; i++) {
            const [u, v] = [turned[i], turned[main]];
            if (f(f(u[1] * v[0]) + f(-u[0] * v[1])) < 0)
                main = i;
        }
        const edge = at[main];
        const [x, y] = [f(edges[edge][0] * inverse[edge]), f(edges[edge][1] * inverse[edge])];
        const [a, b] = [
            [x, y],
            [y, -x],
            [-x, -y],
            [-y, x],
        ][main];
        at[main] = (at[main] + 1) % n;
        const [dx, dy] = [f(hull[at[1]][0] - hull[at[3]][0]), f(hull[at[1]][1] - hull[at[3]][1])];
        const width = f(f(dx * a) + f(dy * b));
        const [ex, ey] = [f(hull[at[2]][0] - hull[at[0]][0]), f(hull[at[2]][1] - hull[at[0]][1])];
        const height = f(f(-ex * b) + f(ey * a));
        const area = f(width * height);
        if (area <= least) {
            least = area;
            best = { corner: at[3], foot: at[0], a, b, width, height };
        }
    }
    const { a, b, width, height } = best;
    const [p, q] = [hull[best.corner], hull[best.foot]];
    const c1 = f(f(a * p[0]) + f(p[1] * b));
    const c2 = f(f(-b * q[0]) + f(q[1] * a));
    const inverseDet = f(1 / f(f(a * a) + f(b * b)));
    const px = f(f(f(c1 * a) - f(c2 * b)) * inverseDet);
    const py = f(f(f(a * c2) + f(b * c1)) * inverseDet);
    const [ux, uy, vx, vy] = [f(a * width), f(b * width), f(-b * height), f(a * height)];
    return [
        f(px + f(f(ux + vx) * 0.5)),
        f(py + f(f(uy + vy) * 0.5)),
        f(Math.sqrt(ux * ux + uy * uy)),
        f(Math.sqrt(vx * vx + vy * vy)),
        Math.atan2(uy, ux),
    ];
}
/**
 * Corners clockwise from the upper of the two leftmost; of two that are equally high the left one is the upper. Where
 * sides would cross, as of narrow quads that lean and were rounded, the right edge is turned.
 */
export function orderCorners(corners) {
    const [a, b, c, d] = corners
        .map((p, i) => ({ p, i }))
        .sort((u, v) => u.p[0] - v.p[0] || u.i - v.i)
        .map(({ p }) => p);
    const [upper, lower] = b[1] >= a[1] ? [a, b] : [b, a];
    const [upperRight, lowerRight] = d[1] >= c[1] ? [c, d] : [d, c];
    const ordered = [upper, upperRight, lowerRight, lower];
    const turned = [upper, lowerRight, upperRight, lower];
    const area = signedArea(turned);
    if (Math.abs(area) <= Math.abs(signedArea(ordered)))
        return ordered;
    return area < 0 ? [upper, lower, upperRight, lowerRight] : turned;
}
/** Twice the area, above 0 where the corners run clockwise, as y points down. */
function signedArea([a, b, c, d]) {
    return (c[0] - a[0]) * (d[1] - b[1]) - (c[1] - a[1]) * (d[0] - b[0]);
}
/** The mean of the map over the pixels that a polygon covers or touches; corners are cut to whole pixels. */
export function meanInside(map, polygon) {
    const { height, width, data } = map;
    const bound = (axis, end, best, limit) => clamp(end(best(...polygon.map((p) => p[axis]))), 0, limit);
    const x0 = bound(0, Math.floor, Math.min, width - 1);
    const x1 = bound(0, Math.ceil, Math.max, width - 1);
    const y0 = bound(1, Math.floor, Math.min, height - 1);
    const y1 = bound(1, Math.ceil, Math.max, height - 1);
    const [rows, columns] = [y1 - y0 + 1, x1 - x0 + 1];
    const corners = polygon.map(([x, y]) => [Math.trunc(f(x - x0)), Math.trunc(f(y - y0))]);
    const mask = fillPolygon(corners, rows, columns);
    let [sum, count] = [0, 0];
    for (let y = 0; y < rows; y++) {
        for (let x = 0; x < columns; x++) {
            if (!mask[y * columns + x])
                continue;
            sum += data[(y0 + y) * width + x0 + x];
            count++;
        }
    }
    return count === 0 ? 0 : sum / count;
}
/** 1 for the pixels inside of a polygon of whole corners and on its outline, as cv2.fillPoly draws it. */
export function fillPolygon(corners, height, width) {
    const mask = new Uint8Array(height * width);
    const crossings = Array.from({ length: height }, () => []);
    corners.forEach((b, i) => {
        const a = corners[(i + corners.length - 1) % corners.length];
        drawLine(mask, a, b, height, width);
        if (a[1] === b[1])
            return;
        const [above, below] = a[1] < b[1] ? [a, b] : [b, a];
        const slope = Math.trunc(((below[0] - above[0]) * 65536) / (below[1] - above[1]));
        for (let y = Math.max(above[1], 0); y < Math.min(below[1], height); y++) {
            crossings[y].push(above[0] * 65536 + slope * (y - above[1]));
        }
    });
    crossings.forEach((line, y) => {
        line.sort((a, b) => a - b);
        for (let i = 0; i + 1 < line.length; i += 2) {
            const from = Math.floor((line[i] + 32768) / 65536);
            const to = Math.floor((line[i + 1] + 32768) / 65536);
            for (let x = Math.max(from, 0); x <= Math.min(to, width - 1); x++)
                mask[y * width + x] = 1;
        }
    });
    return mask;
}
/** Bresenham's line of 8-connected pixels. */
function drawLine(mask, from, to, height, width) {
    let [a, b] = [from, to];
    if (a[0] > b[0])
        [a, b] = [b, a]; // OpenCV draws from left to right, which decides about ties
    const [dx, dy] = [b[0] - a[0], Math.abs(b[1] - a[1])];
    const down = b[1] >= a[1] ? 1 : -1;
    const steep = dy > dx;
    const [long, short] = steep ? [dy, dx] : [dx, dy];
    let error = long - 2 * short;
    let [x, y] = a;
    for (let i = 0; i <= long; i++) {
        if (x >= 0 && x < width && y >= 0 && y < height)
            mask[y * width + x] = 1;
        const both = error < 0;
        error += both ? 2 * long - 2 * short : -2 * short;
        if (steep || both)
            y += down;
        if (!steep || both)
            x += 1;
    }
}
/**
 * A convex polygon of whole corners moved outwards by `distance` with round corners, in whole pixels, as Clipper's
 * JT_ROUND with its default arc tolerance of a quarter of a pixel does.
 */
export function growPolygon(corners, distance) {
    let path = corners.filter((p, i) => {
        const q = corners[(i + corners.length - 1) % corners.length];
        return p[0] !== q[0] || p[1] !== q[1];
    });
    if (path.length < 3 || distance <= 0)
        return null;
    const area = path.reduce((sum, p, i) => {
        const q = path[(i + 1) % path.length];
        return sum + p[0] * q[1] - q[0] * p[1];
    }, 0);
    if (area === 0)
        return null;
    if (area < 0)
        path = [...path].reverse();
    const steps = Math.min(Math.PI / Math.acos(1 - 0.25 / Math.abs(distance)), Math.abs(distance) * Math.PI);
    const [sin, cos] = [Math.sin((2 * Math.PI) / steps), Math.cos((2 * Math.PI) / steps)];
    const n = path.length;
    const normals = path.map((p, i) => {
        const q = path[(i + 1) % n];
        const [dx, dy] = [q[0] - p[0], q[1] - p[1]];
        const length = Math.hypot(dx, dy);
        return [dy / length, -dx / length];
    });
    const round = (value) => (value < 0 ? Math.ceil(value - 0.5) : Math.floor(value + 0.5));
    const out = [];
    path.forEach(([x, y], i) => {
        const [from, to] = [normals[(i + n - 1) % n], normals[i]];
        const push = ([u, v]) => out.push([round(x + u * distance), round(y + v * distance)]);
        const sine = from[0] * to[1] - to[0] * from[1];
        const cosine = from[0] * to[0] + from[1] * to[1];
        if (Math.abs(sine * distance) < 1 && cosine > 0) {
            push(from);
            return;
        }
        const count = Math.max(round((steps / (2 * Math.PI)) * Math.abs(Math.atan2(sine, cosine))), 1);
        let [u, v] = from;
        for (let k = 0; k < count; k++) {
            push([u, v]);
            [u, v] = [u * cos - sin * v, u * sin + v * cos];
        }
        push(to);
    });
    return out;
}
