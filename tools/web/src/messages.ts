/** What the page and its worker say to one another. */

import type { Box } from "./boxes.js";
import type { Class } from "./classes.js";
import type { Line } from "./lines.js";
import type { Manifest } from "./manifest.js";
import type { Masks } from "./masks.js";
import type { Engine } from "./runtime.js";

export type Request =
  | { readonly type: "open"; readonly manifest: Manifest; readonly engine: Engine | "auto" }
  | {
      readonly type: "run";
      readonly id: number;
      readonly height: number;
      readonly width: number;
      /** RGB, row by row. */
      readonly data: Uint8Array;
      readonly threshold?: number;
    };

interface Timed {
  readonly seconds: Readonly<Record<string, number>>;
}

export type Result = Timed &
  (
    | { readonly kind: "boxes"; readonly boxes: readonly Box[] }
    | { readonly kind: "classes"; readonly classes: readonly Class[] }
    | { readonly kind: "masks"; readonly masks: Masks }
    | { readonly kind: "lines"; readonly lines: readonly Line[]; readonly warnings: readonly string[] }
  );

export type Reply =
  | { readonly type: "progress"; readonly step: string; readonly share: number }
  | {
      readonly type: "ready";
      readonly engine: Engine;
      readonly threads: number;
      readonly notes: readonly string[];
    }
  | { readonly type: "result"; readonly id: number; readonly result: Result }
  | { readonly type: "error"; readonly message: string };
