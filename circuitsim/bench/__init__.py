"""The benchmark: families of circuits, competitors, measurements whose error is verified, and a report on them."""
