"""The work of one epoch: messages, stages, levels, and the runner that moves chunks between them."""
