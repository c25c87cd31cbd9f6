/** The order in which lines are read: columns where there are, else rows from top to bottom. */
import { roundEven } from "./image.js";
import { median } from "./regions.js";
const MIN_COLUMN_ROWS = 3;
const MIN_GUTTER = 0.6; // of the median line height
const DETECTOR_MARGIN = 0.25; // of a line's height: how far boxes stand out at either end of the text
const LEVEL = 0.25; // of the median line height
const LEVEL_PROSE = [10.0, 0.75];
const LOOSE_PROSE = [6.0, 0.6];
const length = (v) => Math.hypot(v.x, v.y);
/** `v` turned by the angle of the unit vector `by`, backwards. */
const unturn = (v, by) => ({
    x: v.x * by.x + v.y * by.y,
    y: v.y * by.x - v.x * by.y,
});
/** Indices of the quads in the order in which a person reads them. */
export function readingOrder(quads) {
    if (quads.length === 0)
        return [];
    const boxes = uprightBoxes(quads);
    return regions(boxes, boxes.map((_, i) => i)).flat(2);
}
/** Boxes in the frame in which rows run to the right and follow downwards. */
export function uprightBoxes(quads) {
    const tops = quads.map(([a, b, c, d]) => ({
        x: (b[0] - a[0] + c[0] - d[0]) / 2,
        y: (b[1] - a[1] + c[1] - d[1]) / 2,
    }));
    const sides = quads.map(([a, b, c, d]) => ({
        x: (d[0] - a[0] + c[0] - b[0]) / 2,
        y: (d[1] - a[1] + c[1] - b[1]) / 2,
    }));
    const turn = pageDirection(tops, sides);
    const boxes = quads.map((quad, i) => {
        const [top, side] = [unturn(tops[i], turn), unturn(sides[i], turn)];
        const middle = {
            x: quad.reduce((sum, p) => sum + p[0], 0) / 4,
            y: quad.reduce((sum, p) => sum + p[1], 0) / 4,
        };
        const centre = unturn(middle, turn);
        const width = Math.max(Math.abs(top.x), Math.abs(side.x));
        const height = Math.max(Math.abs(top.y), Math.abs(side.y));
        return { centre, width, height };
    });
    const area = (list) => list.reduce((sum, one) => sum + one.width * one.height, 0);
    const vertical = area(boxes.filter((one) => one.height >= 2 * one.width)) > area(boxes) / 2;
    return boxes.map(({ centre, width, height }) => {
        const [x, y, w, h] = vertical
            ? [centre.y, -centre.x, height, width]
            : [centre.x, centre.y, width, height];
        return [x - w / 2, y - h / 2, x + w / 2, y + h / 2];
    });
}
/** The rectangle around quads, turned as they are turned on average, its upper left corner first. */
export function mergeQuads(quads) {
    if (quads.length === 1)
        return quads[0];
    let right = { x: 0, y: 0 };
    for (const [a, b, c, d] of quads) {
        const [top, side] = [
            { x: b[0] - a[0] + c[0] - d[0], y: b[1] - a[1] + c[1] - d[1] },
            { x: d[0] - a[0] + c[0] - b[0], y: d[1] - a[1] + c[1] - b[1] },
        ];
        right = { x: right.x + top.x + side.y, y: right.y + top.y - side.x };
    }
    const size = length(right);
    const unit = size ? { x: right.x / size, y: right.y / size } : { x: 1, y: 0 };
    const points = quads.flat().map(([x, y]) => unturn({ x, y }, unit));
    const [xs, ys] = [points.map((p) => p.x), points.map((p) => p.y)];
    const [x0, y0, x1, y1] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    const corner = (x, y) => [x * unit.x - y * unit.y, x * unit.y + y * unit.x];
    return [corner(x0, y0), corner(x1, y0), corner(x1, y1), corner(x0, y1)];
}
/** The page's "right": the quarter turn that most text has, then the median tilt within it. */
function pageDirection(tops, sides) {
    const right = tops.map((top, i) => length(top) >= length(sides[i]) ? top : { x: sides[i].y, y: -sides[i].x });
    const quarters = right.map((v) => ((roundEven(Math.atan2(v.y, v.x) / (Math.PI / 2)) % 4) + 4) % 4);
    const votes = [0, 0, 0, 0];
    right.forEach((v, i) => {
        votes[quarters[i]] += length(v);
    });
    const winner = votes.indexOf(Math.max(...votes));
    const unit = { x: [1, 0, -1, 0][winner], y: [0, 1, 0, -1][winner] };
    const tilts = right
        .filter((_, i) => quarters[i] === winner)
        .map((v) => {
        const upright = unturn(v, unit);
        return { tilt: Math.atan2(upright.y, upright.x), weight: length(v) };
    })
        .sort((a, b) => a.tilt - b.tilt);
    const half = tilts.reduce((sum, one) => sum + one.weight, 0) / 2;
    let [sum, tilt] = [0, 0];
    for (const one of tilts) {
        sum += one.weight;
        tilt = one.tilt;
        if (sum >= half)
            break;
    }
    const [c, s] = [Math.cos(tilt), Math.sin(tilt)];
    return { x: unit.x * c - unit.y * s, y: unit.x * s + unit.y * c };
}
function regions(boxes, items) {
    const parts = columns(boxes, items);
    if (parts === null)
        return [rows(boxes, items)];
    return parts.filter((one) => one.length).flatMap((one) => regions(boxes, one));
}
/** The items cut at the best gutter into parts in reading order; null where there is no gutter. */
function columns(boxes, items) {
    if (items.length < 2 * MIN_COLUMN_ROWS)
        return null;
    const lineHeight = median(items.map((i) => boxes[i][3] - boxes[i][1]));
    const trimmed = items.map((i) => trim(boxes[i]));
    const edges = [...new Set(trimmed.flat())].sort((a, b) => a - b);
    const cuts = edges.slice(1).map((edge, i) => (edges[i] + edge) / 2);
    const spanning = cuts.map((cut) => trimmed.filter(([x0, x1]) => x0 < cut && x1 > cut).length);
    const order = cuts.map((_, i) => i).sort((a, b) => spanning[a] - spanning[b] || a - b);
    const seen = new Set();
    let best = null;
    let bestScore = [0, 0, 0];
    const better = (score, other) => {
        for (let i = 0; i < score.length; i++)
            if (score[i] !== other[i])
                return score[i] > other[i];
        return false;
    };
    for (const index of order) {
        const left = trimmed.map(([, x1]) => x1 <= cuts[index]);
        const right = trimmed.map(([x0]) => x0 >= cuts[index]);
        const counts = [left.filter(Boolean).length, right.filter(Boolean).length];
        const few = Math.min(...counts);
        const hopeless = few < MIN_COLUMN_ROWS || better(bestScore.slice(0, 2), [few, -spanning[index]]);
        if (hopeless || seen.has(counts.join()))
            continue;
        seen.add(counts.join());
        const gap = Math.min(...trimmed.filter((_, i) => right[i]).map(([x0]) => x0)) -
            Math.max(...trimmed.filter((_, i) => left[i]).map(([, x1]) => x1));
        if (gap < MIN_GUTTER * lineHeight)
            continue;
        const [count, parts] = bands(boxes, items, left, right, lineHeight);
        const score = [count, -spanning[index], gap];
        if (count && (best === null || better(score, bestScore)))
            [best, bestScore] = [parts, score];
    }
    return best;
}
function trim([x0, y0, x1, y1]) {
    const margin = Math.min(DETECTOR_MARGIN * (y1 - y0), (x1 - x0) / 4);
    return [x0 + margin, x1 - margin];
}
/** Cuts the items where something spans the gutter: the rows of paired columns, and the parts in reading order. */
function bands(boxes, items, left, right, lineHeight) {
    const middle = items.map((i) => (boxes[i][1] + boxes[i][3]) / 2);
    const spans = items.map((_, i) => !left[i] && !right[i]);
    const limits = middle.filter((_, i) => spans[i]).sort((a, b) => a - b);
    const bandOf = middle.map((y) => limits.filter((limit) => limit <= y).length);
    let total = 0;
    const parts = [];
    let unpaired = [];
    for (let band = 0; band <= limits.length; band++) {
        const within = (side) => items.filter((_, i) => bandOf[i] === band && side[i]);
        const [one, other] = [within(left), within(right)];
        const count = pairedRows(boxes, one, other, lineHeight);
        total += count;
        unpaired = [...unpaired, ...items.filter((_, i) => bandOf[i] === band && (!count || spans[i]))];
        if (count) {
            parts.push(unpaired, one, other);
            unpaired = [];
        }
    }
    return [total, [...parts, unpaired]];
}
/** How many rows the shorter of two columns has, or 0 where the two sides are no columns. */
function pairedRows(boxes, left, right, lineHeight) {
    if (Math.min(left.length, right.length) < MIN_COLUMN_ROWS)
        return 0;
    const sorted = [left, right].map((side) => side.map((i) => boxes[i][2] - boxes[i][0]).sort((a, b) => a - b));
    const isProse = ([least, evenness]) => sorted.every((lengths) => lengths[lengths.length >> 1] >=
        Math.max(least * lineHeight, evenness * lengths[Math.trunc(0.9 * lengths.length)]));
    if (!isProse(LOOSE_PROSE))
        return 0;
    const extents = [left, right].map((side) => [
        Math.min(...side.map((i) => boxes[i][1])),
        Math.max(...side.map((i) => boxes[i][3])),
    ]);
    const common = Math.min(extents[0][1], extents[1][1]) - Math.max(extents[0][0], extents[1][0]);
    if (common < Math.min(...extents.map(([top, bottom]) => bottom - top)) / 2)
        return 0;
    const middles = [left, right].map((side) => rows(boxes, side).map((row) => row.reduce((sum, i) => sum + (boxes[i][1] + boxes[i][3]) / 2, 0) / row.length));
    const [few, many] = middles[0].length <= middles[1].length ? middles : [middles[1], middles[0]];
    const apart = few.map((y) => Math.min(...many.map((other) => Math.abs(y - other))));
    const level = median(apart) <= LEVEL * lineHeight;
    return few.length < MIN_COLUMN_ROWS || (level && !isProse(LEVEL_PROSE)) ? 0 : few.length;
}
/** Rows from top to bottom, each from left to right. */
function rows(boxes, items) {
    const spans = items.map((i) => trim(boxes[i]));
    const middles = items.map((i) => (boxes[i][1] + boxes[i][3]) / 2);
    const heights = items.map((i) => boxes[i][3] - boxes[i][1]);
    const highest = Math.max(...heights);
    const found = [];
    let near = [];
    const order = items
        .map((_, i) => i)
        .sort((a, b) => middles[a] - middles[b] || spans[a][0] - spans[b][0] || a - b);
    for (const item of order) {
        near = near.filter((row) => middles[item] - middles[row[row.length - 1]] <= highest);
        let home = null;
        let homeDistance = Number.POSITIVE_INFINITY;
        const [x0, x1] = spans[item];
        for (const row of near) {
            const gaps = row.map((i) => Math.max(spans[i][0] - x1, x0 - spans[i][1]));
            if (row.some((i, k) => gaps[k] < -0.3 * Math.min(spans[i][1] - spans[i][0], x1 - x0)))
                continue;
            const beside = row[gaps.indexOf(Math.min(...gaps))];
            const distance = Math.abs(middles[item] - middles[beside]) / Math.max(Math.min(heights[item], heights[beside]), 1e-9);
            if (distance <= 0.5 && distance < homeDistance)
                [home, homeDistance] = [row, distance];
        }
        if (home === null) {
            home = [];
            found.push(home);
            near.push(home);
        }
        home.push(item);
    }
    const mean = (row) => row.reduce((sum, i) => sum + middles[i], 0) / row.length;
    found.sort((a, b) => mean(a) - mean(b));
    return found.map((row) => [...row].sort((a, b) => spans[a][0] - spans[b][0]).map((i) => items[i]));
}
