"""Excel workbooks: their cells as a sheet shows them and as typed values. Used by ingestion and by SQL over files."""

from agent.workbooks.sheet_reader import Cell, Sheet
from agent.workbooks.sheets import Workbook, open_workbook

__all__ = ["Cell", "Sheet", "Workbook", "open_workbook"]
