"""The visible text of HTML, in the order of reading, with its lists, tables, prices and formulas."""
