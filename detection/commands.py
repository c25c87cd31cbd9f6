"""What detection adds to the command `oar`: the evaluation of tracks that stand in files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from framework.config.command_line import CommandLine, Flags
from framework.core.errors import InputError


def add_tracks(parser: argparse.ArgumentParser, models: argparse._ActionsContainer) -> None:
    """`--mot_truth` and `--tracks` of `oar eval`."""
    models.add_argument(
        "--mot_truth",
        metavar="PATH",
        help="score tracks instead: their ground truth in MOTChallenge's format, a file or a folder of sequences",
    )
    parser.add_argument(
        "--tracks",
        metavar="PATH",
        help="of --mot_truth: the MOT file of the tracks, or a folder with <sequence>.txt for each",
    )


def score_tracks(args: argparse.Namespace) -> int | None:
    """Scores `--tracks` against `--mot_truth`; None where neither is given.

    Raises:
        InputError: one is missing, or cannot be read.
    """
    if args.mot_truth is None and args.tracks is None:
        return None
    if args.mot_truth is None or args.tracks is None:
        missing = "--tracks" if args.tracks is None else "--mot_truth"
        raise InputError(
            "tracks are scored against their ground truth",
            where=missing,
            received="none",
            allowed="both: --mot_truth gt.txt --tracks video.txt",
            fix="oar infer … --video_file VIDEO --tracker bytetrack --save_results writes the tracks",
        )
    from detection.tracking.evaluation import score_files
    from framework.workflow.domain.outputs import make_folder, write_json

    scores = score_files(Path(args.mot_truth), Path(args.tracks))
    print(json.dumps(scores, indent=1))
    if args.output_dir is not None:
        folder = Path(args.output_dir)
        make_folder(folder)
        write_json(folder / "scores.json", scores)
        print(f"wrote {folder / 'scores.json'}")
    return 0


COMMANDS = CommandLine(flags={"eval": Flags(add_tracks, run=score_tracks)})
