"""`make demo`: the main job on the embedded default, seen by a reader that is not ours."""
