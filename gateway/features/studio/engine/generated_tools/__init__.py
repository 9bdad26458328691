"""Tools that a model writes: made in rounds of tests, code, checks and review, applied by people, run in a sandbox.

`service.GeneratedTools` is what doors and tools use. A tool's life: `generation.ToolGeneration` makes a candidate,
`version_store.ToolVersionStore` keeps its versions, `generated_tool.GeneratedTool` is one that is in use.
"""
