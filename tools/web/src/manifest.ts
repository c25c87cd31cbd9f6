/** What `oar export --format web` writes into manifest.json. */

import type { RegionOptions, SizeOptions } from "./regions.js";
import type { Transform } from "./transforms.js";

export interface ModelFile {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Shape and dtype of each input; free sizes are names. */
  readonly inputs: Readonly<Record<string, readonly [readonly (number | string)[], string]>>;
}

interface Common {
  readonly format: 1;
  readonly name: string;
  readonly made_on: string;
  readonly runtime: { readonly name: string; readonly version: string; readonly webgpu: boolean };
  readonly models: Readonly<Record<string, ModelFile>>;
}

export interface BoxesParameters {
  readonly transforms: readonly Transform[];
  readonly labels: readonly string[];
  readonly threshold: number;
}

export interface ClassesParameters {
  readonly transforms: readonly Transform[];
  readonly labels: readonly string[];
  readonly top: number;
  /** Of a model of several classes an image the least score, else null. */
  readonly threshold: number | null;
}

export interface MasksParameters {
  readonly transforms: readonly Transform[];
  readonly labels: readonly string[];
  readonly palette: readonly (readonly [number, number, number])[];
  readonly opacity: number;
  readonly background: number;
}

export interface LinesParameters {
  readonly detector: {
    readonly size: SizeOptions;
    readonly postprocess: RegionOptions;
    readonly max_aspect: number;
  };
  readonly recognizer: {
    readonly height: number;
    readonly widths: readonly number[];
    readonly columns: number;
    readonly batch: number;
    readonly width_scale: number;
    readonly symbols: readonly string[];
  };
  readonly orientation: {
    readonly size_hw: readonly [number, number];
    readonly thresh: number;
    readonly batch: number;
  } | null;
  readonly options: { readonly drop_score: number; readonly rotate_ratio: number };
}

export type Manifest = Common &
  (
    | { readonly module: "boxes"; readonly parameters: BoxesParameters }
    | { readonly module: "classes"; readonly parameters: ClassesParameters }
    | { readonly module: "masks"; readonly parameters: MasksParameters }
    | { readonly module: "lines"; readonly parameters: LinesParameters }
  );
