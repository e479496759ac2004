"""The mappings inside a header; `parallel`, `search` and the objectives have modules of their own."""
