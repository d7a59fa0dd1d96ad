"""One file a step. A step that was released never changes."""
